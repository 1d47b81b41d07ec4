//! `bailiwick install --servers`: every client's settings, as its own command writes them, wrapped, started and undone.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{World, Wrapped, call, text};

const MANIFEST: &str = "name = 'shelf'\nversion = '1'\n[[tools]]\nname = 'look'\ncapabilities = []\n";

/// A server that answers everything alike.
const SCRIPT: &str = r#"while IFS= read -r line; do id=${line#*'"id":'}; id=${id%%,*}; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ran"}]}}\n' "$id"; done"#;

/// The user's file of each client with one server `shelf`, the command of which is SH.
const SETTINGS: [(&str, &str, &str); 11] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"projects\": {\n    \"/p\": {\n      \"mcpServers\": {\n        \"shelf\": {\n          \"type\": \"stdio\",\n          \"command\": \"/bin/sh\",\n          \"args\": [\n            \"-c\",\n            SCRIPT\n          ],\n          \"env\": {}\n        }\n      }\n    }\n  }\n}",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\"mcpServers\": {\"shelf\": {\"command\": \"/bin/sh\", \"args\": [\"-c\", SCRIPT]}}}",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{\n\t\"mcpServers\": {\n\t\t\"shelf\": { \"command\": \"/bin/sh\", \"args\": [\"-c\", SCRIPT] }, // mine\n\t}\n}\n",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\r\n  \"servers\": {\r\n    \"shelf\": {\r\n      \"type\": \"stdio\",\r\n      \"command\": \"/bin/sh\",\r\n      \"args\": [\"-c\", SCRIPT]\r\n    }\r\n  },\r\n  \"inputs\": []\r\n}\r\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "model = \"m\"\n\n[mcp_servers.shelf]\ncommand = \"/bin/sh\"\nargs = [\"-c\", SCRIPT]\n\n[mcp_servers.shelf.env]\nK = \"v\"\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  \"mcpServers\": {\n    \"shelf\": {\n      \"command\": \"/bin/sh\",\n      \"args\": [\n        \"-c\",\n        SCRIPT\n      ]\n    },\n    \"remote\": { \"httpUrl\": \"https://x.test\" }\n  }\n}",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\"mcpServers\":{\"shelf\":{\"command\":\"/bin/sh\",\"args\":[\"-c\",SCRIPT]}}}",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed\n{\n  \"context_servers\": {\n    \"shelf\": {\n      \"source\": \"custom\",\n      \"command\": { \"path\": \"/bin/sh\", \"args\": [\"-c\", SCRIPT], \"env\": null },\n    },\n  },\n}\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"shelf\": {\n      \"type\": \"local\",\n      \"command\": [\"/bin/sh\", \"-c\", SCRIPT],\n      \"enabled\": true\n    }\n  }\n}\n",
    ),
    (
        "copilot",
        ".copilot/mcp-config.json",
        "{\n  \"mcpServers\": {\n    \"shelf\": {\n      \"tools\": [\"*\"],\n      \"type\": \"local\",\n      \"command\": \"/bin/sh\",\n      \"args\": [\"-c\", SCRIPT]\n    }\n  }\n}\n",
    ),
    (
        "qwen",
        ".qwen/settings.json",
        "{\n  \"$version\": 3,\n  \"mcpServers\": { \"shelf\": { \"command\": \"/bin/sh\", \"args\": [\"-c\", SCRIPT] } }\n}\n",
    ),
];

/// A home with the settings of every client, and a manifest for `shelf`.
struct Home(World);

