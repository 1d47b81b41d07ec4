//! What was really held: per aspect, by which mechanism, and what a person should know of it.

use bailiwick_policy::enforcement::Coverage;
use serde_json::{Value, json};

/// What a sandbox holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Per aspect.
    pub coverage: Coverage,
    /// By which backend.
    pub backend: &'static str,
    /// What was left out, narrowed or cannot be covered: one line each.
    pub details: Vec<String>,
}

impl Status {
    /// For machines; fields are only ever added.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "backend": self.backend, "coverage": self.coverage.to_json(), "details": self.details })
    }
}
