//! How agents speak to their hooks: what their events mean, and how they want to be answered.
//!
//! An allowed call gets no word of approval from us: the agent's own permissions still count. Where an agent has no
//! way to ask its person from a hook, or is told not to ask, the answer is a no with the id to approve.

use bailiwick_guardrails::Decision;
use serde_json::{Value, json};

use crate::answer::{Answer, Exit};
use crate::args::guard::Agent;

/// How one agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect(Agent);

/// One event of a session.
#[derive(Debug)]
pub(super) struct Event {
    /// The agent's name for the event.
    name: String,
    pub(super) session: String,
    pub(super) cwd: Option<String>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Before {
        tool: String,
        params: Value,
        id: Option<String>,
        can_ask: bool,
    },
    After {
        tool: String,
        params: Value,
        id: Option<String>,
        result: String,
        success: bool,
    },
    Stop {
        text: Option<String>,
        role: String,
        again: bool,
    },
    /// The assistant said something.
    Heard {
        text: String,
    },
    /// Nothing that guardrails are about.
    Other,
}

impl Dialect {
    pub(super) const fn of(agent: Agent) -> Self {
        Self(agent)
    }

    /// What an event means.
    pub(super) fn event(self, value: Value) -> Result<Event, String> {
        let (name_key, session_key) = match self.0 {
            Agent::Generic => ("event", "session"),
            Agent::Cursor => ("hook_event_name", "conversation_id"),
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini => ("hook_event_name", "session_id"),
        };
        let name = text(&value, name_key).ok_or_else(|| format!("the event has no `{name_key}`"))?;
        let kind = match self.0 {
            Agent::Generic => generic(&name, &value)?,
            Agent::Cursor => cursor(&name, &value)?,
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini => self.common(&name, &value)?,
        };
        let session = text(&value, session_key).filter(|session| !session.is_empty());
        let session = session.ok_or_else(|| format!("the event has no `{session_key}`"))?;
        let root = value.pointer("/workspace_roots/0").and_then(Value::as_str).map(str::to_owned);
        let cwd = root.or_else(|| text(&value, "cwd"));
        Ok(Event { name, session: format!("{}-{session}", self.prefix()), cwd, kind })
    }

    const fn prefix(self) -> &'static str {
        match self.0 {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::Cursor => "cursor",
            Agent::Gemini => "gemini",
            Agent::Generic => "generic",
        }
    }

    /// Claude Code, Codex and Gemini: the same words, other names of events.
    fn common(self, name: &str, value: &Value) -> Result<Kind, String> {
        Ok(match name {
            "PreToolUse" | "BeforeTool" => {
                let mode = text(value, "permission_mode");
                let asks = !matches!(mode.as_deref(), Some("bypassPermissions" | "dontAsk"));
                let can_ask = self.0 == Agent::ClaudeCode && asks;
                Kind::Before {
                    tool: tool(value)?,
                    params: params(value),
                    id: text(value, "tool_use_id"),
                    can_ask,
                }
            }
            "PostToolUse" | "PostToolUseFailure" | "AfterTool" => {
                let response =
                    value.get("tool_response").or_else(|| value.get("error")).unwrap_or(&Value::Null);
                let success = name != "PostToolUseFailure" && !failed(response);
                let (tool, params, id) = (tool(value)?, params(value), text(value, "tool_use_id"));
                Kind::After { tool, params, id, result: shown(response), success }
            }
            "Stop" | "SubagentStop" | "AfterAgent" => Kind::Stop {
                text: text(value, "last_assistant_message").or_else(|| text(value, "prompt_response")),
                role: text(value, "agent_type").unwrap_or_else(|| "main".to_owned()),
                again: flag(value, "stop_hook_active"),
            },
            _ => Kind::Other,
        })
    }

    /// The answer to a call that may or may not run.
    pub(super) fn decided(self, event: &Event, decision: &Decision) -> Answer {
        let (word, reason) = match decision {
            Decision::Allow if self.0 == Agent::Generic => return said(&json!({"decision": "allow"})),
            Decision::Allow => return self.nothing(),
            Decision::Ask(question) => ("ask", question.clone()),
            Decision::Deny(denial) => ("deny", denial.message().to_owned()),
        };
        match self.0 {
            Agent::ClaudeCode | Agent::Codex => said(&json!({
                "hookSpecificOutput": {
                    "hookEventName": event.name,
                    "permissionDecision": word,
                    "permissionDecisionReason": reason,
                },
            })),
            Agent::Gemini => said(&json!({"decision": "deny", "reason": reason})),
            Agent::Cursor => {
                said(&json!({"permission": word, "user_message": reason, "agent_message": reason}))
            }
            Agent::Generic => {
                let code = match decision {
                    Decision::Deny(denial) => Some(denial.code().as_str()),
                    Decision::Ask(_) | Decision::Allow => None,
                };
                said(&json!({"decision": word, "message": reason, "code": code}))
            }
        }
    }

    /// What scripts said, for the model to read.
    pub(super) fn injected(self, event: &Event, text: &str) -> Answer {
        let stop = matches!(event.kind, Kind::Stop { .. });
        match self.0 {
            Agent::ClaudeCode | Agent::Codex if stop => said(&json!({"decision": "block", "reason": text})),
            Agent::Gemini if stop => said(&json!({"decision": "deny", "reason": text})),
            Agent::Cursor if stop => said(&json!({"followup_message": text})),
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini => said(&json!({
                "hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text},
            })),
            Agent::Cursor => said(&json!({"additional_context": text})),
            Agent::Generic => said(&json!({"inject": [text]})),
        }
    }

    /// Nothing to say.
    pub(super) fn nothing(self) -> Answer {
        match self.0 {
            // These take anything but JSON for a fault.
            Agent::Cursor | Agent::Gemini | Agent::Generic => said(&json!({})),
            Agent::ClaudeCode | Agent::Codex => Answer::result(Exit::Fine, String::new()),
        }
    }
}

