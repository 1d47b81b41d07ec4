//! What is left when a session, a call or the server ends: nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Served, command, home, shell, text};
use crate::run::{eventually, processes};

const CAPS: [&str; 8] = [
    "--cap",
    "exec:spawn:sh",
    "--cap",
    "exec:spawn:sleep",
    "--cap",
    "exec:spawn:setsid",
    "--cap",
    "exec:spawn:echo",
];

/// A shell that leaves a child in a session of its own and waits.
fn stubborn(mark: &str) -> serde_json::Value {
    json!({ "program": "sh", "args": ["-c", format!("trap '' TERM; setsid sleep {mark} & sleep {mark}")] })
}

#[test]
fn the_end_of_the_input_ends_every_child() {
    let mark = "4711.1";
    let mut served = Served::start(&CAPS);
    served.send(shell(1, stubborn(mark)).to_string());
    assert!(eventually(|| processes(mark).len() >= 3), "{:?}", processes(mark));
    let since = Instant::now();
    drop(served.input.take());
    let status = served.child.wait().unwrap();
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert_eq!(status.code(), Some(0));
    assert!(eventually(|| processes(mark).is_empty()), "{:?}", processes(mark));
}

#[test]
fn a_signal_or_a_sudden_death_ends_every_child() {
    for (mark, signal) in [("4712.1", "TERM"), ("4712.2", "INT"), ("4712.3", "KILL")] {
        let mut served = Served::start(&CAPS);
        served.send(shell(1, stubborn(mark)).to_string());
        assert!(eventually(|| processes(mark).len() >= 3), "{:?}", processes(mark));
        let pid = served.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success());
        let status = served.child.wait().unwrap();
        assert_eq!(status.code(), (signal != "KILL").then_some(0));
        assert!(eventually(|| processes(mark).is_empty()), "{signal}: {:?}", processes(mark));
    }
}

/// Clients start servers over pairs of sockets too; a thread that waits for input would keep the process from ending.
#[test]
fn no_thread_waits_for_the_input_over_sockets_as_over_pipes() {
    let mut piped = Served::start(&CAPS);
    piped.ping();
    let home = home();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let stdio = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut child = command(&home, &CAPS).stdin(stdio()).stdout(stdio()).spawn().unwrap();
    drop(theirs);
    let mut client = BufReader::new(ours.try_clone().unwrap());
    (&ours).write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let mut answer = String::new();
    client.read_line(&mut answer).unwrap();
    assert!(answer.contains("\"id\":1"), "{answer}");
    let threads = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    assert!(eventually(|| threads(child.id()) == threads(piped.child.id())), "{}", threads(child.id()));
    let sent = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_cancelled_call_ends_its_children_and_is_recorded() {
    let mark = "4713.1";
    let mut served = Served::start(&CAPS);
    served.send(shell(1, stubborn(mark)).to_string());
    assert!(eventually(|| processes(mark).len() >= 3), "{:?}", processes(mark));
    served.ping();
    served.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert!(eventually(|| processes(mark).is_empty()), "{:?}", processes(mark));
    let answer = served.shell(2, json!({ "program": "echo", "args": ["still here"] }));
    assert_eq!(text(&answer), "still here\n");
    let state = served.home.path().join(".local/state");
    drop(served.input.take());
    assert!(served.child.wait().unwrap().success());
    let mut log = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    let log = log.args(["log", "export"]).env("XDG_STATE_HOME", &state).output().unwrap();
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    for word in ["session-started", "tool-called", "tool-cancelled", "session-ended"] {
        assert!(log.contains(word), "no {word} in:\n{log}");
    }
}

#[test]
fn every_call_and_denial_is_in_the_journal() {
    let home = home();
    let mut served = Served::spawned(command(&home, &["--cap", "exec:spawn:echo"]), home);
    served.shell(1, json!({ "program": "echo" }));
    served.shell(2, json!({ "program": "rm" }));
    let state = served.home.path().join(".local/state");
    drop(served.input.take());
    assert!(served.child.wait().unwrap().success());
    let mut log = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    let shown = log.args(["log", "export"]).env("XDG_STATE_HOME", &state).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("exec-not-granted") && shown.contains("exec:spawn:rm"), "{shown}");
    let mut verify = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    let verified = verify.args(["log", "verify"]).env("XDG_STATE_HOME", &state).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
