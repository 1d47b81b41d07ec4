//! Denials: policy says no. An answer, not an error, and worded the same wherever it comes from.

use std::fmt;

use crate::authority::{Axis, Explanation};

crate::code_table::code_table! {
    /// A stable name for one kind of denial.
    DenialCode {
        ReadNotGranted "read-not-granted": "the path may not be read";
        WriteNotGranted "write-not-granted": "the path may not be changed, created or deleted";
        ExecNotGranted "exec-not-granted": "the program may not be started";
        NetNotGranted "net-not-granted": "the host may not be reached in this way";
        EnvNotGranted "env-not-granted": "the variable may not be seen or given";
        IpcNotGranted "ipc-not-granted": "the local service may not be talked to";
        ClockNotGranted "clock-not-granted": "the clock may not be seen";
        RequiredNotGranted "required-not-granted": "the tool demands more than was granted";
        BudgetSpent "budget-spent": "the grant's calls are used up";
        GenerationOver "generation-over": "the grant is not good in this generation";
        Revoked "revoked": "the grant was revoked";
        GrantElsewhere "grant-elsewhere": "the grant was minted by another registry";
        ToolForbidden "tool-forbidden": "the tool's constraints forbid it";
        ToolTooOften "tool-too-often": "the tool has run as often as its constraints allow";
        ToolTooEarly "tool-too-early": "a tool that must succeed first has not";
        ConsentMissing "consent-missing": "a person must consent, and none did";
        ArgumentOutsidePolicy "argument-outside-policy": "a path in the arguments is outside the tool's file policy";
        ArgumentUnreadable "argument-unreadable": "a path in the arguments cannot be judged";
        ArgumentTooDeep "argument-too-deep": "the arguments nest deeper than the limit";
        InterceptorDenied "interceptor-denied": "an interceptor refused the call";
        InterceptorFailed "interceptor-failed": "an interceptor failed, and a failure refuses";
        RewriteLoop "rewrite-loop": "interceptors kept rewriting the call";
        GuardrailBlocked "guardrail-blocked": "a guardrail of the project blocks the call";
        GuardrailBroken "guardrail-broken": "the project's guardrails cannot be used, so nothing runs";
        GuardrailChanged "guardrail-changed": "guardrails that were trusted are missing or changed, so nothing runs";
        GuardrailProtected "guardrail-protected": "the call would change what holds it: policy, scripts, trust, approvals or journal";
        PathUnreadable "path-unreadable": "the path cannot be judged";
        PathChanged "path-changed": "the path led elsewhere while it was opened";
        PathNotAFile "path-not-a-file": "the path is neither a plain file nor a folder";
        RecordRefused "record-refused": "the call could not be recorded, and nothing runs unrecorded";
    }
}

impl From<Axis> for DenialCode {
    fn from(axis: Axis) -> Self {
        match axis {
            Axis::FsRead => Self::ReadNotGranted,
            Axis::FsWrite => Self::WriteNotGranted,
            Axis::Exec => Self::ExecNotGranted,
            Axis::Net => Self::NetNotGranted,
            Axis::Env => Self::EnvNotGranted,
            Axis::Ipc => Self::IpcNotGranted,
            Axis::Clock => Self::ClockNotGranted,
            Axis::MaxCalls => Self::BudgetSpent,
            Axis::Generation => Self::GenerationOver,
        }
    }
}

/// A refusal: what was asked, what is granted, and the smallest grant that would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    code: DenialCode,
    message: String,
    granted: Option<String>,
    smallest: Option<String>,
}

impl Denial {
    /// A denial with its reason: one line, lower case, no full stop.
    #[must_use]
    pub fn new(code: DenialCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), granted: None, smallest: None }
    }

    /// The same denial, with what is granted.
    #[must_use]
    pub fn granted(mut self, granted: impl Into<String>) -> Self {
        self.granted = Some(granted.into());
        self
    }

    /// The same denial, with the smallest grant that would allow it.
    #[must_use]
    pub fn smallest(mut self, grant: impl Into<String>) -> Self {
        self.smallest = Some(grant.into());
        self
    }

    /// What an authority's refusal reads like.
    #[must_use]
    pub fn of(explanation: &Explanation, message: impl Into<String>) -> Self {
        let denial = Self::new(explanation.axis().into(), message);
        match explanation.smallest_grant() {
            Some(grant) => denial.smallest(grant),
            None => denial,
        }
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> DenialCode {
        self.code
    }

    /// The reason, without advice.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The reason and what is granted, as one line for a record.
    #[must_use]
    pub fn for_record(&self) -> String {
        match &self.granted {
            Some(granted) => format!("{} (granted: {granted})", self.message),
            None => self.message.clone(),
        }
    }

    /// What is granted where more was asked for.
    #[must_use]
    pub fn is_granted(&self) -> Option<&str> {
        self.granted.as_deref()
    }

    /// The smallest grant that would allow it; several lines when it takes several capabilities.
    #[must_use]
    pub fn smallest_grant(&self) -> Option<&str> {
        self.smallest.as_deref()
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "denied: {}", self.for_record())?;
        match &self.smallest {
            Some(grant) => {
                let grant = grant.replace('\n', "` and `");
                write!(f, "; a person can allow it by granting `{grant}`; going around it will not work")
            }
            None => Ok(()),
        }
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_says_what_would_allow_it() {
        let set = crate::capability::CapabilitySet::new(["exec:spawn:echo"]).unwrap();
        let explanation = set.explain("exec:spawn:rm").unwrap();
        let denial = Denial::of(&explanation, "exec of \"rm\" is not within the granted authority");
        assert_eq!(denial.code(), DenialCode::ExecNotGranted);
        assert_eq!(
            denial.to_string(),
            "denied: exec of \"rm\" is not within the granted authority; a person can allow it by granting \
             `exec:spawn:rm`; going around it will not work"
        );
    }
}
