//! Denials: policy says no. An answer, not an error, and worded the same wherever it comes from.

use std::fmt;

use crate::authority::{Authority, Axis, Request, smallest};
use crate::capability::Capability;

crate::code_table! {
    /// A stable name for one kind of denial.
    DenialCode {
        ReadNotGranted "read-not-granted": "the path may not be read";
        WriteNotGranted "write-not-granted": "the path may not be changed, created or deleted";
        ExecNotGranted "exec-not-granted": "the program may not be started";
        NetNotGranted "net-not-granted": "the host may not be reached in this way";
        SecretRefused "secret-refused": "a request to the host of a brokered secret was refused";
        EnvNotGranted "env-not-granted": "the variable may not be seen or given";
        IpcNotGranted "ipc-not-granted": "the local service may not be talked to";
        ClockNotGranted "clock-not-granted": "the clock may not be seen";
        RequiredNotGranted "required-not-granted": "the tool demands more than was granted";
        BudgetSpent "budget-spent": "the grant's calls are used up";
        FleetBudgetSpent "fleet-budget-spent": "no lease of the fleet's budget has enough left, and none can be had";
        GenerationOver "generation-over": "the grant is not good in this generation";
        Revoked "revoked": "the grant was revoked";
        GrantElsewhere "grant-elsewhere": "the grant was minted by another registry";
        ToolForbidden "tool-forbidden": "the tool's constraints forbid it";
        ToolTooOften "tool-too-often": "the tool has run as often as its constraints allow";
        ToolTooEarly "tool-too-early": "a tool that must succeed first has not";
        ConsentMissing "consent-missing": "a person must consent, and none did";
        ArgumentOutsidePolicy "argument-outside-policy": "a path in the arguments is outside the tool's file policy";
        ArgumentUnreadable "argument-unreadable": "a path in the arguments cannot be judged";
        ArgumentHost "argument-host": "a host in the arguments is outside the tool's network policy, or cannot be judged";
        ArgumentRule "argument-rule": "a rule of the manifest refuses these arguments";
        ArgumentTooDeep "argument-too-deep": "the arguments nest deeper than the limit";
        InterceptorDenied "interceptor-denied": "an interceptor refused the call";
        InterceptorFailed "interceptor-failed": "an interceptor failed, and a failure refuses";
        RewriteLoop "rewrite-loop": "interceptors kept rewriting the call";
        GuardrailBlocked "guardrail-blocked": "a guardrail of the project blocks the call";
        GuardrailBroken "guardrail-broken": "the project's guardrails cannot be used, so nothing runs";
        GuardrailChanged "guardrail-changed": "guardrails that were trusted are missing or changed, so nothing runs";
        GuardrailProtected "guardrail-protected": "the call would change what holds it: policy, scripts, trust, approvals or journal";
        MessageAmbiguous "message-ambiguous": "two programs could read the message differently, so nothing was passed on";
        MethodUnlisted "method-unlisted": "the manifest does not list the method of the protocol";
        ClientFeatureRefused "client-feature-refused": "the server asked the client for something that it may not ask for";
        PathUnreadable "path-unreadable": "the path cannot be judged";
        PathChanged "path-changed": "the path led elsewhere while it was opened";
        PathNotAFile "path-not-a-file": "the path is neither a plain file nor a directory";
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

/// How many granted lines a denial names in its text.
const MAX_SHOWN: usize = 8;

/// A refusal: what was asked, what is granted, and the smallest grant that would allow it.
///
/// # Examples
/// ```
/// use bailiwick_policy::authority::{Request, Spawn};
/// use bailiwick_policy::capability::{Capability, CapabilitySet, Program};
/// use bailiwick_policy::denial::{Denial, DenialCode};
///
/// let granted = CapabilitySet::new(["exec:spawn:git"])?;
/// let request = Request::Spawn(Spawn::plain(Program::new("rm")?));
/// let denial = Denial::not_granted(granted.authority(), request, "exec of \"rm\" is not granted");
///
/// assert_eq!(denial.code(), DenialCode::ExecNotGranted);
/// assert_eq!(denial.smallest(), [Capability::new("exec:spawn:rm")?]);
/// assert_eq!(denial.granted(), Some(&[Capability::new("exec:spawn:git")?][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    code: DenialCode,
    message: String,
    request: Option<Box<Request>>,
    granted: Option<Vec<Capability>>,
    smallest: Vec<Capability>,
}

impl Denial {
    /// A denial with its reason: one line, lower case, no full stop.
    #[must_use]
    pub fn new(code: DenialCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), request: None, granted: None, smallest: Vec::new() }
    }

    /// The denial of a request that `authority` does not allow.
    #[must_use]
    pub fn not_granted(authority: &Authority, request: Request, message: impl Into<String>) -> Self {
        let axis = request.axis();
        Self {
            code: axis.into(),
            message: message.into(),
            granted: authority.capabilities_on(axis),
            smallest: vec![smallest(&request)],
            request: Some(Box::new(request)),
        }
    }

    /// The same denial, with the request that was refused.
    #[must_use]
    pub fn with_request(mut self, request: Request) -> Self {
        self.request = Some(Box::new(request));
        self
    }

    /// The same denial, with what is granted; an empty list is nothing.
    #[must_use]
    pub fn with_granted(mut self, granted: impl IntoIterator<Item = Capability>) -> Self {
        self.granted = Some(granted.into_iter().collect());
        self
    }

    /// The same denial, with the smallest grant that would allow it.
    #[must_use]
    pub fn with_smallest(mut self, grant: impl IntoIterator<Item = Capability>) -> Self {
        self.smallest = grant.into_iter().collect();
        self
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

    /// What was refused, where it was one act.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        self.request.as_deref()
    }

    /// What is granted where more was asked for; `None` where no list of capabilities says it.
    #[must_use]
    pub fn granted(&self) -> Option<&[Capability]> {
        self.granted.as_deref()
    }

    /// The capabilities that would allow it, all of them together; empty where no grant would.
    #[must_use]
    pub fn smallest(&self) -> &[Capability] {
        &self.smallest
    }

    /// The smallest grant as text, one capability a line; `None` where no grant would allow it.
    #[must_use]
    pub fn smallest_lines(&self) -> Option<String> {
        (!self.smallest.is_empty()).then(|| joined(&self.smallest, "\n"))
    }

    /// What is granted, as one line; a long list is cut.
    #[must_use]
    pub fn granted_line(&self) -> Option<String> {
        let lines = self.granted.as_deref()?;
        let shown = joined(lines.get(..MAX_SHOWN).unwrap_or(lines), ", ");
        Some(match lines.len() {
            0 => "nothing".to_owned(),
            all if all > MAX_SHOWN => format!("{shown}, and {} more", all - MAX_SHOWN),
            _ => shown,
        })
    }

    /// What a person can do about it, as one line; `None` where no grant would allow it.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let grant = joined(&self.smallest, "` and `");
        let advice = || format!("a person can allow it by granting `{grant}`; going around it will not work");
        (!grant.is_empty()).then(advice)
    }

    /// The reason and what is granted, as one line for a record.
    #[must_use]
    pub fn for_record(&self) -> String {
        match self.granted_line() {
            Some(granted) => format!("{} (granted: {granted})", self.message),
            None => self.message.clone(),
        }
    }
}

