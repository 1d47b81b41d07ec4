//! The copy of a log that is made from real files, over real HTTP, from web servers that are not always honest.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod copied;
mod hostile;
mod leashed;
mod world;
