//! The configurations that the README shows: each is read as its client reads it, and starts a server that works.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Served, home, text};

/// The text of the block below a heading.
fn block(heading: &str) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, below) = readme.split_once(heading).unwrap_or_else(|| panic!("no `{heading}` in README.md"));
    let (_, inside) = below.split_once("```").unwrap();
    let (_, inside) = inside.split_once('\n').unwrap();
    inside.split_once("```").unwrap().0.to_owned()
}

/// Starts what a client would start, with the built command in place of the installed one, and calls it.
fn works(program: &str, args: &[String], variables: &[(String, String)]) {
    assert_eq!(program, "bailiwick");
    let home = home();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    let here = home.path().to_str().unwrap();
    command
        .args(args.iter().map(|arg| arg.replace("/workspace", here)))
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut served = Served::of(command, home);
    let ran = served.shell(1, json!({ "program": "git", "args": ["--version"] }));
    assert!(text(&ran).starts_with("git version"), "{ran}");
    let denied = served.shell(2, json!({ "program": "rm" }));
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(served.end(), (0, String::new()));
}

fn of_json(server: &Value) {
    let strings = |value: &Value| {
        value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let variables: Vec<_> = server["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    works(server["command"].as_str().unwrap(), &strings(&server["args"]), &variables);
}

#[test]
fn claude_code_starts_it() {
    let line = block("**Claude Code**").replace("\\\n", " ");
    let words = shlex::split(line.trim()).unwrap();
    assert_eq!(words[..4], ["claude", "mcp", "add", "bailiwick"]);
    let split = words.iter().position(|word| word == "--").unwrap();
    works(&words[split + 1], &words[split + 2..], &[]);
}

#[test]
fn cursor_starts_it() {
    let config: Value = serde_json::from_str(&block("**Cursor**")).unwrap();
    of_json(&config["mcpServers"]["bailiwick"]);
}

#[test]
fn vs_code_starts_it() {
    let config: Value = serde_json::from_str(&block("**VS Code**")).unwrap();
    assert_eq!(config["servers"]["bailiwick"]["type"], "stdio");
    of_json(&config["servers"]["bailiwick"]);
}

#[test]
fn codex_starts_it() {
    let config: toml::Value = toml::from_str(&block("**Codex**")).unwrap();
    of_json(&serde_json::to_value(&config["mcp_servers"]["bailiwick"]).unwrap());
}
