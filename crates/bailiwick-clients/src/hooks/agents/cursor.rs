//! Cursor, known by its documentation: it cannot be run without its editor.

use serde_json::{Value, json};

use super::super::answers::{Answers, is_stop};
use super::super::fields::{after, before, params, text, tool};
use super::super::outcome::{result_text, says_failed};
use super::super::settings::{HookEntries, HookFile};
use super::super::{Agent, EventError, EventKeys, EventKind, Reader};
use super::{KEYS, LIKE_CLAUDE};

pub(super) const AGENT: Agent = Agent {
    name: "cursor",
    title: "Cursor",
    settings: Some(HookFile::same(
        ".cursor/hooks.json",
        ".cursor",
        HookEntries { closed: &[("preToolUse", "failClosed", "true")], ..HookEntries::flat() },
    )),
    shell: "Shell",
    keys: EventKeys { session: "conversation_id", ..KEYS },
    reader: Reader::Own {
        events: &["preToolUse", "postToolUse", "postToolUseFailure", "afterAgentResponse", "stop"],
        kind,
    },
    answers: Answers {
        refuse: |_, refusal| json!({"permission": refusal.word, "user_message": refusal.reason, "agent_message": refusal.reason}),
        inject: |event, said| {
            let key = if is_stop(event) { "followup_message" } else { "additional_context" };
            json!({key: said.text})
        },
        nothing: "{}\n",
        allow: "{}\n",
    },
    ..LIKE_CLAUDE
};

/// What an event of this name is about.
fn kind(name: &str, value: &Value) -> Result<EventKind, EventError> {
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