fn joined(lines: &[Capability], between: &str) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "denied: {}", self.for_record())?;
        self.advice().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_says_what_would_allow_it() {
        let set = crate::capability::CapabilitySet::new(["exec:spawn:echo"]).unwrap();
        let program = crate::capability::Program::new("rm").unwrap();
        let request = Request::Spawn(crate::authority::Spawn::plain(program));
        let message = "exec of \"rm\" is not within the granted authority";
        let denial = Denial::not_granted(set.authority(), request.clone(), message);
        assert_eq!((denial.code(), denial.request()), (DenialCode::ExecNotGranted, Some(&request)));
        assert_eq!(
            denial.to_string(),
            "denied: exec of \"rm\" is not within the granted authority (granted: exec:spawn:echo); a person can \
             allow it by granting `exec:spawn:rm`; going around it will not work"
        );
    }

    #[test]
    fn a_long_list_of_grants_is_cut_in_the_text_only() {
        let lines = (0..12).map(|number| Capability::new(format!("exec:spawn:p{number}")).unwrap());
        let denial = Denial::new(DenialCode::ExecNotGranted, "no").with_granted(lines);
        assert_eq!(denial.granted().map(<[Capability]>::len), Some(12));
        assert!(denial.for_record().ends_with("exec:spawn:p7, and 4 more)"), "{denial}");
        let nothing = Denial::new(DenialCode::ExecNotGranted, "no").with_granted([]);
        assert_eq!(nothing.to_string(), "denied: no (granted: nothing)");
    }
}
