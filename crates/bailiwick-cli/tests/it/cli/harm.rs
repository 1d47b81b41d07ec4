//! Text from a file is shown, never obeyed.

use super::run;

const NASTY: &str = "crates/bailiwick-cli/tests/fixtures/nasty.json";

/// Characters that steer a terminal or hide.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn nothing_that_a_file_says_steers_the_terminal() {
    for args in [
        &["check", NASTY][..],
        &["check", "--format", "json", NASTY],
        &["check", "--format", "sarif", NASTY],
        &["diff", NASTY, NASTY],
        &["snapshot", NASTY],
        &["allows", NASTY, "fs:read:/x"],
        &["allows", "examples/github.toml", "fs:read:/a\u{1b}[31m"],
        &["allows", "examples/github.toml", "fs:read:/x", "--tool", "\u{1b}[31m"],
        &["init", "--template", "\u{9b}31m", "-"],
        &["init", "--name", "\u{1b}[31m", "-"],
        &["check", "no\u{1b}[31msuch.toml"],
        &["diff", "no\u{202e}such.toml", NASTY],
    ] {
        let ran = run(args);
        let found = ran.out.chars().chain(ran.err.chars()).find(|c| acts(*c));
        assert_eq!(found, None, "{args:?}\n{:?}\n{:?}", ran.out, ran.err);
        assert_ne!(ran.exit, 0, "{args:?}");
    }
}

#[test]
fn a_command_line_in_a_manifest_stays_inside_its_markdown_cell() {
    let dir = tempfile::tempdir().unwrap();
    let side = |name: &str, arg: &str| {
        let path = dir.path().join(name);
        let text = format!("name = \"a\"\nversion = \"1\"\ncommand = \"run\"\nargs = [\"{arg}\"]\n");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (base, new) =
        (side("base.toml", "x"), side("new.toml", "` | @alice </code> [x](https://evil.test) \\u001b"));
    let ran = run(&["diff", "--format", "markdown", &base, &new]);
    assert_eq!(ran.exit, 1);
    let row = ran.out.lines().find(|line| line.contains("server.command.changed")).unwrap();
    assert_eq!(row.matches('|').count(), 5, "{row}");
    for mark in ["@alice", "](", "https://", "\u{1b}"] {
        assert!(!row.contains(mark), "{mark} in {row}");
    }
    assert_eq!(row.matches("</code>").count(), row.matches("<code>").count());
}
