//! Rules about the repository that people would forget, so a test remembers them.
//!
//! Each rule is a function from plain data to a list of breaches. The test feeds it the real tree; a second
//! test feeds it a small wrong one, so that no rule can turn into a check that never fails.

mod budget;
mod closure;
mod docs;
mod edges;
mod licences;
mod lines;
mod mutations;
mod peers;
mod repo;
mod sources;
mod words;

/// Fails with one breach a line, under a sentence that says what the rule is.
fn assert_none(rule: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{rule}\n  {}\n", breaches.join("\n  "));
}
