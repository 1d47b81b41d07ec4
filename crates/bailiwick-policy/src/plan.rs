//! Plans: what a sandbox must hold, merged from the lines of a manifest, a grant or a call, with their origins.
//!
//! A plan is made from an [`Authority`] and from nothing else, so it never says more than the authority does.
//! Targets and sandboxes read plans; none of them sees a dialect.

mod base;
mod build;
mod explain;
mod files;
mod ports;
#[cfg(test)]
mod tests;

pub use base::{BASE, BaseEntry, BaseKind, MASKED, PROGRAM_DIRECTORIES, STUBS};
pub use explain::Explained;
pub use files::{FileGrant, Mount};
pub use ports::Ports;

use std::collections::BTreeMap;

use crate::authority::Authority;
use crate::capability::{BrokerHost, Capability, ClockActions, Endpoint, Program};
use crate::enforcement::{Aspect, Floor, Level, Requirement};
use crate::facts::{HostFacts, PathKind};
use crate::finding::{Finding, Span};
use crate::limits::Limits;
use crate::net::{HostPattern, Listen, NetRule};
use crate::path::AbsPath;
use crate::secret_use::SecretUse;

/// What a sandbox must hold.
///
/// # Examples
/// ```
/// use bailiwick_policy::capability::CapabilitySet;
/// use bailiwick_policy::facts::HostFacts;
/// use bailiwick_policy::plan::Plan;
///
/// let granted = CapabilitySet::new(["fs:read:/data", "fs:read,write:/out"])?;
/// let plan = Plan::for_authority("report", granted.authority(), &HostFacts::unknown())?;
/// let writable: Vec<_> = plan.files().iter().filter(|file| file.writable()).map(|file| file.path().to_string()).collect();
/// assert_eq!(writable, ["/out"]);
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    subject: Subject,
    command: Option<(String, Vec<String>)>,
    files: Vec<FileGrant>,
    network: Network,
    listens: Vec<Sourced<Listen>>,
    exec: Exec,
    environment: Environment,
    ipc: Ipc,
    clock: Option<ClockActions>,
    limits: Limits,
    assertions: Vec<Sourced<Assertion>>,
    protected: Vec<AbsPath>,
    locked: Vec<AbsPath>,
    /// What the host has, where it was asked.
    places: BTreeMap<AbsPath, PathKind>,
    lines: Vec<PlanLine>,
    named: Vec<AbsPath>,
}

/// Whose plan it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The server's or agent's name, or the command's.
    pub name: String,
    /// The manifest's version.
    pub version: Option<String>,
    /// The one tool it is for; `None` is the whole server.
    pub tool: Option<String>,
}

/// A value and the lines it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    origins: Vec<usize>,
}

/// What a plan is made from where it is written line by line.
#[derive(Debug, Clone)]
pub struct PlanSource<'a> {
    /// Whose plan it is.
    pub subject: Subject,
    /// What is allowed.
    pub authority: &'a Authority,
    /// The lines that are granted whole.
    pub lines: Vec<PlanLine>,
    /// The command that starts the server, and its arguments.
    pub command: Option<(String, Vec<String>)>,
    /// Resource limits.
    pub limits: Limits,
    /// Variables with fixed values; one counts only if it may be set.
    pub variables: &'a BTreeMap<String, String>,
    /// How brokered secrets are used.
    pub secrets: &'a BTreeMap<String, SecretUse>,
}

/// A line that counts for a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    /// The tool it belongs to; `None` is the server as a whole.
    pub tool: Option<String>,
    /// What it grants on this host.
    pub capability: Capability,
    /// Where it stands.
    pub span: Span,
}

/// The line that allows something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The tool it belongs to; `None` is the server as a whole.
    pub tool: Option<String>,
    /// The line, in canonical form.
    pub capability: String,
    /// Where it stands.
    pub span: Span,
}

/// Whom the network may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// No host.
    None,
    /// Whom these rules name; never empty.
    Allow(Vec<Sourced<NetRule>>),
    /// Every name and port; answers with private addresses are still refused.
    Any,
}

/// Which programs may be started, besides the one that is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exec {
    /// Every program, and how.
    pub any: Option<Spawning>,
    /// These programs.
    pub programs: Vec<Sourced<ProgramGrant>>,
}

/// One program that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramGrant {
    /// Which.
    pub program: Program,
    /// How.
    pub spawning: Spawning,
}

