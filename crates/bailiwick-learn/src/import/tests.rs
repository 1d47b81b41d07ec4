//! Each form once with what it says, what it does not, and what would be too much.

use bailiwick_manifest::Manifest;

use super::*;

fn options() -> ImportOptions {
    let home = AbsPath::new("/home/alice").unwrap();
    let places = SensitivePlaces::new(Some(home.clone()), []);
    ImportOptions { home: Some(home), places, ..ImportOptions::new("notes") }
}

/// The lines that grant something and those that are asked about; the text has to be a manifest.
fn imported(from: ImportFrom, text: &str) -> (Vec<String>, String) {
    let imported = import(from, text, &options()).unwrap();
    let manifest = Manifest::parse(&imported.text).unwrap_or_else(|why| panic!("{why}\n{}", imported.text));
    let own = manifest.server_capabilities().iter().map(|line| line.value.to_string());
    let tools = manifest.tools().iter().flat_map(|tool| tool.capabilities().unwrap_or_default());
    let lines: Vec<String> = own.chain(tools.map(|line| line.value.to_string())).collect();
    assert_eq!(lines.len(), imported.lines, "{}", imported.text);
    (lines, imported.text)
}

fn asks(text: &str, what: &str) -> bool {
    text.lines().any(|line| line.starts_with('#') && line.contains(what))
}

#[test]
fn a_client_says_variables_a_sandbox_and_a_path_that_is_asked_about() {
    let text = r#"{
        "servers": { "notes": { "command": "npx", "args": ["-y", "notes", "/srv/notes"], "env": { "NOTES_MODE": "x" },
            "sandbox": { "filesystem": { "allowWrite": ["${workspaceFolder}/out", "${userHome}/.ssh", "/"], "denyRead": ["/srv/private"] } } } },
        "sandbox": { "network": { "allowedDomains": ["api.example.com", "*"] } } }"#;
    let (lines, text) = imported(ImportFrom::Vscode, text);
    assert_eq!(
        lines,
        ["env:read:NOTES_MODE", "fs:read,write:$WORKSPACE/out", "net:connect:api.example.com:443"]
    );
    for what in
        ["fs:read:/srv/notes", "~/.ssh", "fs:read,write:/\"", "net:connect:*:443", "refuses `/srv/private`"]
    {
        assert!(asks(&text, what), "{what}: {text}");
    }
}

#[test]
fn of_several_servers_one_has_to_be_named() {
    let text = r#"{ "mcpServers": { "one": {}, "two": { "env": { "TWO": "2" } } } }"#;
    let several = import(ImportFrom::Vscode, text, &options()).unwrap_err();
    assert_eq!(several, ImportError::Several(vec!["one".to_owned(), "two".to_owned()]));
    let named = |name: &str| ImportOptions { server: Some(name.to_owned()), ..options() };
    assert!(import(ImportFrom::Vscode, text, &named("two")).unwrap().text.contains("env:read:TWO"));
    assert!(import(ImportFrom::Vscode, text, &named("three")).is_err());
}

#[test]
fn a_bundle_says_its_tools_and_variables_and_asks_for_paths() {
    let text = r#"{ "manifest_version": "0.3", "name": "Notes", "version": "1.2.0",
        "server": { "type": "node", "mcp_config": { "command": "node", "args": ["${__dirname}/index.js", "${user_config.dir}"], "env": { "KEY": "${user_config.key}" } } },
        "tools": [{ "name": "add" }, { "name": "find" }],
        "user_config": { "dir": { "type": "directory" }, "key": { "type": "string", "sensitive": true } } }"#;
    let (lines, text) = imported(ImportFrom::Mcpb, text);
    assert_eq!(lines, ["env:read:KEY"]);
    assert!(text.contains("name = \"add\"") && asks(&text, "user_config.dir"), "{text}");
}

