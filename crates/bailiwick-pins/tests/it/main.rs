//! Tests of the library from outside.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod corpus;
mod published;
