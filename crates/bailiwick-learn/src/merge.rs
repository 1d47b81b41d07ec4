//! A manifest that is there already, with what is new added to it and no other byte changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::evidence::Evidence;
use crate::render::{INCOMPLETE, harmless, pin_lines, quoted};
use crate::{Draft, Line};

/// The text of a manifest with the lines of a draft in front of the server's own, for a person to review. What the manifest allows
/// already has to be out of the draft.
#[must_use]
pub fn merged(text: &str, evidence: &Evidence, draft: &Draft) -> String {
    let mut new = String::new();
    if let Some(why) = &evidence.incomplete {
        let _ = writeln!(new, "{INCOMPLETE} {}; learn it again before you use it.", harmless(why));
    }
    let server: BTreeSet<&str> = draft.lines.iter().map(Line::text).collect();
    new + &with_pins(&with_server_lines(text, &server.into_iter().collect::<Vec<_>>()), evidence)
}

/// A manifest whose pinned files have the hashes of now, where any were seen.
fn with_pins(text: &str, evidence: &Evidence) -> String {
    const TABLE: &str = "[pins.files]";
    if evidence.pinned_files.is_empty() {
        return text.to_owned();
    }
    let Some(start) = text.lines().position(|line| line.trim() == TABLE) else {
        return format!("{}\n\n{TABLE}\n{}", text.trim_end(), pin_lines(evidence));
    };
    let is_seen = |line: &str| {
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        evidence.pinned_files.keys().any(|path| quoted(path) == key)
    };
    let mut in_table = false;
    let mut new = String::new();
    for (at, line) in text.lines().enumerate() {
        in_table = at == start || (in_table && !line.trim_start().starts_with('['));
        if !(in_table && is_seen(line)) {
            new += &format!("{line}\n");
        }
        if at == start {
            new += &pin_lines(evidence);
        }
    }
    new
}

/// A manifest in TOML with this line at its root, in place of an older one for the same key.
///
/// # Examples
/// ```
/// let text = "name = \"a\"\nversion = \"1\"\n\n[package]\nversion = \"2\"\n";
/// let new = bailiwick_learn::with_root_line(text, "verified", "true").unwrap();
/// assert_eq!(new, "name = \"a\"\nversion = \"1\"\nverified = true\n\n[package]\nversion = \"2\"\n");
/// assert_eq!(bailiwick_learn::with_root_line(&new, "verified", "true").unwrap(), new);
/// assert_eq!(bailiwick_learn::with_root_line("{}", "verified", "true"), None, "no TOML with a version");
/// ```
#[must_use]
pub fn with_root_line(text: &str, key: &str, value: &str) -> Option<String> {
    let has_key = |line: &str, key: &str| line.split_once('=').is_some_and(|(own, _)| own.trim() == key);
    let end = text.lines().position(|line| line.starts_with('[')).unwrap_or(usize::MAX);
    let after = text.lines().take(end).position(|line| has_key(line, "version"))?;
    let mut new = String::new();
    for (at, line) in text.lines().enumerate() {
        if at >= end || !has_key(line, key) {
            new += &format!("{line}\n");
        }
        if at == after {
            new += &format!("{key} = {value}\n");
        }
    }
    Some(new)
}

/// A manifest with more lines of the server's, and no other byte changed.
fn with_server_lines(text: &str, lines: &[&str]) -> String {
    if lines.is_empty() {
        return text.to_owned();
    }
    let quoted = |line: &&str| format!("  # new\n  {},\n", serde_json::Value::from(*line));
    let list: String = lines.iter().map(quoted).collect();
    let start = text.find("server_capabilities = [");
    match start.and_then(|start| Some((start, text.get(start..)?.find('[')? + start + 1))) {
        Some((_, at)) => {
            let (head, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            format!("{head}\n{list}{}", rest.trim_start_matches('\n'))
        }
        None => {
            let table =
                text.lines().position(|line| line.trim_start().starts_with('[')).unwrap_or(usize::MAX);
            let all: Vec<&str> = text.lines().collect();
            let (head, rest) = all.split_at_checked(table).unwrap_or((&all, &[]));
            format!(
                "{}\n\nserver_capabilities = [\n{list}]\n\n{}\n",
                head.join("\n").trim_end(),
                rest.join("\n")
            )
        }
    }
}
