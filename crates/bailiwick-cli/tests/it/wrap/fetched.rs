//! Servers behind a launcher: fetched once, from the registries that npm and pip are set up for, and started from the store.

use std::path::PathBuf;

use bailiwick_testkit::skip;
use serde_json::json;

use super::{World, Wrapped, call, text};

const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem";

/// Whether a registry answers its own client.
fn answers(program: &str, args: &[&str]) -> bool {
    let output = std::process::Command::new(program).args(args).current_dir("/").output();
    output.is_ok_and(|output| output.status.success())
}

fn prefixed(world: &World, words: &[&str]) -> Wrapped {
    let mut command = world.bailiwick(&["wrap", "--"]);
    command.args(words);
    Wrapped::spawned(command)
}

/// Reads a note through a server that was started so.
fn note(mut wrapped: Wrapped, path: &std::path::Path) -> (String, String) {
    let hello = wrapped.initialize();
    if let Some(why) = hello["result"]["instructions"].as_str().filter(|why| why.contains("did not start")) {
        return (why.to_owned(), wrapped.end().1);
    }
    let answer = text(&wrapped.ask(&call(5, "read_text_file", &json!({ "path": path.to_str() }))));
    (answer, wrapped.end().1)
}

/// The directories of packages in the store.
fn stored(world: &World) -> Vec<PathBuf> {
    let name = FILESYSTEM.replace('/', "+");
    let dir = world.path(".cache/bailiwick/store/npm").join(name);
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn a_package_is_fetched_once_and_started_only_as_it_was() {
    if !answers("npm", &["view", FILESYSTEM, "version"]) {
        return skip("npm reaches no registry");
    }
    let world = World::new();
    let notes = world.path("notes");
    std::fs::create_dir(&notes).expect("a directory");
    std::fs::write(notes.join("a.txt"), "alpha").expect("a file");
    let words = ["npx", "-y", FILESYSTEM, "notes"];
    // Two at once: one fetches, the other waits, and both are served from one directory.
    let (first, second) = (prefixed(&world, &words), prefixed(&world, &words));
    for wrapped in [first, second] {
        let (answer, said) = note(wrapped, &notes.join("a.txt"));
        assert_eq!(answer, "alpha", "{said}");
    }
    let [directory] = &*stored(&world) else { panic!("{:?}", stored(&world)) };
    let listed = world.run(&["store", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains(FILESYSTEM), "{listed:?}");
    let (answer, said) = note(prefixed(&world, &words), &notes.join("a.txt"));
    assert!(answer == "alpha" && !said.contains("fetching"), "{said}");

    let entry = directory.join("node_modules").join(FILESYSTEM).join("dist/index.js");
    let code = std::fs::read_to_string(&entry).expect("it is there");
    std::fs::write(&entry, format!("{code}\n// planted")).expect("it is ours");
    let (why, _) = note(prefixed(&world, &words), &notes.join("a.txt"));
    assert!(why.contains("is not what was fetched"), "{why}");
    std::fs::write(&entry, code).expect("it is ours");
    let (answer, said) = note(prefixed(&world, &words), &notes.join("a.txt"));
    assert_eq!(answer, "alpha", "the same again: {said}");
    assert_eq!(world.run(&["store", "prune", "--all"]).status.code(), Some(0));
    assert!(stored(&world).is_empty());
}

#[test]
fn a_python_package_is_fetched_and_started_without_uv() {
    if !answers(
        "python3",
        &["-m", "pip", "download", "--no-deps", "-q", "-d", "/tmp/bailiwick-probe", "mcp-server-time"],
    ) {
        return skip("pip reaches no index");
    }
    let world = World::new();
    let mut wrapped = prefixed(&world, &["uvx", "mcp-server-time", "--local-timezone", "UTC"]);
    let hello = wrapped.initialize();
    let ask = call(
        5,
        "convert_time",
        &json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
    );
    let answer = text(&wrapped.ask(&ask));
    let (_, said) = wrapped.end();
    assert!(answer.contains("21:00"), "{hello} {answer} {said}");
}
