//! How an agent is answered.

use serde_json::{Value, json};

use super::{Event, EventKind, Injection, Refusal};

/// The answers of one format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    pub(super) refuse: fn(&Event, &Refusal<'_>) -> Value,
    pub(super) inject: fn(&Event, &Injection<'_>) -> Value,
    pub(super) nothing: &'static str,
    pub(super) allow: &'static str,
}

/// Claude Code's, and that of those that follow it.
pub(super) const CLAUDE: Answers = Answers {
    refuse: |event, refusal| {
        if matches!(event.kind, EventKind::SettingsChanged { .. }) {
            return json!({"decision": "block", "reason": refusal.reason});
        }
        json!({
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "permissionDecision": refusal.word,
                "permissionDecisionReason": refusal.reason,
            },
        })
    },
    inject: |event, said| {
        if is_stop(event) {
            return json!({"decision": "block", "reason": said.text});
        }
        hook_context(event, said)
    },
    nothing: "",
    allow: "",
};

/// More context stands at the top of its answers; under `hookSpecificOutput` it is not read.
pub(super) const COPILOT: Answers = Answers {
    inject: |event, said| {
        if is_stop(event) {
            return (CLAUDE.inject)(event, said);
        }
        json!({"additionalContext": said.text})
    },
    ..CLAUDE
};

/// It takes anything but JSON for a fault.
pub(super) const GEMINI: Answers = Answers {
    refuse: |_, refusal| json!({"decision": "deny", "reason": refusal.reason}),
    inject: |event, said| {
        if is_stop(event) {
            return json!({"decision": "deny", "reason": said.text});
        }
        hook_context(event, said)
    },
    nothing: "{}\n",
    allow: "{}\n",
};

pub(super) const CURSOR: Answers = Answers {
    refuse: |_, refusal| json!({"permission": refusal.word, "user_message": refusal.reason, "agent_message": refusal.reason}),
    inject: |event, said| {
        let key = if is_stop(event) { "followup_message" } else { "additional_context" };
        json!({key: said.text})
    },
    nothing: "{}\n",
    allow: "{}\n",
};

/// Our own format.
pub(super) const OWN: Answers = Answers {
    refuse: |_, refusal| json!({"decision": refusal.word, "message": refusal.reason, "code": refusal.code}),
    inject: |_, said| json!({"inject": said.messages}),
    nothing: "{}\n",
    allow: "{\"decision\":\"allow\"}\n",
};

fn is_stop(event: &Event) -> bool {
    matches!(event.kind, EventKind::Stop { .. })
}

fn hook_context(event: &Event, said: &Injection<'_>) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": said.text}})
}
