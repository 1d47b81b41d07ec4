//! What the tests of several crates share. Only ever a dev-dependency.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking and say why"
)]

pub mod child;
#[cfg(feature = "journal")]
pub mod journal;
mod skip;

pub use skip::skip;
