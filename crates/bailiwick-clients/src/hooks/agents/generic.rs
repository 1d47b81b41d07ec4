//! Our own format, for agents without one and for plugins that we write.

use serde_json::{Value, json};

use super::super::answers::Answers;
use super::super::fields::{flag, text};
use super::super::outcome::result_text;
use super::super::{Agent, EventError, EventKeys, EventKind, Reader};
use super::LIKE_CLAUDE;

/// Any other agent, in the format of `docs/hooks.md`.
pub const GENERIC: Agent = Agent {
    name: "generic",
    title: "Any other, in the format of docs/hooks.md",
    keys: EventKeys { name: "event", session: "session", subagent: "agent", tool: "tool", params: "params" },
    reader: Reader::Own { events: &["before", "after", "stop"], kind },
    answers: Answers {
        refuse: |_, refusal| json!({"decision": refusal.word, "message": refusal.reason, "code": refusal.code}),
        inject: |_, said| json!({"inject": said.messages}),
        nothing: "{}\n",
        allow: "{\"decision\":\"allow\"}\n",
    },
    ..LIKE_CLAUDE
};

/// What an event of this name is about.
fn kind(name: &str, value: &Value) -> Result<EventKind, EventError> {
    let tool = || text(value, "tool").filter(|tool| !tool.is_empty()).ok_or(EventError::Missing("tool"));
    let params = || value.get("params").cloned().unwrap_or_else(|| json!({}));
    let id = || text(value, "id");
    Ok(match name {
        "before" => {
            EventKind::Before { tool: tool()?, params: params(), id: id(), can_ask: flag(value, "can_ask") }
        }
        "after" => {
            let result = value.get("result").map(result_text).unwrap_or_default();
            // `null` says that it is not known; nothing at all that all went well.
            let success = value.get("success").map_or(Some(true), Value::as_bool);
            EventKind::After { tool: tool()?, params: params(), id: id(), result, success }
        }
        "stop" => {
            let role = text(value, "role").unwrap_or_else(|| "main".to_owned());
            EventKind::Stop { text: text(value, "text"), role, again: flag(value, "again") }
        }
        _ => return Err(EventError::Unknown(name.to_owned())),
    })
}
