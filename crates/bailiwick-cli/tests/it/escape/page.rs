//! `docs/escapes.md`, printed from the rows.

use std::fmt::Write as _;
use std::path::Path;

use super::rows::rows;

const INTRODUCTION: &str = "# Escapes

What a confined program tries, and what stops it. Each row is tried from inside the native sandbox by a real program
(`crates/bailiwick-cli/tests/it/escape/probe.c`), as root and as a plain user, and what can be tried without a sandbox
is tried there too, where it must work. `scripts/mutate-sandbox` switches one protection off at a time, in builds that
cannot be released, and fails unless the tests then do.

This page is printed from the rows that the tests run: `crates/bailiwick-cli/tests/it/escape/escapes.txt`.
";

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut heading = "";
    for row in rows().iter().filter(|row| !row.is_control()) {
        if row.heading != heading {
            heading = row.heading;
            let _ = write!(
                text,
                "\n## {heading}\n\n| property | what is tried | what stops it |\n|---|---|---|\n"
            );
        }
        let _ = writeln!(text, "| `{}` | {} | {} |", row.id, row.tried, row.stopped_by);
    }
    text
}

#[test]
fn the_page_is_printed_from_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/escapes.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page(), "docs/escapes.md is not what the rows say: run with UPDATE_GOLDEN=1");
}
