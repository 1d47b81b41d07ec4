//! What a tool is, and how a call of it can end badly.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bailiwick_manifest::ToolPolicy;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::{Capability, CapabilitySet};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::finding::Findings;
use serde_json::Value;

use crate::gate::ToolContext;
use crate::outcome::Output;

/// What a tool that says nothing of its memory is taken to need.
const DEFAULT_FOOTPRINT: usize = 4 * 1024 * 1024;

/// Something an agent can call.
///
/// A tool cannot run without a [`ToolContext`], and only the gate makes one. It does nothing to the world but
/// what the context let it do.
///
/// # Examples
/// ```
/// use std::io::Read as _;
///
/// use bailiwick_guard::{Output, Tool, ToolContext, ToolError};
/// use serde_json::{Value, json};
///
/// /// Counts the words of a file.
/// struct WordCount;
///
/// impl Tool for WordCount {
///     fn name(&self) -> &str {
///         "word_count"
///     }
///
///     fn schema(&self) -> Value {
///         json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] })
///     }
///
///     async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
///         let mut text = String::new();
///         // Refused, and recorded, unless the file was granted.
///         let mut file = context.open_read(args["path"].as_str().unwrap_or_default())?;
///         file.read_to_string(&mut text).map_err(|error| ToolError::failed(error.to_string()))?;
///         Ok(json!({ "words": text.split_whitespace().count() }).into())
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The name it is called by.
    fn name(&self) -> &str;

    /// One line for people and models.
    fn description(&self) -> &str {
        ""
    }

    /// The JSON Schema of its arguments.
    fn schema(&self) -> Value;

    /// The JSON Schema of its result; none if that is not promised.
    fn output(&self) -> Option<Value> {
        None
    }

    /// What calling it means, for those who choose between tools. Nothing is allowed or refused by it.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// The authority it needs. The default stays within whatever was granted.
    fn required(&self) -> Required {
        Required::ceiling(Authority::top())
    }

    /// The policy that it declares, if it does: paths in its arguments are held to it, it narrows what the tool may touch,
    /// and its risk is in the record. Where none is declared, what it needs and the grant decide.
    fn policy(&self) -> Option<&ToolPolicy> {
        None
    }

    /// The most bytes that a call with these arguments holds in memory at once, its result included. A server lets
    /// no more calls run at the same time than its memory has room for.
    fn footprint(&self, _args: &Value) -> usize {
        DEFAULT_FOOTPRINT
    }

    /// Runs it, on a thread that may block. Work that takes long asks [`ToolContext::still_wanted`] now and then.
    fn invoke(
        &self,
        args: Value,
        context: &ToolContext,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// What calling a tool means. The default is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// What a call does to the world.
    pub effect: Effect,
    /// Whether a second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Whether it reaches beyond this machine.
    pub open_world: bool,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Reads,
    /// It only adds.
    Adds,
    /// It may change or remove what is there.
    Changes,
}

impl Default for Hints {
    fn default() -> Self {
        Self { effect: Effect::Changes, idempotent: false, open_world: true }
    }
}

/// What a running call tells before it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Where it was said.
    pub stream: Stream,
    /// What was said.
    pub text: String,
}

/// Where something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A program's output.
    Output,
    /// A program's complaints.
    Errors,
    /// The tool itself.
    Tool,
}

/// A callback for news of a running call. Called in order, from the task that runs it; must not block.
pub type Listener = Arc<dyn Fn(News) + Send + Sync>;

/// What a tool is called, says and takes.
#[derive(Debug, Clone)]
pub struct Definition<'a> {
    /// The name it is called by.
    pub name: &'a str,
    /// One line for people and models.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// The JSON Schema of its result.
    pub output: Option<Value>,
    /// What calling it means.
    pub hints: Hints,
}

/// What a tool needs.
#[derive(Debug, Clone)]
pub struct Required {
    authority: Authority,
    demanded: bool,
}

impl Required {
    /// The tool never goes beyond this; with less it does less.
    #[must_use]
    pub const fn ceiling(authority: Authority) -> Self {
        Self { authority, demanded: false }
    }

    /// The tool cannot do its work with less: the gate refuses if not all of it was granted.
    #[must_use]
    pub const fn demand(authority: Authority) -> Self {
        Self { authority, demanded: true }
    }

    /// The same, from capability strings.
    ///
    /// # Errors
    /// The finding of every line that is wrong.
    pub fn demand_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Self, Findings> {
        Ok(Self::demand(CapabilitySet::new(lines)?.authority().clone()))
    }

    /// The same need, within a bound.
    pub(crate) fn within(self, bound: &Authority) -> Self {
        Self { authority: self.authority.meet(bound), ..self }
    }

    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) const fn is_demanded(&self) -> bool {
        self.demanded
    }
}

