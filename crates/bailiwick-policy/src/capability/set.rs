//! A set of capabilities that were granted together.

use super::Capability;
use crate::authority::{Authority, Explanation};
use crate::finding::{Finding, Findings};

/// Capabilities granted together. Immutable; the same set always gives the same answer.
///
/// # Examples
/// ```
/// use bailiwick_policy::capability::{Capability, CapabilitySet};
///
/// let set = CapabilitySet::new(["fs:read:*", "network:http:get"])?;
/// assert!(set.has("fs:read:/tmp/file"));
/// assert!(!set.has(&Capability::new("fs:write:/tmp/file")));
/// let why = set.explain("fs:write:/tmp/file")?;
/// assert_eq!(why.smallest_grant(), Some(&Capability::new("fs:write:/tmp/file")?));
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct CapabilitySet {
    capabilities: Vec<Capability>,
    authority: Authority,
}

impl CapabilitySet {
    /// Reads a set. All or nothing: one bad line and there is no set.
    ///
    /// # Errors
    /// The finding of every line that is wrong.
    pub fn new<T>(capabilities: impl IntoIterator<Item = T>) -> Result<Self, Findings>
    where
        T: TryInto<Capability>,
        T::Error: Into<Finding>,
    {
        let mut found = crate::finding::Collector::default();
        let mut read = Vec::new();
        for capability in capabilities {
            read.extend(found.keep(capability.try_into().map_err(Into::into)));
        }
        let authority = found.keep(Authority::from_capabilities(&read)).unwrap_or_else(Authority::bottom);
        found.finish(Self { capabilities: read, authority })
    }

    /// Whether everything `request` asks for is granted. A request that cannot be read is not granted.
    #[must_use]
    pub fn has(&self, request: impl TryInto<Capability>) -> bool {
        let Ok(capability) = request.try_into() else { return false };
        if matches!(capability, Capability::Assert { .. }) {
            return self.capabilities.contains(&capability);
        }
        Authority::from_capabilities(&[capability]).is_ok_and(|asked| asked.within(&self.authority).holds())
    }

    /// Why `request` is granted or not.
    ///
    /// # Errors
    /// A finding if the request cannot be read.
    pub fn explain(&self, request: &str) -> Result<Explanation, Finding> {
        self.authority.explain_capability(&request.parse()?)
    }

    /// The lines, as they were given.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// What the set allows.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }
}

impl From<std::convert::Infallible> for Finding {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
