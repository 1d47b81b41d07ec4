//! Answers as SARIF and Markdown, and events of the journal.
//!
//! Text from files is escaped on its way in, so that no format can be steered by what a manifest says.

pub(crate) mod event;
pub(crate) mod markdown;
pub(crate) mod sarif;
