//! A draft as the text of a manifest, each line with where it comes from.

use std::fmt::Write as _;

use crate::evidence::Evidence;
use crate::{Draft, Line, Provenance, Question};

/// How the first line of a manifest begins that was learned from less than everything.
pub const INCOMPLETE: &str = "# INCOMPLETE:";

/// The manifest as a person reads it.
#[must_use]
pub fn render(evidence: &Evidence, draft: &Draft) -> String {
    let mut text = String::new();
    if let Some(why) = &evidence.incomplete {
        let _ = writeln!(text, "{INCOMPLETE} {}; learn it again before you use it.", harmless(why));
    }
    let calls: usize = evidence.tools.iter().map(|tool| tool.calls).sum();
    let _ = writeln!(
        text,
        "# Learned by `bailiwick learn` from {}: what it did, not what it should do. Review every line.\n",
        if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
    );
    let _ = writeln!(text, "name = {}\nversion = \"0.1.0\"", quoted(&evidence.name));
    if let Some((program, arguments)) = evidence.command.as_ref().and_then(|words| words.split_first()) {
        let _ = writeln!(text, "command = {}", quoted(program));
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "args = [{}]", words.join(", "));
    }
    let own = draft.lines.iter().filter(|line| line.tool.is_none());
    capabilities(&mut text, "\nserver_capabilities", evidence, own);
    questions(&mut text, evidence, &draft.questions);
    variables(&mut text, evidence, draft);
    if let Some(identity) = &evidence.identity {
        let _ = writeln!(text, "\n[package]\nidentity = {}", quoted(identity));
        if let Some(version) = evidence.package_version.as_ref().filter(|_| evidence.incomplete.is_none()) {
            let _ = writeln!(text, "# learned with version {}", harmless(version));
        }
        if evidence.install_scripts {
            text.push_str("install_scripts = true\n");
        }
    }
    if !evidence.pinned_files.is_empty() {
        text.push_str("\n# Code outside of the system: `wrap` starts nothing once one of these has changed.\n[pins.files]\n");
        text.push_str(&pin_lines(evidence));
    }
    for (at, tool) in evidence.tools.iter().enumerate() {
        if !is_tool_name(&tool.name) {
            let _ = writeln!(
                text,
                "\n# A tool is left out, because a manifest cannot name it: {}",
                harmless(&tool.name)
            );
            continue;
        }
        let _ = writeln!(text, "\n[[tools]]\nname = {}", quoted(&tool.name));
        if tool.calls == 0 {
            text.push_str("# It was not called: nothing is known of it.\n");
        }
        capabilities(
            &mut text,
            "capabilities",
            evidence,
            draft.lines.iter().filter(|line| line.tool == Some(at)),
        );
    }
    text
}

/// `"/path" = "sha256:…"`, one a line.
pub(crate) fn pin_lines(evidence: &Evidence) -> String {
    let line = |(path, hash): (&String, &String)| format!("{} = {}\n", quoted(path), quoted(hash));
    evidence.pinned_files.iter().map(line).collect()
}

fn capabilities<'a>(
    text: &mut String,
    key: &str,
    evidence: &Evidence,
    lines: impl Iterator<Item = &'a Line>,
) {
    let lines: Vec<&Line> = lines.collect();
    if lines.is_empty() {
        let _ = writeln!(text, "{key} = []");
        return;
    }
    let _ = writeln!(text, "{key} = [");
    for line in lines {
        let _ = writeln!(text, "  # {}: {}", line.reason.as_str(), in_words(evidence, &line.by));
        let _ = writeln!(text, "  {},", quoted(&line.capability));
    }
    text.push_str("]\n");
}

fn questions(text: &mut String, evidence: &Evidence, questions: &[Question]) {
    if questions.is_empty() {
        return;
    }
    text.push_str("\n# Questions: none of this is granted. Move a line into a list above if you want it.\n");
    for question in questions {
        let by = in_words(evidence, &question.by);
        let by = if by.is_empty() { by } else { format!(" ({by})") };
        let _ = writeln!(text, "# ? {}{by}", harmless(&question.why));
        if let Some(capability) = &question.capability {
            let _ = writeln!(text, "#   {},", quoted(capability));
        }
    }
}

/// The variables that a line uses: one that nothing uses would have to be bound for nothing.
fn variables(text: &mut String, evidence: &Evidence, draft: &Draft) {
    let is_used = |name: &str| draft.lines.iter().any(|line| line.capability.ends_with(&format!(":${name}")));
    let used: Vec<_> = evidence.variables.iter().filter(|variable| is_used(&variable.name)).collect();
    if !used.is_empty() {
        text.push_str("\n[variables]\n");
    }
    for variable in used {
        let _ = writeln!(text, "{} = {}", variable.name, variable.binding);
    }
}

/// Whether a manifest can name a tool so.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let text =
        format!("name = \"t\"\nversion = \"0\"\n[[tools]]\nname = {}\ncapabilities = []\n", quoted(name));
    bailiwick_manifest::Manifest::parse(&text).is_ok()
}

/// Who needs a line: `read_file, list_directory; 3 of 8 calls; first /srv/a`.
#[must_use]
pub(crate) fn in_words(evidence: &Evidence, by: &Provenance) -> String {
    let mut parts = Vec::new();
    if by.background {
        parts.push(if by.tools.is_empty() {
            "by itself".to_owned()
        } else {
            "by itself and in calls".to_owned()
        });
    }
    if !by.tools.is_empty() {
        let tools: Vec<_> = by.tools.keys().filter_map(|at| evidence.tools.get(*at)).collect();
        let names: Vec<String> = tools.iter().take(3).map(|tool| harmless(&tool.name)).collect();
        let more = if tools.len() > 3 { format!(" and {} more", tools.len() - 3) } else { String::new() };
        let (calls, all) =
            (by.tools.values().sum::<usize>(), tools.iter().map(|tool| tool.calls).sum::<usize>());
        parts.push(format!("{}{more}, {} of {all} calls", names.join(", "), calls.min(all)));
    }
    if !by.first.is_empty() {
        parts.push(format!("first {}", harmless(&by.first)));
    }
    parts.join("; ")
}

/// Text of a program in a comment: one line, nothing that a terminal or TOML would take for more.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_unseen(c) { '\u{fffd}' } else { c }).take(300).collect()
}

/// Characters that change how a line is read without being seen.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A TOML string. JSON writes the same but for one character, which TOML wants escaped.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
