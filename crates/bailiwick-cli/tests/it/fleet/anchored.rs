//! A journal that was cut or written anew, which its own key vouches for and the fleet's log does not.

use std::path::Path;

use bailiwick_journal::format::{Event, RecordKind, SessionId};
use bailiwick_journal::{Journal, Options};

use super::{Fleet, Home, until};

const VERIFY: [&str; 3] = ["log", "verify", "--fleet"];

fn journal(home: &Home) -> std::path::PathBuf {
    home.path(".local/state/bailiwick/journal")
}

fn copy(from: &Path, to: &Path) {
    drop(std::fs::remove_dir_all(to));
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Records in a session of its own.
fn record(home: &Home, session: &str, reasons: &[&str]) {
    let session: SessionId = session.parse().unwrap();
    let journal = Journal::open(&journal(home), session, Options::default()).unwrap();
    for reason in reasons {
        journal.append(Event::new(RecordKind::ToolCalled).with_reason((*reason).to_owned())).unwrap();
    }
    journal.close().unwrap();
}

fn report(home: &Home) {
    home.prints(&["fleet", "report"]);
    until("the heads are in the log", || home.run(&VERIFY).status.success().then_some(()));
}

#[test]
fn the_heads_in_the_log_show_a_journal_that_was_cut_or_written_anew() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = fleet.member("machine");
    let (own, older) = (journal(&machine), machine.path("older"));
    let why = machine.refused(3, &VERIFY);
    assert!(why.contains("no head of"), "{why}");
    record(&machine, "one", &["a", "b"]);
    copy(&own, &older);
    record(&machine, "two", &["c"]);
    report(&machine);
    let files = fleet.path("log");
    machine.prints(&["log", "verify", "--fleet", "--log-files", &files]);

    // What was there before, put back as it was: all of it is genuine.
    let whole = machine.path("whole");
    copy(&own, &whole);
    copy(&older, &own);
    machine.prints(&["log", "verify"]);
    let found = machine.run(&VERIFY);
    assert_eq!(found.status.code(), Some(1), "{}", String::from_utf8_lossy(&found.stdout));
    assert!(String::from_utf8_lossy(&found.stdout).contains("two"));
    copy(&whole, &own);
    machine.prints(&VERIFY);

    // The same session with other events, sealed with the same key.
    for entry in std::fs::read_dir(&own).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name != "key") {
            std::fs::remove_file(path).unwrap();
        }
    }
    record(&machine, "one", &["a", "x"]);
    record(&machine, "two", &["c"]);
    machine.prints(&["log", "verify"]);
    let found = machine.run(&VERIFY);
    assert_eq!(found.status.code(), Some(1), "{}", String::from_utf8_lossy(&found.stdout));
    assert!(String::from_utf8_lossy(&found.stdout).contains("rewritten"));
    // And the hub does not take them for the journal that it knows.
    std::fs::remove_file(machine.path(".local/state/bailiwick/fleet/reported.json")).unwrap();
    let why = machine.refused(1, &["fleet", "report"]);
    assert!(why.contains("journal-went-back"), "{why}");
}

#[test]
fn a_log_that_is_not_what_was_signed_verifies_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = fleet.member("machine");
    record(&machine, "one", &["a"]);
    report(&machine);
    let copied = machine.path("log");
    let verify = |why: &str| {
        let said = machine.refused(3, &["log", "verify", "--fleet", "--log-files", copied.to_str().unwrap()]);
        assert!(said.contains(why), "{said}");
    };
    let fresh = || copy(Path::new(&fleet.path("log")), &copied);
    fresh();
    machine.prints(&["log", "verify", "--fleet", "--log-files", copied.to_str().unwrap()]);
    // Each is as well formed as before.
    for heads in files_below(&copied.join("heads")) {
        swap_digit(&heads, "\"hash\":\"", 0);
    }
    verify("is not what was signed");
    fresh();
    for entries in files_below(&copied.join("tile/entries")) {
        swap_digit(&entries, "\"time_ms\":", 12);
    }
    verify("is not what was signed");
    fresh();
    let checkpoint = copied.join("checkpoint");
    let text = std::fs::read_to_string(&checkpoint).unwrap().replacen("fleet.example", "other.example", 1);
    std::fs::write(&checkpoint, text).unwrap();
    verify("is not trusted");
}

/// Puts another digit at this place behind a word.
fn swap_digit(file: &Path, word: &str, behind: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    let found = bytes.windows(word.len()).position(|some| some == word.as_bytes()).unwrap();
    let digit = &mut bytes[found + word.len() + behind];
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    std::fs::write(file, bytes).unwrap();
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
