//! `bailiwick wrap --listen`: a server on stdin and stdout, for clients that speak HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, World};

const MODERN: &str = "2026-07-28";

const MANIFEST: &str = r#"
name = "shelf"
version = "1"

[[tools]]
name = "look"
capabilities = ["fs:read:/var/tmp/shelf/**"]

[[tools]]
name = "pid"
capabilities = []

[[tools.rules]]
when = { argument = "/branch", matches = '^release/' }
then = "deny"
message = "releases are cut by people"

[[tools]]
name = "pair"
capabilities = []
"#;

/// `look` and `pid` answer with the number of the server's process. `pair` says how far it is, waits for a second call, and
/// answers that first.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
first=
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"look","inputSchema":{"type":"object"}},{"name":"hidden","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"pair"'*)
      if [ -z "$first" ]; then
        first=$id
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$id"
      else
        answer "$id" second; answer "$first" first; first=
      fi;;
    *'"tools/call"'*) answer "$id" "$$";;
  esac
done
"#;

/// A wrapped server that listens; dropping it ends it.
struct Listening {
    child: Child,
    port: u16,
    token: String,
}

impl Listening {
    fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    fn start_with(world: &World, options: &[&str]) -> Self {
        let manifest = world.write("shelf.toml", MANIFEST);
        let mut command = world.bailiwick(&["wrap", "--listen", "--manifest"]);
        command.arg(manifest).args(options).args(["--", "/bin/sh", "-c", SERVER]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line_after = |start: &str| {
            let mut line = String::new();
            loop {
                line.clear();
                assert!(said.read_line(&mut line).expect("text") > 0, "it ended before it said `{start}`");
                if let Some(rest) = line.trim_end().strip_prefix(start) {
                    return rest.to_owned();
                }
            }
        };
        let url = line_after("serving MCP on ");
        let token = std::fs::read_to_string(line_after("the token is in ")).expect("a token");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp"));
        Self { child, port: port.and_then(|port| port.parse().ok()).expect("a port"), token }
    }

    fn begin(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let own: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let bearer = if headers.iter().any(|(name, _)| *name == "authorization") {
            String::new()
        } else {
            format!("authorization: Bearer {}\r\n", self.token)
        };
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nconnection: close\r\n{bearer}{own}content-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        stream
    }

    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        Reply::read(self.begin(method, headers, body))
    }