/// How a program may be started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spawning {
    /// It brings a sandbox of its own, for which it needs namespaces.
    pub nested_sandbox: bool,
    /// It may lie in a directory that the sandbox can write.
    pub from_writable: bool,
}

/// Which variables are visible. Everything else is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Set to these values.
    pub fixed: BTreeMap<String, String>,
    /// Set by the host when the process starts, secrets among them; the plan never has their values.
    pub injected: Vec<Sourced<Box<str>>>,
    /// Secrets whose values are put into requests outside; the program has placeholders.
    pub brokered: Vec<Sourced<BrokeredSecret>>,
    /// Taken from the caller's environment as they are.
    pub read: Vec<Sourced<Box<str>>>,
    /// Every variable of the caller is visible.
    pub read_all: bool,
}

/// A secret that the program uses and never has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokeredSecret {
    /// The variable that holds the placeholder.
    pub name: Box<str>,
    /// Where the value is used.
    pub hosts: Vec<BrokerHost>,
    /// How it is used there.
    pub usage: SecretUse,
}

/// Which local services may be talked to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ipc {
    /// All of them.
    pub any: bool,
    /// These.
    pub endpoints: Vec<Sourced<Endpoint>>,
}

/// A promise that no sandbox holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Its id.
    pub id: Box<str>,
    /// What is promised.
    pub description: Option<Box<str>>,
}

impl Plan {
    /// The plan for what was written: it knows the lines that each of its values comes from.
    ///
    /// # Errors
    /// A finding if no list of rules says what is allowed.
    pub fn for_source(source: PlanSource<'_>, facts: &HostFacts) -> Result<Self, Finding> {
        build::of_source(source, facts)
    }

    /// The plan for an authority from anywhere: a grant, or the meet that a call runs under.
    ///
    /// # Errors
    /// A finding if no list of rules says what is allowed.
    pub fn for_authority(name: &str, authority: &Authority, facts: &HostFacts) -> Result<Self, Finding> {
        build::of_authority(name, authority, facts)
    }

    /// The same plan on a host of which more is known: where its paths lie, what is never visible or writable.
    #[must_use]
    pub fn located(mut self, facts: &HostFacts) -> Self {
        for grant in &mut self.files {
            (grant.source, grant.place) = facts.located(&grant.path());
        }
        self.protected = facts.protected().to_vec();
        self.locked = facts.locked().to_vec();
        self.places = facts.places().map(|(path, place)| (path.clone(), place)).collect();
        self
    }

