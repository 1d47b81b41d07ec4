//! The journal exported: to a collector that others have written, and to files.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod collector;
mod lines;
mod otlp;