/// Why a tool has no answer: policy said no, or something failed.
///
/// # Examples
/// ```
/// use bailiwick_guard::ToolError;
/// use bailiwick_policy::capability::Capability;
///
/// let error = ToolError::denied(&Capability::new("fs:write:/tmp")?, "not granted");
/// match error {
///     ToolError::Denied { capability, reason, .. } => assert_eq!((&*capability, &*reason), ("fs:write:/tmp", "not granted")),
///     ToolError::Fault(fault) => println!("{fault}"),
///     _ => {}
/// }
/// # Ok::<(), bailiwick_policy::finding::Finding>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// Policy says no.
    #[error("{denial}")]
    Denied {
        /// The smallest grant that would allow it, one capability a line; empty where no grant would.
        capability: String,
        /// Why not, without advice.
        reason: String,
        /// The denial itself, with its code and its typed capabilities.
        denial: Box<Denial>,
    },
    /// Something failed.
    #[error(transparent)]
    Fault(#[from] ToolFault),
}

/// How a call failed that policy did not refuse.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFault {
    /// There is no such tool.
    #[error("there is no tool `{0}`")]
    NotFound(String),
    /// A program could not be started or watched.
    #[error("cannot run `{program}`: {source}")]
    Exec {
        /// Which program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing waits for the result any more, so the tool stopped.
    #[error("the call was cancelled")]
    Cancelled,
    /// The caveats of a call cannot be read, so nothing was granted.
    #[error("the caveats cannot be read: {0}")]
    Caveats(Findings),
    /// The tool failed.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    /// What a record's code means where it is neither a denial nor a fault of the journal.
    pub const OUTCOMES: [(&str, &str); 12] = [
        ("tool-not-found", "there is no such tool"),
        ("exec-failed", "a program could not be started or watched"),
        ("tool-failed", "the tool ran and failed"),
        ("tool-cancelled", "the caller cut the call off while it ran"),
        ("caveats-unreadable", "the caveats of the call cannot be read, so nothing was granted"),
        ("permit-unused", "the call was let through and never ran"),
        ("secret-redacted", "values of secrets were taken out of what a server says"),
        (
            "would-deny",
            "the call was let through in audit mode; the reason begins with the code that would have refused it",
        ),
        ("tool-imitated", "a tool of a wrapped server passes for a tool of another one"),
        ("journal-repaired", "a torn last line was taken out when the journal was opened"),
        ("journal-unsigned-tail", "lines behind the last seal were found when the journal was opened"),
        ("journal-recovered", "the journal can be written again after a time when it could not"),
    ];

    /// The error of a tool that refuses by itself, for want of `capability`.
    #[must_use]
    pub fn denied(capability: &Capability, reason: impl Into<String>) -> Self {
        let code = capability.axis().map_or(DenialCode::RequiredNotGranted, DenialCode::from);
        Denial::new(code, reason).with_smallest([capability.clone()]).into()
    }

    /// The error of a tool that failed: one line, lower case, no full stop.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        ToolFault::Failed(why.into()).into()
    }

    /// The denial, if policy said no.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Denied { denial, .. } => Some(denial),
            Self::Fault(_) => None,
        }
    }

    /// The stable code for records.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied { denial, .. } => denial.code().as_str(),
            Self::Fault(fault) => fault.code(),
        }
    }

    pub(crate) const fn is_cancelled(&self) -> bool {
        matches!(self, Self::Fault(ToolFault::Cancelled))
    }
}

impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        let (capability, reason) = (denial.smallest_lines().unwrap_or_default(), denial.message().to_owned());
        Self::Denied { capability, reason, denial: Box::new(denial) }
    }
}

impl ToolFault {
    /// The stable code for records.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "tool-not-found",
            Self::Exec { .. } => "exec-failed",
            Self::Cancelled => "tool-cancelled",
            Self::Caveats(_) => "caveats-unreadable",
            Self::Failed(_) => "tool-failed",
        }
    }
}

/// A running call.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + 'a>>;

/// A tool behind a pointer.
pub(crate) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn definition(&self) -> Definition<'_>;
    fn required(&self) -> Required;
    fn policy(&self) -> Option<&ToolPolicy>;
    fn footprint(&self, args: &Value) -> usize;
    fn invoke<'a>(&'a self, args: Value, context: &'a ToolContext) -> Running<'a>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn definition(&self) -> Definition<'_> {
        Definition {
            name: Tool::name(self),
            description: Tool::description(self),
            schema: Tool::schema(self),
            output: Tool::output(self),
            hints: Tool::hints(self),
        }
    }

    fn required(&self) -> Required {
        Tool::required(self)
    }

    fn policy(&self) -> Option<&ToolPolicy> {
        Tool::policy(self)
    }

    fn footprint(&self, args: &Value) -> usize {
        Tool::footprint(self, args)
    }

    fn invoke<'a>(&'a self, args: Value, context: &'a ToolContext) -> Running<'a> {
        Box::pin(Tool::invoke(self, args, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_policy::finding::{Code, Finding};

    #[test]
    fn every_outcome_has_its_meaning() {
        let io = std::io::Error::other("x");
        let errors = [
            ToolFault::NotFound(String::new()),
            ToolFault::Exec { program: String::new(), source: io },
            ToolFault::Cancelled,
            ToolFault::Caveats(Finding::new(Code::CaveatsShape, "x").into()),
            ToolFault::Failed(String::new()),
        ];
        for error in errors {
            assert!(ToolError::OUTCOMES.iter().any(|(code, _)| *code == error.code()), "{}", error.code());
        }
    }
}
