//! A server is never too busy to answer: whatever its tools are given, it hears a ping, a cancellation and a signal, and
//! its memory stays bounded.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Served, command, home, memory, served};

const MIB: usize = 1 << 20;

/// How many calls of one kind run at the same time: more than the runtime has threads.
const AT_ONCE: u64 = 3;

/// How long a ping, or an end, may take. A blocked server took minutes.
const SOON: Duration = Duration::from_secs(10);

/// What a server may hold at its peak, in KiB: the room of all calls, the longest line (8 MiB of bytes that JSON writes
/// with six letters each, twice in an answer), and what the program itself takes.
const MOST: u64 = (512 + 2 * 6 * 8 + 128) << 10;

/// Files to trouble the tools with.
struct Trouble {
    work: PathBuf,
    pages: SocketAddr,
}

impl Trouble {
    fn in_directory(work: &Path) -> Self {
        std::fs::create_dir_all(work.join("wide")).unwrap();
        std::fs::write(work.join("same"), "a".repeat(8 * MIB)).unwrap();
        std::fs::write(work.join("lines"), "a\n".repeat(4 * MIB)).unwrap();
        std::fs::write(work.join("control"), "\u{1}".repeat(8 * MIB)).unwrap();
        std::fs::write(work.join("bytes"), vec![0xff; 8 * MIB]).unwrap();
        std::fs::write(work.join("long"), "ab0 ".repeat(8 * MIB)).unwrap();
        // Text at first, and then nothing for as long as someone reads on.
        let endless = std::fs::File::create(work.join("endless")).unwrap();
        endless.write_all_at(&b"a".repeat(64 << 10), 0).unwrap();
        endless.set_len(1 << 42).unwrap();
        for number in 0..20_000 {
            std::fs::write(work.join(format!("wide/{number:0>100}")), "").unwrap();
        }
        let deep: PathBuf = std::iter::repeat_n("deep", 80).collect();
        std::fs::create_dir_all(work.join(deep)).unwrap();
        let nested = "<table><tr><td>".repeat(16_000);
        let html = format!("<html><body><p>{}</p>{nested}</body></html>", "<b>x</b> ".repeat(1000));
        Self {
            work: work.to_owned(),
            pages: served(move |_| ("content-type: text/html".to_owned(), html.clone().into())),
        }
    }

    /// The worst that is known for each tool. A tool without any is not ready to be served.
    fn worst(&self, tool: &str) -> Vec<Value> {
        let at = |name: &str| self.work.join(name).display().to_string();
        let edit = |name: &str, edits: Value| json!({ "path": at(name), "edits": edits, "dry_run": true });
        match tool {
            "fs_edit" => {
                let (half, end) = ("a".repeat(4 * MIB), format!("{}b", "a".repeat(4 * MIB)));
                let many: Vec<Value> =
                    (0..1000).map(|_| json!({ "old": "a", "new": "a", "all": true })).collect();
                vec![
                    edit("same", json!([{ "old": half, "new": "x" }])),
                    edit("same", json!([{ "old": end, "new": "x" }])),
                    edit("same", json!([{ "old": "a", "new": half, "all": true }])),
                    edit("lines", json!([{ "old": "a", "new": "b", "all": true }])),
                    edit("lines", Value::Array(many)),
                ]
            }
            "fs_search" => {
                let slow = format!("(?:{}){{40}}z", "a?b?0? ?".repeat(40));
                let larger = r"(?:[\w ]{1,9}[\w ]{1,9}){4}(?:zz|[ab0]{200}y)".to_owned();
                let wide = json!({ "path": at("."), "pattern": "z", "glob": "*a".repeat(400) });
                let patterns = [slow, larger, "(a|b|0| )*(b|0|a| )*[^ab0 ]".to_owned()];
                let all = patterns.map(|pattern| json!({ "path": at("long"), "pattern": pattern }));
                all.into_iter().chain([wide]).collect()
            }
            "fs_read" => vec![
                json!({ "path": at("endless"), "offset": 1_u64 << 50 }),
                json!({ "path": at("control"), "max_bytes": 8 * MIB }),
                json!({ "path": at("bytes"), "max_bytes": 8 * MIB }),
                json!({ "path": at("bytes"), "max_bytes": 8 * MIB, "encoding": "base64" }),
            ],
            "fs_write" => {
                vec![json!({ "path": at("written"), "content": "a".repeat(15 * MIB), "mode": "append" })]
            }
            "fs_list" => vec![json!({ "path": at("."), "depth": 64, "limit": 10_000 })],
            "shell" => self.worst_scripts(),
            "web_fetch" => vec![json!({ "url": format!("http://{}/", self.pages), "timeout_ms": 120_000 })],
            unknown => panic!("there is no worst input for `{unknown}`: add one"),
        }
    }

