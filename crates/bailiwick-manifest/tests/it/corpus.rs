//! The corpus: texts beside what the library must say of them.
//!
//! `tests/corpus` is data that a reviewer reads. `*.invalid` and `*.valid` hold one case a line, `decisions` one
//! question a line, the directories one document a file with its expectation beside it. `UPDATE_GOLDEN=1` rewrites
//! expectations, never inputs and never decisions.

mod decisions;
mod documents;
mod lines;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bailiwick_policy::finding::Code;

/// What a run over part of the corpus saw.
#[derive(Debug, Default)]
struct Seen {
    invalid: usize,
    valid: usize,
    codes: BTreeSet<Code>,
    /// What differs from its expectation; empty if all is well.
    wrong: Vec<String>,
}

impl Seen {
    fn and(mut self, other: Self) -> Self {
        self.invalid += other.invalid;
        self.valid += other.valid;
        self.codes.extend(other.codes);
        self.wrong.extend(other.wrong);
        self
    }

    fn verify(self) -> Self {
        assert!(
            self.wrong.is_empty(),
            "{} expectations differ (UPDATE_GOLDEN=1 rewrites them; read what it wrote):\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
        self
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Held while files are compared or rewritten: tests run at the same time.
static FILES: Mutex<()> = Mutex::new(());

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn files() -> impl Drop {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn everything() -> Seen {
    let lines = lines::invalid().and(lines::long()).and(lines::valid());
    documents::KINDS.iter().fold(lines, |seen, kind| seen.and(documents::run(kind)))
}

/// Codes that no text in the corpus can raise, and why.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::SourceEncoding, "texts are `str` here; the reader of bytes raises it"),
    (Code::SourceTooLarge, "generated: see `hostile`"),
    (Code::ManifestTooMany, "generated: see `hostile`"),
    (Code::TooManyFindings, "generated: see `hostile`"),
    (Code::PathVariableUnresolved, "raised against a host, not by reading a text"),
    (Code::PathVariableValue, "raised against a host, not by reading a text"),
    (Code::CapabilityBeyondPolicy, "raised against a host, not by reading a text"),
    (Code::AcceptExpired, "raised by a comparison, not by reading a text"),
    (Code::AcceptUnused, "raised by a comparison, not by reading a text"),
    (Code::PlanInexpressible, "raised by planning, not by reading a text"),
    (Code::TargetUnsupported, "raised by a target, not by reading a text"),
];

#[test]
fn invalid_capabilities_say_what_is_wrong() {
    let seen = lines::invalid().and(lines::long()).verify();
    println!("{} invalid capabilities", seen.invalid);
    assert!(seen.invalid >= 110, "{}", seen.invalid);
}

#[test]
fn valid_capabilities_have_one_text() {
    let seen = lines::valid().verify();
    println!("{} valid capabilities", seen.valid);
    assert!(seen.valid >= 70, "{}", seen.valid);
}

#[test]
fn decisions_are_as_written() {
    let (count, wrong) = decisions::run();
    println!("{count} decisions");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 120, "{count}");
}

#[test]
fn documents_are_read_or_refused_as_expected() {
    for (kind, invalid, valid) in
        [("manifest", 45, 12), ("caveats", 15, 5), ("snapshot", 5, 1), ("accept", 5, 1)]
    {
        let kind = documents::KINDS.iter().find(|known| known.directory == kind).unwrap();
        let seen = documents::run(kind).verify();
        println!("{}: {} invalid, {} valid", kind.directory, seen.invalid, seen.valid);
        assert!(seen.invalid >= invalid && seen.valid >= valid, "{}: {seen:?}", kind.directory);
    }
}

#[test]
fn the_corpus_is_large_and_raises_every_code() {
    let seen = everything();
    println!("{} invalid, {} valid", seen.invalid, seen.valid);
    assert!(seen.invalid >= 150 && seen.valid >= 60, "{} invalid, {} valid", seen.invalid, seen.valid);
    // Guardrails are compiled, and sources scanned, in crates of their own, whose tests raise these.
    let of_others =
        |code: &Code| ["guardrail-", "scan-"].iter().any(|prefix| code.as_str().starts_with(prefix));
    for code in Code::ALL.iter().filter(|code| !code.as_str().contains('.') && !of_others(code)) {
        let elsewhere = ELSEWHERE.iter().find(|(other, _)| other == code);
        match (seen.codes.contains(code), elsewhere) {
            (true, Some((_, reason))) => panic!("{code} is in the corpus after all: {reason}"),
            (false, None) => panic!("{code} is raised by nothing in the corpus"),
            (true, None) | (false, Some(_)) => {}
        }
    }
}
