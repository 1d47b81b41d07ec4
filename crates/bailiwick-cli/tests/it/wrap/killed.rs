//! Client, relay or server end first, in every way: no process is left, no client hangs, every pending request is answered,
//! and the journal verifies.
//!
//! A few rounds each; a hundred with `BAILIWICK_REQUIRE=all`.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{PATIENCE, UNLISTED, World, Wrapped, call};
use crate::run::{eventually, processes};

const MANIFEST: &str =
    "name = 'mortal'\nversion = '1'\n[[tools]]\nname = 'wait'\ncapabilities = ['exec:spawn:sleep']\n";

/// What happens to a session in which three requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    RelayIsKilled,
    ServerIsKilled,
    ClientIsKilled,
    ClientEndsItsOutput,
    ClientClosesItsInput,
    ServerClosesItsOutput,
    ServerClosesItsInput,
}

impl Fate {
    /// What the server does when the third request has reached it.
    fn act(self) -> &'static str {
        match self {
            Self::ServerClosesItsOutput => "exec 1>&-; sleep WORD",
            Self::ServerClosesItsInput => "exec 0<&-; sleep WORD",
            Self::RelayIsKilled
            | Self::ServerIsKilled
            | Self::ClientIsKilled
            | Self::ClientEndsItsOutput
            | Self::ClientClosesItsInput => "sleep WORD & wait",
        }
    }
}

pub(super) fn rounds() -> usize {
    let everything = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    if everything { 100 } else { 3 }
}

fn many(fate: Fate) {
    let world = World::new();
    for round in 0..rounds() {
        let word = format!("73{}{round}{}", fate as u8, std::process::id());
        once(&world, fate, &word);
        let nothing_is_left = eventually(|| processes(&word).is_empty());
        assert!(nothing_is_left, "{fate:?} {round}: {:?}", processes(&word));
    }
    let verified = world.run(&["log", "verify"]);
    assert!(verified.status.success(), "{fate:?}: {verified:?}");
    let listed = world.run(&["ps"]);
    assert_eq!(listed.stdout, b"no wrapped server runs\n", "{fate:?}");
}

fn once(world: &World, fate: Fate, word: &str) {
    let command = server(world, fate, word);
    match fate {
        Fate::ClientIsKilled => client_is_killed(command, word),
        Fate::ClientClosesItsInput => client_closes_its_input(command, word),
        Fate::RelayIsKilled
        | Fate::ServerIsKilled
        | Fate::ClientEndsItsOutput
        | Fate::ServerClosesItsOutput
        | Fate::ServerClosesItsInput => client_listens(command, fate, word),
    }
}

/// The client goes on listening, and is told what came of each request.
fn client_listens(command: Command, fate: Fate, word: &str) {
    let mut wrapped = Wrapped::spawned(command);
    for request in requests() {
        wrapped.send(&request);
    }
    assert!(eventually(|| sleeps(word)), "{fate:?}");
    if fate == Fate::RelayIsKilled {
        kill_process(Pid::from_child(&wrapped.child), Signal::KILL).expect("a signal");
    } else if fate == Fate::ServerIsKilled {
        kill_server(word);
    } else if fate == Fate::ClientEndsItsOutput {
        drop(wrapped.input.take());
    }
    let answers = rest(&wrapped);
    if fate != Fate::RelayIsKilled {
        let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3], "{fate:?}: {answers:?}");
        assert!(answers.iter().all(|answer| answer["error"]["message"].is_string()), "{fate:?}: {answers:?}");
    }
    wrapped.child.wait().expect("it ends");
}

fn server(world: &World, fate: Fate, word: &str) -> Command {
    silent_server(world, fate.act(), word)
}

/// A server of the shell that answers nothing, and does this when the third request has reached it.
pub(super) fn silent_server(world: &World, act: &str, word: &str) -> Command {
    let act = act.replace("WORD", word);
    let script =
        format!("while IFS= read -r line; do case \"$line\" in {UNLISTED} *'\"id\":3,'*) {act};; esac; done");
    let manifest = world.write("mortal.toml", MANIFEST);
    let mut command = world.bailiwick(&["wrap", "--manifest"]);
    command.arg(manifest).args(["--", "/bin/sh", "-c", &script]);
    command
}

