//! `bailiwick top`: a table that is printed, and a screen that is given back.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use bailiwick_testkit::skip;

use super::{Served, bailiwick};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[test]
fn a_table_is_there_without_a_server() {
    let served = Served::new(&["--watch"]);
    let output = bailiwick(&served.home, &["top"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success()
            && text.contains("no wrapped server runs")
            && text.contains("nothing was denied"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "a pipe has no screen");
}

/// What `top` sends to a terminal of this size until it is ended, and how the terminal is left.
fn on_terminal(home: &tempfile::TempDir, options: &str, rows: usize, columns: usize, end: &[u8]) -> String {
    let program = bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
    let line = format!(
        "stty rows {rows} cols {columns}; stty -g > before; {} {options} top; echo code-$?; stty -g > after; cmp before after && echo same-keys",
        program.display()
    );
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["60", "/usr/bin/script", "-qec", &line, "/dev/null"]);
    command
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/bash");
    let mut child =
        command.current_dir(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut all = Vec::new();
    let mut byte = [0];
    // A whole frame ends by clearing what is below it.
    while !all.ends_with(b"\x1b[J") {
        assert!(screen.read(&mut byte).unwrap() > 0, "it ended: {}", String::from_utf8_lossy(&all));
        all.extend(byte);
    }
    keys.write_all(end).unwrap();
    screen.read_to_end(&mut all).unwrap();
    assert!(child.wait().unwrap().success());
    String::from_utf8(all).unwrap()
}

#[test]
fn a_terminal_is_drawn_on_in_place_and_given_back() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        return skip("no `script` here to make a terminal");
    }
    let home = tempfile::Builder::new().prefix("bailiwick-top").tempdir_in("/var/tmp").unwrap();
    for (options, rows, columns, end) in [
        ("", 24, 80, &b"q"[..]),
        ("", 60, 200, b"\x03"),
        ("--color never", 24, 80, b"q"),
        ("--color always", 10, 80, b"q"),
    ] {
        let said = on_terminal(&home, options, rows, columns, end);
        let (before, rest) = said.split_once(ENTER).expect("a screen of its own");
        let (drawn, after) = rest.split_once(LEAVE).expect("which is left");
        assert!(!before.contains("bailiwick top") && after.contains("code-0"), "{options} {end:?}: {said:?}");
        assert!(after.contains("same-keys"), "keys are read as before: {after:?}");
        assert!(drawn.contains("\u{1b}[?25h") && drawn.contains("\u{1b}[?7h"), "cursor and edge: {drawn:?}");
        let frame = drawn.split("\u{1b}[H").nth(1).unwrap().split("\u{1b}[J").next().unwrap();
        let bare = anstream::adapter::strip_str(frame).to_string();
        let lines: Vec<&str> = bare.lines().map(|line| line.trim_end_matches('\r')).collect();
        assert!(lines.len() <= rows, "{} lines in {rows}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
        let has_colours = frame.contains("\u{1b}[1m");
        assert_eq!(has_colours, !options.contains("never"), "{options}: {frame:?}");
        assert_eq!(bare.contains("MAY TOUCH"), columns >= 120);
    }
}
