//! Answers as text, JSON, SARIF and Markdown.
//!
//! Text from files is escaped on its way in, so that no format can be steered by what a manifest says.

pub(crate) mod escape;
pub(crate) mod event;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod sarif;
pub(crate) mod snippet;
pub(crate) mod style;