#[test]
fn the_registry_says_the_package_and_secrets_are_asked_about() {
    let text = r#"{ "name": "io.github.alice/notes", "version": "1.0.0", "packages": [{ "registryType": "npm", "identifier": "@alice/notes",
        "environmentVariables": [{ "name": "NOTES_DIR" }, { "name": "TOKEN", "isSecret": true }],
        "packageArguments": [{ "type": "positional", "format": "filepath" }] }] }"#;
    let (lines, text) = imported(ImportFrom::ServerJson, text);
    assert_eq!(lines, ["env:read:NOTES_DIR"]);
    assert!(text.contains("identity = \"npm:@alice/notes\"") && asks(&text, "env:read:TOKEN"), "{text}");
}

#[test]
fn a_profile_says_mounts_and_hosts_with_ports() {
    let text = r#"{ "read": ["/srv/data:/data", "/etc", "volume://x"], "write": ["/srv/out"], "privileged": true,
        "network": { "outbound": { "insecure_allow_all": true, "allow_host": ["api.example.com", ".example.org"], "allow_port": [443] } } }"#;
    let (lines, text) = imported(ImportFrom::Toolhive, text);
    let wanted = [
        "fs:read:/srv/data",
        "fs:read,write:/srv/out",
        "net:connect:api.example.com:443",
        "net:connect:*.example.org:443",
    ];
    assert_eq!(lines, wanted);
    for what in ["fs:read:/etc", "volume://x", "net:connect:*:*", "without confinement"] {
        assert!(asks(&text, what), "{what}: {text}");
    }
}

#[test]
fn a_policy_says_storage_network_and_environment() {
    let text = "version: \"1.0\"\npermissions:\n  storage:\n    allow:\n      - uri: \"fs://project/agent/**\"\n        access: [read, write]\n      - uri: \"fs:///home/alice/**\"\n        access: [read]\n    deny:\n      - uri: \"fs://project/agent/keys\"\n  network:\n    allow:\n      - host: https://api.example.com/\n      - cidr: 10.0.0.0/8\n  environment:\n    allow:\n      - key: TOKEN\n";
    let (lines, text) = imported(ImportFrom::Wassette, text);
    let wanted =
        ["fs:read,write:$WORKSPACE/project/agent/**", "net:connect:api.example.com:443", "env:read:TOKEN"];
    assert_eq!(lines, wanted, "{text}");
    for what in ["fs:read:/home/alice/**", "10.0.0.0/8", "It denies"] {
        assert!(asks(&text, what), "{what}: {text}");
    }
}

#[test]
fn kinds_without_targets_grant_nothing() {
    let text = r#"{ "description": "d", "permissions": ["mcp.ac.filesystem.read", "mcp.ac.network.client", "mcp.ac.peripheral.camera"] }"#;
    let (lines, text) = imported(ImportFrom::Agentbound, text);
    assert!(lines.is_empty() && asks(&text, "fs:read:$WORKSPACE") && asks(&text, "camera"), "{text}");
}

#[test]
fn a_manifest_of_capgate_keeps_its_lines_but_for_the_widest() {
    let text = r#"{ "name": "gh", "version": "1.0.0", "serverCapabilities": ["env:read:TOKEN", "exec:spawn:*"],
        "tools": [{ "name": "issues", "capabilities": ["net:connect:api.example.com:443", "fs:read:/**"] }] }"#;
    let (lines, text) = imported(ImportFrom::Capgate, text);
    assert_eq!(lines, ["env:read:TOKEN", "net:connect:api.example.com:443"]);
    assert!(asks(&text, "exec:spawn:*") && asks(&text, "fs:read:/**"), "{text}");
}

#[test]
fn another_form_is_said() {
    for from in ImportFrom::ALL {
        assert!(import(from, "[]", &options()).is_err() || from == ImportFrom::Toolhive, "{}", from.as_str());
        assert!(import(from, "{", &options()).is_err(), "{}", from.as_str());
    }
}

#[test]
fn no_text_becomes_more_than_comments_and_lines() {
    let text = "{ \"servers\": { \"a\\u001b[2J\": { \"env\": { \"X\\ny = 1\": \"\" }, \"args\": [\"/srv/\\n[x]\"] } } }";
    let (lines, text) = imported(ImportFrom::Vscode, text);
    assert!(lines.is_empty() && !text.contains('\u{1b}') && !text.contains("\n[x]"), "{text}");
}
