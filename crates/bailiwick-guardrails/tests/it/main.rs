//! Guardrails as their users see them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod guardrails;
