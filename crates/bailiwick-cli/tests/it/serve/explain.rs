//! `serve --explain`: what the session may do and who holds it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Served, command, home};

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

#[test]
fn it_explains_the_plan_that_runs() {
    let home = home();
    let grant = home.path().join("grant.txt");
    // The grant lies in what it opens, and Bailiwick's own directories lie in it too.
    let lines = format!("exec:spawn:true\nfs:read,write:{}\nfs:read:/no/such/place\n", home.path().display());
    std::fs::write(&grant, lines).unwrap();
    for dir in [".config/bailiwick", ".local/state/bailiwick/journal"] {
        std::fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    let args = ["--grant", grant.to_str().unwrap()];
    let output = command(&home, &[&args[..], &["--explain", "--format", "json"]].concat()).output().unwrap();
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut served = Served::spawned(command(&home, &args), super::home());
    let ran =
        served.shell(1, json!({ "program": "true" }))["result"]["_meta"]["dev.bailiwick/enforcement"].clone();
    let shell = explained["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "shell").unwrap();
    let levels: Value = shell["coverage"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(axis, held)| (axis.clone(), held["level"].clone()))
        .collect();
    assert_eq!(levels, ran["levels"], "{shell}");
    let notes = |notes: &Value| -> BTreeSet<String> {
        notes.as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect()
    };
    assert!(!notes(&ran["notes"]).is_empty(), "{ran}");
    assert_eq!(notes(&shell["notes"]), notes(&ran["notes"]), "{shell}");
    let text =
        String::from_utf8(command(&home, &[&args[..], &["--explain"]].concat()).output().unwrap().stdout);
    let text = text.unwrap();
    assert!(text.contains("`/no/such/place` does not exist and is left out"), "{text}");
}
