//! From a denial to a grant and back.

use bailiwick_journal::format::{Decision, Event, RecordKind};
use serde_json::json;

use crate::room::SHIPPED;
use crate::{Room, post};

const MANIFEST: &str =
    "name = 'n'\nversion = '1'\n\n[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/a/**']\n";

async fn room_with_denial(line: &str) -> Room {
    let room = Room::new().await.entered().await;
    std::fs::write(room.dir.path().join("m.toml"), MANIFEST).unwrap();
    for session in ["s", "unknown", "shipped"] {
        let journal = room.journal(session);
        let denial = Event::new(RecordKind::CapabilityDenied).with_tool("read").with_decision(Decision::Deny);
        journal.append(denial.with_capability(line.to_owned())).unwrap();
        journal
            .append(Event::new(RecordKind::ToolCalled).with_tool("read").with_decision(Decision::Allow))
            .unwrap();
        journal.close().unwrap();
    }
    room
}

fn manifest(room: &Room) -> String {
    std::fs::read_to_string(room.dir.path().join("m.toml")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_becomes_a_grant_that_was_seen_and_can_be_taken_back() {
    let room = room_with_denial("fs:read:/b").await;
    let seen = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await.json();
    assert_eq!(seen["lines"], json!(["fs:read:/b"]));
    assert_eq!(seen["questions"].as_array().map(Vec::len), Some(5));
    assert_eq!(seen["widens"], true);
    assert!(
        seen["patch"]
            .as_array()
            .unwrap()
            .contains(&json!(["+", "capabilities = ['fs:read:/a/**', \"fs:read:/b\"]"]))
    );
    assert_eq!(manifest(&room), MANIFEST, "a preview changes nothing");
    let body = json!({ "session": "s", "seq": 0, "after": seen["after"] }).to_string();
    let made = post(&room.at, "/api/grant/apply", &body).await.json();
    assert!(manifest(&room).contains("\"fs:read:/b\""));
    assert_eq!(room.done.lock().unwrap().granted, ["read fs:read:/b"]);
    let undo = json!({ "change": made["change"] }).to_string();
    assert_eq!(post(&room.at, "/api/grant/undo", &undo).await.status, 200);
    assert_eq!(manifest(&room), MANIFEST);
    assert_eq!(post(&room.at, "/api/grant/undo", &undo).await.status, 409, "once");
    let done = room.done.lock().unwrap();
    let codes: Vec<_> = done.recorded.iter().map(|event| event.code().unwrap().to_owned()).collect();
    assert_eq!(codes, ["granted", "grant-undone"]);
    assert!(done.granted.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_shown_is_not_written() {
    let room = room_with_denial("fs:read:/b").await;
    let seen = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await.json();
    std::fs::write(room.dir.path().join("m.toml"), format!("{MANIFEST}# mine\n")).unwrap();
    let body = json!({ "session": "s", "seq": 0, "after": seen["after"] }).to_string();
    assert_eq!(post(&room.at, "/api/grant/apply", &body).await.status, 409, "the file changed");
    let made = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await.json();
    let body = json!({ "session": "s", "seq": 0, "after": made["after"] }).to_string();
    let made = post(&room.at, "/api/grant/apply", &body).await.json();
    let after = manifest(&room) + "# more\n";
    std::fs::write(room.dir.path().join("m.toml"), &after).unwrap();
    let undo = json!({ "change": made["change"] }).to_string();
    assert_eq!(post(&room.at, "/api/grant/undo", &undo).await.status, 409, "the file changed");
    assert_eq!(manifest(&room), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_denial_is_granted_and_only_what_it_says() {
    let room = room_with_denial("fs:read:/b").await;
    let call = post(&room.at, "/api/grant/preview", r#"{"session":"s","seq":2}"#).await;
    assert_eq!(call.status, 409, "{}", call.body);
    let unknown = post(&room.at, "/api/grant/preview", r#"{"session":"unknown","seq":0}"#).await.json();
    assert_eq!(unknown["lines"], json!(["fs:read:/b"]), "the lines are shown to be added by hand");
    assert!(unknown["by_hand"].as_str().unwrap().contains("by hand"));
    let own = r#"{"session":"s","seq":0,"lines":["fs:read:/"],"after":"x"}"#;
    assert_eq!(post(&room.at, "/api/grant/apply", own).await.status, 400, "a page names events, not lines");
    let hostile = room_with_denial("fs:read:/b\nnonsense").await;
    let refused = post(&hostile.at, "/api/grant/preview", r#"{"session":"s","seq":0}"#).await.json();
    assert_eq!(refused["lines"], json!([]), "all of it can be read, or nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shipped_manifest_becomes_the_users_own_and_is_gone_after_undo() {
    let room = room_with_denial("fs:read:/b").await;
    let file = room.dir.path().join("m.toml");
    std::fs::remove_file(&file).unwrap();
    let preview = r#"{"session":"shipped","seq":0}"#;
    let seen = post(&room.at, "/api/grant/preview", preview).await.json();
    assert_eq!((&seen["is_new"], &seen["lines"]), (&json!(true), &json!(["fs:read:/b"])));
    assert!(!file.exists(), "a preview makes no file");
    let apply = json!({ "session": "shipped", "seq": 0, "after": seen["after"] }).to_string();
    let made = post(&room.at, "/api/grant/apply", &apply).await.json();
    let own = SHIPPED.replace("['fs:read:/shipped/**']", "['fs:read:/shipped/**', \"fs:read:/b\"]");
    assert_eq!(manifest(&room), own);
    let again = post(&room.at, "/api/grant/preview", preview).await.json();
    assert!(again["by_hand"].as_str().unwrap().contains("declares this already"), "{again}");
    let undo = json!({ "change": made["change"] }).to_string();
    assert_eq!(post(&room.at, "/api/grant/undo", &undo).await.status, 200);
    assert!(!file.exists(), "the shipped one holds the server again");
    std::fs::write(&file, MANIFEST).unwrap();
    let stale = post(&room.at, "/api/grant/apply", &apply).await;
    assert_eq!(
        (stale.status, manifest(&room)),
        (409, MANIFEST.to_owned()),
        "a file that came since is left alone"
    );
}
