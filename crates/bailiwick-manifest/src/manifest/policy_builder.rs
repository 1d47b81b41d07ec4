//! A tool's policy, written in Rust instead of in a manifest: the same entries, the same findings.

use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Collector, Finding, Findings, Span};

use super::policy::{Risk, Stance, ToolPolicy, host, program, read_path, variable, write_path};
use super::{Declared, symbolic};

type Entry = fn(&str) -> Result<Capability, Finding>;

/// Collects the stances of a [`ToolPolicy`]. What is not said stays unspecified.
#[derive(Debug)]
pub struct ToolPolicyBuilder {
    policy: ToolPolicy,
    found: Collector,
}

impl ToolPolicy {
    /// Starts a policy that says nothing yet.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_manifest::{Risk, ToolPolicy};
    ///
    /// let policy = ToolPolicy::builder().risk(Risk::Medium).read(["/data/**"]).no_network().build()?;
    /// assert_eq!(policy.risk(), Some(Risk::Medium));
    /// assert!(ToolPolicy::builder().read(["data/relative"]).build().is_err());
    /// # Ok::<(), bailiwick_policy::finding::Findings>(())
    /// ```
    #[must_use]
    pub fn builder() -> ToolPolicyBuilder {
        ToolPolicyBuilder { policy: Self::unspecified(), found: Collector::default() }
    }

    /// What the policy lets through: everything on subjects that it leaves open. Path variables stay symbols, so a
    /// path that begins with one covers nothing on a host.
    ///
    /// # Errors
    /// A finding if an entry cannot be resolved.
    pub fn ceiling(&self) -> Result<Authority, Finding> {
        Ok(self.bound(&symbolic)?.as_bound())
    }
}

impl ToolPolicyBuilder {
    /// How risky the tool is.
    #[must_use]
    pub const fn risk(mut self, risk: Risk) -> Self {
        self.policy.risk = Some(risk);
        self
    }

    /// Files that may be read: these and no others; an empty list is none.
    #[must_use]
    pub fn read<'a>(mut self, paths: impl IntoIterator<Item = &'a str>) -> Self {
        self.policy.read = self.stance(paths, read_path);
        self
    }

    /// Files that may be changed: these and no others; an empty list is none.
    #[must_use]
    pub fn write<'a>(mut self, paths: impl IntoIterator<Item = &'a str>) -> Self {
        self.policy.write = self.stance(paths, write_path);
        self
    }

    /// Hosts that may be reached, as `host` or `host:port`: these and no others; an empty list is none.
    #[must_use]
    pub fn network<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> Self {
        self.policy.network = self.stance(hosts, host);
        self
    }

    /// No host may be reached.
    #[must_use]
    pub fn no_network(self) -> Self {
        self.network([])
    }

    /// Variables that may be seen: these and no others; an empty list is none.
    #[must_use]
    pub fn environment<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.policy.environment = self.stance(names, variable);
        self
    }

    /// Programs that may be started: these and no others; an empty list is none.
    #[must_use]
    pub fn exec<'a>(mut self, programs: impl IntoIterator<Item = &'a str>) -> Self {
        self.policy.exec = self.stance(programs, program);
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// A finding for every entry that cannot be read.
    pub fn build(self) -> Result<ToolPolicy, Findings> {
        self.found.finish(self.policy)
    }

    fn stance<'a>(&mut self, entries: impl IntoIterator<Item = &'a str>, read: Entry) -> Stance<Capability> {
        let declared =
            |text: &str| read(text).map(|value| Declared { value, span: Span::new(0, text.len()) });
        let lines: Vec<_> = entries.into_iter().filter_map(|text| self.found.keep(declared(text))).collect();
        if lines.is_empty() { Stance::None } else { Stance::Only(lines) }
    }
}
