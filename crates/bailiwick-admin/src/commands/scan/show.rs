//! A scan as text, JSON and SARIF.

use bailiwick_command::render::{escape, json, snippet, style};
use bailiwick_policy::finding::{Finding, Severity, Source};
use bailiwick_scan::{CodeSpan, Deeds, Report, Tool, Unknown, Use};
use serde_json::{Value, json};

use super::Case;
use crate::render::sarif;

/// The most uses of one tool that are shown.
const SHOWN: usize = 40;

/// For people: what each tool does, then what is wrong with it.
pub(super) fn text(case: &Case) -> String {
    let report = &case.report;
    let mut text = String::new();
    for tool in report.tools() {
        let place = at(report, tool.place());
        text += &format!("{} {}\n", style::strong(&escape::line(tool.name())), style::faint(&place));
        text += &deeds(report, tool.deeds());
    }
    if !report.server().uses().is_empty() || !report.server().unknowns().is_empty() {
        text += &format!("{}\n{}", style::strong("outside of every tool"), deeds(report, report.server()));
    }
    for (source, findings) in case.by_text() {
        let fails = |found: &&Finding| found.severity() == Severity::Error;
        let shown: Vec<Finding> = findings.iter().filter(fails).cloned().collect();
        if !shown.is_empty() {
            text += "\n";
            text += snippet::findings(&source, &shown).trim_end_matches('\n');
            text += "\n";
        }
        text.extend(findings.iter().filter(|found| !fails(found)).filter_map(|found| remark(&source, found)));
    }
    text + &entries(case) + &summary(case)
}

/// What to paste into the manifest, line by line.
fn entries(case: &Case) -> String {
    let mut text = String::new();
    for entry in added(case) {
        text += if text.is_empty() { "\nfor the manifest:\n\n" } else { "\n" };
        text.extend(entry.lines().map(|line| escape::line(line) + "\n"));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn added(case: &Case) -> impl Iterator<Item = &str> {
    case.judgement.items().iter().filter_map(|item| item.entry.as_deref())
}

/// A line for what is worth knowing; what a tool's own list says already is not said again.
fn remark(source: &Source, finding: &Finding) -> Option<String> {
    use bailiwick_policy::finding::Code;
    if matches!(finding.code(), Code::ScanUnknown | Code::ScanDynamic) {
        return None;
    }
    let line = finding.span().map_or(1, |span| source.place(span.start).line);
    let (name, message) = (escape::line(source.name()), escape::line(finding.message()));
    let severity = style::severity(finding.severity(), finding.severity().as_str());
    Some(format!("{severity}[{}]: {message} ({name}:{line})\n", finding.code()))
}

fn deeds(report: &Report, deeds: &Deeds) -> String {
    let uses = deeds.uses().iter().map(|one| (one.place(), use_line(one)));
    let unknowns = deeds.unknowns().iter().map(|one| (one.place(), unknown_line(one)));
    let all: Vec<(&CodeSpan, String)> = uses.chain(unknowns).collect();
    let mut text = String::new();
    for (place, line) in all.iter().take(SHOWN) {
        text += &format!("  {line}  {}\n", style::faint(&at(report, place)));
    }
    if all.len() > SHOWN {
        text += &format!("  and {} more\n", all.len() - SHOWN);
    }
    if all.is_empty() {
        text += "  touches nothing\n";
    }
    text
}

fn use_line(one: &Use) -> String {
    let call = escape::line(one.call());
    match one.capability() {
        Some(line) => format!("{}  {call}", escape::line(&line)),
        None => {
            format!("{} of a {} the source does not name  {call}", one.kind().as_str(), one.kind().noun())
        }
    }
}

fn unknown_line(one: &Unknown) -> String {
    format!("{} ({}): {}", style::warning("unknown"), one.reason().as_str(), escape::line(one.what()))
}

fn at(report: &Report, place: &CodeSpan) -> String {
    let path = report.files().get(place.file).map(|path| path.to_string_lossy().into_owned());
    escape::line(&format!("{}:{}", path.unwrap_or_default(), place.line))
}

fn summary(case: &Case) -> String {
    let report = &case.report;
    let deeds = || report.tools().iter().map(Tool::deeds).chain([report.server()]);
    let dynamic = |deeds: &Deeds| deeds.uses().iter().filter(|one| one.capability().is_none()).count();
    let unknown: usize = deeds().map(|deeds| deeds.unknowns().len()).sum();
    let open: usize = deeds().map(dynamic).sum();
    let counts = format!(
        "{} in {}, {}; {open} not named in the source, {unknown} unknown",
        style::count(report.tools().len(), "tool", "tools"),
        style::count(report.files().len(), "file", "files"),
        style::count(report.lines(), "line", "lines"),
    );
    let wrong =
        case.judgement.items().iter().filter(|item| item.finding.severity() == Severity::Error).count();
    let verdict = match (wrong, case.judgement.fails(case.strict)) {
        (0, false) => style::good("ok"),
        (0, true) => style::error("not all is known"),
        (wrong, _) => style::error(&style::count(wrong, "finding", "findings")),
    };
    format!("{verdict}: {counts}\n")
}

/// For programs.
pub(super) fn document(case: &Case) -> Value {
    let report = &case.report;
    let findings: Vec<Value> = case
        .by_text()
        .iter()
        .flat_map(|(source, findings)| {
            findings.iter().map(|found| {
                let mut value = json::finding(source, found);
                let fields = value.as_object_mut();
                fields
                    .into_iter()
                    .for_each(|fields| drop(fields.insert("file".to_owned(), json!(source.name()))));
                value
            })
        })
        .collect();
    json!({
        "format": "bailiwick.scan/1",
        "fails": case.judgement.fails(case.strict),
        "files": report.files().len(),
        "lines": report.lines(),
        "tools": report.tools().iter().map(|tool| tool_value(report, tool)).collect::<Vec<_>>(),
        "server": deeds_value(report, report.server()),
        "findings": findings,
        "entries": added(case).collect::<Vec<_>>(),
    })
}

fn tool_value(report: &Report, tool: &Tool) -> Value {
    let mut value = deeds_value(report, tool.deeds());
    if let Some(fields) = value.as_object_mut() {
        fields.insert("name".to_owned(), json!(tool.name()));
        fields.insert("language".to_owned(), json!(tool.language().as_str()));
        fields.insert("place".to_owned(), place_value(report, tool.place()));
        fields.insert("declared".to_owned(), json!(tool.declared()));
    }
    value
}

fn deeds_value(report: &Report, deeds: &Deeds) -> Value {
    let one = |one: &Use| {
        json!({
            "kind": one.kind().as_str(),
            "capability": one.capability(),
            "dynamic": one.capability().is_none(),
            "call": one.call(),
            "place": place_value(report, one.place()),
        })
    };
    let unknown = |one: &Unknown| json!({ "reason": one.reason().as_str(), "what": one.what(), "place": place_value(report, one.place()) });
    json!({
        "uses": deeds.uses().iter().map(one).collect::<Vec<_>>(),
        "unknown": deeds.unknowns().iter().map(unknown).collect::<Vec<_>>(),
    })
}

fn place_value(report: &Report, place: &CodeSpan) -> Value {
    let path = report.files().get(place.file).map(|path| path.to_string_lossy().into_owned());
    json!({ "file": path, "line": place.line })
}

/// For code scanning.
pub(super) fn log(case: &Case) -> Value {
    let texts = case.by_text();
    let results: Vec<_> =
        texts.iter().flat_map(|(source, found)| sarif::of_findings(source, found)).collect();
    sarif::log(&results, &[])
}
