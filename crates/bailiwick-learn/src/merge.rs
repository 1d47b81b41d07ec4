//! A manifest that is there already, with what is new added to it and no other byte changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::evidence::Evidence;
use crate::render::{INCOMPLETE, harmless};
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
    new + &with_server_lines(text, &server.into_iter().collect::<Vec<_>>())
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
