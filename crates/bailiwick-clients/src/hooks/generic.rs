//! Our own format, for agents without one and for plugins that we write.

use serde_json::{Value, json};

use super::fields::{flag, text};
use super::outcome::result_text;
use super::{EventError, EventKind};

/// What an event of this name is about.
pub(super) fn kind(name: &str, value: &Value) -> Result<EventKind, EventError> {
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
