//! What the sandbox refuses a wrapped server is in the journal, with the call that was being answered.

use serde_json::{Value, json};

use super::{World, call, text};

const SCRIPT: &str = r#"
    *'"id":1,'*) /usr/bin/id > /dev/null 2>&1; IFS= read -r x < SECRET
        printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}\n';;
    *'"id":2,'*) exit 3;;
"#;

fn manifest(lines: &str) -> String {
    format!("name = 'traced'\nversion = '1'\n[[tools]]\nname = 'look'\ncapabilities = [{lines}]\n")
}

/// The records of one code.
fn records(world: &World, code: &str) -> Vec<Value> {
    let all = world.recorded();
    let read = all.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim_end_matches(',')).ok());
    read.filter(|record| record.to_string().contains(code)).collect()
}

#[test]
fn a_refused_program_is_recorded_with_the_tool_and_told_at_the_end() {
    let world = World::new();
    let secret = world.write("secret", "hush\n");
    let script = SCRIPT.replace("SECRET", &secret.display().to_string());
    let mut wrapped = world.wrap_script(&manifest(""), &[], &script);
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "done");
    // The sandbox's word of a refusal comes another way than the answer.
    let told = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        !records(&world, "exec-not-granted").is_empty()
    });
    assert!(told, "{}", world.recorded());
    let ended = wrapped.ask(&call(2, "look", &json!({})));
    let why = ended["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("exited with 3") || why.contains('3'), "{ended}");
    assert!(why.contains("tried to start /usr/bin/id, which is not granted"), "{ended}");
    drop(wrapped.end());
    let refused = records(&world, "exec-not-granted");
    let record = refused.first().unwrap_or_else(|| panic!("{}", world.recorded())).to_string();
    assert!(record.contains(r#""look""#) && record.contains("exec:spawn:/usr/bin/id"), "{record}");
    assert!(records(&world, "read-not-granted").is_empty(), "files are recorded with --tell alone");
    assert!(world.run(&["log", "verify"]).status.success());
}

#[test]
fn a_granted_program_leaves_no_refusal_and_files_are_told_with_tell() {
    let world = World::new();
    let secret = world.write("secret", "hush\n");
    let script = SCRIPT.replace("SECRET", &secret.display().to_string());
    let mut wrapped = world.wrap_script(&manifest("'exec:spawn:/usr/bin/id'"), &["--tell"], &script);
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "done");
    drop(wrapped.end());
    assert!(records(&world, "exec-not-granted").is_empty(), "{}", world.recorded());
    let refused = records(&world, "read-not-granted");
    let named = |record: &&Value| record.to_string().contains(&secret.display().to_string());
    let record = refused.iter().find(named).unwrap_or_else(|| panic!("{}", world.recorded()));
    assert!(record.to_string().contains(r#""look""#), "{record}");
}

/// A server whose odd calls start a program of the host each, and whose even ones do nothing; `die` starts one and ends at once.
const IN_TURN: &str = r#"
    *'"die"'*) program=${line#*'"program":"'}; ${program%%'"'*} 2> /dev/null; kill -KILL $$;;
    *'"tools/call"'*) id=${line#*'"id":'}; id=${id%%,*}
        case "$line" in *'"starts"'*) program=${line#*'"program":"'}; ${program%%'"'*} 2> /dev/null;; esac
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id";;
"#;

const IN_TURN_MANIFEST: &str = "name = 'turns'\nversion = '1'\n[[tools]]\nname = 'starts'\n[[tools]]\nname = 'rests'\n[[tools]]\nname = 'die'\n";

/// Programs of this host that are not granted, by their paths.
fn programs(count: usize) -> Vec<String> {
    let all = std::fs::read_dir("/usr/bin").expect("programs").flatten();
    let all = all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut all: Vec<String> = all.map(|entry| entry.path().display().to_string()).collect();
    all.retain(|path| {
        let start = std::fs::read(path).unwrap_or_default();
        start.starts_with(b"\x7fELF")
            && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-".contains(&byte))
    });
    all.sort();
    all.truncate(count);
    all
}

#[test]
fn a_refusal_is_of_the_call_in_which_it_happened_however_soon_the_next_one_comes() {
    let world = World::new();
    let programs = programs(40);
    let mut wrapped = world.wrap_script(IN_TURN_MANIFEST, &[], IN_TURN);
    let mut id = 0;
    for program in &programs {
        for tool in ["starts", "rests"] {
            id += 1;
            assert!(wrapped.ask(&call(id, tool, &json!({ "program": program })))["result"].is_object());
        }
    }
    drop(wrapped.end());
    let refused = records(&world, "exec-not-granted");
    for program in &programs {
        let named = |record: &&Value| record.to_string().contains(&format!("exec:spawn:{program}\""));
        let Some(record) = refused.iter().find(named).map(Value::to_string) else {
            panic!("{program} is missing")
        };
        assert!(record.contains(r#""starts""#) && !record.contains("rests"), "{record}");
    }
}

#[test]
fn what_a_server_was_refused_in_its_last_moment_is_in_its_last_words() {
    for program in programs(15) {
        let world = World::new();
        let mut wrapped = world.wrap_script(IN_TURN_MANIFEST, &[], IN_TURN);
        let ended = wrapped.ask(&call(1, "die", &json!({ "program": program })));
        let why = ended["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains(&format!("tried to start {program}, which is not granted")), "{ended}");
        drop(wrapped.end());
    }
}

/// A server that tries to get a Unix socket in every way, from many threads, while signals interrupt it.
const STORM: &str = r#"
import ctypes, json, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
made, tries = [], [0]
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def storm(end):
    while time.monotonic() < end:
        for family in (1, 1 | 1 << 32):
            for kind in (1, 2, 3, 5, 1 | 0o2000000, 5 | 0o4000):
                tries[0] += 1
                got = libc.syscall(ctypes.c_long(41), ctypes.c_long(family), ctypes.c_long(kind), ctypes.c_long(0))
                if got >= 0:
                    made.append((family, kind))
def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "tools/call":
            end = time.monotonic() + 1
            threads = [threading.Thread(target=storm, args=(end,)) for _ in range(8)]
            [one.start() for one in threads]
            [one.join() for one in threads]
        said = "%d of %s: %r" % (len(made), "many" if tries[0] > 100 else tries[0], made[:3])
        result = {"content": [{"type": "text", "text": said}], "tools": [{"name": "look", "inputSchema": {}}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
main()
"#;

#[test]
fn no_unix_socket_comes_through_the_process_that_refuses_them() {
    if !cfg!(target_arch = "x86_64") || !std::path::Path::new("/usr/bin/python3").is_file() {
        return bailiwick_testkit::skip("this needs x86_64 and /usr/bin/python3");
    }
    let world = World::new();
    let server = world.write("storm.py", STORM).display().to_string();
    let manifest = format!(
        "name = 'traced'\nversion = '1'\nserver_capabilities = ['fs:read:{server}']\n[[tools]]\nname = 'look'\n"
    );
    let mut wrapped = world.wrap(&manifest, &[], &["/usr/bin/python3", "-S", &server]);
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "0 of many: []");
    drop(wrapped.end());
}

/// A server that tries to reach a service of the host by a Unix socket.
const SOCKETS: &str = r#"
import json, socket, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    said = "reached"
    try:
        if message["method"] == "tools/call":
            socket.socket(socket.AF_UNIX).connect("SERVICE")
    except OSError as error:
        said = error.strerror
    result = {"content": [{"type": "text", "text": said}], "tools": [{"name": "look", "inputSchema": {}}, {"name": "rest", "inputSchema": {}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn with_sockets(world: &World, lines: &str) -> (String, Vec<Value>) {
    let service = world.path("service");
    let _listener = std::os::unix::net::UnixListener::bind(&service).expect("a socket");
    let server = world.write("server.py", &SOCKETS.replace("SERVICE", &service.display().to_string()));
    let server = server.display().to_string();
    let mut wrapped = world.wrap(&manifest(lines), &[], &["/usr/bin/python3", "-S", &server]);
    let said = text(&wrapped.ask(&call(1, "look", &json!({}))));
    drop(wrapped.end());
    let _ = std::fs::remove_file(&service);
    (said, records(world, "ipc-not-granted"))
}

#[test]
fn a_refused_unix_socket_is_recorded_with_the_tool() {
    if !std::path::Path::new("/usr/bin/python3").is_file() {
        return bailiwick_testkit::skip("there is no /usr/bin/python3");
    }
    let world = World::new();
    let directory = world.0.path().display().to_string();
    // The directory is granted: without the refusal the socket in it could be reached.
    let (said, refused) = with_sockets(&world, &format!("'fs:read,write:{directory}/**'"));
    assert_eq!(said, "Operation not permitted");
    let record = refused.first().unwrap_or_else(|| panic!("{}", world.recorded())).to_string();
    assert!(record.contains(r#""look""#) && record.contains("tried to make a Unix socket"), "{record}");

    // Where some are granted, the name is known.
    let world = World::new();
    let (said, refused) = with_sockets(&world, "'ipc:connect:unix:/run/another'");
    assert_eq!(said, "Permission denied");
    let record = refused.first().unwrap_or_else(|| panic!("{}", world.recorded())).to_string();
    let named = format!("ipc:connect:unix:{}", world.path("service").display());
    assert!(record.contains(r#""look""#) && record.contains(&named), "{record}");

    let world = World::new();
    let service = world.path("service").display().to_string();
    let (said, refused) = with_sockets(&world, &format!("'ipc:connect:unix:{service}'"));
    assert_eq!((said.as_str(), refused.len()), ("reached", 0), "{}", world.recorded());
}

#[test]
fn unix_sockets_are_refused_and_recorded_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::traced::a_refused_unix",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}

#[test]
fn no_unix_socket_comes_through_that_process_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::traced::no_unix_socket_comes_through_the_process",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
