//! What came of a call, as a result of the protocol: structured for programs, and text as a model wants to read it.

use bailiwick_guard::ToolError;
use bailiwick_policy::denial::Denial;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

/// Where a result says what policy decided.
const DECISION: &str = "dev.bailiwick/decision";

/// The longest text of a client that is said back to it.
const MAX_SHOWN: usize = 100;

/// The result of a call that ran.
pub(crate) fn result(value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text(&value))]);
    // Older clients take nothing but an object.
    result.structured_content = Some(value).filter(Value::is_object);
    result
}

/// The result of a call that did not run, or failed: what a model can read and act on.
pub(crate) fn error(error: &ToolError, guidance: Option<&str>) -> CallToolResult {
    let Some(denial) = error.denial() else {
        return CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
    };
    let mut content = vec![ContentBlock::text(format!("denied: {}", denial.message()))];
    content.extend(advice(denial, guidance).map(ContentBlock::text));
    let mut result = CallToolResult::error(content);
    let code = denial.code().as_str();
    let decision = json!({ "decision": "deny", "code": code, "grant": denial.smallest_grant() });
    result.meta = Some(MetaObject(Map::from_iter([(DECISION.to_owned(), decision)])));
    result
}

/// The same result, with what a project's hooks have to say to the model.
pub(crate) fn with_injected(mut result: CallToolResult, injected: Vec<String>) -> CallToolResult {
    result.content.extend(injected.into_iter().map(ContentBlock::text));
    result
}

/// A client's own text, fit to be said back.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", short.escape_debug())
}

/// What is granted, and what a person would have to grant.
fn advice(denial: &Denial, guidance: Option<&str>) -> Option<String> {
    let granted = denial.is_granted().map(|granted| format!("granted: {granted}"));
    let smallest = denial.smallest_grant().map(|grant| {
        let grant = grant.replace('\n', "` and `");
        format!("a person can allow it by granting `{grant}`; going around it will not work")
    });
    let lines: Vec<String> = granted.into_iter().chain(smallest).chain(guidance.map(str::to_owned)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What a model reads: a program's output, a page, a file; else the value itself.
fn text(value: &Value) -> String {
    if let Some(output) = of_program(value) {
        return output;
    }
    let main = ["markdown", "content", "text"].into_iter().find_map(|key| value.get(key)?.as_str());
    match main.or(value.as_str()) {
        Some(text) => text.to_owned(),
        None => format!("{value:#}"),
    }
}

/// The output of a program and how it ended, if the value is that of one.
fn of_program(value: &Value) -> Option<String> {
    let stream = |name: &str| value.get(name)?.as_str();
    let is = |name: &str| value.get(name) == Some(&Value::Bool(true));
    let (out, err) = (stream("stdout")?, stream("stderr")?);
    let mut text = out.to_owned();
    let mut note = |line: String| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &line;
    };
    if is("stdout_truncated") {
        note("[stdout is longer; the rest was dropped]\n".to_owned());
    }
    if !err.is_empty() {
        note(format!("[stderr]\n{err}"));
    }
    if is("stderr_truncated") {
        note("[stderr is longer; the rest was dropped]\n".to_owned());
    }
    if is("timed_out") {
        note("[its time was over; it was ended with everything it started]".to_owned());
    } else if let Some(signal) = value.get("signal").and_then(Value::as_i64) {
        note(format!("[ended by signal {signal}]"));
    }
    match value.get("exit_code").and_then(Value::as_i64) {
        Some(0) if out.is_empty() && err.is_empty() => note("[exit code 0, no output]".to_owned()),
        Some(0) | None => {}
        Some(code) => note(format!("[exit code {code}]")),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i64, stdout: &str, stderr: &str) -> Value {
        json!({ "exit_code": code, "signal": null, "stdout": stdout, "stderr": stderr, "timed_out": false })
    }

    #[test]
    fn a_programs_text_is_its_output_and_how_it_ended() {
        let texts = [
            (ran(0, "hi\n", ""), "hi\n"),
            (ran(0, "", ""), "[exit code 0, no output]"),
            (ran(2, "a", "b"), "a\n[stderr]\nb\n[exit code 2]"),
            (ran(1, "", "no\n"), "[stderr]\nno\n[exit code 1]"),
        ];
        for (value, expected) in texts {
            assert_eq!(text(&value), expected);
        }
        let mut late = ran(0, "some", "");
        late["timed_out"] = true.into();
        late["exit_code"] = Value::Null;
        late["signal"] = 9.into();
        assert_eq!(text(&late), "some\n[its time was over; it was ended with everything it started]");
    }

    #[test]
    fn a_page_or_a_file_is_its_text_and_the_rest_is_json() {
        assert_eq!(text(&json!({ "status": 200, "markdown": "# Hi" })), "# Hi");
        assert_eq!(text(&json!({ "path": "/a", "content": "x" })), "x");
        assert_eq!(text(&json!("said")), "said");
        assert_eq!(text(&json!({ "n": 1 })), "{\n  \"n\": 1\n}");
    }

    #[test]
    fn a_clients_text_is_cut_and_escaped() {
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"é".repeat(200)).chars().count(), MAX_SHOWN + 1);
    }
}
