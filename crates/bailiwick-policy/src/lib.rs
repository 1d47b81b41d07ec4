//! Declare and check: what a tool or server may touch, and whether that is within what was granted.
//!
//! Pure: no files, sockets, clocks, environment or threads. Text comes in, values and findings go out.
#![forbid(unsafe_code)]

pub mod journal;
