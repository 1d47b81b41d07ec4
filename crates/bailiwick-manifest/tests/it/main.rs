//! Tests of the library from outside: texts that must be read or refused, hostile texts, and a peer to compare with.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod corpus;
mod differential;
mod hostile;
