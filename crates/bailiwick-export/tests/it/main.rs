//! The journal exported: to a collector that others have written, and to files.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

mod collector;
mod lines;
mod otlp;
