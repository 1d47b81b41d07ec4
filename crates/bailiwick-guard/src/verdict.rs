//! Verdicts on a call, and who gives them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use bailiwick_policy::denial::{Denial, DenialCode};
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

/// Judges calls before they run. It may refuse, ask or rewrite; it can never grant.
pub trait Interceptor: Send + Sync + 'static {
    /// Its name, for the record.
    fn name(&self) -> &str;

    /// What becomes of the call.
    ///
    /// # Errors
    /// A text that says what failed; a failure denies.
    fn judge(&self, call: &Call) -> Result<Verdict, String>;
}

/// What all interceptors say together.
pub(crate) struct Judged {
    /// The strictest verdict.
    pub(crate) strictest: Verdict,
    /// The first rewrite. It is not lost when someone else asks: a person is asked about what would run.
    pub(crate) rewrite: Option<Value>,
}

/// Asks every interceptor. One that fails or panics denies.
pub(crate) fn judge_all(interceptors: &[Box<dyn Interceptor>], call: &Call) -> Judged {
    let mut judged = Judged { strictest: Verdict::Allow, rewrite: None };
    for interceptor in interceptors {
        let verdict = judge_one(interceptor.as_ref(), call);
        if let Verdict::Rewrite(args) = &verdict
            && judged.rewrite.is_none()
        {
            judged.rewrite = Some(args.clone());
        }
        judged.strictest = judged.strictest.max(verdict);
    }
    judged
}

fn judge_one(interceptor: &dyn Interceptor, call: &Call) -> Verdict {
    let failed = |why: &str| {
        let message = format!("the interceptor `{}` {why}", interceptor.name());
        Verdict::Deny(Denial::new(DenialCode::InterceptorFailed, message))
    };
    match catch_unwind(AssertUnwindSafe(|| interceptor.judge(call))) {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(why)) => failed(&format!("failed: {why}")),
        Err(_) => failed("panicked"),
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

/// Someone who can be asked. Without one, whatever needs consent is denied.
pub trait Approver: Send + Sync + 'static {
    /// Asks about one call.
    fn ask<'a>(
        &'a self,
        call: &'a Call,
        question: &'a str,
    ) -> Pin<Box<dyn Future<Output = Consent> + Send + 'a>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(fn() -> Result<Verdict, String>);

    impl Interceptor for Says {
        fn name(&self) -> &'static str {
            "says"
        }

        fn judge(&self, _: &Call) -> Result<Verdict, String> {
            (self.0)()
        }
    }

    fn code(interceptors: Vec<Box<dyn Interceptor>>) -> Option<DenialCode> {
        match judge_all(&interceptors, &Call { tool: "t".into(), args: Value::Null }).strictest {
            Verdict::Deny(denial) => Some(denial.code()),
            Verdict::Allow | Verdict::Rewrite(_) | Verdict::Ask(_) => None,
        }
    }

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

    #[test]
    fn a_failure_or_a_panic_denies() {
        assert_eq!(code(vec![Box::new(Says(|| Ok(Verdict::Allow)))]), None);
        assert_eq!(code(vec![Box::new(Says(|| Err("broken".into())))]), Some(DenialCode::InterceptorFailed));
        assert_eq!(code(vec![Box::new(Says(|| panic!("x")))]), Some(DenialCode::InterceptorFailed));
    }
}
