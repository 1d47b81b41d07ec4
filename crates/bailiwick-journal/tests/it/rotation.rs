//! Segments come and go; the chain holds.
use bailiwick_journal::format::Tamper;
use bailiwick_journal::{Expected, Filter, Journal, Options, Retained, retain};
use bailiwick_testkit::journal::{Dir, event, session};
use std::fs;

fn small() -> Options {
    Options { segment_bytes: 4000, ..Options::default() }
}

/// A session in several segments, whose events are one second apart.
fn fill(journal: &Journal, count: u64) {
    for n in 0..count {
        journal.append(event(format!("{n}"))).unwrap();
        if n % 4 == 3 {
            journal.flush().unwrap();
        }
    }
}

fn segments(dir: &Dir, name: &str) -> Vec<String> {
    let names =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|file| file.starts_with(&format!("{name}.")) && file.ends_with(".jsonl")).collect();
    names.sort();
    names
}

#[test]
fn the_chain_goes_on_across_segments_and_reopening() {
    let dir = Dir::new();
    for _ in 0..3 {
        let journal = dir.open("a", small());
        fill(&journal, 40);
        journal.close().unwrap();
    }
    assert!(segments(&dir, "a").len() > 5);
    let report = dir.verify();
    assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
    assert_eq!(dir.records(Filter::default()).len(), 120);
}

#[test]
fn a_missing_or_exchanged_segment_is_found() {
    let dir = Dir::new();
    let journal = dir.open("a", small());
    fill(&journal, 80);
    journal.close().unwrap();
    let names = segments(&dir, "a");
    let last = fs::read(dir.file(names.last().unwrap())).unwrap();
    fs::remove_file(dir.file(names.last().unwrap())).unwrap();
    assert!(matches!(dir.problems(&Expected::default())[..], [(_, _, Tamper::TruncatedTail)]));
    fs::write(dir.file(names.last().unwrap()), last).unwrap();
    let second = fs::read(dir.file(&names[1])).unwrap();
    fs::rename(dir.file(&names[2]), dir.file(&names[1])).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [(names[1].clone(), 1, Tamper::Dropped)]);
    fs::write(dir.file(&names[2]), second).unwrap();
    assert_eq!(dir.problems(&Expected::default())[0].0, names[1]);
    fs::remove_file(dir.file(&names[0])).unwrap();
    assert_eq!(dir.problems(&Expected::default())[0].1, 1);
}

#[test]
fn a_crash_after_rotation_leaves_an_empty_segment_that_is_used() {
    let dir = Dir::new();
    let journal = dir.open("a", Options::default());
    fill(&journal, 8);
    journal.close().unwrap();
    fs::write(dir.file("a.000001.jsonl"), "").unwrap();
    assert!(dir.verify().is_intact());
    let journal = dir.open("a", Options::default());
    fill(&journal, 4);
    journal.close().unwrap();
    assert!(dir.verify().is_intact());
    assert!(fs::metadata(dir.file("a.000001.jsonl")).unwrap().len() > 0);
    assert_eq!(dir.records(Filter::default()).len(), 12);
}

fn later() -> u64 {
    bailiwick_journal::now_us() + 1_000_000
}

#[test]
fn retention_removes_old_segments_of_a_live_session_and_verification_holds() {
    let dir = Dir::new();
    let journal = dir.open("a", small());
    fill(&journal, 80);
    let before = segments(&dir, "a").len();
    let outcomes = retain(&dir.path(), later(), later()).unwrap();
    let [Retained::Removed { segments: removed, is_whole: false, .. }] = outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(segments(&dir, "a").len(), 1);
    assert_eq!(removed, before - 1);
    assert!(dir.verify().is_intact());
    fill(&journal, 40);
    assert!(dir.verify().is_intact());
    journal.close().unwrap();
    dir.open("a", small()).close().unwrap();
    let report = dir.verify();
    assert!(report.is_intact() && report.sessions[0].removed.is_some());
    // what was not removed by retention is still missed
    let names = segments(&dir, "a");
    fs::remove_file(dir.file(&names[0])).unwrap();
    assert_eq!(dir.problems(&Expected::default()), [(names[1].clone(), 1, Tamper::Dropped)]);
}

#[test]
fn retention_removes_a_whole_session_and_leaves_a_tombstone() {
    let dir = Dir::new();
    for name in ["a", "b"] {
        let journal = dir.open(name, small());
        fill(&journal, 40);
        journal.close().unwrap();
    }
    assert_eq!(retain(&dir.path(), 1, later()).unwrap(), []);
    let live = dir.open("b", small());
    let outcomes = retain(&dir.path(), later(), later()).unwrap();
    assert!(matches!(outcomes[0], Retained::Removed { is_whole: true, .. }), "{outcomes:?}");
    assert!(matches!(outcomes[1], Retained::Removed { is_whole: false, .. }), "{outcomes:?}");
    assert_eq!(segments(&dir, "a").len(), 0);
    assert!(!dir.file("a.head").exists());
    assert!(dir.verify().is_intact());
    live.close().unwrap();
    let again = Journal::open(&dir.path(), session("a"), small()).err().unwrap();
    assert_eq!(again.code(), "journal-damaged");
    assert!(again.to_string().contains("retention removed it"), "{again}");
    assert!(dir.verify().is_intact());
    // without its tombstone, the session is missed
    let index = fs::read_to_string(dir.file("index.jsonl")).unwrap();
    let kept: Vec<&str> = index.lines().take(4).collect();
    fs::write(dir.file("index.jsonl"), format!("{}\n", kept.join("\n"))).unwrap();
    assert!(dir.problems(&Expected::default()).contains(&(
        "a.000000.jsonl".into(),
        0,
        Tamper::MissingSession
    )));
}

#[test]
fn an_interrupted_removal_verifies_and_is_finished() {
    let dir = Dir::new();
    let journal = dir.open("a", small());
    fill(&journal, 80);
    let names = segments(&dir, "a");
    let saved = fs::read(dir.file(&names[2])).unwrap();
    retain(&dir.path(), later(), later()).unwrap();
    journal.close().unwrap();
    // as if only the last of the removed segments had not been reached
    let names_left = segments(&dir, "a");
    let third = names.len() - names_left.len();
    assert!(third > 2);
    for name in &names[2..third] {
        assert!(!dir.file(name).exists());
    }
    if third == 3 {
        fs::write(dir.file(&names[2]), saved).unwrap();
        assert!(dir.verify().is_intact());
    }
    retain(&dir.path(), later(), later()).unwrap();
    assert_eq!(segments(&dir, "a").len(), 0);
    assert!(dir.verify().is_intact());
}

#[test]
fn retention_buries_nothing_that_was_changed() {
    let dir = Dir::new();
    let journal = dir.open("a", small());
    fill(&journal, 80);
    journal.close().unwrap();
    let name = &segments(&dir, "a")[0];
    let text = fs::read_to_string(dir.file(name)).unwrap();
    fs::write(dir.file(name), text.replacen("shell", "other", 1)).unwrap();
    assert_eq!(retain(&dir.path(), later(), later()).unwrap(), [Retained::Suspect(session("a"))]);
    assert!(dir.file(name).exists());
}
