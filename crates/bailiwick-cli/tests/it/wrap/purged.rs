//! `bailiwick purge`: everything of ours goes, after asking, and nothing else does.

use std::path::Path;

use serde_json::json;

use super::{World, call};

const MANIFEST: &str = "name = 'mortal'\nversion = '1'\n[[tools]]\nname = 'wait'\ncapabilities = []\n";
const SETTINGS: &str = r#"{ "mcpServers": { "mortal": { "command": "/bin/cat", "args": [] } } } "#;

fn ok(world: &World, args: &[&str]) -> String {
    let ran = world.run(args);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

fn refused(world: &World, args: &[&str]) -> String {
    let ran = world.run(args);
    assert_eq!(ran.status.code(), Some(1), "{args:?}: {ran:?}");
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// A user who has used everything, with entries of ours in their own settings and in a project's.
fn used() -> World {
    let world = World::new();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(world.path(name).parent().expect("a parent")).expect("a directory");
        world.write(name, text);
    };
    write(".config/bailiwick/servers/mortal.toml", MANIFEST);
    write(".cursor/mcp.json", SETTINGS);
    write("project/.mcp.json", SETTINGS);
    write("project/.claude/settings.json", "{ \"model\": \"x\" }\n");
    write(".cache/bailiwick/store/npm/x/index.js", "");
    write(".cache/other/file", "theirs");
    let project = world.path("project").display().to_string();
    ok(&world, &["install", "--servers"]);
    ok(&world, &["install", "--servers", "--project", &project]);
    ok(&world, &["install", "--hooks", "--project", &project, "claude-code"]);
    let mut wrapped = world.wrap_script(MANIFEST, &[], "*) ;;");
    wrapped.send(&call(1, "wait", &json!({})));
    drop(wrapped.end());
    assert!(world.path(".local/state/bailiwick/journal").is_dir());
    for file in [".cursor/mcp.json", "project/.mcp.json", "project/.claude/settings.json"] {
        assert!(read(&world, file).contains("bailiwick"), "{file}");
    }
    world
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.path(file)).unwrap_or_default()
}

fn is_whole(world: &World) {
    for there in [".local/state/bailiwick/journal", ".cache/bailiwick/store/npm/x/index.js"] {
        assert!(world.path(there).exists(), "{there}");
    }
    assert!(read(world, ".cursor/mcp.json").contains("bailiwick"));
}

#[test]
fn nothing_is_removed_unless_a_person_says_so() {
    let world = used();
    assert!(refused(&world, &["purge"]).contains("--yes"));
    is_whole(&world);
    let plan = ok(&world, &["purge", "--dry-run"]);
    for named in
        [".local/state/bailiwick", ".cache/bailiwick/store", "project/.mcp.json", ".config/bailiwick"]
    {
        assert!(plan.contains(named), "{named}: {plan}");
    }
    is_whole(&world);
}

#[test]
fn everything_of_ours_goes_and_nothing_else() {
    let world = used();
    let said = ok(&world, &["purge", "--yes"]);
    for gone in [".local/state/bailiwick", ".cache/bailiwick/store"] {
        assert!(!world.path(gone).exists() && said.contains(gone), "{gone}: {said}");
    }
    assert_eq!(read(&world, ".cursor/mcp.json"), SETTINGS);
    assert_eq!(read(&world, "project/.mcp.json"), SETTINGS);
    assert_eq!(read(&world, "project/.claude/settings.json"), "{ \"model\": \"x\" }\n");
    assert_eq!(read(&world, ".config/bailiwick/servers/mortal.toml"), MANIFEST, "it is the user's own");
    assert_eq!(read(&world, ".cache/other/file"), "theirs");
    let again = ok(&world, &["purge", "--yes"]);
    assert!(again.contains("nothing is kept here"), "{again}");
}

#[test]
fn what_cannot_be_undone_or_still_runs_keeps_everything() {
    let world = used();
    let mut wrapped = world.wrap_script(MANIFEST, &[], "*) ;;");
    wrapped.send(&call(1, "wait", &json!({})));
    assert!(crate::run::eventually(|| ok(&world, &["ps"]).contains("mortal")));
    assert!(refused(&world, &["purge", "--yes"]).contains("mortal"));
    drop(wrapped.end());
    is_whole(&world);

    world.write(".cursor/mcp.json", r#"{ "mcpServers": {"#);
    let ran = world.run(&["purge", "--yes"]);
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    assert!(world.path(".local/state/bailiwick/journal").exists(), "what undoes the rest is still there");

    let world = used();
    let (state, elsewhere) = (world.path(".local/state/bailiwick"), world.path("elsewhere"));
    std::fs::rename(&state, &elsewhere).expect("it moves");
    std::os::unix::fs::symlink(&elsewhere, &state).expect("a link");
    assert!(refused(&world, &["purge", "--yes"]).contains("is a link"));
    assert!(Path::new(&elsewhere).join("journal").is_dir());
}
