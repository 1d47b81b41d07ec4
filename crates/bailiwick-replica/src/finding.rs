//! What is found wrong with a log: it was forked or rolled back, or this machine's clock is behind it. All name the two roots.

use bailiwick_fleet::checkpoint::SuccessionError;
use serde::{Deserialize, Serialize};

/// A fork, a rollback, or a checkpoint from the future.
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

    /// Whether both say the same of the same web server, whenever they were seen. How far ahead a checkpoint is changes all the time.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_message = self.message == other.message || self.code == "fleet-checkpoint-future";
        (&self.source, &self.code) == (&other.source, &other.code) && is_same_message
    }
}
