//! Manifests: one file per server or agent that says what each tool needs.
//!
//! `text → Manifest → Checked`: reading finds what is wrong with the text, checking what is wrong with it on
//! this host. Both are all or nothing; a manifest with a finding grants nothing.

mod authority;
mod ceiling;
mod check;
mod client;
mod hidden;
mod limits;
mod package;
mod plan;
mod policy;
mod policy_builder;
mod read;
mod render;
mod rules;
mod schema;
mod secrets;
mod state;
#[cfg(test)]
mod tests;
mod variables;
mod verified;

pub use check::{Checked, CheckedTool, ExplainedRequest};
pub use client::{ClientFeatures, FeatureStance};
pub use package::Package;
pub use policy::{Risk, Stance, ToolPolicy};
pub use policy_builder::ToolPolicyBuilder;
pub use rules::{ArgumentRule, ArgumentTest, Condition, NumberRange, RuleEffect};
pub use schema::SCHEMA;
pub use state::ToolState;
pub use variables::{BoundValues, Variable, VariableSource};
pub use verified::Verified;

pub(crate) use authority::{named_for_writing, symbolic};
pub(crate) use read::read_node;

use std::collections::BTreeMap;

use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Findings, Span};
use bailiwick_policy::limits::Limits;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::secret_use::SecretUse;

/// The most tools one manifest may declare.
pub const MAX_TOOLS: usize = 10_000;
/// The most capabilities one manifest may declare.
pub const MAX_CAPABILITIES: usize = 200_000;

/// The most lines that may count for all tools together; those of the server count for each of its tools.
pub const MAX_LINES_OF_TOOLS: usize = 2_000_000;

/// A manifest as written, every line of it understood.
///
/// # Examples
/// ```
/// use bailiwick_manifest::Manifest;
///
/// let manifest = Manifest::parse(
///     "name = 'notes'\nversion = '1'\n[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/notes/**']\n",
/// )?;
/// assert_eq!(manifest.tools()[0].name(), "read");
/// let wrong = Manifest::parse("name = 'notes'\nversion = '1'\nserver_capabilities = ['fs:raed:/notes']\n");
/// assert!(wrong.unwrap_err().to_string().contains("raed"), "a finding says where and how to write it");
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) server: Vec<Declared<Capability>>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) limits: Limits,
    pub(crate) pins: Pins,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) package: Option<Package>,
    pub(crate) verified: Option<Verified>,
    pub(crate) client: ClientFeatures,
    pub(crate) secrets: BTreeMap<String, SecretUse>,
}

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared<T> {
    /// What was declared.
    pub value: T,
    /// Where.
    pub span: Span,
}

/// What one tool needs, and when it may run.
#[derive(Debug, Clone)]
pub struct Tool {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) description: Option<String>,
    /// `None` if the tool says what it needs by its policy alone.
    pub(crate) capabilities: Option<Vec<Declared<Capability>>>,
    pub(crate) policy: Option<ToolPolicy>,
    pub(crate) arguments: BTreeMap<String, ArgumentAccess>,
    pub(crate) constraints: Constraints,
    pub(crate) rules: Vec<ArgumentRule>,
    /// Where the entries of `only_after` stand, in their order.
    pub(crate) after: Vec<Span>,
    pub(crate) risk: Option<Risk>,
    pub(crate) state: Option<ToolState>,
}

/// What an argument of a tool is, where its name does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentAccess {
    /// A path that the tool reads.
    Read,
    /// A path that the tool changes.
    Write,
    /// A path, read or changed.
    Path,
    /// A host or a URL that the tool reaches.
    Host,
    /// Neither a path on this machine nor a host that the tool reaches.
    Text,
}

impl ArgumentAccess {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("path", Self::Path),
        ("host", Self::Host),
        ("text", Self::Text),
    ];
}

/// When and how often a tool may run in one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Constraints {
    /// At most this many times.
    pub max_invocations: Option<u64>,
    /// Only after all of these have succeeded.
    pub only_after: Vec<String>,
    /// Never.
    pub forbidden: bool,
    /// Only with a person's consent, each time.
    pub confirm: bool,
    /// Each call spends of a budget that machines of a fleet share.
    pub fleet_budget: Option<FleetBudget>,
}

/// What each call of a tool spends of a budget of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetBudget {
    /// The budget's name at the hub.
    pub name: String,
    /// What it counts.
    pub unit: SpendUnit,
    /// How much one call spends.
    pub each: u64,
}

/// What a budget of the fleet counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpendUnit {
    /// Calls.
    Calls,
    /// Seconds of running.
    Seconds,
    /// The smallest unit of a currency.
    Money,
}

impl SpendUnit {
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("calls", Self::Calls), ("seconds", Self::Seconds), ("money", Self::Money)];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, unit)| *unit == self).map_or("calls", |(word, _)| word)
    }
}

