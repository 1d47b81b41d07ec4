//! The Python client that others are written with, in both eras of the protocol.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{home, page};
use bailiwick_testkit::skip;

/// The interpreter that `scripts/test` gave the package `mcp`, version 2 or newer.
fn interpreter() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let python = cache.join("bailiwick/validators/bin/python");
    let has = Command::new(&python).args(["-c", "import mcp.client.client"]).output();
    has.is_ok_and(|has| has.status.success()).then_some(python)
}

fn listed_and_called(mode: &str) -> Option<Value> {
    let Some(python) = interpreter() else {
        skip("no `mcp` in the cache that scripts/test fills");
        return None;
    };
    let home = home();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/serve/client.py");
    let directory = home.path().join("work");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("file"), "old\n").unwrap();
    let page = page();
    let caps = [
        "exec:spawn:echo".to_owned(),
        format!("fs:read,write:{}", directory.display()),
        format!("net:connect:{page}"),
    ];
    let mut client = Command::new(python);
    client.arg(script).arg(mode).args([env!("CARGO_BIN_EXE_bailiwick"), "serve"]);
    for cap in &caps {
        client.args(["--cap", cap]);
    }
    client.env("HOME", home.path()).env("DIRECTORY", &directory).env("URL", format!("http://{page}/"));
    let output = client.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn is_served(mode: &str, version: &str) {
    let Some(said) = listed_and_called(mode) else { return };
    assert_eq!(said["version"], version);
    // A client that is told its era asks nothing of the server first.
    if mode != version {
        assert_eq!(said["server"], "bailiwick");
        assert!(said["instructions"].as_str().unwrap().contains("- exec:spawn:echo"), "{said}");
    }
    let names: Vec<_> =
        said["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = ["shell", "fs_read", "fs_write", "fs_edit", "fs_list", "fs_search", "web_fetch"];
    assert_eq!(names, all);
    for name in &names {
        assert!(said["calls"][name]["content"][0]["text"].is_string(), "{name}: {said}");
        assert_eq!(said["calls"][name]["isError"], false, "{name}: {}", said["calls"][name]);
    }
    assert_eq!(said["calls"]["web_fetch"]["structuredContent"]["title"], "A page");
    assert_eq!(said["calls"]["shell"]["structuredContent"]["stdout"], "hi\n");
    assert_eq!(said["denied"]["isError"], true);
    assert_eq!(said["denied"]["_meta"]["dev.bailiwick/decision"]["code"], "exec-not-granted");
}

#[test]
fn the_python_client_of_the_legacy_era_is_served() {
    is_served("legacy", "2025-11-25");
}

#[test]
fn the_python_client_of_the_modern_era_is_served() {
    is_served("2026-07-28", "2026-07-28");
}

#[test]
fn the_python_client_that_finds_out_is_served() {
    is_served("auto", "2026-07-28");
}
