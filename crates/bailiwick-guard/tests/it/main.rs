//! The journal as its users see it: what is written stays, what is changed shows, what fails refuses.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod crash;
mod documented;
mod full_disk;
mod gate;
mod opening;
mod reading;
mod rotation;
mod shell;
mod support;
mod tamper;
mod torn;
mod unforgeable;
mod writers;
