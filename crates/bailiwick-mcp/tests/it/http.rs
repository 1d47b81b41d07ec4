//! Streamable HTTP, spoken over plain sockets so that every byte of a request is the test's own.

mod client;
mod door;
mod end;
mod eras;
mod fixture;
mod limits;
mod mirror;
mod reading;
mod sessions;
