//! JSON lines in a file: torn ends, files that are full, links, and text that a terminal would act on.

use std::fs;
use std::path::Path;

use bailiwick_export::{CursorFile, ExportOptions, Exporter, Lines, LinesTarget, Sink};
use bailiwick_journal::Journal;
use bailiwick_testkit::journal::{event, session};
use serde_json::Value;

use crate::collector::{at_the_end, drain};

fn exporter(dir: &Path, most_bytes: u64) -> Exporter {
    let target = LinesTarget::File { path: dir.join("out.jsonl"), most_bytes };
    let cursor = CursorFile::lock(&dir.join("cursor").join("c.json")).unwrap();
    let options = ExportOptions { journal: dir.join("journal"), bound_bytes: 1 << 30 };
    Exporter::open(&options, Some(cursor), Sink::Lines(Lines::new(target))).unwrap()
}

fn write(dir: &Path, name: &str, reasons: &[&str]) {
    let journal = Journal::open(&dir.join("journal"), session(name), at_the_end()).unwrap();
    for reason in reasons {
        journal.append(event(*reason)).unwrap();
    }
    journal.close().unwrap();
}

fn ids(text: &str) -> Vec<String> {
    let id = |line: &str| serde_json::from_str::<Value>(line).ok()?["id"].as_str().map(str::to_owned);
    text.lines().filter_map(id).collect()
}

#[test]
fn each_line_is_that_of_the_journal_and_the_next_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a", &["one", "two"]);
    drain(&mut exporter(dir.path(), 1 << 20)).unwrap();
    // A torn line of an exporter that was killed does not spoil the next.
    let out = dir.path().join("out.jsonl");
    fs::write(&out, format!("{}{{\"id\":\"torn", fs::read_to_string(&out).unwrap())).unwrap();
    write(dir.path(), "b", &["three"]);
    assert_eq!(drain(&mut exporter(dir.path(), 1 << 20)), Ok(1));
    let text = fs::read_to_string(&out).unwrap();
    assert_eq!(ids(&text), ["a:0", "a:1", "b:0"]);
    let recorded = fs::read_to_string(dir.path().join("journal/a.000000.jsonl")).unwrap();
    let expected = recorded.lines().next().unwrap().replacen('{', "{\"id\":\"a:0\",", 1);
    assert_eq!(text.lines().next().unwrap(), expected);
}

#[test]
fn a_full_file_makes_room_and_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        write(dir.path(), name, &["one"]);
        drain(&mut exporter(dir.path(), 500)).unwrap();
    }
    let names = |name: &str| ids(&fs::read_to_string(dir.path().join(name)).unwrap());
    assert_eq!((names("out.jsonl.1"), names("out.jsonl")), (vec!["b:0".to_owned()], vec!["c:0".to_owned()]));
    fs::remove_file(dir.path().join("out.jsonl")).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, dir.path().join("out.jsonl")).unwrap();
    write(dir.path(), "d", &["one"]);
    assert!(drain(&mut exporter(dir.path(), 500)).is_err());
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "");
    // Nothing is lost: the cursor did not move.
    fs::remove_file(dir.path().join("out.jsonl")).unwrap();
    assert_eq!(drain(&mut exporter(dir.path(), 500)), Ok(1));
}

#[test]
fn text_that_a_terminal_acts_on_is_escaped_and_still_the_same_text() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = "\u{1b}[2J \u{9b}31m \u{202e}gnp \u{200b}\u{e0041} é 😀";
    write(dir.path(), "a", &[hostile]);
    drain(&mut exporter(dir.path(), 1 << 20)).unwrap();
    let text = fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert!(
        !text.chars().any(|c| c != '\n' && (c.is_control() || "\u{202e}\u{200b}\u{e0041}".contains(c))),
        "{text:?}"
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["reason"], hostile);
}
