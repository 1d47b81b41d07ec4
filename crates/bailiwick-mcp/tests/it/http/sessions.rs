//! Sessions of the legacy era: how many there can be, and how they end.

use std::time::{Duration, Instant};

use bailiwick_door::Limits;
use serde_json::json;

use super::client::{PATIENCE, Server};

fn ping(server: &Server, session: &str) -> u16 {
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    server.post(&[("mcp-session-id", session)], &ping).status
}

fn few(most: usize) -> Limits {
    let mut limits = Limits::default();
    limits.sessions = most;
    limits
}

#[test]
fn there_are_only_so_many() {
    let server = Server::start(few(3));
    let open: Vec<_> = (0..3).map(|_| server.open_session()).collect();
    let refused = server.initialize();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")), "{refused:?}");
    assert!(open.iter().all(|session| ping(&server, session) == 200), "those that are open stay so");
    assert_eq!(server.modern("server/discover", &json!({}), &[]).status, 200, "the modern era needs none");
    assert_eq!(server.send("DELETE", &[("mcp-session-id", &open[0])], "").status, 202);
    assert_eq!(ping(&server, &open[0]), 404);
    assert_eq!(ping(&server, &server.open_session()), 200);
}

#[test]
fn two_cannot_take_the_last_place() {
    let server = Server::start(few(5));
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(|| server.initialize().status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|status| *status == 200).count()
    });
    assert_eq!(opened, 5);
}

#[test]
fn an_idle_one_expires_and_makes_room() {
    let mut limits = few(1);
    limits.idle = Duration::from_millis(300);
    let server = Server::start(limits);
    let session = server.open_session();
    let since = Instant::now();
    while server.initialize().status != 200 {
        assert!(since.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ping(&server, &session), 404);
}

#[test]
fn one_that_was_made_up_is_unknown() {
    let server = Server::start(Limits::default());
    for session in ["00000000-0000-0000-0000-000000000000", "x", "../../etc/passwd"] {
        assert_eq!(ping(&server, session), 404, "{session}");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert!((400..500).contains(&server.post(&[], &ping).status), "the legacy era needs one");
}

#[test]
fn ids_cannot_be_guessed_from_each_other() {
    let server = Server::start(Limits::default());
    let mut ids: Vec<_> = (0..16).map(|_| server.open_session()).collect();
    assert!(ids.iter().all(|id| id.len() >= 32), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 16);
}