    fn open_session(&self) -> String {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let reply = self.send("POST", &[], &body.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        let session = reply.header("mcp-session-id").expect("a session").to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        assert_eq!(self.send("POST", &[("mcp-session-id", &session)], &ready).status, 202);
        session
    }

    fn call(&self, session: &str, tool: &str, arguments: &Value) -> Reply {
        self.send("POST", &[("mcp-session-id", session)], &super::call(1, tool, arguments).to_string())
    }

    fn begin_modern(&self, id: &Value, tool: &str, token: &str) -> TcpStream {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": token,
        });
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", tool)];
        self.begin("POST", &headers, &body)
    }

    fn end(mut self) {
        let killed = std::process::Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(killed.expect("kill").success());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn read(stream: TcpStream) -> Self {
        Self::read_after(Vec::new(), stream)
    }

    /// Reads what follows these bytes.
    fn read_after(mut bytes: Vec<u8>, mut stream: TcpStream) -> Self {
        drop(stream.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
    }

    /// Every message, of a plain body or of a stream.
    fn messages(&self) -> Vec<Value> {
        let lines = self.body.lines().map(|line| line.trim().strip_prefix("data:").unwrap_or(line).trim());
        lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
    }

    fn answer(&self) -> Value {
        let mut answers = self.messages().into_iter().filter(|message| message.get("id").is_some());
        answers.next_back().unwrap_or_else(|| panic!("no answer in {self:?}"))
    }
}

fn wait_until_gone(pid: &str) {
    let since = Instant::now();
    while Path::new("/proc").join(pid).exists() {
        assert!(since.elapsed() < PATIENCE, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_session_has_a_server_of_its_own_and_its_calls_are_judged() {
    let world = World::new();
    let listening = Listening::start(&world);
    assert_eq!(listening.send("POST", &[("authorization", "Bearer no")], "{}").status, 401);
    assert_eq!(listening.send("POST", &[("origin", "http://evil.example")], "{}").status, 403);
    let (one, other) = (listening.open_session(), listening.open_session());
    let shown = |session: &str| super::text(&listening.call(session, "pid", &json!({})).answer());
    let (first, second) = (shown(&one), shown(&other));
    assert_eq!(first, shown(&one), "the same server again");
    // Each has a process namespace of its own, so the numbers may be the same there.
    assert_eq!((first.is_empty(), second.is_empty()), (false, false));

    let outside = listening.call(&one, "look", &json!({ "path": "/etc/shadow" })).answer();
    assert_eq!(outside["result"]["isError"], true, "{outside}");
    assert!(outside["result"]["_meta"]["dev.bailiwick/decision"].is_object(), "{outside}");
    let unknown = listening.call(&one, "hidden", &json!({})).answer();
    assert!(
        unknown["error"]["message"].as_str().is_some_and(|text| text.contains("Unknown tool")),
        "{unknown}"
    );
    let list = json!({ "jsonrpc": "2.0", "id": "l", "method": "tools/list" }).to_string();
    let list = listening.send("POST", &[("mcp-session-id", &one)], &list).answer();
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{list}");

    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pid","name":"look"}}"#;
    let refused = listening.send("POST", &[("mcp-session-id", &one)], twice);
    assert_eq!((refused.status, &refused.answer()["error"]["code"]), (400, &json!(-32600)));

    assert_eq!(listening.send("DELETE", &[("mcp-session-id", &one)], "").status, 202);
    assert_eq!(listening.call(&one, "pid", &json!({})).status, 404);
    assert_eq!(shown(&other), second, "the other session goes on");
    listening.end();
    let recorded = world.recorded();
    for event in ["sandbox-started", "tool-called", "message-ambiguous", "session-ended"] {
        assert!(recorded.contains(event), "{event}: {recorded}");
    }
}

#[test]
fn rules_hold_over_http_and_audit_only_records_them() {
    let world = World::new();
    let release = json!({ "branch": "release/1" });
    let listening = Listening::start(&world);
    let session = listening.open_session();
    let refused = listening.call(&session, "pid", &release).answer();
    assert_eq!(refused["result"]["_meta"]["dev.bailiwick/decision"]["code"], "argument-rule", "{refused}");
    listening.end();

    std::fs::create_dir_all(world.path(".config/bailiwick")).expect("a directory");
    world.write(".config/bailiwick/config.toml", "[wrap]\naudit = true\n");
    let listening = Listening::start_with(&world, &["--mode", "audit"]);
    let session = listening.open_session();
    let passed = listening.call(&session, "pid", &release).answer();
    assert!(passed["result"]["content"].is_array() && passed["result"]["isError"].is_null(), "{passed}");
    listening.end();
    let recorded = world.recorded();
    assert!(recorded.contains("would-deny") && recorded.contains("argument-rule: "), "{recorded}");
}

#[test]
fn clients_of_the_modern_era_share_a_server_and_hear_their_own_ids() {
    let world = World::new();
    let listening = Listening::start(&world);
    // Both clients count from one.
    let mut first = listening.begin_modern(&json!(1), "pair", "token of the first");
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains("notifications/progress") {
        let mut piece = [0; 1024];
        let count = first.read(&mut piece).expect("its stream begins");
        assert!(count > 0, "{}", String::from_utf8_lossy(&begun));
        begun.extend_from_slice(&piece[..count]);
    }
    let second = Reply::read(listening.begin_modern(&json!(1), "pair", "token of the second"));
    let first = Reply::read_after(begun, first);
    let texts = [&first, &second].map(|reply| super::text(&reply.answer()));
    assert_eq!(texts, ["first", "second"], "{first:?} {second:?}");
    assert_eq!([first.answer()["id"].clone(), second.answer()["id"].clone()], [json!(1), json!(1)]);
    let progress: Vec<Value> = first
        .messages()
        .into_iter()
        .filter(|message| message["method"] == "notifications/progress")
        .collect();
    assert_eq!(progress.len(), 1, "{first:?}");
    assert_eq!(progress[0]["params"]["progressToken"], "token of the first");
    assert!(!second.body.contains("progress"), "{second:?}");
    let undeclared = Reply::read(listening.begin_modern(&json!("x"), "hidden", "t"));
    assert_eq!((undeclared.status, &undeclared.answer()["id"]), (200, &json!("x")));
    assert!(undeclared.body.contains("Unknown tool"), "{undeclared:?}");
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let mismatch = listening.send("POST", &headers, &super::call(1, "pid", &json!({})).to_string());
    assert_eq!(mismatch.status, 400, "{mismatch:?}");
    listening.end();
}

#[test]
fn servers_end_with_their_session_and_with_us() {
    let world = World::new();
    let listening = Listening::start(&world);
    let session = listening.open_session();
    let ps: Value = serde_json::from_slice(&world.run(&["ps", "--format", "json"]).stdout).expect("JSON");
    assert_eq!(ps.as_array().or_else(|| ps["servers"].as_array()).map(Vec::len), Some(1), "{ps}");
    let below = || -> Vec<String> {
        let children = format!("/proc/{0}/task/{0}/children", listening.child.id());
        let tasks = std::fs::read_dir(format!("/proc/{}/task", listening.child.id()));
        let files = tasks.into_iter().flatten().flatten().map(|task| task.path().join("children"));
        let texts = files.chain([children.into()]).filter_map(|file| std::fs::read_to_string(file).ok());
        texts.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let running = below();
    assert!(!running.is_empty(), "the session's server runs");
    assert_eq!(listening.send("DELETE", &[("mcp-session-id", &session)], "").status, 202);
    running.iter().for_each(|pid| wait_until_gone(pid));
    drop(listening.open_session());
    let running = below();
    assert!(!running.is_empty(), "so does the next");
    listening.end();
    running.iter().for_each(|pid| wait_until_gone(pid));
}
