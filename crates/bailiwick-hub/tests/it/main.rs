//! The hub from outside: real PostgreSQL, real TLS, real processes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

mod approvals;
mod bench;
mod console;
mod deploy;
mod greedy;
mod histories;
mod hostile;
mod log;
mod members;
mod proxy;
mod random;
mod world;
