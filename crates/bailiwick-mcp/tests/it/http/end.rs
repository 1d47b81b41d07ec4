//! How a server ends, and a call whose client has gone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bailiwick_door::Limits;
use serde_json::json;

use super::client::{MODERN, PATIENCE, Server, modern_body};

fn wait_for(counter: &AtomicUsize, count: usize) {
    let since = Instant::now();
    while counter.load(Ordering::SeqCst) != count {
        assert!(since.elapsed() < PATIENCE, "{counter:?} is not {count}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a call that never ends by itself.
fn start(server: &Server, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = server.head("POST", headers);
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    stream
}

fn modern(server: &Server) -> TcpStream {
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "wait")];
    start(
        server,
        &headers,
        &modern_body("tools/call", &json!({ "name": "wait", "arguments": {} })).to_string(),
    )
}

fn legacy(server: &Server, session: &str) -> TcpStream {
    let params = json!({ "name": "wait", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
    start(server, &[("mcp-session-id", session)], &call.to_string())
}

#[test]
fn the_end_cuts_off_what_runs_and_closes_what_is_open() {
    let mut limits = Limits::default();
    limits.ending = 3 * PATIENCE;
    let mut server = Server::start(limits);
    let session = server.open_session();
    let mut open = vec![modern(&server), legacy(&server, &session), server.connect()];
    let mut listening = server.connect();
    let head = server.head("GET", &[("mcp-session-id", session.as_str())]);
    listening.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    listening.read_exact(&mut [0; 12]).unwrap();
    open.push(listening);
    wait_for(&server.mirror.calls, 2);
    let since = Instant::now();
    server.end();
    assert!(since.elapsed() < PATIENCE, "it ended because all was over, not because time was");
    wait_for(&server.mirror.cut_off, 2);
    for mut stream in open {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
    assert!(TcpStream::connect(("127.0.0.1", server.port)).is_err(), "the listener is closed");
}

#[test]
fn a_modern_call_ends_with_its_connection() {
    let server = Server::start(Limits::default());
    let stream = modern(&server);
    wait_for(&server.mirror.calls, 1);
    assert_eq!(server.mirror.cut_off.load(Ordering::SeqCst), 0);
    drop(stream);
    wait_for(&server.mirror.cut_off, 1);
}

#[test]
fn a_legacy_call_ends_with_its_session() {
    let server = Server::start(Limits::default());
    let session = server.open_session();
    let _stream = legacy(&server, &session);
    wait_for(&server.mirror.calls, 1);
    assert_eq!(server.send("DELETE", &[("mcp-session-id", &session)], "").status, 202);
    wait_for(&server.mirror.cut_off, 1);
}
