//! The entries that the cookbook shows: each is read as its client reads it, and starts a server that works.
//!
//! An entry puts `bailiwick run` before a server from a registry, or starts `bailiwick serve`. The registry is not asked:
//! in the place of its server stands `examples/notes.py`, behind the entry's own grants.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Served, home, text};

/// The agents of the cookbook whose section shows entries, and the key under which their file has them.
const CLIENTS: [(&str, &str); 8] = [
    ("Claude Code", "mcpServers"),
    ("Cursor", "mcpServers"),
    ("VS Code", "servers"),
    ("Codex", "mcp_servers"),
    ("Gemini CLI", "mcpServers"),
    ("OpenCode", "mcp"),
    ("Copilot CLI", "mcpServers"),
    ("Qwen Code", "mcpServers"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The text of the section below a heading, up to the next one.
fn section(heading: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/cookbook.md")).unwrap();
    let heading = format!("\n## {heading}\n");
    let (_, below) =
        page.split_once(&heading).unwrap_or_else(|| panic!("no `{heading}` in docs/cookbook.md"));
    below.split("\n## ").next().unwrap().to_owned()
}

/// The first block of a language in a section.
fn block(section: &str, language: &str) -> Option<String> {
    let (_, below) = section.split_once(&format!("```{language}"))?;
    let (_, inside) = below.split_once('\n')?;
    Some(inside.split_once("```")?.0.to_owned())
}

/// The entries of a client's file, by name.
fn entries(client: &str, key: &str) -> Value {
    let section = section(client);
    let file: Value = match (block(&section, "json"), block(&section, "toml")) {
        (Some(text), _) => serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{client}: {fault}")),
        (None, Some(text)) => toml::from_str(&text).unwrap_or_else(|fault| panic!("{client}: {fault}")),
        (None, None) => panic!("{client}: no entries"),
    };
    file[key].clone()
}

/// The command line of an entry; OpenCode writes it as one list.
fn words(entry: &Value) -> Vec<String> {
    let strings = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    match entry["command"].as_str() {
        Some(program) => [vec![program.to_owned()], strings(&entry["args"])].concat(),
        None => strings(&entry["command"]),
    }
}

/// Starts what a client would start, with the built command in place of the installed one.
fn started(words: &[String]) -> Served {
    assert_eq!(words[0], "bailiwick");
    let home = home();
    std::fs::copy(root().join("examples/notes.py"), home.path().join("notes.py")).unwrap();
    let here = home.path().to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick"));
    command.args(words[1..].iter().map(|word| word.replace("/workspace", here)));
    command.env_clear().env("HOME", home.path()).current_dir(home.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Served::spawned(command, home)
}

fn serves(words: &[String]) {
    let mut served = started(words);
    let ran = served.shell(1, json!({ "program": "git", "args": ["--version"] }));
    assert!(text(&ran).starts_with("git version"), "{ran}");
    let denied = served.shell(2, json!({ "program": "rm" }));
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(served.end(), (0, String::new()));
}

fn runs_a_server(words: &[String]) {
    let split = words.iter().position(|word| word == "--").expect("the server stands behind `--`");
    assert_eq!(words[split + 1], "npx");
    let stand_in = ["python3", "/workspace/notes.py"].map(str::to_owned);
    let mut served = started(&[&words[..=split], &stand_in].concat());
    let outside = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let source = served.home.path().join("notes.py");
    let (seen, hidden) = (read(&mut served, &source), read(&mut served, outside.path()));
    assert!(text(&seen).contains("A small MCP server"), "{seen}");
    assert!(text(&hidden).contains("FileNotFoundError"), "{hidden}");
    assert_eq!(served.end(), (0, String::new()));
}

fn read(served: &mut Served, path: &Path) -> Value {
    let params = json!({ "name": "read_note", "arguments": { "path": path } });
    served.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
}

#[test]
fn every_client_starts_both_entries() {
    for (client, key) in CLIENTS {
        let entries = entries(client, key);
        runs_a_server(&words(&entries["files"]));
        serves(&words(&entries["bailiwick"]));
    }
}

#[test]
fn entries_have_what_their_client_asks_for() {
    let kind = |client, key| entries(client, key)["files"]["type"].clone();
    assert_eq!(kind("VS Code", "servers"), "stdio");
    assert_eq!(kind("OpenCode", "mcp"), "local");
    assert_eq!(kind("Copilot CLI", "mcpServers"), "local");
    assert_eq!(entries("Copilot CLI", "mcpServers")["files"]["tools"], json!(["*"]));
}

#[test]
fn the_readmes_line_before_a_server_starts_it() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let line = block(&readme, "sh no-run=it-needs-the-npm-registry").unwrap().replace("\\\n", " ");
    runs_a_server(&shlex::split(line.trim()).unwrap());
}

#[test]
fn claude_codes_own_command_adds_one_that_works() {
    let line = block(&section("Claude Code"), "sh").unwrap().replace("\\\n", " ");
    let words = shlex::split(line.trim()).unwrap();
    assert_eq!(words[..5], ["claude", "mcp", "add", "bailiwick", "--"]);
    serves(&words[5..]);
}
