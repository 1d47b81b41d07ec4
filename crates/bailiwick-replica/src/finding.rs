//! What is found wrong with a log: it was forked or rolled back. Both name the two roots.

use bailiwick_fleet::checkpoint::SuccessionError;
use serde::{Deserialize, Serialize};

/// A fork or a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFinding {
    /// When it was seen, in milliseconds since 1970.
    pub time_ms: u64,
    /// The web server that offered it.
    pub source: String,
    /// The stable code.
    pub code: String,
    /// What it is, with both roots.
    pub message: String,
}

impl LogFinding {
    pub(crate) fn new(time_ms: u64, source: &str, why: &SuccessionError) -> Self {
        Self { time_ms, source: source.to_owned(), code: why.code().to_owned(), message: why.to_string() }
    }

    /// Whether both say the same of the same web server, whenever they were seen.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.source, &self.code, &self.message) == (&other.source, &other.code, &other.message)
    }
}
