//! Declare and check: what a tool or server may touch, and whether that is within what was granted.
//!
//! Pure: no files, sockets, clocks, environment or threads. Text comes in, values and findings go out.
#![forbid(unsafe_code)]

pub mod artifact;
pub mod authority;
pub mod capability;
pub mod caveats;
mod code_table;
pub mod denial;
pub mod diff;
mod document;
pub mod enforcement;
pub mod facts;
pub mod finding;
pub mod grant_file;
pub mod guardrails;
pub mod journal;
pub mod lattice;
pub mod manifest;
pub mod net;
pub mod path;
pub mod plan;
pub mod run_later;
pub mod snapshot;