pub(super) fn requests() -> [Value; 3] {
    [
        call(1, "wait", &json!({})),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        // The id comes first, as the server looks for it.
        serde_json::from_str(r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"name":"wait"}}"#)
            .expect("JSON"),
    ]
}

/// What is said until the output ends.
fn rest(wrapped: &Wrapped) -> Vec<Value> {
    let mut answers = Vec::new();
    loop {
        match wrapped.lines.recv_timeout(PATIENCE) {
            Ok(line) => answers.push(serde_json::from_str(&line).expect("JSON")),
            Err(RecvTimeoutError::Disconnected) => return answers,
            Err(RecvTimeoutError::Timeout) => panic!("the client would wait for ever: {answers:?}"),
        }
    }
}

/// A client is a process that holds the other ends of both pipes: when it is killed, both are closed.
fn client_is_killed(mut command: Command, word: &str) {
    let (from_relay, to_client) = std::io::pipe().expect("a pipe");
    let (from_client, mut to_relay) = std::io::pipe().expect("a pipe");
    command.stdin(from_client).stdout(to_client).stderr(Stdio::null());
    let mut relay = command.spawn().expect("it starts");
    // The command holds ends of the pipes too.
    drop(command);
    for request in requests() {
        std::io::Write::write_all(&mut to_relay, format!("{request}\n").as_bytes()).expect("it reads");
    }
    let mut client =
        Command::new("/bin/sleep").arg("600").stdin(from_relay).stdout(to_relay).spawn().expect("it starts");
    assert!(eventually(|| sleeps(word)));
    client.kill().expect("it is there");
    client.wait().expect("it ends");
    ends(&mut relay);
}

/// The client goes on speaking and does not listen any more.
fn client_closes_its_input(mut command: Command, word: &str) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut relay = command.spawn().expect("it starts");
    let mut input = relay.stdin.take().expect("a pipe");
    let mut send = |message: &Value| std::io::Write::write_all(&mut input, format!("{message}\n").as_bytes());
    for request in requests() {
        send(&request).expect("it reads");
    }
    assert!(eventually(|| sleeps(word)));
    drop(relay.stdout.take());
    // It is noticed when there is something to say. For a moment a child of another thread may hold the pipe too.
    let ended = eventually(|| {
        drop(send(&call(4, "there-is-no-such-tool", &json!({}))));
        relay.try_wait().expect("a child").is_some()
    });
    if !ended {
        drop(relay.kill());
    }
    assert!(ended, "it goes on without a client that listens");
}

fn ends(relay: &mut Child) {
    let ended = eventually(|| relay.try_wait().expect("a child").is_some());
    if !ended {
        drop(relay.kill());
    }
    assert!(ended, "it goes on without a client");
}

/// Whether the server's own child runs: the command line of the relay has the word too.
pub(super) fn sleeps(word: &str) -> bool {
    processes(word).iter().any(|line| line.starts_with("sleep "))
}

fn kill_server(word: &str) {
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(id) = id.filter(|_| line.starts_with("/bin/sh\0-c\0while") && line.contains(word)) {
            kill_process(id, Signal::KILL).expect("it is there");
        }
    }
}

#[test]
fn the_relay_is_killed() {
    many(Fate::RelayIsKilled);
}

#[test]
fn the_server_is_killed() {
    many(Fate::ServerIsKilled);
}

#[test]
fn the_client_is_killed() {
    many(Fate::ClientIsKilled);
}

#[test]
fn the_client_ends_its_output() {
    many(Fate::ClientEndsItsOutput);
}

#[test]
fn the_client_closes_its_input() {
    many(Fate::ClientClosesItsInput);
}

#[test]
fn the_server_closes_its_output() {
    many(Fate::ServerClosesItsOutput);
}

#[test]
fn the_server_closes_its_input() {
    many(Fate::ServerClosesItsInput);
}
