//! Why a plan is not compiled: a target that cannot say it is refused, never approximated in silence.

use bailiwick_policy::enforcement::{Aspect, Shortfall};

use crate::{Egress, Target};

/// Why a target does not take a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The target has no words for it.
    #[error("{target} cannot hold `{rule}`: {why}")]
    Inexpressible {
        /// The target.
        target: Target,
        /// On which axis.
        aspect: Aspect,
        /// The rule.
        rule: String,
        /// What is missing, and what to write instead.
        why: String,
    },
    /// The gateway's format has no words for it.
    #[error("{format} cannot hold `{rule}`: {why}")]
    Egress {
        /// The format.
        format: Egress,
        /// The rule.
        rule: String,
        /// What is missing, and what to write instead.
        why: String,
    },
    /// The target holds less than is demanded.
    #[error("{target} holds less than is demanded: {}", list(shortfalls))]
    BelowFloor {
        /// The target.
        target: Target,
        /// Everything that falls short.
        shortfalls: Vec<Shortfall>,
    },
}

fn list(shortfalls: &[Shortfall]) -> String {
    shortfalls.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
