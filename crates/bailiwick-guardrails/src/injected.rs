//! What scripts say to the model: one message a script, with the kind of script it comes from.

use serde::Serialize;

/// The kind of script that a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SourceKind {
    /// A `[[hook]]`, which reacted to a result.
    #[serde(rename = "guardrail_hook")]
    Hook,
    /// A `[[validator]]`, which looked at the end of a turn.
    #[serde(rename = "guardrail_validator")]
    Validator,
}

/// What one script says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InjectedMessage {
    /// The kind of script.
    pub source: SourceKind,
    /// The script, as the guardrails file names it.
    pub script: String,
    /// What the model is to read; a validator's words stand in their frame.
    pub text: String,
}

impl InjectedMessage {
    /// All that is said, as one text, for agents that take no more than one.
    #[must_use]
    pub fn joined(messages: &[Self]) -> String {
        messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }
}
