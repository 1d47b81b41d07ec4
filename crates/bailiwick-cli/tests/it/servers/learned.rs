//! The reference servers under manifests that were learned from a part of their calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bailiwick_testkit::{reachable_program, skip};

use super::client::Era;
use super::table::{SERVERS, Server, learnable};
use super::{PAGES, World};
use crate::run::tree_of;

/// How many lines of a manifest may grant something.
const MOST_LINES: usize = 20;
/// Set where some servers stand for all.
const SOME_SERVERS: &str = "BAILIWICK_TEST_SOME_SERVERS";
/// One of each runtime, one that starts programs, and one that reaches hosts.
const REPRESENTATIVE: [&str; 3] = ["filesystem", "git", "fetch"];

#[test]
fn what_is_learned_from_some_calls_suffices_for_the_others() {
    let Some(directory) = super::installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let mut wrong = Vec::new();
    let is_all = std::env::var_os(SOME_SERVERS).is_none();
    for server in learnable().filter(|server| is_all || REPRESENTATIVE.contains(&server.name)) {
        let server = &server;
        let world = World::new();
        world.prepare();
        let manifest = world.path("learned.toml");
        let before = tree_of(&world.path(""));
        let learned = learn(&world, server, &server.entry(&directory), &manifest);
        let mut after = tree_of(&world.path(""));
        for own in ["learned.toml", "calls.jsonl"] {
            after.remove(&world.path(own));
        }
        assert_eq!(after, before, "{}: learning changes nothing", server.name);
        let text =
            std::fs::read_to_string(&manifest).unwrap_or_else(|_| panic!("{}: {learned}", server.name));
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| line.starts_with('"') && line.ends_with(',')).collect();
        assert!(lines.len() <= MOST_LINES, "{}: {text}", server.name);
        for wide in
            ["fs:read:/\"", "exec:spawn:*", "connect:*", ":/etc\"", ":/etc/*\"", ":~\"", ":/home", "secret"]
        {
            assert!(!lines.iter().any(|line| line.contains(wide)), "{} {wide}: {text}", server.name);
        }
        wrong.extend(differences(&world, server, &server.entry(&directory), &manifest));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same for another user, whose servers are in a place of that user's own.
#[test]
fn what_is_learned_suffices_as_a_plain_user() {
    if !rustix::process::getuid().is_root() {
        return println!("not root, so the other tests are it");
    }
    let Some(directory) = super::installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let cache = tempfile::Builder::new().prefix("bailiwick-cache").tempdir_in("/var/tmp").unwrap();
    let copy = cache.path().join("bailiwick/servers");
    std::fs::create_dir_all(&copy).unwrap();
    // Scripts of a virtual environment begin with where its interpreter lies, which may be in root's home: the system's takes its place.
    let text = "set -e; for one in node python sqlite; do cp -a \"$1/$one\" \"$2\"; done; cd \"$2\"; \
                sed -i \"1s|$1|$2|\" python/bin/mcp-server-* sqlite/bin/mcp-server-*; \
                for one in python sqlite; do ln -sf /usr/bin/python3 $one/bin/python3; $one/bin/python3 -c 'import mcp'; done; \
                chown -R 65534:65534 \"$3\"";
    let words = [&directory, &copy, &cache.path().to_owned()];
    let done = Command::new("sh").args(["-c", text, "sh"]).args(words).output().unwrap();
    if !done.status.success() {
        return skip(&format!("the servers cannot be copied to another user: {done:?}"));
    }
    let is_all = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    let mut environment = vec![("XDG_CACHE_HOME", cache.path().as_os_str())];
    environment.extend((!is_all).then_some((SOME_SERVERS, std::ffi::OsStr::new("1"))));
    bailiwick_testkit::run_again_as_plain_user_with(
        "servers::learned::",
        &[env!("CARGO_BIN_EXE_bailiwick")],
        &environment,
    );
}

/// A call of the table.
pub(super) type Call = (&'static str, &'static str);

/// Learns from every second call. What was said.
fn learn(world: &World, server: &Server, entry: &Path, manifest: &Path) -> String {
    let calls: Vec<Call> = server.calls.iter().step_by(2).copied().collect();
    learn_from(&calls, world, server, entry, manifest)
}

/// Learns from these calls. What was said.
pub(super) fn learn_from(
    calls: &[Call],
    world: &World,
    server: &Server,
    entry: &Path,
    manifest: &Path,
) -> String {
    let calls = calls.iter().map(|(tool, arguments)| {
        format!("{{\"tool\":\"{tool}\",\"arguments\":{}}}\n", world.fill(arguments))
    });
    std::fs::write(world.path("calls.jsonl"), calls.collect::<String>()).unwrap();
    let mut command = world.command(&reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
    command
        .args(["learn", "--no-journal", "--calls"])
        .arg(world.path("calls.jsonl"))
        .arg("--out")
        .arg(manifest);
    if server.calls.iter().any(|(_, arguments)| arguments.contains(PAGES)) {
        command.args(["--net", &world.pages()]);
    }
    for (name, value) in server.variables {
        command.args(["--env", name]).env(name, world.fill(value));
    }
    command.arg("--").arg(entry).args(server.args.iter().map(|word| world.fill(word)));
    let done = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{}: {said}", server.name);
    said
}

/// The calls, all of them, whose answers differ behind the learned manifest.
fn differences(world: &World, server: &Server, entry: &Path, manifest: &Path) -> Vec<String> {
    let answers = |mut command: Command| {
        world.prepare();
        command.args(server.args.iter().map(|word| world.fill(word)));
        world.answers(server, Era::Legacy, command)
    };
    let bare = answers(world.command(entry));
    let mut command = world.command(&reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
    command.args(["wrap", "--no-journal", "--manifest"]).arg(manifest).arg("--").arg(entry);
    let wrapped = answers(command);
    let mut wrong = Vec::new();
    if bare.tools != wrapped.tools {
        wrong.push(format!("{}: tools {:?}\n{}", server.name, wrapped.tools, wrapped.complaint));
    }
    for ((tool, arguments), (bare, wrapped)) in server.calls.iter().zip(bare.calls.iter().zip(&wrapped.calls))
    {
        if !server.is_same(bare, wrapped) {
            wrong.push(format!("{} {tool} {arguments}\n  bare {bare}\n  learned {wrapped}", server.name));
        }
    }
    wrong
}

/// What a replay says of a learned manifest, and of one that lacks a line.
#[test]
fn replay_tells_a_manifest_that_suffices_from_one_that_does_not() {
    let Some(directory) = super::installed() else {
        return skip("the servers are not in the cache that scripts/test fills");
    };
    let server = &SERVERS[0];
    let (world, entry) = (World::new(), server.entry(&directory));
    world.prepare();
    let manifest = world.path("learned.toml");
    learn(&world, server, &entry, &manifest);
    let replay = |manifest: &PathBuf| {
        let mut command = world.command(&reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        command.arg("replay").arg(manifest).arg("--calls").arg(world.path("calls.jsonl"));
        command.arg("--").arg(&entry).args(server.args.iter().map(|word| world.fill(word)));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let done = replay(&manifest);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(&manifest).unwrap();
    let less = world.path("less.toml");
    std::fs::write(&less, text.replace("fs:read,write:$ROOTS", "fs:read:$ROOTS")).unwrap();
    assert_eq!(replay(&less).status.code(), Some(1), "one that lacks a line does not suffice");
    std::fs::write(&less, format!("# INCOMPLETE: an access was lost\n{text}")).unwrap();
    assert_eq!(replay(&less).status.code(), Some(1), "one that is incomplete is not tried");
}
