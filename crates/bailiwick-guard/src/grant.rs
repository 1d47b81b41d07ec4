//! A grant: what a session may touch, how often, and until when. Shared by all calls of the session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bailiwick_guardrails::Timeline;
use bailiwick_policy::authority::{Authority, Request};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::lattice::CountBound;

/// A session's authority and its budget. Clones share both.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Registry, Session};
/// use bailiwick_manifest::caveats::Caveats;
/// use bailiwick_policy::lattice::CountBound;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bailiwick_journal::{Journal, Options, new_session};
/// # let state = tempfile::tempdir()?;
/// # let journal = Journal::open(&state.path().join("journal"), new_session()?, Options::default())?;
/// let registry = Registry::builder(journal, Session::new("/")).build()?;
/// let grant = registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(3), ..Caveats::top() })?;
/// assert_eq!(grant.clone().calls_left(), Some(3));
/// registry.revoke();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Grant(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: u64,
    minted_in: u64,
    authority: Authority,
    left: Option<AtomicU64>,
    tools: HashMap<Arc<str>, PerTool>,
}

/// What a grant remembers of one tool.
#[derive(Debug, Default)]
pub(crate) struct PerTool {
    pub(crate) effective: OnceLock<Effective>,
    runs: AtomicU64,
    succeeded: AtomicBool,
}

/// What a tool may touch under this grant, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct Effective {
    pub(crate) authority: Arc<Authority>,
    /// What a tool demands and the grant does not give.
    pub(crate) missing: Option<Missing>,
}

/// What a tool demands beyond the grant.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    /// One thing it could not do, in words.
    pub(crate) example: Box<str>,
    /// That thing, where it is one request.
    pub(crate) request: Option<Request>,
    /// The demanded capabilities that are not granted; none where no list of them says it.
    pub(crate) smallest: Vec<Capability>,
}

impl Missing {
    pub(crate) fn new(
        example: impl ToString,
        request: Option<&Request>,
        required: &Authority,
        granted: &Authority,
    ) -> Self {
        let lacks = |line: &Capability| {
            !Authority::from_capabilities(std::slice::from_ref(line))
                .is_ok_and(|one| one.within(granted).holds())
        };
        let smallest = required.capabilities().unwrap_or_default().into_iter().filter(lacks).collect();
        Self { example: example.to_string().into(), request: request.cloned(), smallest }
    }
}

impl Grant {
    pub(crate) fn new(
        registry: u64,
        generation: u64,
        authority: Authority,
        tools: impl Iterator<Item = Arc<str>>,
    ) -> Self {
        let left = match authority.calls() {
            CountBound::Unlimited => None,
            CountBound::AtMost(calls) => Some(AtomicU64::new(calls)),
        };
        let tools = tools.map(|name| (name, PerTool::default())).collect();
        Self(Arc::new(Inner { registry, minted_in: generation, authority, left, tools }))
    }

    /// What was granted.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.0.authority
    }

    /// How many calls are left; `None` is no bound.
    #[must_use]
    pub fn calls_left(&self) -> Option<u64> {
        self.0.left.as_ref().map(|left| left.load(Ordering::Acquire))
    }

    pub(crate) fn registry(&self) -> u64 {
        self.0.registry
    }

    pub(crate) fn minted_in(&self) -> u64 {
        self.0.minted_in
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&PerTool> {
        self.0.tools.get(name)
    }

    /// Takes one call from the budget, if one is left.
    pub(crate) fn take_call(&self) -> bool {
        let Some(left) = &self.0.left else { return true };
        left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
    }

    /// Puts one call back: it never ran.
    pub(crate) fn return_call(&self) {
        if let Some(left) = &self.0.left {
            left.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl PerTool {
    /// Counts one run, if fewer than `most` were counted.
    pub(crate) fn take_run(&self, most: Option<u64>) -> bool {
        let under = |runs: u64| most.is_none_or(|most| runs < most).then(|| runs.saturating_add(1));
        self.runs.fetch_update(Ordering::AcqRel, Ordering::Acquire, under).is_ok()
    }

    pub(crate) fn return_run(&self) {
        self.runs.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn mark_succeeded(&self) {
        self.succeeded.store(true, Ordering::Release);
    }
}

impl Timeline for Grant {
    fn runs(&self, tool: &str) -> u64 {
        self.tool(tool).map_or(0, |counted| counted.runs.load(Ordering::Acquire))
    }

    fn has_succeeded(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|counted| counted.succeeded.load(Ordering::Acquire))
    }
}
