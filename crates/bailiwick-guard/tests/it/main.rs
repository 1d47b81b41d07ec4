//! The guard as its users see it: nothing runs without leave, and what is recorded stays.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod bypass;
mod files;
mod gate;
mod guarded;
mod opening;
mod shell;
mod unforgeable;
#[cfg(feature = "fetch")]
mod web;
