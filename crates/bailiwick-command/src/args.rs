//! The arguments of commands that run something, and what several commands take.

pub mod hook;
pub mod learn;
pub mod run;
pub mod secret;
pub mod serve;
pub mod wrap;

use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue};

/// How one answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// For people, with the lines themselves.
    Text,
    /// For programs.
    Json,
}

/// The refusal of a line, without what stands in the place of a secret's source: it may be the value itself.
#[must_use]
pub fn without_secret(mut refusal: clap::Error) -> clap::Error {
    let is_secret = |value: &ContextValue| value.to_string().starts_with("--secret ");
    if refusal.get(ContextKind::InvalidArg).is_some_and(is_secret) {
        refusal.insert(ContextKind::InvalidValue, ContextValue::String("NAME=…".to_owned()));
    }
    refusal
}
