//! Copilot CLI. Its hooks stand in a file of their own, where others may add theirs.

use serde_json::{Value, json};

use super::super::answers::{Answers, CLAUDE, is_stop};
use super::super::outcome::{result_text, says_failed};
use super::super::settings::{HookEntries, HookFile, HookForm};
use super::super::{Agent, PhaseReader, Reader};
use super::{LIKE_CLAUDE, READER};

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    title: "Copilot CLI",
    settings: Some(HookFile {
        user: ".copilot/hooks/bailiwick.json",
        project: ".github/hooks/bailiwick.json",
        directories: [".copilot", ".github/hooks"],
        form: HookForm::Entries(HookEntries {
            command: "bash",
            timeout: "timeoutSec",
            typed: true,
            ..HookEntries::flat()
        }),
    }),
    reader: Reader::Phases(PhaseReader { result: "tool_result", outcome: by_shell_line, ..READER }),
    // More context stands at the top of its answers; under `hookSpecificOutput` it is not read.
    answers: Answers {
        inject: |event, said| {
            if is_stop(event) {
                (CLAUDE.inject)(event, said)
            } else {
                json!({"additionalContext": said.text})
            }
        },
        ..CLAUDE
    },
    ..LIKE_CLAUDE
};

/// The last line of a command's text states its exit code.
fn by_shell_line(_: &str, response: &Value) -> (String, Option<bool>) {
    let text = result_text(response);
    let kind = response.get("result_type").and_then(Value::as_str).unwrap_or("success");
    let (output, code) = without_exit(&text);
    let failed = kind != "success" || says_failed(response) || code.is_some_and(|code| code != 0);
    (output.to_owned(), Some(!failed))
}

/// What a command printed, and the exit code in the line `<shellId: 0 completed with exit code 3>` behind it.
fn without_exit(text: &str) -> (&str, Option<i64>) {
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let code = last.strip_suffix('>').and_then(|line| line.rsplit_once("exit code "));
    match code.and_then(|(_, code)| code.parse().ok()) {
        Some(code) => (before, Some(code)),
        None => (text, None),
    }
}
