//! Tests of the compiler from outside: golden files, and the real targets that have to accept them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

mod accepted;
mod golden;
mod hostile;
mod levels;
mod parsers;
mod peers;
mod run;
mod sandboxes;