    fn worst_scripts(&self) -> Vec<Value> {
        let scripts = [
            "sleep 600".to_owned(),
            format!("A=xxxxxxxx; {}sleep $A", "A=$A$A$A; ".repeat(2000)),
            format!("cd {}; {}", self.work.display(), "sleep */*/*/*/* */* wide/*; ".repeat(300)),
            (0..4000).map(|number| format!("p{number};")).collect(),
            (0..40).map(|number| format!("cd {number} || A{number}=1; ")).collect(),
            format!("{}sleep 1", "(".repeat(6)),
            format!("sleep {}", "{".repeat(8000)),
            format!("sleep {}", "[a".repeat(15_000)),
            format!("sleep 600 {}", "> x ".repeat(30)),
            format!("sleep 1{}", " | sleep 600 > x".repeat(25)),
        ];
        let huge = json!({ "program": "sleep", "args": vec!["x"; MIB], "stdin": "y".repeat(8 * MIB) });
        scripts.map(|cmd| json!({ "cmd": cmd })).into_iter().chain([huge]).collect()
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

fn start(work: &Path, pages: SocketAddr) -> Served {
    let home = home();
    let files = format!("fs:read,write:{}", work.display());
    let net = format!("net:connect:{pages}");
    let mut command = command(&home, &["--cap", &files, "--cap", &net, "--cap", "exec:spawn:sleep"]);
    command.args(["--cwd", work.to_str().unwrap()]).stderr(std::process::Stdio::null());
    Served::spawned(command, home)
}

/// Processor time that a process has taken, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    field(11) + field(12)
}

/// Whether the server and everything it started come to rest.
fn rests(pid: u32) -> bool {
    let since = Instant::now();
    while since.elapsed() < SOON {
        let before = ticks(pid);
        std::thread::sleep(Duration::from_millis(500));
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        if ticks(pid) - before < 10 && children.trim().is_empty() {
            return true;
        }
    }
    false
}

fn signal(pid: u32, name: &str) {
    let _gone = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status();
}

/// Ends a server that does not even read any more, so that the test ends.
struct Watch(#[expect(dead_code, reason = "its end is what counts")] std::sync::mpsc::Sender<()>);

impl Watch {
    fn over(pid: u32) -> Self {
        let (sender, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            if ended.recv_timeout(6 * SOON) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                signal(pid, "KILL");
            }
        });
        Self(sender)
    }
}

