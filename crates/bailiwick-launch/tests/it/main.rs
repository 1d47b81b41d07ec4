//! Launching as its users see it: nothing runs unrecorded, and one launch's events belong together.
#![expect(clippy::unwrap_used, reason = "tests")]

mod recorded;
