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
    inject: |event, said| context_or_block(event, said, "block"),
    nothing: "",
    allow: "",
};

/// What scripts said: more context for the model, or the reason for which a turn goes on.
pub(super) fn context_or_block(event: &Event, said: &Injection<'_>, word: &str) -> Value {
    if is_stop(event) {
        return json!({"decision": word, "reason": said.text});
    }
    json!({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": said.text}})
}

pub(super) fn is_stop(event: &Event) -> bool {
    matches!(event.kind, EventKind::Stop { .. })
}
