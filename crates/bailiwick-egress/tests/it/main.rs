//! The allowlist from outside: real sockets, real TLS, and namespaces of the test's own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod addresses;
mod docs;
mod families;
mod front;
mod handshakes;
mod http;
mod limits;
mod names;
mod rebinding;
mod servers;
mod smuggling;
mod tls;
mod transport;
mod wildcards;
mod world;
