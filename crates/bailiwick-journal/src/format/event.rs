//! What happened: one event, as the caller states it. Its place in the chain is the writer's business.
//!
//! Absent fields are absent from the line; there is no `null`. Bodies (`args`, `result`) are stored only when
//! asked for, and then already redacted by the caller.
use super::{Digest, Text};
use std::fmt;
use std::sync::Arc;

/// The kinds of event, with names that never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A capability was asked for and is within the grant.
    CapabilityGranted,
    /// A capability was asked for and is not within the grant.
    CapabilityDenied,
    /// A tool was started.
    ToolCalled,
    /// A tool came back.
    ToolFinished,
    /// A confined process was started.
    SandboxStarted,
    /// A confined process has ended.
    SandboxEnded,
    /// A connection or request out was let through.
    EgressAllowed,
    /// A connection or request out was refused.
    EgressDenied,
    /// A guardrail refused a call.
    GuardrailBlocked,
    /// A person was asked.
    ApprovalAsked,
    /// A person answered.
    ApprovalDecided,
    /// The pinned description of a tool changed.
    PinChanged,
    /// A session began.
    SessionStarted,
    /// A session ended.
    SessionEnded,
    /// We or the kernel failed.
    Fault,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::CapabilityGranted,
        Self::CapabilityDenied,
        Self::ToolCalled,
        Self::ToolFinished,
        Self::SandboxStarted,
        Self::SandboxEnded,
        Self::EgressAllowed,
        Self::EgressDenied,
        Self::GuardrailBlocked,
        Self::ApprovalAsked,
        Self::ApprovalDecided,
        Self::PinChanged,
        Self::SessionStarted,
        Self::SessionEnded,
        Self::Fault,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CapabilityGranted => "capability-granted",
            Self::CapabilityDenied => "capability-denied",
            Self::ToolCalled => "tool-called",
            Self::ToolFinished => "tool-finished",
            Self::SandboxStarted => "sandbox-started",
            Self::SandboxEnded => "sandbox-ended",
            Self::EgressAllowed => "egress-allowed",
            Self::EgressDenied => "egress-denied",
            Self::GuardrailBlocked => "guardrail-blocked",
            Self::ApprovalAsked => "approval-asked",
            Self::ApprovalDecided => "approval-decided",
            Self::PinChanged => "pin-changed",
            Self::SessionStarted => "session-started",
            Self::SessionEnded => "session-ended",
            Self::Fault => "fault",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decision {
    /// It may happen.
    Allow,
    /// It may happen, changed.
    Rewrite,
    /// A person decides.
    Ask,
    /// It may not happen.
    Deny,
}

impl Decision {
    /// Every decision, mildest first.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Rewrite, Self::Ask, Self::Deny];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Rewrite => "rewrite",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The decision of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.name() == name)
    }
}

/// How strongly each axis was really held: `files` → `kernel`, `network` → `mediated`, ….
///
/// Kept sorted by axis, each axis once. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Enforcement(Arc<[(Box<str>, Box<str>)]>);

/// Text that cannot be an axis or a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token.
    #[error("`{0}` is not an axis or level: use 1 to 32 of `a-z 0-9 -`")]
    Token(String),
    /// The same axis again.
    #[error("axis `{0}` is given twice")]
    Twice(String),
    /// More than fit.
    #[error("{0} axes are more than 16")]
    Many(usize),
}

impl Enforcement {
    /// The most axes one event may state.
    pub const MAX_AXES: usize = 16;

    /// Collects pairs of axis and level.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, TokenError> {
        let mut sorted: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (axis, level) in pairs {
            if let Some(bad) = [axis, level].into_iter().find(|text| !is_token(text)) {
                return Err(TokenError::Token(bad.chars().take(40).flat_map(char::escape_default).collect()));
            }
            match sorted.binary_search_by(|(known, _)| known.as_ref().cmp(axis)) {
                Ok(_) => return Err(TokenError::Twice(axis.into())),
                Err(place) => sorted.insert(place, (axis.into(), level.into())),
            }
        }
        if sorted.len() > Self::MAX_AXES {
            return Err(TokenError::Many(sorted.len()));
        }
        Ok(Self(sorted.into()))
    }

    /// The pairs, sorted by axis.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(axis, level)| (axis.as_ref(), level.as_ref()))
    }
}

impl fmt::Debug for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

pub(super) fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(allowed)
}

