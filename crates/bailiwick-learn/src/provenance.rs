//! A draft as JSON: each line and question with why it is there, who needs it, and what was seen first.

use serde_json::{Value, json};

use crate::evidence::{Evidence, Seen};
use crate::{Draft, Provenance};

/// The format's name.
const FORMAT: &str = "bailiwick.learned/1";

/// What a program reads that asks where a line comes from.
#[must_use]
pub fn provenance(evidence: &Evidence, draft: &Draft) -> Value {
    let name = |tool: &usize| evidence.tools.get(*tool).map(|tool| tool.name.as_str());
    let lines = draft.lines.iter().map(|line| {
        let by = by(evidence, &line.by);
        let tool = line.tool.as_ref().and_then(name);
        json!({ "tool": tool, "capability": line.capability, "reason": line.reason.as_str(), "by": by })
    });
    let questions = draft.questions.iter().map(|question| {
        json!({ "capability": question.capability, "why": question.why, "by": by(evidence, &question.by) })
    });
    json!({
        "format": FORMAT,
        "name": evidence.name,
        "package": evidence.identity.as_ref().map(|identity| json!({ "identity": identity, "version": evidence.package_version })),
        "incomplete": evidence.incomplete,
        "variables": evidence.variables_read.iter().map(|(name, how)| json!({ "name": name, "observed": *how == Seen::Observed })).collect::<Vec<_>>(),
        "files": evidence.pinned_files,
        "tools": evidence.tools.iter().map(|tool| json!({ "name": tool.name, "calls": tool.calls })).collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "questions": questions.collect::<Vec<_>>(),
    })
}

fn by(evidence: &Evidence, by: &Provenance) -> Value {
    let tools = by.tools.iter().filter_map(|(at, calls)| {
        let tool = evidence.tools.get(*at)?;
        Some(json!({ "tool": tool.name, "calls": calls, "of": tool.calls }))
    });
    json!({ "background": by.background, "tools": tools.collect::<Vec<_>>(), "first": by.first })
}
