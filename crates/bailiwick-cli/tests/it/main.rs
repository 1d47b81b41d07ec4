//! Tests of the built `bailiwick` command, and of the house it lives in.
//!
//! One binary for the whole tree, so that it links once. `house` holds the rules about the repository itself:
//! which crate may use which, how long a file may be, that what the documents show really happens.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests fail by panicking and say on stderr what they skip"
)]

mod cli;
mod console;
mod escape;
mod fleet;
mod house;
mod journal;
mod network;
mod programs;
mod run;
mod serve;
mod servers;
mod wrap;
