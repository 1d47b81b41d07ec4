//! Clients that send too much, or too slowly.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bailiwick_door::Limits;
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

const HOUR: Duration = Duration::from_secs(3600);
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
fn one_connection_too_many_with_the_token_is_told_to_come_back() {
    let server = Server::start(limits(|limits| limits.connections = 2));
    let (head, body) =
        (server.head("POST", &[&DISCOVER[..], &[("connection", "keep-alive")]].concat()), padded(512));
    let ask = |stream: &mut TcpStream| {
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        String::from_utf8_lossy(&status).split(' ').nth(1).unwrap().to_owned()
    };
    let (mut first, mut second, mut third) = (server.connect(), server.connect(), server.connect());
    assert_eq!((&*ask(&mut first), &*ask(&mut second), &*ask(&mut third)), ("200", "200", "503"));
    drop((first, second));
    let ended = Instant::now();
    while ask(&mut server.connect()) != "200" {
        assert!(ended.elapsed() < PATIENCE, "the places are free again");
    }
}

/// What one connection after the other costs those that have the token: nothing.
#[test]
fn connections_without_the_token_keep_no_client_out() {
    let slow_heads = |server: &Server, count: usize| -> Vec<TcpStream> {
        let connect = |number| {
            let mut stream = server.connect();
            match number % 3 {
                0 => {}
                1 => drop(stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ")),
                _ => drop(stream.write_all(b"GET / HTTP/1.1\r\nauthorization: Bearer guess\r\nx: ")),
            }
            stream
        };
        (0..count).map(connect).collect()
    };
    for count in [300, 2000] {
        // Nothing is closed because of its age: a client gets in only because strangers make room.
        let server = Server::start(limits(|limits| (limits.proof, limits.head) = (HOUR, HOUR)));
        let mut before = server.connect();
        let held = slow_heads(&server, count);
        for _ in 0..5 {
            assert_eq!(server.modern("server/discover", &json!({}), &[]).status, 200);
        }
        assert!(is_closed(before.try_clone().unwrap()), "the oldest went");
        assert!(before.write_all(b"x").is_err() || is_closed(before));
        drop(held);
    }
}

#[test]
fn a_client_that_showed_the_token_is_not_closed_for_strangers() {
    let server = Server::start(limits(|limits| {
        limits.strangers = 4;
        limits.proof = Duration::from_millis(200);
    }));
    let (head, body) =
        (server.head("POST", &[&DISCOVER[..], &[("connection", "keep-alive")]].concat()), padded(512));
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let mut client = server.connect();
    let status = |client: &mut TcpStream| {
        client.write_all(request.as_bytes()).unwrap();
        let mut reply = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&reply).contains("supportedVersions") {
            let count = client.read(&mut piece).unwrap();
            assert!(count > 0, "closed after {}", String::from_utf8_lossy(&reply));
            reply.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&reply).contains("HTTP/1.1 200") // the end of the reply before may come first
    };
    assert!(status(&mut client));
    let strangers: Vec<_> = (0..50).map(|_| server.connect()).collect();
    assert!(strangers.into_iter().all(is_closed), "each has a moment");
    assert!(status(&mut client));
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
