//! The guard as its users see it: nothing runs without leave, and what is recorded stays.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod bypass;
mod crash;
mod documented;
mod files;
mod full_disk;
mod gate;
mod guarded;
mod guardrails;
mod opening;
mod reading;
mod rotation;
mod shell;
mod support;
mod tamper;
mod torn;
mod unforgeable;
#[cfg(feature = "fetch")]
mod web;
mod writers;
