//! A client that starts a server, lists its tools and makes some calls, one after the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a server said.
pub(super) struct Answers {
    /// Whether it speaks this era.
    pub(super) is_open: bool,
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// The results of the calls, as text; empty where there was none.
    pub(super) calls: Vec<String>,
    /// What it wrote to stderr.
    pub(super) complaint: String,
}

/// The protocol of 2025, which opens a session, and the one of 2026, in which every request says all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn open(self, server: &mut Child, lines: &Receiver<String>) -> Value {
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}
        });
        match self {
            Self::Modern => ask(server, lines, 1, "server/discover", self.params(json!({}))),
            Self::Legacy => {
                let first = ask(server, lines, 1, "initialize", hello);
                send(server, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                first
            }
        }
    }

    fn params(self, mut params: Value) -> Value {
        if self == Self::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        params
    }
}

pub(super) fn talk(command: Command, era: Era, calls: Vec<(&str, String)>) -> Answers {
    talk_until(command, era, calls, false)
}

/// The same; where it `waits`, the server is given time to end by itself, so that what is around it can write what it saw.
pub(super) fn talk_until(mut command: Command, era: Era, calls: Vec<(&str, String)>, waits: bool) -> Answers {
    // In a group of its own: what stands around a server may end before it does.
    let mut server = command.process_group(0).spawn().expect("it starts");
    let lines = lines(&mut server);
    let first = era.open(&mut server, &lines);
    let listed = if first.is_null() {
        Value::Null
    } else {
        ask(&mut server, &lines, 2, "tools/list", era.params(json!({})))
    };
    let named = listed["tools"].as_array().into_iter().flatten();
    let mut tools: Vec<String> = named.filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
    tools.sort();
    let mut answers = Vec::new();
    for (id, (tool, arguments)) in (3..).zip(calls) {
        if first.is_null() {
            answers.push(String::new());
            continue;
        }
        let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
        let params = era.params(json!({"name": tool, "arguments": arguments}));
        let result = ask(&mut server, &lines, id, "tools/call", params);
        answers.push(if result.is_null() { String::new() } else { result.to_string() });
    }
    drop(server.stdin.take());
    if waits {
        end_by_itself(&mut server);
    }
    let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", server.id())]).status();
    let _ = server.wait();
    let mut complaint = String::new();
    let _ = server.stderr.take().expect("a pipe").read_to_string(&mut complaint);
    Answers { is_open: first.get("capabilities").is_some(), tools, calls: answers, complaint }
}

/// Waits for the end, and asks for it after a while.
fn end_by_itself(server: &mut Child) {
    for signal in ["0", "TERM", "TERM"] {
        let _ = Command::new("kill").args(["-s", signal, "--", &format!("-{}", server.id())]).status();
        for _ in 0..10 {
            if server.try_wait().is_ok_and(|end| end.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn lines(server: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let output = BufReader::new(server.stdout.take().expect("a pipe"));
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

fn send(server: &mut Child, message: &Value) {
    // A server that has ended answers nothing, which is seen later.
    let _ = writeln!(server.stdin.as_mut().expect("a pipe"), "{message}");
}

/// The result of a request; null if there is none.
fn ask(server: &mut Child, lines: &Receiver<String>, id: u64, method: &str, params: Value) -> Value {
    send(server, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        let Ok(answer) = serde_json::from_str::<Value>(&line) else { continue };
        if answer["id"] == json!(id) && answer.get("method").is_none() {
            return answer.get("result").cloned().unwrap_or_else(|| answer["error"].clone());
        }
    }
    Value::Null
}
