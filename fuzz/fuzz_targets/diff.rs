//! Diffs: a manifest does not differ from itself, and two arbitrary ones compare without a panic.
#![no_main]

use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (base, new) = text.split_once("\n---\n").unwrap_or((text, text));
    let (Ok(base), Ok(new)) = (Snapshot::parse(base), Snapshot::parse(new)) else { return };
    for side in [&base, &new] {
        let diff = Diff::between(side, side).expect("comparable");
        assert!(diff.differences().iter().all(|found| found.code().as_str() == "diff.undecided"), "{diff:?}");
    }
    let _ = Diff::between(&base, &new).expect("comparable");
});
