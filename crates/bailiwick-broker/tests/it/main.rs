//! The broker from outside: real TLS on both sides, and every known failure of brokers as an attack.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod attacks;
mod aws;
mod bench;
mod exchanges;
mod guesses;
mod http2;
mod oauth;
mod places;
mod requests;
mod siblings;
mod tls;
mod websocket;
mod world;
