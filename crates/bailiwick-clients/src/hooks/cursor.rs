//! Cursor's events, by its documentation.

use serde_json::{Value, json};

use super::fields::{after, before, params, text, tool};
use super::outcome::{result_text, says_failed};
use super::{EventError, EventKind};

/// The events that its settings name.
pub(super) const EVENTS: [&str; 5] =
    ["preToolUse", "postToolUse", "postToolUseFailure", "afterAgentResponse", "stop"];

/// What an event of this name is about.
pub(super) fn kind(name: &str, value: &Value) -> Result<EventKind, EventError> {
    let command = || json!({"command": text(value, "command").unwrap_or_default()});
    let before_own = |tool: &str, params: Value, can_ask: bool| EventKind::Before {
        tool: tool.to_owned(),
        params,
        id: None,
        can_ask,
    };
    Ok(match name {
        // An `ask` is held for commands and servers only.
        "preToolUse" => before(value, false)?,
        "beforeShellExecution" => before_own("Shell", command(), true),
        "beforeMCPExecution" => before_own(&format!("MCP:{}", tool(value)?), params(value), true),
        "beforeReadFile" => {
            before_own("Read", json!({"file_path": text(value, "file_path").unwrap_or_default()}), false)
        }
        "postToolUse" | "postToolUseFailure" => {
            let output =
                value.get("tool_output").or_else(|| value.get("error_message")).unwrap_or(&Value::Null);
            let success = name == "postToolUse" && !says_failed(output);
            after(value, |_| (result_text(output), Some(success)))?
        }
        "afterShellExecution" => {
            let result = text(value, "output").unwrap_or_default();
            EventKind::After { tool: "Shell".to_owned(), params: command(), id: None, result, success: None }
        }
        "afterMCPExecution" => {
            let result = text(value, "result_json").unwrap_or_default();
            let success = Some(!says_failed(&Value::String(result.clone())));
            let tool = format!("MCP:{}", tool(value)?);
            EventKind::After { tool, params: params(value), id: None, result, success }
        }
        "afterAgentResponse" => EventKind::Heard { text: text(value, "text").unwrap_or_default() },
        "stop" => {
            let again = value.get("loop_count").and_then(Value::as_u64).is_some_and(|count| count > 0);
            EventKind::Stop { text: None, role: "main".to_owned(), again }
        }
        _ => EventKind::Other,
    })
}