    /// The same plan with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same plan, where these variables are set besides; one that is granted keeps the host's value.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.environment.fixed.extend(variables);
        self
    }

    /// The same plan, where brokered secrets are used so; one that is not named is used as if its manifest said nothing of it.
    #[must_use]
    pub fn with_secret_uses(mut self, uses: &BTreeMap<String, SecretUse>) -> Self {
        for secret in &mut self.environment.brokered {
            secret.value.usage = uses.get(&*secret.value.name).cloned().unwrap_or_default();
        }
        self
    }

    /// Whose plan it is.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The command that starts the server, if the manifest has one.
    #[must_use]
    pub fn command(&self) -> Option<(&str, &[String])> {
        self.command.as_ref().map(|(command, args)| (&**command, &**args))
    }

    /// What may be done to which files: merged, outer before inner, none within another that allows as much.
    #[must_use]
    pub fn files(&self) -> &[FileGrant] {
        &self.files
    }

    /// The same for targets that can only mount whole trees, see [`Mount`].
    #[must_use]
    pub fn mounts(&self) -> Vec<Mount> {
        files::mounts(&self.files)
    }

    /// The paths that were granted for changing by name, see [`Authority::named`].
    #[must_use]
    pub fn named(&self) -> &[AbsPath] {
        &self.named
    }

    /// The places that every sandbox shows, without those that the host is known not to have.
    pub fn base(&self) -> impl Iterator<Item = &'static BaseEntry> {
        BASE.iter().filter(|entry| self.place(entry.path) != Some(PathKind::Missing))
    }

    /// What the host has at a path, if it was asked.
    #[must_use]
    pub fn place(&self, path: &str) -> Option<PathKind> {
        if self.places.is_empty() {
            return None;
        }
        self.places.get(&AbsPath::new(path).ok()?).copied()
    }

    /// Whom the network may reach.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// The ports on which connections come in from outside. Only what a line names: no plan opens every port.
    #[must_use]
    pub fn listens(&self) -> &[Sourced<Listen>] {
        &self.listens
    }

    /// Which programs may be started.
    #[must_use]
    pub const fn exec(&self) -> &Exec {
        &self.exec
    }

    /// Which variables are visible.
    #[must_use]
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Which local services may be talked to.
    #[must_use]
    pub const fn ipc(&self) -> &Ipc {
        &self.ipc
    }

    /// What may be known of the clock.
    #[must_use]
    pub const fn clock(&self) -> Option<ClockActions> {
        self.clock
    }

    /// Resource limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Promises that no sandbox holds.
    #[must_use]
    pub fn assertions(&self) -> &[Sourced<Assertion>] {
        &self.assertions
    }

    /// Paths that are never visible, whatever is granted: the product's own policy, keys and journal.
    #[must_use]
    pub fn protected(&self) -> &[AbsPath] {
        &self.protected
    }

    /// Paths that can be read where they are granted and never changed: the manifest or grant that this plan comes
    /// from, the report of the run.
    #[must_use]
    pub fn locked(&self) -> &[AbsPath] {
        &self.locked
    }

    /// Whether a program that may be started brings a sandbox of its own.
    #[must_use]
    pub fn nested_sandbox(&self) -> bool {
        self.exec.spawnings().any(|spawning| spawning.nested_sandbox)
    }

    /// Whether a program may be started from a directory that the sandbox can write.
    #[must_use]
    pub fn from_writable(&self) -> bool {
        self.exec.spawnings().any(|spawning| spawning.from_writable)
    }

    /// The lines that a value comes from.
    pub fn origins<'a, T>(&'a self, value: &'a Sourced<T>) -> impl Iterator<Item = Origin> + 'a {
        self.origins_at(&value.origins)
    }

    fn origins_at<'a>(&'a self, at: &'a [usize]) -> impl Iterator<Item = Origin> + 'a {
        at.iter().filter_map(|index| self.lines.get(*index)).map(|line| Origin {
            tool: line.tool.clone(),
            capability: line.capability.to_string(),
            span: line.span,
        })
    }

    /// What is demanded by default: files by the kernel; the network by the kernel if there is
    /// none in either direction, else at least through a supervisor; so the environment where a secret is brokered.
    #[must_use]
    pub fn floor(&self) -> Floor {
        let closed = self.network == Network::None && self.listens.is_empty();
        let network = if closed { Level::Kernel } else { Level::Mediated };
        let floor = Floor::none()
            .with(Requirement::level(Aspect::Files, Level::Kernel))
            .with(Requirement::level(Aspect::Network, network));
        if self.environment.brokered.is_empty() {
            return floor;
        }
        floor.with(Requirement::level(Aspect::Environment, Level::Mediated))
    }
}

impl std::fmt::Display for BrokeredSecret {
    /// The capability that grants it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts = self.hosts.iter().cloned().collect();
        write!(f, "{}", Capability::Broker { name: self.name.clone(), hosts })
    }
}

impl std::fmt::Display for ProgramGrant {
    /// The capability that grants it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spawning { nested_sandbox, from_writable } = self.spawning;
        let program = Some(self.program.clone());
        write!(f, "{}", Capability::Exec { program, nested_sandbox, from_writable })
    }
}

impl Ipc {
    /// Whether the program may make Unix sockets in the sandbox's private directories and connect to them.
    #[must_use]
    pub fn has_private(&self) -> bool {
        self.any || self.endpoints.iter().any(|endpoint| endpoint.value == Endpoint::Private)
    }
}

impl Exec {
    /// Whether nothing may be started.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.any.is_none() && self.programs.is_empty()
    }

    fn spawnings(&self) -> impl Iterator<Item = Spawning> {
        self.any.into_iter().chain(self.programs.iter().map(|program| program.value.spawning))
    }
}

impl Network {
    /// The rules; empty for `None` and for `Any`.
    #[must_use]
    pub fn rules(&self) -> &[Sourced<NetRule>] {
        if let Self::Allow(rules) = self { rules } else { &[] }
    }

    /// Whether a rule lets a name resolve to a private address.
    #[must_use]
    pub fn opens_private_names(&self) -> bool {
        let is_name = |rule: &NetRule| matches!(rule.host(), HostPattern::Name(_) | HostPattern::Below(_));
        self.rules().iter().any(|rule| is_name(&rule.value) && rule.value.opens_private())
    }
}