impl Home {
    fn new() -> Self {
        let home = Self(World::new());
        home.write(".config/bailiwick/servers/shelf.toml", MANIFEST);
        for (_, path, text) in SETTINGS {
            home.write(path, &text.replace("SCRIPT", &json!(SCRIPT).to_string()));
        }
        home
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let whole = self.0.path(path);
        std::fs::create_dir_all(whole.parent().expect("a directory")).expect("folders");
        self.0.write(path, text)
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.path(path)).expect("a file")
    }

    fn all(&self) -> Vec<String> {
        SETTINGS.iter().map(|(_, path, _)| self.read(path)).collect()
    }

    fn install(&self, options: &[&str]) -> String {
        let done = self.0.run(&[&["install", "--servers"], options].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    }

    /// The command that a client would start now.
    fn command(&self, path: &str) -> Vec<String> {
        let read = self.read(path);
        if path.ends_with(".toml") {
            let value: toml::Table = read.parse().expect("TOML");
            let server = &value["mcp_servers"]["shelf"];
            let args = server["args"].as_array().expect("a list").iter();
            let args = args.map(|word| word.as_str().expect("text").to_owned());
            return std::iter::once(server["command"].as_str().expect("text").to_owned())
                .chain(args)
                .collect();
        }
        let server = found(&relaxed(&read)).expect("the entry");
        let words = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(|word| word.as_str().expect("text").to_owned())
                .collect()
        };
        match &server["command"] {
            Value::String(program) => {
                std::iter::once(program.clone()).chain(words(&server["args"])).collect()
            }
            Value::Object(inner) => {
                let program = inner["path"].as_str().expect("text").to_owned();
                std::iter::once(program).chain(words(&inner["args"])).collect()
            }
            list @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => words(list),
        }
    }
}

/// JSON without the comments and commas of these tests.
fn relaxed(text: &str) -> Value {
    let text = text.replace(", // mine", "").replace("// Zed", "").replace("},\n    },\n  },\n}", "}}}}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn found(value: &Value) -> Option<Value> {
    let Value::Object(fields) = value else { return None };
    fields.get("shelf").cloned().or_else(|| fields.values().find_map(found))
}

/// Whether the command, started as clients do, answers a call.
fn answers(command: &[String], world: &World) -> bool {
    let mut started = Command::new(&command[0]);
    started.args(&command[1..]).env_clear().env("HOME", world.path("")).env("PATH", "/usr/bin:/bin");
    started.current_dir(world.path(""));
    let mut wrapped = Wrapped::spawned(started);
    let answer = wrapped.ask(&call(1, "look", &json!({})));
    let undeclared = wrapped.ask(&call(1, "other", &json!({})));
    drop(wrapped.end());
    text(&answer) == "ran" && undeclared.get("error").is_some()
}

#[test]
fn every_client_starts_its_servers_wrapped_and_is_restored_byte_for_byte() {
    let home = Home::new();
    let before = home.all();
    let dry = home.install(&["--dry-run"]);
    assert_eq!(home.all(), before, "a dry run writes nothing");
    assert!(dry.matches("\n+++ ").count() == SETTINGS.len() && dry.contains("would be changed so"), "{dry}");
    let shown = home.install(&[]);
    for (client, path, _) in SETTINGS {
        assert!(shown.contains(&format!("ok: {client}: ")), "{client}: {shown}");
        let command = home.command(path);
        let manifest = home.0.path(".config/bailiwick/servers/shelf.toml").display().to_string();
        assert_eq!(
            command[1..6],
            ["wrap", "--name", "shelf", "--manifest", &manifest].map(str::to_owned),
            "{client}"
        );
        assert_eq!(command[6..9], ["--", "/bin/sh", "-c"].map(str::to_owned), "{client}");
    }
    let (claude, codex) = (home.command(SETTINGS[0].1), home.command(SETTINGS[4].1));
    assert!(answers(&claude, &home.0) && answers(&codex, &home.0), "what is written there starts");
    let installed = home.all();
    assert!(home.install(&[]).matches("needs no change").count() == SETTINGS.len());
    assert_eq!(home.all(), installed, "twice is once");
    home.install(&["--undo"]);
    assert_eq!(home.all(), before, "byte for byte");
    assert!(home.install(&["--undo"]).contains("needs no change"));
}

#[test]
fn edits_elsewhere_survive_and_hooks_in_the_same_file_do_too() {
    let home = Home::new();
    let gemini = SETTINGS[5].1;
    let before = home.read(gemini);
    home.install(&["--client", "gemini"]);
    assert_eq!(home.read(SETTINGS[0].1), Home::new().read(SETTINGS[0].1), "another client's file stays");
    let edit = |text: &str| {
        text.replace("https://x.test", "https://y.test")
            .replace("{\n  \"mcpServers\"", "{\n  \"theme\": \"x\",\n  \"mcpServers\"")
    };
    home.write(gemini, &edit(&home.read(gemini)));
    let hooks = |undo: &[&str]| {
        assert!(home.0.run(&[&["install", "--hooks", "gemini"], undo].concat()).status.success())
    };
    hooks(&[]);
    assert!(home.read(gemini).contains(" hook gemini") && home.read(gemini).contains("\"wrap\""));
    hooks(&["--undo"]);
    home.install(&["--client", "gemini", "--undo"]);
    assert_eq!(home.read(gemini), edit(&before));
}

#[test]
fn a_server_that_is_known_by_its_package_needs_no_manifest_of_its_own() {
    let home = Home::new();
    let project = home.0.path("project");
    let before = r#"{"mcpServers":{"notes":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/srv"]},
        "posing":{"command":"npx","args":["-y","server-filesystem@npm:@modelcontextprotocol/server-filesystem"]}}}"#;
    home.write("project/.mcp.json", before);
    let options = ["--project", project.to_str().expect("text")];
    let shown = home.install(&options);
    let after: Value = serde_json::from_str(&home.read("project/.mcp.json")).expect("JSON");
    let words = after["mcpServers"]["notes"]["args"].as_array().expect("a list");
    assert_eq!(words[..5], ["wrap", "--name", "notes", "--", "npx"].map(|word| json!(word)), "{after}");
    assert_eq!(after["mcpServers"]["posing"]["command"], "npx", "an alias is another package");
    assert!(shown.contains("left alone: posing"), "{shown}");
    home.install(&[&options[..], &["--undo"]].concat());
    assert_eq!(home.read("project/.mcp.json"), before);
}

