//! Servers that are known by where they come from: which manifest counts, what their arguments grant, and who may not say so.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{World, Wrapped, call, text};

/// A server that says whether it was handed a token, and reads the file that it is asked for.
const SERVER: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case "$line" in
    *'"initialize"'*) said='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}' ;;
    *notifications/*) continue ;;
    *tools/list*) said='"tools":[{"name":"read_text_file","inputSchema":{"type":"object"}},{"name":"write_file","inputSchema":{"type":"object"}}]' ;;
    *)
      path=${line#*'"path":"'}; path=${path%%\"*}; data=
      [ -r "$path" ] && IFS= read -r data < "$path"
      said="\"content\":[{\"type\":\"text\",\"text\":\"token ${NOTION_TOKEN:+was handed over}, file $data\"}]" ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$said"
done
"#;

/// A copy of a package that claims to be `name`, with that server in it.
fn planted(world: &World, name: &str) -> PathBuf {
    let package = world.path("node_modules").join(name);
    std::fs::create_dir_all(&package).expect("a directory");
    std::fs::write(package.join("package.json"), format!(r#"{{"name":"{name}","version":"9.9.9"}}"#))
        .expect("a file");
    let program = package.join("server.sh");
    std::fs::write(&program, SERVER).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    program
}

const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem";

fn notes(world: &World, name: &str) -> PathBuf {
    let dir = world.path(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join("a.txt"), "alpha").expect("a file");
    dir
}

fn prefixed(world: &World, options: &[&str], words: &[&str]) -> Wrapped {
    let mut command = world.bailiwick(&["wrap"]);
    command.args(options).arg("--").args(words).env("NOTION_TOKEN", "ntn_0123456789");
    Wrapped::spawned(command)
}

fn read(wrapped: &mut Wrapped, path: &std::path::Path) -> Value {
    wrapped.ask(&call(5, "read_text_file", &json!({ "path": path.to_str() })))
}

/// Why nothing was started.
fn refusal(mut wrapped: Wrapped) -> String {
    let answer = wrapped.initialize();
    let why = answer["result"]["instructions"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let (code, _) = wrapped.end();
    assert_eq!(code, Some(125), "{why}");
    why
}

#[test]
fn arguments_grant_what_they_name_and_nothing_else() {
    let world = World::new();
    let (server, inside) = (planted(&world, FILESYSTEM), notes(&world, "notes"));
    let outside = notes(&world, "outside");
    let server = server.to_str().expect("text");
    let mut wrapped = prefixed(&world, &[], &[server, "notes"]);
    wrapped.initialize();
    let list = wrapped.ask(&json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/list" }));
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(2), "{list}");
    assert!(text(&read(&mut wrapped, &inside.join("a.txt"))).contains("file alpha"));
    let denied = read(&mut wrapped, &outside.join("a.txt"));
    assert!(text(&denied).contains("outside declared filesystem policy"), "{denied}");
    let (_, said) = wrapped.end();
    assert!(said.contains("was tried with version"), "another version is noted: {said}");
    let journal = world.recorded();
    assert!(journal.contains("was tried with version"), "{journal}");

    let both = world.path("both");
    std::fs::create_dir(&both).expect("a directory");
    let mut wrapped = Wrapped::spawned({
        let mut command = world.bailiwick(&["wrap", "--no-journal", "--", server, "notes", "outside"]);
        command.env("XDG_STATE_HOME", both);
        command
    });
    wrapped.initialize();
    for dir in [&inside, &outside] {
        assert!(text(&read(&mut wrapped, &dir.join("a.txt"))).contains("file alpha"), "every value counts");
    }
    drop(wrapped.end());
}

#[test]
fn no_argument_grants_a_sensitive_place() {
    let world = World::new();
    let server = planted(&world, FILESYSTEM);
    let server = server.to_str().expect("text");
    std::fs::create_dir(world.path(".ssh")).expect("a directory");
    notes(&world, "notes");
    std::os::unix::fs::symlink(world.path(".ssh"), world.path("notes/keys")).expect("a link");
    let home = world.0.path().to_str().expect("text").to_owned();
    // The parent of `~/.ssh`, the place itself, a link to it, a relative way to it, and everything.
    for word in [&*home, "~/.ssh", "notes/keys", "notes/..", "/", "/etc"] {
        let why = refusal(prefixed(&world, &[], &[server, word]));
        assert!(why.contains("--set ROOTS="), "{word}: {why}");
    }
    let mut wrapped = prefixed(&world, &["--set", &format!("ROOTS={home}/.ssh")], &[server, "~/.ssh"]);
    assert_eq!(wrapped.initialize()["result"]["serverInfo"]["name"], "s", "a person said it");
    drop(wrapped.end());
}

#[test]
fn a_copy_that_claims_to_be_a_package_gets_no_secret_until_a_person_confirmed_it() {
    let world = World::new();
    let server = planted(&world, "@notionhq/notion-mcp-server");
    let server = server.to_str().expect("text");
    let ask = |wrapped: &mut Wrapped| text(&wrapped.ask(&call(5, "API-get-self", &json!({}))));
    let mut wrapped = prefixed(&world, &[], &[server]);
    wrapped.initialize();
    assert_eq!(ask(&mut wrapped), "token , file ");
    let (_, said) = wrapped.end();
    assert!(said.contains("bailiwick store confirm"), "{said}");
    assert_eq!(world.run(&["store", "confirm", server]).status.code(), Some(1), "it was not confirmed");
    assert_eq!(world.run(&["store", "confirm", "--yes", server]).status.code(), Some(0));
    let mut wrapped = prefixed(&world, &[], &[server]);
    let refused = wrapped.initialize();
    assert!(
        refused["result"]["instructions"].as_str().is_some_and(|why| why.contains("pins approve notion")),
        "{refused}"
    );
    drop(wrapped.end());
    assert_eq!(world.run(&["pins", "approve", "--yes", "notion"]).status.code(), Some(0));
    let mut wrapped = prefixed(&world, &[], &[server]);
    wrapped.initialize();
    assert_eq!(ask(&mut wrapped), "token was handed over, file ");
    drop(wrapped.end());
}

#[test]
fn a_directory_that_is_called_otherwise_than_it_claims_is_unknown() {
    let world = World::new();
    let server = planted(&world, "@evil/server-filesystem");
    let package = server.with_file_name("package.json");
    std::fs::write(package, format!(r#"{{"name":"{FILESYSTEM}","version":"2026.8.31"}}"#)).expect("a file");
    let why = refusal(prefixed(&world, &[], &[server.to_str().expect("text"), "notes"]));
    assert!(why.contains("no manifest is there") && why.contains("bailiwick learn --server"), "{why}");
}

#[test]
fn a_project_only_narrows() {
    let world = World::new();
    let (server, inside) = (planted(&world, FILESYSTEM), notes(&world, "notes"));
    let server = server.to_str().expect("text");
    let file = world.path(".bailiwick/servers/files.toml");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    let manifest = |more: &str| {
        format!(
            "name = 'filesystem'\nversion = '1.0.0'\n{more}\n[package]\nidentity = 'npm:{FILESYSTEM}'\n\
             [variables]\nROOTS = {{ argument = '0..' }}\n\
             [[tools]]\nname = 'read_text_file'\ncapabilities = ['fs:read:$ROOTS']\narguments = {{ path = 'read' }}\n"
        )
    };
    std::fs::write(&file, manifest("server_capabilities = ['fs:read:/srv']")).expect("a file");
    let why = refusal(prefixed(&world, &[], &[server, "notes"]));
    assert!(why.contains("may only narrow") && why.contains("/srv"), "{why}");
    std::fs::write(&file, "name = 'broken").expect("a file");
    assert!(refusal(prefixed(&world, &[], &[server, "notes"])).contains("cannot be used"));
    std::fs::write(&file, manifest("")).expect("a file");
    let mut wrapped = prefixed(&world, &[], &[server, "notes"]);
    wrapped.initialize();
    assert!(text(&read(&mut wrapped, &inside.join("a.txt"))).contains("file alpha"));
    assert!(wrapped.ask(&call(6, "write_file", &json!({})))["error"].is_object(), "it was narrowed away");
    drop(wrapped.end());
}

#[test]
fn the_users_manifest_comes_before_the_shipped_one() {
    let world = World::new();
    let server = planted(&world, FILESYSTEM);
    notes(&world, "notes");
    let file = world.path(".config/bailiwick/servers/mine.toml");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    let text = format!(
        "name = 'mine'\nversion = '1'\n[package]\nidentity = 'npm:{FILESYSTEM}'\n[[tools]]\nname = 'write_file'\n"
    );
    std::fs::write(file, text).expect("a file");
    let output = world.run(&["wrap", "--explain", "--", server.to_str().expect("text"), "notes"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("server mine") && !said.contains("read_text_file"), "{said}");
}

#[test]
fn more_than_at_first_use_waits_for_a_person() {
    let world = World::new();
    let server = planted(&world, FILESYSTEM);
    let server = server.to_str().expect("text");
    let (_, other) = (notes(&world, "notes"), notes(&world, "other"));
    let starts = |words: &[&str]| {
        let mut wrapped = prefixed(&world, &[], words);
        let answer = wrapped.initialize();
        drop(wrapped.end());
        answer["result"]["serverInfo"]["name"] == "s"
    };
    assert!(starts(&[server, "notes", "other"]));
    assert!(starts(&[server, "notes"]), "less");
    assert!(starts(&[server, "other", "notes"]), "in another order");
    notes(&world, "third");
    let why = refusal(prefixed(&world, &[], &[server, "notes", "third"]));
    assert!(why.contains("bailiwick pins approve filesystem") && why.contains("third"), "{why}");
    let diff = world.run(&["pins", "diff", "filesystem"]);
    assert_eq!(diff.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&diff.stdout).contains("third"), "{diff:?}");
    assert_eq!(world.run(&["pins", "approve", "--yes", "filesystem"]).status.code(), Some(0));
    assert!(starts(&[server, "notes", "third"]));
    let why = refusal(prefixed(&world, &[], &[server, other.to_str().expect("text")]));
    assert!(why.contains("other"), "what was accepted is what counts: {why}");
}

#[test]
fn a_server_that_is_not_known_says_what_to_type() {
    let world = World::new();
    for words in [
        &["npx", "-y", "github:someone/server"][..],
        &["uvx", "--with", "more", "mcp-server-time"],
        &["npx", "-y", "no-manifest-is-shipped-for-this"],
        &["/bin/cat"],
    ] {
        let why = refusal(prefixed(&world, &[], words));
        let line = format!("bailiwick wrap --manifest server.toml -- {}", words.join(" "));
        assert!(why.contains(&line), "{why}");
    }
    let why = refusal(prefixed(&world, &[], &["docker", "run", "-i", "mcp/time"]));
    assert!(why.contains("outside of this sandbox"), "{why}");
    world.write(".npmrc", "registry=https://registry.invalid/\n");
    let project = world.path("project");
    std::fs::create_dir(&project).expect("a directory");
    std::fs::write(project.join(".npmrc"), "registry=https://registry.invalid/\n").expect("a file");
    let mut command = world.bailiwick(&["wrap", "--", "npx", "-y", FILESYSTEM, "."]);
    command.current_dir(&project);
    let why = refusal(Wrapped::spawned(command));
    assert!(why.contains(".npmrc"), "{why}");
}

#[test]
fn metadata_of_python_that_claims_a_package_hands_over_no_secret() {
    let world = World::new();
    let packages = world.path("venv/lib/python3.11/site-packages");
    let claim = packages.join("mcp_server_mail-1.0.dist-info");
    std::fs::create_dir_all(&claim).expect("a directory");
    std::fs::create_dir_all(world.path("venv/bin")).expect("a directory");
    std::fs::write(claim.join("entry_points.txt"), "[console_scripts]\nmcp-server-mail = x:main\n")
        .expect("a file");
    world.write("venv/pyvenv.cfg", "");
    let program = world.write("venv/bin/mcp-server-mail", SERVER);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    std::fs::create_dir_all(world.path(".config/bailiwick/servers")).expect("a directory");
    let manifest = "name = 'mail'\nversion = '1'\nserver_capabilities = ['env:inject:NOTION_TOKEN']\n\
        package = { identity = 'pypi:mcp-server-mail' }\n[[tools]]\nname = 'read_text_file'\ncapabilities = []\n";
    world.write(".config/bailiwick/servers/mail.toml", manifest);
    let mut wrapped = prefixed(&world, &[], &[program.to_str().expect("text")]);
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(5, "read_text_file", &json!({})))), "token , file ");
    let (_, said) = wrapped.end();
    assert!(said.contains("bailiwick store confirm"), "{said}");
}
