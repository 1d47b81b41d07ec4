//! `web_fetch` against servers of the test's own, on loopback.

mod content;
mod policy;
mod world;