/// Pings while calls run, cancels them, and ends the server while they run again.
fn troubled(trouble: &Trouble, tool: &str, arguments: &Value) -> Result<(), String> {
    let mut served = start(&trouble.work, trouble.pages);
    let pid = served.child.id();
    let _watch = Watch::over(pid);
    served.ping();
    let send = |served: &mut Served, from: u64| {
        let input = served.input.as_mut().unwrap();
        // One that does not read is found out by the ping.
        (from..from + AT_ONCE).for_each(|id| drop(writeln!(input, "{}", call(id, tool, arguments))));
    };
    send(&mut served, 1);
    let since = Instant::now();
    drop(writeln!(served.input.as_mut().unwrap(), r#"{{"jsonrpc":"2.0","id":"ping","method":"ping"}}"#));
    let answered =
        std::iter::from_fn(|| served.lines.recv_timeout(SOON.saturating_sub(since.elapsed())).ok())
            .any(|line| line.contains(r#""id":"ping""#));
    let mut wrong = Vec::new();
    if !answered {
        wrong.push("a ping was not answered".to_owned());
    }
    for id in 1..=AT_ONCE {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        drop(writeln!(served.input.as_mut().unwrap(), "{cancel}"));
    }
    if !rests(pid) {
        wrong.push("what was cancelled went on".to_owned());
    }
    send(&mut served, 11);
    std::thread::sleep(Duration::from_millis(300));
    let peak = served.child.try_wait().unwrap().map_or_else(|| memory(pid, "VmHWM"), |_| 0);
    if peak > MOST {
        wrong.push(format!("{peak} KiB at its peak"));
    }
    let since = Instant::now();
    signal(pid, "TERM");
    while served.child.try_wait().unwrap().is_none() && since.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(20));
    }
    match served.child.try_wait().unwrap() {
        Some(status) if status.code() == Some(0) => {}
        Some(status) => wrong.push(format!("it ended with {status}")),
        None => wrong.push("a signal did not end it".to_owned()),
    }
    let _gone = served.child.kill();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
}

/// The tools that are served. The list is the server's own, so that none is forgotten.
fn tools() -> Vec<String> {
    let mut served = Served::start(&[]);
    let list = served.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_call_keeps_the_server_from_answering() {
    let directory = home();
    let trouble = Trouble::in_directory(directory.path());
    let tools = tools();
    assert!(tools.len() >= 7, "{tools:?}");
    let mut failed = Vec::new();
    for tool in &tools {
        for (number, arguments) in trouble.worst(tool).iter().enumerate() {
            if let Err(why) = troubled(&trouble, tool, arguments) {
                failed.push(format!("{tool} {number}: {why}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Sends so many calls and counts the answers, which are not kept.
fn peak_of(trouble: &Trouble, tool: &str, arguments: &Value, count: u64) -> u64 {
    let mut served = start(&trouble.work, trouble.pages);
    served.ping();
    for id in 1..=count {
        served.send(call(id, tool, arguments));
    }
    let mut answers = 0;
    while answers < count {
        let line = served.lines.recv_timeout(super::PATIENCE).expect("an answer in time");
        assert!(line.contains(r#""result""#), "{}", line.chars().take(300).collect::<String>());
        answers += 1;
    }
    memory(served.child.id(), "VmHWM")
}

#[test]
fn many_large_answers_at_once_stay_within_the_memory_that_calls_share() {
    let directory = home();
    let trouble = Trouble::in_directory(directory.path());
    let read = |name: &str, encoding: &str| json!({ "path": directory.path().join(name), "max_bytes": 8 * MIB, "encoding": encoding });
    for (name, encoding) in [("lines", "text"), ("bytes", "text"), ("bytes", "base64"), ("control", "text")] {
        let count = if name == "control" { 20 } else { 60 };
        let peak = peak_of(&trouble, "fs_read", &read(name, encoding), count);
        assert!(peak < MOST, "{name} as {encoding}: {peak} KiB at its peak");
    }
}

/// Answers that nobody reads keep their room, and the server hears others.
#[test]
fn answers_that_wait_to_be_read_are_bounded() {
    let directory = home();
    let trouble = Trouble::in_directory(directory.path());
    let home = home();
    let files = format!("fs:read:{}", directory.path().display());
    let mut child = command(&home, &["--cap", &files]).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for id in 1..=60 {
        let arguments = json!({ "path": trouble.work.join("lines"), "max_bytes": 8 * MIB });
        writeln!(input, "{}", call(id, "fs_read", &arguments)).unwrap();
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(rests(child.id()), "it has read what it can");
    let peak = memory(child.id(), "VmHWM");
    let _ended = child.kill();
    let _gone = child.wait();
    assert!(peak > 32 << 10, "nothing was read: {peak} KiB");
    assert!(peak < MOST, "{peak} KiB at its peak");
}
