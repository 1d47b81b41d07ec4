//! Guard and record: what happened is written down before anyone can say it did not.
#![forbid(unsafe_code)]

pub mod journal;
