//! Verdicts on a call.

use std::sync::Arc;

use bailiwick_policy::denial::Denial;
use serde_json::Value;

/// A call that has not been admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool.
    pub tool: Arc<str>,
    /// Its arguments.
    pub args: Value,
}

/// What becomes of a call. Ordered: of several, the strictest counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may run with these arguments instead, once they have passed every check.
    Rewrite(Value),
    /// A person decides; the text says what about.
    Ask(String),
    /// It may not run.
    Deny(Denial),
}

impl Verdict {
    const fn rank(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Rewrite(_) => 1,
            Self::Ask(_) => 2,
            Self::Deny(_) => 3,
        }
    }

    /// The stricter of two; of equals, the first.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// This call, once.
    Given,
    /// No.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_policy::denial::DenialCode;

    #[test]
    fn the_strictest_verdict_counts_whatever_the_order() {
        let deny = || Verdict::Deny(Denial::new(DenialCode::InterceptorDenied, "no"));
        let all = [Verdict::Allow, Verdict::Rewrite(Value::Null), Verdict::Ask("?".into()), deny()];
        for (low, a) in all.iter().enumerate() {
            for (high, b) in all.iter().enumerate() {
                assert_eq!(a.clone().max(b.clone()), all[low.max(high)]);
            }
        }
    }
}