fn cursor(name: &str, value: &Value) -> Result<Kind, String> {
    let command = || json!({"command": text(value, "command").unwrap_or_default()});
    let id = || text(value, "tool_use_id");
    Ok(match name {
        // An `ask` is held for commands and servers only.
        "preToolUse" => Kind::Before { tool: tool(value)?, params: params(value), id: id(), can_ask: false },
        "beforeShellExecution" => {
            Kind::Before { tool: "Shell".to_owned(), params: command(), id: None, can_ask: true }
        }
        "beforeMCPExecution" => Kind::Before {
            tool: format!("MCP:{}", tool(value)?),
            params: params(value),
            id: None,
            can_ask: true,
        },
        "beforeReadFile" => {
            let params = json!({"file_path": text(value, "file_path").unwrap_or_default()});
            Kind::Before { tool: "Read".to_owned(), params, id: None, can_ask: false }
        }
        "postToolUse" | "postToolUseFailure" => {
            let output =
                value.get("tool_output").or_else(|| value.get("error_message")).unwrap_or(&Value::Null);
            let success = name == "postToolUse" && !failed(output);
            Kind::After {
                tool: tool(value)?,
                params: params(value),
                id: id(),
                result: shown(output),
                success,
            }
        }
        "afterShellExecution" => {
            let result = text(value, "output").unwrap_or_default();
            Kind::After { tool: "Shell".to_owned(), params: command(), id: None, result, success: true }
        }
        "afterMCPExecution" => {
            let result = text(value, "result_json").unwrap_or_default();
            let tool = format!("MCP:{}", tool(value)?);
            Kind::After { tool, params: params(value), id: None, result, success: true }
        }
        "afterAgentResponse" => Kind::Heard { text: text(value, "text").unwrap_or_default() },
        "stop" => {
            let again = value.get("loop_count").and_then(Value::as_u64).is_some_and(|count| count > 0);
            Kind::Stop { text: None, role: "main".to_owned(), again }
        }
        _ => Kind::Other,
    })
}

fn generic(name: &str, value: &Value) -> Result<Kind, String> {
    let tool = || text(value, "tool").filter(|tool| !tool.is_empty()).ok_or("the event has no `tool`");
    let params = || value.get("params").cloned().unwrap_or_else(|| json!({}));
    let id = || text(value, "id");
    Ok(match name {
        "before" => {
            Kind::Before { tool: tool()?, params: params(), id: id(), can_ask: flag(value, "can_ask") }
        }
        "after" => {
            let result = value.get("result").map(shown).unwrap_or_default();
            let success = value.get("success").and_then(Value::as_bool).unwrap_or(true);
            Kind::After { tool: tool()?, params: params(), id: id(), result, success }
        }
        "stop" => {
            let role = text(value, "role").unwrap_or_else(|| "main".to_owned());
            Kind::Stop { text: text(value, "text"), role, again: flag(value, "again") }
        }
        _ => return Err(format!("`{name}` is not `before`, `after` or `stop`")),
    })
}

fn said(value: &Value) -> Answer {
    Answer::bytes(format!("{value}\n"))
}

fn tool(value: &Value) -> Result<String, String> {
    text(value, "tool_name")
        .filter(|name| !name.is_empty())
        .ok_or_else(|| "the event has no `tool_name`".to_owned())
}

/// The arguments; some agents send them as a text of JSON.
fn params(value: &Value) -> Value {
    match value.get("tool_input") {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Some(params) => params.clone(),
        None => json!({}),
    }
}

/// Whether a result says that the tool failed.
fn failed(result: &Value) -> bool {
    let known = |value: &Value| {
        let error = value.get("error").is_some_and(|error| !error.is_null() && error != "");
        let code = ["exit_code", "exitCode"].iter().find_map(|key| value.get(*key)).and_then(Value::as_i64);
        error
            || flag(value, "is_error")
            || flag(value, "isError")
            || flag(value, "interrupted")
            || code.is_some_and(|code| code != 0)
    };
    match result {
        Value::String(text) => serde_json::from_str(text).is_ok_and(|value: Value| known(&value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => known(result),
    }
}

/// A result as text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}
