//! Fields of events that several agents share.

use serde_json::{Value, json};

use super::{EventError, EventKind};

/// The tool, as `server:tool` where the event says which server.
pub(super) fn tool(value: &Value) -> Result<String, EventError> {
    let name = text(value, "tool_name").filter(|name| !name.is_empty());
    let name = name.ok_or(EventError::Missing("tool_name"))?;
    Ok(server_tool(value, &name).unwrap_or(name))
}

fn server_tool(value: &Value, name: &str) -> Option<String> {
    let context = |key: &str| value.pointer(&format!("/mcp_context/{key}")).and_then(Value::as_str);
    let (server, tool) = match (context("server_name"), context("tool_name")) {
        (Some(server), Some(tool)) => (server, tool),
        _ => {
            // The agent writes other signs of the server's name as `_`, one for one.
            let server = value.pointer("/mcp_server/name").and_then(Value::as_str)?;
            let (_, rest) = name.strip_prefix("mcp__")?.split_at_checked(server.len())?;
            (server, rest.strip_prefix("__")?)
        }
    };
    (!server.contains(':') && !server.is_empty() && !tool.is_empty()).then(|| format!("{server}:{tool}"))
}

/// The arguments; some agents send them as a text of JSON.
pub(super) fn params(value: &Value) -> Value {
    match value.get("tool_input") {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Some(params) => params.clone(),
        None => json!({}),
    }
}

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The end of a turn, in the words that most agents have for it.
pub(super) fn stop(value: &Value) -> EventKind {
    EventKind::Stop {
        text: text(value, "last_assistant_message").or_else(|| text(value, "prompt_response")),
        role: text(value, "agent_type").unwrap_or_else(|| "main".to_owned()),
        again: flag(value, "stop_hook_active"),
    }
}

/// A call before it runs.
pub(super) fn before(value: &Value, can_ask: bool) -> Result<EventKind, EventError> {
    let id = text(value, "tool_use_id");
    Ok(EventKind::Before { tool: tool(value)?, params: params(value), id, can_ask })
}

/// A call that ended as `outcome` reads it.
pub(super) fn after(
    value: &Value,
    outcome: impl FnOnce(&str) -> (String, Option<bool>),
) -> Result<EventKind, EventError> {
    let tool = tool(value)?;
    let (result, success) = outcome(&tool);
    let id = text(value, "tool_use_id");
    Ok(EventKind::After { tool, params: params(value), id, result, success })
}
