//! `bailiwick demo`: on a machine with nothing installed and no network, and with the filesystem server of the protocol.

use std::path::Path;
use std::process::{Command, Output};

use bailiwick_testkit::skip;

use super::{World, npm_server};

fn shown(world: &World, path: &str) -> Output {
    let mut command = world.bailiwick(&["demo"]);
    command.env("PATH", path);
    command.output().expect("the command starts")
}

fn held(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        text.contains("everything was held") && text.matches("denied by the gate").count() >= 3,
        "{text}"
    );
    text
}

#[test]
fn it_works_with_nothing_installed_and_its_server_cannot_read_the_key_by_itself() {
    let world = World::new();
    let text = held(&shown(&world, "/usr/bin:/bin"));
    assert!(text.contains("a small one of our own"), "{text}");
    assert!(text.contains("did not work: the sandbox does not show it"), "{text}");
    assert!(!text.contains("BEGIN PRIVATE KEY"), "{text}");
    assert!(!world.path(".local").exists(), "nothing is left of it");
}

#[test]
fn it_works_without_any_network() {
    let has_namespaces = Command::new("unshare").args(["--map-root-user", "--net", "true"]).status();
    if !has_namespaces.is_ok_and(|status| status.success()) {
        return skip("no network namespace can be made here");
    }
    let world = World::new();
    let bailiwick = world.bailiwick(&["demo"]);
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net"]).arg(bailiwick.get_program()).arg("demo");
    command.env_clear().env("HOME", world.0.path()).env("PATH", "/usr/bin:/bin").current_dir(world.0.path());
    held(&command.output().expect("it starts"));
}

#[test]
fn its_own_server_reads_the_key_where_nothing_holds_it() {
    let world = World::new();
    let key = world.write("key", "a private key\n");
    let mut command = world.bailiwick(&["demo", "--as-server"]);
    command.arg(&key);
    let mut bare = super::Wrapped::spawned(command);
    bare.initialize();
    let said = super::text(&bare.ask(&super::call(1, "list_allowed_directories", &serde_json::json!({}))));
    assert_eq!(said, "a private key\n");
    drop(bare.end());
}

#[test]
fn the_filesystem_server_is_shown_where_it_is_installed() {
    let Some(entry) = npm_server("@modelcontextprotocol/server-filesystem") else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let modules = entry.ancestors().find(|dir| dir.ends_with("node_modules")).expect("it lies in modules");
    let world = World::new();
    let path = format!("{}:/usr/bin:/bin", modules.join(".bin").display());
    if !Path::new("/usr/bin/node").is_file() {
        return skip("node is not in /usr/bin");
    }
    let text = held(&shown(&world, &path));
    assert!(text.contains("mcp-server-filesystem ") && text.contains("as it is installed"), "{text}");
}

#[test]
fn it_works_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "wrap::demo::it_works_with_nothing",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