#[test]
fn a_server_without_a_manifest_is_left_alone_and_named_with_the_line_to_type() {
    let home = Home::new();
    let project = home.0.path("project");
    home.write(
        "project/.mcp.json",
        r#"{"mcpServers":{"new":{"command":"x"},"../shelf":{"command":"y"},"shelf":{"command":"z"}}}"#,
    );
    let shown = home.install(&["--project", project.to_str().expect("text")]);
    assert!(shown.contains("left alone: new, which has no manifest"), "{shown}");
    assert!(shown.contains("left alone: ../shelf"), "a name is no path: {shown}");
    let line =
        shown.lines().find(|line| line.contains("write one: ") && line.contains("new.toml")).expect("a line");
    let line = line.split_once("write one: ").expect("a command").1;
    let program = home.command("project/.mcp.json")[0].clone();
    let mut typed = Command::new("/bin/sh");
    typed
        .args(["-c", &line.replace("bailiwick init", &format!("{program} init"))])
        .env("HOME", home.0.path(""));
    assert!(typed.output().expect("a shell").status.success(), "{line}");
    assert!(home.install(&["--project", project.to_str().expect("text")]).contains("\"--name\", \"new\""));
    assert!(!home.read("project/.mcp.json").contains("\"--name\", \"../shelf\""));
}

#[test]
fn directories_that_are_elsewhere_are_written_into_the_entry() {
    let home = Home::new();
    let state = home.0.path("other-state");
    let before = home.all();
    let run = |options: &[&str]| {
        let mut command = home.0.bailiwick(&[&["install", "--servers"], options].concat());
        let done = command
            .env("XDG_STATE_HOME", &state)
            .env("XDG_CONFIG_HOME", home.0.path(".config"))
            .output()
            .expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(&[]);
    for (client, path, _) in SETTINGS {
        let text = home.read(path);
        assert!(text.contains(&format!("{:?}", state.display().to_string())), "{client}: {text}");
        assert!(!text.contains("XDG_CONFIG_HOME"), "{client}: it is where everybody has it");
    }
    run(&["--undo"]);
    assert_eq!(home.all(), before);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_stays() {
    let home = Home::new();
    for broken in ["{", r#"{"mcpServers":{"shelf":{"command":"a"},"shelf":{"command":"b"}}}"#] {
        home.write(".cursor/mcp.json", broken);
        let done = home.0.run(&["install", "--servers", "--client", "cursor"]);
        assert_eq!(done.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&done.stderr).contains(".cursor/mcp.json"));
        assert_eq!(home.read(".cursor/mcp.json"), broken);
    }
    assert_eq!(home.0.run(&["install", "--servers", "--client", "emacs"]).status.code(), Some(2));
    assert_eq!(home.0.run(&["install", "--servers", "--project", "/nowhere"]).status.code(), Some(1));
    assert_eq!(home.0.run(&["install", "--servers", "--hooks"]).status.code(), Some(2));
    assert_eq!(home.0.run(&["install", "--servers", "claude-code"]).status.code(), Some(2));
}
