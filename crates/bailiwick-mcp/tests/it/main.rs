//! What a client sees, in both eras of the protocol: the server in process, over a pair of streams, and any handler over
//! HTTP.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

mod calls;
mod eras;
mod http;
mod lifecycle;
mod malformed;
mod relay;
mod support;
