//! `serve --http` and the fixture: what the command says, lets in and leaves behind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{PATIENCE, command, home};
use crate::run::{eventually, processes};

/// A server over HTTP, killed at the latest when the test ends.
struct Listening {
    child: Child,
    port: u16,
    token: Option<PathBuf>,
    _home: tempfile::TempDir,
}

impl Listening {
    fn start(args: &[&str]) -> Self {
        let home = home();
        let mut child = command(&home, args).stdin(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = said.find_map(|line| line.strip_prefix("serving MCP on ").map(str::to_owned)).unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        let token = said.next().unwrap().strip_prefix("the token is in ").map(PathBuf::from);
        Self { port: port.parse().unwrap(), child, token, _home: home }
    }

    /// A modern call, with a token if there is one.
    fn call(&self, token: Option<&str>, tool: &str, arguments: &Value) -> (u16, String) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost:{}\r\n{bearer}accept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
             mcp-name: {tool}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        (reply.split(' ').nth(1).unwrap().parse().unwrap(), reply)
    }

    fn secret(&self) -> String {
        std::fs::read_to_string(self.token.as_ref().unwrap()).unwrap()
    }

    fn signal(&mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn calls_need_the_token_and_are_held_to_the_grant() {
    let server = Listening::start(&["--http", "--cap", "exec:spawn:echo"]);
    let (echo, rm) = (json!({ "program": "echo", "args": ["hi"] }), json!({ "program": "rm" }));
    assert_eq!(server.call(None, "shell", &echo).0, 401);
    assert_eq!(server.call(Some("guess"), "shell", &echo).0, 401);
    let secret = server.secret();
    let (status, reply) = server.call(Some(&secret), "shell", &echo);
    assert!(status == 200 && reply.contains(r#""text":"hi\n""#), "{reply}");
    let (status, reply) = server.call(Some(&secret), "shell", &rm);
    assert!(status == 200 && reply.contains("not within the granted authority"), "{reply}");
}

/// Some say nothing, some never come to the end of what they say.
#[test]
fn connections_without_the_token_keep_no_client_out() {
    let server = Listening::start(&["--http", "--cap", "exec:spawn:echo"]);
    let connect = |number| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nauthorization: Bearer ");
        }
        stream
    };
    let held: Vec<TcpStream> = (0..400).map(connect).collect();
    let (status, reply) = server.call(Some(&server.secret()), "shell", &json!({ "program": "echo" }));
    assert_eq!(status, 200, "{reply}");
    drop(held);
}

#[test]
fn the_token_is_the_owners_alone_and_goes_with_the_server() {
    for signal in ["TERM", "INT"] {
        let mut server = Listening::start(&["--http", "127.0.0.1:0", "--cap", "exec:spawn:echo"]);
        let file = server.token.clone().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(server.secret().len(), 64);
        assert_eq!(server.signal(signal), Some(0), "{signal}");
        assert!(!file.exists());
    }
}

#[test]
fn no_call_can_read_the_token() {
    let server = Listening::start(&["--http", "--cap", "exec:spawn:cat", "--cap", "fs:read:/**"]);
    let file = server.token.clone().unwrap();
    let secret = server.secret();
    let (status, reply) = server.call(Some(&secret), "shell", &json!({ "program": "cat", "args": [file] }));
    assert_eq!(status, 200, "{reply}");
    assert!(!reply.contains(&secret), "{reply}");
}

#[test]
fn the_end_of_the_server_ends_every_child() {
    let mut server = Listening::start(&["--http", "--cap", "exec:spawn:sleep"]);
    let (secret, mark) = (server.secret(), "4719.1");
    let body = std::thread::scope(|scope| {
        let asked = scope
            .spawn(|| server.call(Some(&secret), "shell", &json!({ "program": "sleep", "args": [mark] })));
        assert!(eventually(|| !processes(mark).is_empty()));
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        asked.join().unwrap_or_default()
    });
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "{body:?}");
    assert!(eventually(|| processes(mark).is_empty()), "{:?}", processes(mark));
}

#[test]
fn the_fixture_alone_can_be_open() {
    let server = Listening::start(&["--fixture", "conformance", "--http", "--no-token"]);
    assert!(server.token.is_none());
    let (status, reply) = server.call(None, "test_simple_text", &json!({}));
    assert!(status == 200 && reply.contains("This is a simple text response"), "{reply}");
    let (_, reply) = server.call(None, "shell", &json!({ "program": "echo" }));
    assert!(reply.contains("-32602"), "the fixture has no tools but its own: {reply}");
    let closed = Listening::start(&["--fixture", "conformance", "--http"]);
    assert_eq!(closed.call(None, "test_simple_text", &json!({})).0, 401);
    assert_eq!(closed.call(Some(&closed.secret()), "test_simple_text", &json!({})).0, 200);
}

#[test]
fn what_would_open_the_server_is_refused() {
    let home = home();
    let wrong: [&[&str]; 7] = [
        &["--http", "--no-token"],
        &["--no-token"],
        &["--http", "0.0.0.0:0"],
        &["--http", "[::]:8080"],
        &["--http", "192.0.2.7:1"],
        &["--fixture", "conformance", "--cap", "exec:spawn:sh"],
        &["--fixture", "conformance", "--no-token"],
    ];
    for args in wrong {
        let output = command(&home, args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}
