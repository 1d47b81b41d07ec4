//! SARIF 2.1.0, as code scanning services read it.

use std::collections::BTreeSet;

use bailiwick_command::render::escape;
use bailiwick_manifest::diff::Diff;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::{Code, Finding, Severity, Source, Span};
use serde_json::{Value, json};

/// One result before it is numbered.
pub(crate) struct SarifResult {
    code: Code,
    severity: Severity,
    text: String,
    location: Value,
    accepted: Option<String>,
}

/// The findings of one text.
pub(crate) fn of_findings(source: &Source, findings: &[Finding]) -> Vec<SarifResult> {
    let one = |finding: &Finding| SarifResult {
        code: finding.code(),
        severity: finding.severity(),
        text: with_help(finding.message(), finding.help_text()),
        location: location(source, finding.span()),
        accepted: None,
    };
    findings.iter().map(one).collect()
}

/// The differences between two manifests, at the tools of the new one.
pub(crate) fn of_diff(new: &Source, snapshot: &Snapshot, diff: &Diff) -> Vec<SarifResult> {
    let tools = snapshot.manifest().tools();
    let span = |name: &str| tools.iter().find(|tool| tool.name() == name).map(|tool| tool.span());
    let differences = diff.differences().iter();
    let one = differences.map(|found| SarifResult {
        code: found.code(),
        severity: found.severity(),
        text: match found.tool() {
            Some(tool) => format!("`{tool}`: {}", found.message()),
            None => found.message().to_owned(),
        },
        location: location(new, found.tool().and_then(span)),
        accepted: found.accepted().map(str::to_owned),
    });
    one.collect()
}

/// A file that could not be read.
pub(crate) fn notification(text: &str) -> Value {
    json!({ "level": "error", "message": { "text": text } })
}

/// The whole log.
pub(crate) fn log(outcomes: &[SarifResult], unreadable: &[Value]) -> Value {
    let codes: Vec<Code> = outcomes.iter().map(|one| one.code).collect::<BTreeSet<_>>().into_iter().collect();
    let results: Vec<Value> = outcomes.iter().map(|one| result(one, &codes)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "bailiwick",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": unreadable.is_empty(),
                "toolExecutionNotifications": unreadable,
            }],
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    // Code scanning sorts by this number: 7 and above is high, 4 and above medium.
    let weight = match code.severity() {
        Severity::Error | Severity::High => "8.0",
        Severity::Medium => "5.0",
        Severity::Info => "1.0",
    };
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.meaning() },
        "help": { "text": format!("{}. See docs/codes.md.", code.meaning()) },
        "defaultConfiguration": { "level": level(code.severity()) },
        "properties": { "tags": ["security"], "security-severity": weight },
    })
}

fn result(outcome: &SarifResult, codes: &[Code]) -> Value {
    let mut result = json!({
        "ruleId": outcome.code.as_str(),
        "ruleIndex": codes.iter().position(|code| *code == outcome.code),
        "level": level(outcome.severity),
        "message": { "text": outcome.text },
        "locations": [outcome.location],
    });
    if let (Some(reason), Some(fields)) = (&outcome.accepted, result.as_object_mut()) {
        let suppressions = json!([{ "kind": "external", "justification": reason }]);
        fields.insert("suppressions".to_owned(), suppressions);
    }
    result
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Info => "note",
    }
}

fn location(source: &Source, span: Option<Span>) -> Value {
    let span = span.unwrap_or(Span::new(0, 0));
    let (start, end) = (source.place(span.start), source.place(span.end.max(span.start)));
    // A region is never empty: it ends one behind its last character.
    let end_column = if end == start { end.column + 1 } else { end.column };
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": escape::uri(source.name()) },
        "region": {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end_column,
        },
    } })
}

fn with_help(message: &str, help: Option<&str>) -> String {
    help.map_or_else(|| message.to_owned(), |help| format!("{message}; {help}"))
}
