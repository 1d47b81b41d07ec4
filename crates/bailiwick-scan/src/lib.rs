//! Declare versus do: reads from the source what a tool or MCP server touches, and compares it with what it declares.
//!
//! Directories follow the flow: `source` finds files, `parse` and `syntax` turn them into facts, `resolve` follows names,
//! `knowledge` and `uses` say what calls touch, `attribute` gives it to tools, `compare` judges. The only crate with
//! language parsers. Reads files and nothing else; starts nothing of what it reads.
//!
//! What cannot be followed is unknown and listed, never passed over.
#![forbid(unsafe_code)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a value is asked for one shape; every other one, also one yet to come, means that it is not known"
)]

mod attribute;
mod cache;
mod compare;
mod draft;
mod knowledge;
mod listed;
mod model;
mod parse;
mod report;
mod resolve;
mod scan;
mod source;
mod speaks;
mod syntax;
mod target;
mod uses;

/// An entry point for fuzzing: takes any text for source, and must return.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::scan::scan_text;
}

pub use compare::{Judged, Judgement, Subject, compare};
pub use draft::draft;
pub use listed::{NoToolList, listed_tools};
pub use model::{Language, Reason};
pub use report::{CodeSpan, Deeds, Report, Tool, Unknown, Use, UseKind};
pub use scan::{Options, Stage, read_text, scan};
pub use source::Fault;
pub use target::Target;
