//! Guardrails as their users see them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod attempts;
mod corpus;
mod earlier;
mod guardrails;
