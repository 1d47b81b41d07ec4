//! The codes and kinds in `docs/journal.md` are the ones in the code.
use bailiwick_journal::JournalFault;
use bailiwick_journal::format::{Decision, MAX_LINE, RecordKind, SEAL_DOMAIN, SealKind, Tamper};
use std::collections::BTreeSet;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/journal.md");

#[test]
fn every_name_is_in_the_docs() {
    let docs = std::fs::read_to_string(DOCS).unwrap();
    let names =
        RecordKind::ALL.iter().map(|kind| kind.name()).chain(Tamper::ALL.iter().map(|tamper| tamper.code()));
    let names = names.chain(SealKind::ALL.iter().map(|kind| kind.name())).chain(JournalFault::CODES);
    let names = names.chain(Decision::ALL.iter().map(|decision| decision.name()));
    let domain = std::str::from_utf8(SEAL_DOMAIN).unwrap().trim_end();
    for name in names.chain([domain]) {
        assert!(docs.contains(&format!("`{name}`")), "`{name}` is not in docs/journal.md");
    }
    assert_eq!(MAX_LINE, 65_536, "docs/journal.md says so");
}

#[test]
fn every_refusal_has_its_meaning() {
    assert_eq!(JournalFault::MEANINGS.map(|(code, _)| code), JournalFault::CODES);
}

#[test]
fn the_docs_name_no_problem_or_refusal_that_does_not_exist() {
    let docs = std::fs::read_to_string(DOCS).unwrap();
    let own = ["journal-repaired", "journal-unsigned-tail", "journal-recovered", "journal-seal-v1"];
    let known: BTreeSet<&str> = JournalFault::CODES.into_iter().chain(own).collect();
    for word in docs.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
        if word.starts_with("journal-") {
            assert!(known.contains(word), "{word}");
        }
    }
    let codes: BTreeSet<&str> = Tamper::ALL.iter().map(|tamper| tamper.code()).collect();
    let rows = docs.lines().skip_while(|line| *line != "| code | what was done |").skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        assert!(codes.contains(row.split('`').nth(1).unwrap()), "{row}");
    }
}
