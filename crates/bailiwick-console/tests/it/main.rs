//! The console from outside: real requests over a real socket, to a real journal and store.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod attacks;
mod client;
mod entry;
mod granting;
mod resumed;
mod room;

pub(crate) use client::{get, post, raw};
pub(crate) use room::Room;
