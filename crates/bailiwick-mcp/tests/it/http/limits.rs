//! Clients that send too much, or too slowly.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bailiwick_mcp::http::Limits;
use serde_json::{Value, json};

use super::client::{MODERN, PATIENCE, Reply, Server, modern_body};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Whether the server closes the connection without another word, in good time.
fn is_closed(mut stream: TcpStream) -> bool {
    let since = Instant::now();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok() && since.elapsed() < PATIENCE
}

fn padded(size: usize) -> String {
    let empty = modern_body("server/discover", &json!({ "_meta": { "pad": "" } })).to_string();
    modern_body("server/discover", &json!({ "_meta": { "pad": "x".repeat(size - empty.len()) } })).to_string()
}

const DISCOVER: [(&str, &str); 2] = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];

#[test]
fn a_message_may_have_16_mib_and_no_more() {
    assert_eq!(Limits::default().body_bytes, 16 * 1024 * 1024);
    let server = Server::start(Limits::default());
    assert_eq!(server.send("POST", &DISCOVER, &padded(16 << 20)).status, 200);
    assert_eq!(server.send("POST", &DISCOVER, &padded((16 << 20) + 1)).status, 413);
}

#[test]
fn a_body_that_is_announced_too_large_is_not_read() {
    let server = Server::start(limits(|limits| limits.body_bytes = 4096));
    assert_eq!(server.send("POST", &DISCOVER, &padded(4096)).status, 200);
    let head = server.head("POST", &DISCOVER);
    let refused = server.raw(format!("{head}content-length: 4097\r\n\r\n").as_bytes());
    assert_eq!((refused.status, refused.header("connection")), (413, Some("close")));
}

#[test]
fn a_body_that_turns_out_too_large_is_not_read_on() {
    let server = Server::start(limits(|limits| limits.body_bytes = 4096));
    let head = server.head("POST", &DISCOVER);
    let chunk = format!("400\r\n{}\r\n", " ".repeat(0x400));
    let refused =
        server.raw(format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat(5)).as_bytes());
    assert_eq!(refused.status, 413);
}

#[test]
fn a_head_that_never_ends_is_cut_off() {
    let server = Server::start(limits(|limits| limits.head = Duration::from_millis(300)));
    let mut slow = server.connect();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").unwrap();
    let mut slower = server.connect();
    std::thread::spawn(move || {
        while slower.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(server.modern("server/discover", &json!({}), &[]).status, 200, "others are served meanwhile");
    assert!(is_closed(slow));
}

#[test]
fn a_connection_that_says_nothing_is_cut_off() {
    let server = Server::start(limits(|limits| limits.head = Duration::from_millis(300)));
    assert!(is_closed(server.connect()), "at once");
    let mut kept = server.connect();
    let (head, body) = (server.head("POST", &[&DISCOVER[..], &[("connection", "")]].concat()), padded(512));
    kept.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    let reply = Reply::read(kept);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("connection"), None, "it was the silence that ended it");
}

#[test]
fn a_body_that_never_ends_is_cut_off() {
    let server = Server::start(limits(|limits| limits.body = Duration::from_millis(300)));
    let head = server.head("POST", &DISCOVER);
    let refused = server.raw(format!("{head}content-length: 100\r\n\r\n{{").as_bytes());
    assert_eq!((refused.status, refused.header("connection")), (408, Some("close")));
}

#[test]
fn heads_are_bounded_in_number_and_size() {
    let server = Server::start(Limits::default());
    let body = padded(512);
    let with = |extra: &str| {
        let head = server.head("POST", &DISCOVER);
        server.raw(format!("{head}{extra}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).status
    };
    assert_eq!(with(&"x-one: y\r\n".repeat(20)), 200);
    assert_eq!(with(&"x-one: y\r\n".repeat(70)), 431);
    assert_eq!(with(&format!("x-one: {}\r\n", "y".repeat(8 << 10))), 200);
    assert_eq!(with(&format!("x-one: {}\r\n", "y".repeat(128 << 10))), 431);
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = Server::start(limits(|limits| {
        limits.connections = 2;
        limits.head = Duration::from_secs(2);
    }));
    let (first, second) = (server.connect(), server.connect());
    let mut third = server.connect();
    let (head, body) = (server.head("POST", &DISCOVER), padded(512));
    third.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(third.read(&mut [0; 1]).is_err(), "there is no room yet");
    drop((first, second));
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(Reply::read(third).status, 200);
}

#[test]
fn many_clients_at_once_are_all_answered() {
    let server = Server::start(Limits::default());
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let ask = || server.modern("server/discover", &json!({}), &[]).message();
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer["result"]["supportedVersions"].is_array()));
}
