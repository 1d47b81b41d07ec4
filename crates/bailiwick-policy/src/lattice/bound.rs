//! How many calls an authority is good for.

use serde::{Deserialize, Serialize};

/// An upper bound on calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBound {
    /// No bound.
    Unlimited,
    /// At most this many.
    AtMost(u64),
}

impl CountBound {
    /// The tighter of the two.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unlimited, bound) | (bound, Self::Unlimited) => bound,
            (Self::AtMost(a), Self::AtMost(b)) => Self::AtMost(a.min(b)),
        }
    }

    /// Whether this bound is at least as tight.
    #[must_use]
    pub fn leq(self, other: Self) -> bool {
        self.meet(other) == self
    }
}