/// Hashes that tool definitions, server instructions and files must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Of the server's instructions.
    pub instructions: Option<String>,
    /// Of the set of tools.
    pub set: Option<String>,
    /// Of each tool's definition.
    pub tools: BTreeMap<String, String>,
    /// Of programs and libraries of the host, by their path.
    pub files: BTreeMap<AbsPath, String>,
}

impl Manifest {
    /// Reads a manifest, TOML or JSON.
    ///
    /// # Errors
    /// Everything that is wrong with the text, in its order.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        read_node(&crate::document::parse(text)?)
    }

    /// The same manifest where the server as a whole is granted these too, as a person says on a command line.
    #[must_use]
    pub fn with_capabilities(mut self, more: impl IntoIterator<Item = Capability>) -> Self {
        let declared = more.into_iter().map(|value| Declared { value, span: Span::new(0, 0) });
        self.server.extend(declared);
        self
    }

    /// The server's or agent's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version, as written.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The command that starts the server, and its arguments.
    #[must_use]
    pub fn command(&self) -> Option<(&str, &[String])> {
        self.command.as_deref().map(|command| (command, &*self.args))
    }

    /// Environment variables with fixed values.
    #[must_use]
    pub const fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// What the server needs whichever tool runs.
    #[must_use]
    pub fn server_capabilities(&self) -> &[Declared<Capability>] {
        &self.server
    }

    /// The tools, as written.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Resource limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Which server it is for, if it says so.
    #[must_use]
    pub const fn package(&self) -> Option<&Package> {
        self.package.as_ref()
    }

    /// What a tool keeps in the server's process: what it says, else what its package does; nothing if neither says it.
    #[must_use]
    pub fn state_of(&self, tool: &Tool) -> Option<ToolState> {
        let is_stateless = self.package.as_ref().is_some_and(|package| package.stateless);
        tool.state.or_else(|| is_stateless.then_some(ToolState::None))
    }

    /// The same manifest; where it does not say what a tool keeps, the other's word for that tool counts.
    #[must_use]
    pub fn with_states_of(mut self, other: &Self) -> Self {
        for tool in &mut self.tools {
            let said = other.tools.iter().find(|said| said.name == tool.name);
            tool.state = tool.state.or_else(|| said.and_then(|said| other.state_of(said)));
        }
        self
    }

    /// The same manifest with these tools alone.
    #[must_use]
    pub fn with_tools(mut self, keeps: impl Fn(&Tool) -> bool) -> Self {
        self.tools.retain(keeps);
        self
    }

    /// What a replay says of it.
    #[must_use]
    pub const fn verified(&self) -> Option<&Verified> {
        self.verified.as_ref()
    }

    /// What the server may ask its client for.
    #[must_use]
    pub const fn client(&self) -> ClientFeatures {
        self.client
    }

    /// How brokered secrets are used.
    #[must_use]
    pub const fn secrets(&self) -> &BTreeMap<String, SecretUse> {
        &self.secrets
    }

    /// Pinned hashes.
    #[must_use]
    pub const fn pins(&self) -> &Pins {
        &self.pins
    }
}

impl Tool {
    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its name stands.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// What it needs; `None` if its policy alone says so.
    #[must_use]
    pub fn capabilities(&self) -> Option<&[Declared<Capability>]> {
        self.capabilities.as_deref()
    }

    /// Its policy.
    #[must_use]
    pub const fn policy(&self) -> Option<&ToolPolicy> {
        self.policy.as_ref()
    }

    /// What its arguments are, where that is declared.
    #[must_use]
    pub const fn arguments(&self) -> &BTreeMap<String, ArgumentAccess> {
        &self.arguments
    }

    /// Whether the tool says anything about files, so that paths in its arguments can be judged.
    #[must_use]
    pub fn has_file_stance(&self) -> bool {
        let held = self.policy.iter().filter(|policy| policy.is_enforced());
        let stances = held.flat_map(|policy| [policy.read(), policy.write()]);
        let by_policy = stances.into_iter().any(|stance| !stance.is_unspecified());
        by_policy || self.lines().any(|line| matches!(line.value, Capability::Fs { .. }))
    }

    /// Whether the tool itself says anything about the network, so that hosts in its arguments can be judged. What the
    /// server is granted as a whole counts for nothing here: it may be an address that arguments have nothing to do with.
    #[must_use]
    pub fn has_network_stance(&self) -> bool {
        let mut held = self.policy.iter().filter(|policy| policy.is_enforced());
        let by_policy = held.any(|policy| !policy.network.is_unspecified());
        // A secret that is put in on the way to a host implies that host.
        let names_host = |line: &Capability| matches!(line, Capability::Net(_)) || line.brokered().is_some();
        by_policy || self.lines().any(|line| names_host(&line.value))
    }

    /// Rules on its arguments, as written.
    #[must_use]
    pub fn rules(&self) -> &[ArgumentRule] {
        &self.rules
    }

    /// When and how often it may run.
    #[must_use]
    pub const fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// How risky it says it is.
    #[must_use]
    pub fn risk(&self) -> Option<Risk> {
        self.risk.or_else(|| self.policy.as_ref().and_then(ToolPolicy::risk))
    }
}
