//! Lines that two programs could read differently: what the gate saw is what a server receives, whichever parser it has.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Relayed, run};

const CORPUS: &str = include_str!("smuggling.tsv");

const MANIFEST: &str = r#"
name = "recording"
version = "1"

[[tools]]
name = "echo"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "marked"
capabilities = ["fs:read:/notes/**"]
arguments = { target = "read" }

[[tools]]
name = "resources/read"
capabilities = ["fs:read:/notes/**"]
"#;

/// Reads lines in universal newline mode, as servers that read text do, and writes what each call says.
const PYTHON: &str = r#"
import io, json, sys
lines = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="strict", newline=None)
for line in lines:
    if line.strip():
        m = json.loads(line)
        print(json.dumps([m["method"], m["params"]["name"], m["params"].get("arguments", {})]))
"#;

/// The same for servers that read lines with Node.
const NODE: &str = r#"
const chunks = [];
process.stdin.on("data", (c) => chunks.push(c)).on("end", () => {
  for (const line of Buffer.concat(chunks).toString("utf8").split(/\r?\n/)) {
    if (!line.trim()) continue;
    const m = JSON.parse(line);
    console.log(JSON.stringify([m.method, m.params.name, m.params.arguments ?? {}]));
  }
});
"#;

struct CorpusLine {
    passes: bool,
    name: &'static str,
    bytes: Vec<u8>,
}

fn corpus() -> Vec<CorpusLine> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    let read = lines.map(|line| {
        let mut parts = line.split('\t');
        let passes = match parts.next() {
            Some("pass") => true,
            Some("refuse") => false,
            other => panic!("{other:?}"),
        };
        let (name, text) = (parts.next().unwrap(), parts.next().unwrap());
        assert_eq!(parts.next(), None, "{name}");
        CorpusLine { passes, name, bytes: unescaped(text) }
    });
    read.collect()
}

fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, rest.first()) {
            (b'\\', Some(b'\\')) => {
                bytes.push(b'\\');
                rest = &rest[1..];
            }
            (b'\\', Some(b'x')) => {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&rest[1..3]).unwrap(), 16).unwrap());
                rest = &rest[3..];
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

#[test]
fn what_the_gate_saw_is_what_three_parsers_read() {
    let corpus = corpus();
    assert!(corpus.len() >= 200, "{}", corpus.len());
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let mut received: Vec<Vec<u8>> = Vec::new();
        for line in &corpus {
            relayed.send(&line.bytes).await;
            // A ping behind each line shows where what it caused ends.
            relayed.send(r#"{"jsonrpc":"2.0","id":"fence","method":"ping"}"#).await;
            let mut arrived = Vec::new();
            loop {
                let next = relayed.arrived().await;
                if next.contains("\"fence\"") {
                    break;
                }
                arrived.push(next);
            }
            relayed.serve(r#"{"jsonrpc":"2.0","id":"fence","result":{}}"#).await;
            while !relayed.heard().await.contains("\"fence\"") {}
            let expected: Vec<Vec<u8>> = if line.passes { vec![line.bytes.clone()] } else { Vec::new() };
            let arrived: Vec<Vec<u8>> =
                arrived.into_iter().map(|line| with_return(line, &expected)).collect();
            assert_eq!(arrived, expected, "{}", line.name);
            received.extend(arrived);
        }
        let seen: Vec<Value> = relayed
            .seen
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|call| json!(["tools/call", &*call.tool, call.args]))
            .collect();
        assert_eq!(seen.len(), received.len());
        let text = received.join(&b"\n"[..]);
        assert_same("serde_json", &seen, &read_by_serde(&received));
        assert_same("Python", &seen, &read_by("python3", &["-c", PYTHON], &text));
        assert_same("Node", &seen, &read_by("node", &["-e", NODE], &text));
    });
}

/// The reader of lines takes a carriage return at the end of a line away; the bytes that were sent have it.
fn with_return(line: String, expected: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = line.into_bytes();
    if expected.iter().any(|expected| expected.last() == Some(&b'\r')) {
        bytes.push(b'\r');
    }
    bytes
}

fn read_by_serde(lines: &[Vec<u8>]) -> Vec<Value> {
    let read = lines.iter().map(|line| {
        let message: Value = serde_json::from_slice(line).unwrap();
        let arguments = message["params"].get("arguments").cloned().unwrap_or_else(|| json!({}));
        json!([message["method"], message["params"]["name"], arguments])
    });
    read.collect()
}

fn read_by(program: &str, args: &[&str], text: &[u8]) -> Vec<Value> {
    let child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut input = child.stdin.take().unwrap();
    let text = text.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&text));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{program}: {}", output.status);
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_same(parser: &str, seen: &[Value], read: &[Value]) {
    assert_eq!(seen.len(), read.len(), "{parser}");
    for (seen, read) in seen.iter().zip(read) {
        assert!(same(seen, read), "{parser}: the gate saw {seen}, the server {read}");
    }
}

/// Equality where a number is its value, however it is written.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let fields = |one: &serde_json::Map<String, Value>| one.len();
            fields(one) == fields(other)
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}
