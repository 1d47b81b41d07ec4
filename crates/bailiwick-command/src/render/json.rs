//! Findings, differences and answers for programs.
//!
//! Each document names its own format and version; fields are added, never changed.

use bailiwick_manifest::diff::{Diff, Difference, Verdict};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::{Finding, LineColumn, Source};
use serde_json::{Value, json};

use super::escape;

/// A document, indented, with a newline at its end.
pub fn document(value: &Value) -> String {
    escape::json(&format!("{value:#}")) + "\n"
}

/// One finding.
pub fn finding(source: &Source, finding: &Finding) -> Value {
    json!({
        "code": finding.code().as_str(),
        "alias": finding.code().alias(),
        "severity": finding.severity().as_str(),
        "message": finding.message(),
        "help": finding.help_text(),
        "start": finding.span().map(|span| place(source.place(span.start))),
        "end": finding.span().map(|span| place(source.place(span.end))),
    })
}

/// A line and a column, both from 1.
pub fn place(place: LineColumn) -> Value {
    json!({ "line": place.line, "column": place.column })
}

/// A whole comparison; `fails` is what the exit code says.
pub fn diff(base: (&Source, &Snapshot), new: (&Source, &Snapshot), diff: &Diff, fails: bool) -> Value {
    json!({
        "format": "bailiwick.diff/1",
        "base": side(base),
        "new": side(new),
        "fails": fails,
        "needs_review": diff.needs_review(),
        "widens": diff.widens(),
        "verdicts": diff.verdicts().iter().map(verdict).collect::<Vec<_>>(),
        "differences": diff.differences().iter().map(Difference::to_json).collect::<Vec<_>>(),
    })
}

fn side((source, snapshot): (&Source, &Snapshot)) -> Value {
    let manifest = snapshot.manifest();
    json!({
        "file": source.name(),
        "name": manifest.name(),
        "version": manifest.version(),
        "hash": snapshot.hash(),
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "id": verdict.question.as_str(),
        "question": verdict.question.text(),
        "answer": verdict.evidence.is_some(),
        "evidence": verdict.evidence,
    })
}
