//! A manifest to start from: every capability that the source names, and a remark for each that it does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::example;
use crate::report::{Deeds, Report, Tool};

/// The most remarks for one tool.
const REMARKS: usize = 12;

/// The text of a manifest that `bailiwick check` accepts.
#[must_use]
pub fn draft(name: &str, report: &Report) -> String {
    let mut text = format!(
        "# Drafted from the source: {} in {}. Read it before you rely on it.\n# What the source does not name stands \
         in a remark; add the line it needs.\n\nname = {}\nversion = \"0.1.0\"\n",
        counted(report.tools().len(), "tool", "tools"),
        counted(report.files().len(), "file", "files"),
        quoted(&clean(name)),
    );
    text += &remarks(report.server(), report);
    text += &format!("server_capabilities = {}\n", list(&lines(report.server())));
    let mut tools: BTreeMap<String, Vec<&Tool>> = BTreeMap::new();
    for tool in report.tools() {
        tools.entry(clean(tool.name())).or_default().push(tool);
    }
    for (name, same) in tools {
        let found: BTreeSet<String> = same.iter().flat_map(|tool| lines(tool.deeds())).collect();
        text += &format!("\n[[tools]]\nname = {}\n", quoted(&name));
        text.extend(same.iter().map(|tool| remarks(tool.deeds(), report)));
        text += &format!("capabilities = {}\n", list(&found));
    }
    text
}

/// The entry of one tool, to be pasted behind what a manifest in TOML has.
pub(crate) fn entry(tool: &Tool) -> String {
    format!("[[tools]]\nname = {}\ncapabilities = {}\n", quoted(&clean(tool.name())), one_line(tool))
}

/// The capabilities of one tool in one line.
pub(crate) fn one_line(tool: &Tool) -> String {
    let lines: Vec<String> = lines(tool.deeds()).iter().map(|line| quoted(line)).collect();
    format!("[{}]", lines.join(", "))
}

fn lines(deeds: &Deeds) -> BTreeSet<String> {
    deeds.uses().iter().filter_map(crate::report::Use::capability).collect()
}

fn remarks(deeds: &Deeds, report: &Report) -> String {
    let file = |index: usize| {
        let name = report.files().get(index).and_then(|path| path.file_name());
        name.map(|name| clean(&name.to_string_lossy())).unwrap_or_default()
    };
    let dynamic = deeds.uses().iter().filter(|one| one.capability().is_none()).map(|one| {
        let (kind, place) = (one.kind(), one.place());
        let at = format!("{}:{}", file(place.file), place.line);
        format!(
            "# {at} {} a {} that is not in the source, such as \"{}\"\n",
            kind.verb(),
            kind.noun(),
            example(kind)
        )
    });
    let unknown = deeds.unknowns().iter().map(|one| {
        let at = format!("{}:{}", file(one.place().file), one.place().line);
        format!("# {at} is unknown: {} ({})\n", one.reason().meaning(), clean(one.what()))
    });
    let all: Vec<String> = dynamic.chain(unknown).collect();
    let more = all.len().saturating_sub(REMARKS);
    let mut text: String = all.into_iter().take(REMARKS).collect();
    if more > 0 {
        text += &format!("# and {more} more\n");
    }
    text
}

fn list(lines: &BTreeSet<String>) -> String {
    if lines.is_empty() {
        return "[]".to_owned();
    }
    let lines: String = lines.iter().map(|line| format!("  {},\n", quoted(line))).collect();
    format!("[\n{lines}]")
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A name that a manifest takes.
fn clean(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-/@:".contains(c) { c } else { '_' };
    let name: String = name.chars().take(200).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            _ if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}
