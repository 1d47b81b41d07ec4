//! Those who judge a call from outside: interceptors, and a person who can be asked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use bailiwick_guardrails::{Call, Consent, Verdict};
use bailiwick_manifest::FleetBudget;
use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::Value;

/// Judges calls before they run. It may refuse, ask or rewrite; it can never grant.
pub trait Interceptor: Send + Sync + 'static {
    /// Its name, for the record.
    fn name(&self) -> &str;

    /// What becomes of the call.
    ///
    /// # Errors
    /// What failed; a failure denies.
    fn judge(&self, call: &Call) -> Result<Verdict, InterceptorError>;
}

/// Why an interceptor could not judge a call: one line, lower case, no full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InterceptorError(pub String);

/// What all interceptors say together.
pub(crate) struct Judged {
    /// The strictest verdict.
    pub(crate) strictest: Verdict,
    /// The first rewrite. It is not lost when another interceptor asks: a person is asked about what would run.
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

/// Spends of budgets that are not this session's alone.
pub trait Meter: Send + Sync + 'static {
    /// Spends what one call costs. When this returns, it is spent, whatever becomes of the call.
    ///
    /// # Errors
    /// Why nothing was spent; the call is denied then.
    fn spend(&self, budget: &FleetBudget) -> Result<(), String>;
}

/// Asks a person for consent. Without an approver, every call that needs consent is denied.
pub trait Approver: Send + Sync + 'static {
    /// Asks about one call.
    fn ask<'a>(
        &'a self,
        call: &'a Call,
        question: &'a str,
    ) -> Pin<Box<dyn Future<Output = Consent> + Send + 'a>>;

    /// What a person can still do after a no, in one line, for the denial; nothing by default.
    fn advice(&self, _call: &Call) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(fn() -> Result<Verdict, InterceptorError>);

    impl Interceptor for Says {
        fn name(&self) -> &'static str {
            "says"
        }

        fn judge(&self, _: &Call) -> Result<Verdict, InterceptorError> {
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
    fn a_failure_or_a_panic_denies() {
        assert_eq!(code(vec![Box::new(Says(|| Ok(Verdict::Allow)))]), None);
        assert_eq!(
            code(vec![Box::new(Says(|| Err(InterceptorError("broken".into()))))]),
            Some(DenialCode::InterceptorFailed)
        );
        assert_eq!(code(vec![Box::new(Says(|| panic!("x")))]), Some(DenialCode::InterceptorFailed));
    }
}
