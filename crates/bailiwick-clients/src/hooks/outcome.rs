//! What a result says: its text as the model reads it, and whether the tool failed.

use serde_json::Value;

/// Fields say whether a tool failed.
pub(super) fn by_fields(_: &str, response: &Value) -> (String, Option<bool>) {
    (result_text(response), Some(!says_failed(response)))
}

/// The report on a command states its exit code.
pub(super) fn by_report(_: &str, response: &Value) -> (String, Option<bool>) {
    let text = result_text(response);
    let failed = says_failed(response) || stated_exit_code(&text).is_some_and(|code| code != 0);
    (reported_output(&text), Some(!failed))
}

/// The text of a result, without the JSON around it.
pub(super) fn result_text(value: &Value) -> String {
    match value {
        Value::String(text) => serde_json::from_str::<Value>(text)
            .ok()
            .filter(|inner| inner.is_object() || inner.is_array())
            .and_then(|inner| text_within(&inner))
            .unwrap_or_else(|| text.clone()),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            text_within(value).unwrap_or_else(|| value.to_string())
        }
    }
}

/// Where texts are in the results that agents send.
fn text_within(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(text_within).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
        }
        Value::Object(fields) => {
            if let Some(stdout) = fields.get("stdout").and_then(Value::as_str) {
                let stderr = fields.get("stderr").and_then(Value::as_str).unwrap_or_default();
                let parts: Vec<&str> = [stdout, stderr].into_iter().filter(|part| !part.is_empty()).collect();
                return Some(parts.join("\n"));
            }
            let keys = ["text", "llmContent", "text_result_for_llm", "content", "file", "output", "result"];
            keys.iter().filter_map(|key| fields.get(*key)).find_map(text_within)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether a result says by its fields that the tool failed.
pub(super) fn says_failed(result: &Value) -> bool {
    let known = |value: &Value| {
        let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
        let error = value.get("error").is_some_and(|error| !error.is_null() && error != "");
        let code = ["exit_code", "exitCode"].iter().find_map(|key| value.get(*key)).and_then(Value::as_i64);
        error
            || flag("is_error")
            || flag("isError")
            || flag("interrupted")
            || code.is_some_and(|code| code != 0)
    };
    match result {
        Value::String(text) => serde_json::from_str(text).is_ok_and(|value: Value| known(&value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => known(result),
    }
}

/// The exit code that a line such as `Exit Code: 3` behind the output states; the last one counts, because what the
/// command printed stands before it.
fn stated_exit_code(text: &str) -> Option<i64> {
    text.lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("Exit Code: "))
        .and_then(|code| code.parse().ok())
}

/// What a command printed, out of the report that Gemini CLI and its kin make of it.
fn reported_output(text: &str) -> String {
    let text = text.trim_start_matches("<untrusted_context>\n").trim_end_matches("\n</untrusted_context>");
    let start = match text.strip_prefix("Output: ") {
        Some(rest) => rest,
        None => text.split_once("\nOutput: ").map_or(text, |(_, rest)| rest),
    };
    let ends = ["\nError: ", "\nExit Code: ", "\nSignal: ", "\nBackground PIDs: ", "\nProcess Group PGID: "];
    let end = ends.iter().filter_map(|end| start.rfind(end)).min().unwrap_or(start.len());
    start.get(..end).unwrap_or(start).to_owned()
}
