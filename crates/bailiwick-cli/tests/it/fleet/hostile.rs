//! Those who are not who they say, and what an admin sees and ends.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::{Fleet, Home};
use crate::wrap::{call, text};

#[test]
fn a_token_makes_one_member_and_is_no_argument() {
    let Some(fleet) = Fleet::start() else { return };
    let (machine, other) = (Home::new(), Home::new());
    let token = fleet.token("machine");
    machine.enrols(&token, &["--name", "box-7"]);
    let file = other.path("token");
    std::fs::write(&file, &token).unwrap();
    let file = file.to_str().unwrap();
    let why = other.refused(1, &["enroll", "--token-file", file]);
    assert!(why.contains("(token)"), "{why}");
    let key = machine.enrolment().join("member.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    // Enrolled is enrolled.
    let why = machine.refused(1, &["enroll", "--token-file", file]);
    assert!(why.contains("--replace"), "{why}");
    machine.refused(2, &["enroll", token.trim()]);
    std::fs::write(file, "bwenrol1_e30").unwrap();
    assert!(other.refused(3, &["enroll", "--token-file", file]).contains("not an enrolment token"));
    machine.prints(&["enroll", "--renew"]);
    assert!(machine.prints(&["fleet", "status"]).contains("a hub answers"));
    assert!(machine.prints(&["enroll", "--leave"]).contains("the key is gone"));
    assert!(!key.exists());
}

#[test]
fn another_identity_is_worth_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let (machine, other) = (fleet.member("machine"), fleet.member("machine"));
    // A machine that acts as a person: its role is what the hub knows.
    let person = machine.enrolment().join("person");
    std::fs::create_dir(&person).unwrap();
    for name in ["fleet.toml", "member.pem", "member.key", "member.expires", "hub.pem"] {
        std::fs::copy(machine.enrolment().join(name), person.join(name)).unwrap();
    }
    for (command, code) in [
        (&["fleet", "approve"][..], "(not-found)"),
        (&["fleet", "ls"], "(role)"),
        (&["fleet", "token", "--role", "admin"], "(role)"),
    ] {
        let why = machine.refused(1, command);
        assert!(why.contains(code), "{command:?}: {why}");
    }
    // Another machine's certificate with a key of its own, and none at all.
    let theirs = std::fs::read(other.enrolment().join("member.pem")).unwrap();
    let own = std::fs::read(machine.enrolment().join("member.pem")).unwrap();
    std::fs::write(machine.enrolment().join("member.pem"), theirs).unwrap();
    assert_ne!(machine.run(&["fleet", "report"]).status.code(), Some(0));
    std::fs::write(machine.enrolment().join("member.pem"), "").unwrap();
    assert_ne!(machine.run(&["fleet", "report"]).status.code(), Some(0));
    std::fs::write(machine.enrolment().join("member.pem"), &own).unwrap();
    machine.prints(&["fleet", "report"]);
    // A key that others can read proves nothing.
    let key = machine.enrolment().join("member.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let why = machine.refused(5, &["fleet", "report"]);
    assert!(why.contains("can be read by others"), "{why}");
    let mut wrapped = machine.wrap("name = 'x'\nversion = '1'\n");
    let began = wrapped.initialize();
    assert!(began.to_string().contains("can be read by others"), "nothing is started: {began}");
    drop(wrapped.end());
}

#[test]
fn an_admin_sees_what_runs_and_ends_it() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = fleet.member("machine");
    let mut wrapped =
        machine.wrap("name = 'notes'\nversion = '1'\n[[tools]]\nname = 'free'\ncapabilities = []\n");
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran");
    machine.prints(&["fleet", "report"]);
    let members = fleet.admin.json(&["fleet", "ls", "--format", "json"]);
    let row =
        members["members"].as_array().unwrap().iter().find(|row| row["member"] == machine.id()).unwrap();
    let server = &row["inventory"]["servers"][0];
    assert_eq!((&server["server"], &server["running"]), (&json!("notes"), &json!(true)), "{row}");
    assert!(server["manifest"].is_string() && server["surface"].is_string(), "{server}");
    assert!(server["enforcement"]["fs"].is_string(), "{server}");
    assert_eq!(fleet.admin.run(&["fleet", "diff"]).status.code(), Some(0));
    drop(wrapped.end());

    let manifest = machine.path("server.toml");
    let bundle = format!("notes={}", manifest.display());
    fleet.admin.prints(&["fleet", "publish", "bundle", "base", "--manifest", &bundle]);
    fleet.admin.prints(&["fleet", "publish", "pin", "notes", "--surface", &"0a".repeat(32)]);
    std::fs::write(&manifest, "name = 1\n").unwrap();
    let why = fleet.admin.refused(3, &["fleet", "publish", "bundle", "base", "--manifest", &bundle]);
    assert!(why.contains("cannot be used"), "{why}");
    let done = fleet.admin.prints(&["fleet", "revoke", "server", "notes", "--reason", "x", "--yes"]);
    let id = done.lines().nth(1).unwrap().trim().to_owned();
    fleet.admin.prints(&["fleet", "lift", &id, "--reason", "y"]);
    assert!(fleet.admin.refused(1, &["fleet", "revoke", "everything", "--reason", "x"]).contains("--yes"));

    fleet.admin.prints(&["fleet", "revoke", "machine", &machine.id(), "--reason", "stolen", "--yes"]);
    let why = machine.refused(1, &["fleet", "report"]);
    assert!(why.contains("(revoked)"), "{why}");
    let approver = fleet.member("approver");
    assert!(
        approver.refused(1, &["fleet", "revoke", "everything", "--reason", "x", "--yes"]).contains("(role)")
    );
}
