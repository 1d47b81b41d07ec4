//! The journal as its users see it: what is recorded stays, and what was changed is found.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod crash;
mod documented;
mod full_disk;
mod reading;
mod rotation;
mod shared;
mod tamper;
mod torn;
mod writers;
