//! A call that was not judged yet, and the grant that it is asked under.

use bailiwick_manifest::caveats::Caveats;
use bailiwick_policy::finding::Findings;
use serde_json::Value;

use crate::grant::Grant;
use crate::registry::Registry;
use crate::tool::Listener;

/// A call that waits to be judged: tool, arguments, grant, and who hears what it says while it runs.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Grant, Outcome, PendingCall, Registry, ToolFault};
///
/// async fn list(registry: &Registry, grant: &Grant) -> Result<Outcome, ToolFault> {
///     registry.run(PendingCall::new("fs_list", serde_json::json!({ "path": "/notes" }), grant)).await
/// }
/// ```
pub struct PendingCall {
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) grant: Grant,
    pub(crate) listener: Option<Listener>,
}

impl PendingCall {
    /// A call of `tool` under `grant`.
    #[must_use]
    pub fn new(tool: impl Into<String>, args: Value, grant: &Grant) -> Self {
        Self { tool: tool.into(), args, grant: grant.clone(), listener: None }
    }

    /// The same call; `listener` is told what it says while it runs.
    #[must_use]
    pub fn heard_by(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }
}

/// What a call can be made under: a [`Grant`], or [`Caveats`], which stand for one grant of the registry for as long
/// as it lives. Equal caveats are the same grant, so they share one budget.
pub trait GrantSource: sealed::Sealed {
    /// The grant in `registry`.
    ///
    /// # Errors
    /// What cannot be read; nothing is granted then.
    fn grant_in(&self, registry: &Registry) -> Result<Grant, Findings>;
}

impl GrantSource for Grant {
    fn grant_in(&self, _: &Registry) -> Result<Grant, Findings> {
        Ok(self.clone())
    }
}

impl GrantSource for Caveats {
    fn grant_in(&self, registry: &Registry) -> Result<Grant, Findings> {
        registry.grant_of(self)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Grant {}
    impl Sealed for super::Caveats {}
}
