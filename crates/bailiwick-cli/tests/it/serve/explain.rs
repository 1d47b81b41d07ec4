//! `serve --explain`: what the session may do and who holds it.

use serde_json::Value;

use super::{command, home};

fn explained(args: &[&str]) -> String {
    let home = home();
    let output = command(&home, args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!home.path().join(".local/state").exists(), "it left a journal");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_says_what_may_be_done_and_how_it_is_held() {
    let text = explained(&["--explain", "--cap", "exec:spawn:echo"]);
    assert!(text.contains("  exec:spawn:echo\n"), "{text}");
    assert!(text.contains("  calls: no bound\n"), "{text}");
    assert!(text.contains("shell      fs kernel · net kernel · exec kernel"), "{text}");
}

#[test]
fn it_says_the_same_to_programs() {
    let text = explained(&["--explain", "--format", "json", "--cap", "exec:spawn:echo"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["format"], "bailiwick.serve-explain/1");
    assert_eq!(document["granted"], serde_json::json!(["exec:spawn:echo"]));
    assert_eq!(document["tools"][0]["name"], "shell");
    assert_eq!(document["tools"][0]["coverage"]["exec"]["level"], "kernel", "{document}");
}

#[test]
fn without_a_grant_it_says_how_to_grant() {
    let text = explained(&["--explain"]);
    assert!(text.contains("  nothing\n") && text.contains("bailiwick serve --cap"), "{text}");
}
