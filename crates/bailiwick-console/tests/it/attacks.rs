//! What other programs of this machine and pages of other origins try, each beside a request that is let in.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bailiwick_journal::format::{Decision, Event, RecordKind};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{Room, get, post, raw};

/// Every path that takes a POST, but for the one that takes codes.
const POSTS: [&str; 8] = [
    "/api/stream",
    "/api/verify",
    "/api/answer",
    "/api/take-back",
    "/api/pins/accept",
    "/api/grant/preview",
    "/api/grant/apply",
    "/api/grant/undo",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_another_run_opens_nothing() {
    let (old, new) = (Room::new().await.entered().await, Room::new().await.entered().await);
    let own = new.at.token.clone();
    let mut at = new.at;
    assert_eq!(get(&at, "/api/state").await.status, 200, "the control: its own token");
    at.token.clone_from(&old.at.token);
    assert_eq!(get(&at, "/api/state").await.status, 401);
    for path in POSTS {
        assert_eq!(post(&at, path, "{}").await.status, 401, "{path}");
    }
    assert_ne!(own, old.at.token);
    assert_eq!(post(&at, "/enter", &old.code).await.status, 403, "nor does its code");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_sends_a_form_and_a_simple_request_in_vain() {
    let room = Room::new().await.entered().await;
    let (id, digest) = room.wait_for("server/tool", "{}", true);
    let body = json!({ "id": id, "digest": digest, "answer": "once" }).to_string();
    let request = |more: &str| {
        format!(
            "POST /api/answer HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n{body}",
            room.at.port,
            body.len()
        )
    };
    let here = format!("Origin: http://127.0.0.1:{}\r\n", room.at.port);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        // What a browser sends without being asked: its own origin, and cookies; the token it does not have.
        for origin in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "", &here] {
            let head = format!("Content-Type: {kind}\r\nCookie: token={}\r\n{origin}", room.at.token);
            let status = raw(&room.at, request(&head).as_bytes()).await.status;
            assert!(matches!(status, 401 | 403), "{kind} {origin}: {status}");
        }
    }
    assert!(room.done.lock().unwrap().recorded.is_empty(), "nothing was answered");
    let bearer = format!("{here}Authorization: Bearer {}\r\n", room.at.token);
    assert_eq!(raw(&room.at, request(&bearer).as_bytes()).await.status, 200, "the control: the page itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_send_nothing_or_little_keep_no_page_out() {
    let room = Room::new().await.entered().await;
    let mut slow = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", room.at.port)).await.unwrap();
        if at % 2 == 0 {
            stream.write_all(b"POST /enter HTTP/1.1\r\nHost: 127").await.unwrap();
        }
        slow.push(stream);
    }
    assert_eq!(get(&room.at, "/api/state").await.status, 200);
    assert_eq!(get(&room.at, "/").await.status, 200);
    // The oldest of them had to go.
    let mut byte = [0];
    let gone = tokio::time::timeout(Duration::from_secs(10), slow[0].read(&mut byte)).await;
    assert!(matches!(gone, Ok(Ok(0) | Err(_))), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_lead_elsewhere_are_names_and_nothing_else() {
    let room = Room::new().await.entered().await;
    std::fs::write(room.dir.path().join("key"), "secret").unwrap();
    for name in ["../key", "..", "/etc/passwd", "a/../../key", "\u{0}", "s\n", "..\\key", ""] {
        for path in ["/api/grant/preview", "/api/grant/apply"] {
            let body = json!({ "session": name, "seq": 0 });
            let mut body = body.as_object().unwrap().clone();
            if path.ends_with("apply") {
                body.insert("after".to_owned(), json!("x"));
            }
            let answer = post(&room.at, path, &json!(body).to_string()).await;
            assert_eq!(answer.status, 409, "{path} {name:?}: {}", answer.body);
            assert!(!answer.body.contains("secret"));
        }
        let answer = json!({ "id": name, "digest": name, "answer": "once" }).to_string();
        assert_eq!(post(&room.at, "/api/answer", &answer).await.status, 409, "{name:?}");
        let back = json!({ "id": name }).to_string();
        assert_eq!(post(&room.at, "/api/take-back", &back).await.status, 409, "{name:?}");
        let undo = json!({ "change": name }).to_string();
        assert_eq!(post(&room.at, "/api/grant/undo", &undo).await.status, 409, "{name:?}");
        let cursor = json!({ "cursor": { name: [0, 0, 0] } }).to_string();
        assert_eq!(post(&room.at, "/api/stream", &cursor).await.status, 400, "{name:?}");
    }
}

/// A denial of a tool with this name, in a manifest that has it.
async fn room_with_tool(tool: &str) -> Room {
    let room = Room::new().await.entered().await;
    let quoted = serde_json::to_string(tool).unwrap();
    let manifest = format!("name = 'n'\nversion = '1'\n\n[[tools]]\nname = {quoted}\ncapabilities = []\n");
    std::fs::write(room.dir.path().join("m.toml"), manifest).unwrap();
    let journal = room.journal("s");
    let denial = Event::new(RecordKind::CapabilityDenied)
        .with_tool(tool.to_owned())
        .with_decision(Decision::Deny)
        .with_capability("fs:read:/b".to_owned());
    journal.append(denial).unwrap();
    journal.close().unwrap();
    room
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_name_of_a_tool_grants_nothing_but_its_own_line() {
    for tool in [
        "x'\"]\ncapabilities = ['fs:write:/**']\n",
        "[[tools]]",
        "${HOME}",
        "a\u{202e}b",
        "\u{0}",
        "{{x}}",
        "read",
    ] {
        let room = room_with_tool(tool).await;
        let before = std::fs::read_to_string(room.dir.path().join("m.toml")).unwrap();
        let seen = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await.json();
        let Some(after) = seen["after"].as_str() else {
            assert!(seen["by_hand"].is_string(), "{tool:?}: {seen}");
            assert_ne!(tool, "read", "the control: an ordinary name is edited");
            continue;
        };
        let body = json!({ "session": "s", "seq": 0, "after": after }).to_string();
        assert_eq!(post(&room.at, "/api/grant/apply", &body).await.status, 200, "{tool:?}");
        let now = std::fs::read_to_string(room.dir.path().join("m.toml")).unwrap();
        assert_eq!(now, before.replace("capabilities = []", "capabilities = [\"fs:read:/b\"]"), "{tool:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_pages_that_answer_one_is_heard() {
    let room = Room::new().await.entered().await;
    for round in 0..20 {
        let (id, digest) = room.wait_for("server/tool", &format!("{{\"round\":{round}}}"), true);
        let said = |answer: &str| json!({ "id": id, "digest": digest, "answer": answer }).to_string();
        let (yes, no) = (said("once"), said("deny"));
        let (one, other) =
            tokio::join!(post(&room.at, "/api/answer", &yes), post(&room.at, "/api/answer", &no));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", one.body, other.body);
    }
    assert_eq!(room.done.lock().unwrap().recorded.len(), 20, "what was heard is recorded, and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_not_allowed_any_more() {
    let room = Room::new().await.entered().await;
    let (id, digest) = room.wait_for("server/tool", "{}", true);
    let body = json!({ "id": id, "digest": digest, "answer": "once" }).to_string();
    let begun = room.now.load(Ordering::Relaxed);
    room.now.store(begun + 16 * 60 * 1_000_000, Ordering::Relaxed);
    let late = post(&room.at, "/api/answer", &body).await;
    assert_eq!((late.status, &*late.error()), (409, "this was answered elsewhere, or is over"));
    assert!(room.done.lock().unwrap().recorded.is_empty());
    room.now.store(begun, Ordering::Relaxed);
    let (id, digest) = room.wait_for("server/tool", "{\"again\":1}", true);
    let body = json!({ "id": id, "digest": digest, "answer": "once" }).to_string();
    assert_eq!(post(&room.at, "/api/answer", &body).await.status, 200, "the control: in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_watches_has_no_way_to_write() {
    let room = Room::watching().await.entered().await;
    let manifest = room.dir.path().join("m.toml");
    std::fs::write(&manifest, "name = 'n'\nversion = '1'\n\n[[tools]]\nname = 'read'\ncapabilities = []\n")
        .unwrap();
    let journal = room.journal("s");
    let denial = Event::new(RecordKind::CapabilityDenied).with_tool("read").with_decision(Decision::Deny);
    journal.append(denial.with_capability("fs:read:/b".to_owned())).unwrap();
    journal.close().unwrap();
    let (id, digest) = room.wait_for("server/tool", "{}", true);
    let seen = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await;
    assert_eq!(seen.status, 200, "it may look: {}", seen.body);
    let files = || {
        let approvals = room.dir.path().join("state").join(bailiwick_guardrails::approvals::FILE);
        (std::fs::read(&manifest).unwrap(), std::fs::read(approvals).unwrap())
    };
    let before = files();
    let bodies = [
        json!({ "id": id, "digest": digest, "answer": "once" }),
        json!({ "id": id }),
        json!({ "identity": "i", "seen": "this" }),
        json!({ "session": "s", "seq": 0, "after": seen.json()["after"] }),
        json!({ "change": "x" }),
    ];
    for path in POSTS.into_iter().filter(|path| *path != "/api/stream") {
        for body in &bodies {
            drop(post(&room.at, path, &body.to_string()).await);
        }
    }
    assert!(files() == before, "a file was changed");
    let done = room.done.lock().unwrap();
    assert!(done.recorded.is_empty() && done.granted.is_empty() && done.accepted.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_code_is_shown_when_one_was_used() {
    let room = Room::new().await;
    assert!(room.done.lock().unwrap().codes.is_empty());
    let first = room.code.clone();
    let room = room.entered().await;
    let next = room.done.lock().unwrap().codes.clone();
    let [next] = &*next else { panic!("one code is shown: {next:?}") };
    assert_ne!(*next, first);
    assert_eq!(post(&room.at, "/enter", &first).await.status, 403);
    assert_eq!(post(&room.at, "/enter", next).await.json()["token"], json!(room.at.token));
    assert_eq!(post(&room.at, "/enter", next).await.status, 403, "it is good once too");
    assert_eq!(room.done.lock().unwrap().codes.len(), 2);
}