/// One event. Made by [`Event::new`] and the methods named after the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub(super) kind: RecordKind,
    pub(super) decision: Option<Decision>,
    pub(super) time: u64,
    pub(super) parent: Option<u64>,
    pub(super) duration_us: Option<u64>,
    pub(super) agent: Option<Text>,
    pub(super) origin: Option<Text>,
    pub(super) tool: Option<Text>,
    pub(super) server: Option<Text>,
    pub(super) capability: Option<Text>,
    pub(super) code: Option<Text>,
    pub(super) reason: Option<Text>,
    pub(super) args_digest: Option<Digest>,
    pub(super) policy_hash: Option<Digest>,
    pub(super) plan_hash: Option<Digest>,
    pub(super) enforcement: Option<Enforcement>,
    pub(super) args: Option<Text>,
    pub(super) result: Option<Text>,
    pub(super) risk: Option<Text>,
    pub(super) used_declared_capability: Option<bool>,
}

macro_rules! texts {
    ($($name:ident $with:ident $what:literal,)*) => {$(
        #[doc = concat!("The event with ", $what, ".")]
        #[must_use]
        pub fn $with(mut self, text: impl Into<Text>) -> Self {
            self.$name = Some(text.into());
            self
        }

        #[doc = concat!("What was recorded as ", $what, ".")]
        pub fn $name(&self) -> Option<&str> {
            self.$name.as_ref().map(Text::as_str)
        }
    )*};
}

macro_rules! values {
    ($($name:ident $with:ident $type:ty, $what:literal,)*) => {$(
        #[doc = concat!("The event with ", $what, ".")]
        #[must_use]
        pub fn $with(mut self, value: $type) -> Self {
            self.$name = Some(value);
            self
        }

        #[doc = concat!("What was recorded as ", $what, ".")]
        pub fn $name(&self) -> Option<$type> {
            self.$name
        }
    )*};
}

impl Event {
    /// An event of `kind` that says nothing else yet. `time` 0 means: when it is appended.
    pub const fn new(kind: RecordKind) -> Self {
        Self {
            kind,
            decision: None,
            time: 0,
            parent: None,
            duration_us: None,
            agent: None,
            origin: None,
            tool: None,
            server: None,
            capability: None,
            code: None,
            reason: None,
            args_digest: None,
            policy_hash: None,
            plan_hash: None,
            enforcement: None,
            args: None,
            result: None,
            risk: None,
            used_declared_capability: None,
        }
    }

    texts! {
        tool with_tool "the tool's name",
        server with_server "the server's name",
        capability with_capability "the capability that was asked for",
        code with_code "a stable code",
        agent with_agent "the agent's session that asked",
        origin with_origin "the line of a manifest or command line that decided",
        reason with_reason "a reason worded for people",
        args with_args "the redacted arguments, as JSON text",
        result with_result "the redacted result, as JSON text",
        risk with_risk "how risky the tool says it is",
    }

    values! {
        decision with_decision Decision, "what was decided",
        parent with_parent u64, "the `seq` of the event that caused it",
        duration_us with_duration_us u64, "how long it took, in microseconds",
        args_digest with_args_digest Digest, "the digest of the arguments",
        policy_hash with_policy_hash Digest, "the hash of the policy that decided",
        plan_hash with_plan_hash Digest, "the hash of the plan that was enforced",
        used_declared_capability with_used_declared_capability bool,
            "whether what was asked for is within what the tool declares",
    }

    /// The event with what was really enforced.
    #[must_use]
    pub fn with_enforcement(mut self, enforcement: Enforcement) -> Self {
        self.enforcement = Some(enforcement);
        self
    }

    /// The event at `time`, in microseconds since 1970.
    #[must_use]
    pub const fn at(mut self, time: u64) -> Self {
        self.time = time;
        self
    }

    /// What kind of event it is.
    pub const fn kind(&self) -> RecordKind {
        self.kind
    }

    /// When it happened, in microseconds since 1970; 0 when not stated yet.
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// What was really enforced.
    pub const fn enforcement(&self) -> Option<&Enforcement> {
        self.enforcement.as_ref()
    }

    /// How many bytes of free text the event holds.
    pub fn text_len(&self) -> usize {
        let named = [&self.agent, &self.origin, &self.tool, &self.server, &self.capability, &self.code];
        let said = [&self.reason, &self.args, &self.result, &self.risk];
        named.into_iter().chain(said).flatten().map(|text| text.as_str().len()).sum()
    }
}
