//! Tests of the compiler from outside: golden files, and the real targets that have to accept them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking and say on stderr what they skip"
)]

mod accepted;
mod golden;
mod hostile;
mod levels;
mod parsers;
mod peers;
mod run;
mod sandboxes;
