//! Authority: the one thing that every dialect denotes. A meet-semilattice with top and bottom.
//!
//! Values only shrink: there is a meet and no join, no setter, and no `Default`. Containment is exact; where it
//! is not decided within a fixed budget it is not contained.

mod axis;
mod brokered;
mod build;
mod explain;
mod lines;
mod names;
mod request;
#[cfg(test)]
mod tests;
mod within;

pub use axis::Axis;
pub use brokered::Brokered;
pub use build::Parts;
pub use explain::Explanation;
pub(crate) use explain::smallest;
pub use request::{Request, Spawn};
pub use within::Excess;

pub(crate) use lines::patterns;

use crate::capability::{ClockActions, Endpoint, Program};
use crate::lattice::{CountBound, FlagMap, Flags};
use crate::net::{ListenScope, NetScope};
use crate::path::{AbsPath, PathPattern, PathScope};

use self::names::{NamedPrograms, Names};

/// What may be touched, how often, and in which generations.
///
/// # Examples
/// ```
/// use bailiwick_policy::authority::Request;
/// use bailiwick_policy::capability::CapabilitySet;
/// use bailiwick_policy::path::AbsPath;
///
/// let granted = CapabilitySet::new(["fs:read,write:/project"])?;
/// let needed = CapabilitySet::new(["fs:read:/project/src", "exec:spawn:git"])?;
/// let effective = granted.authority().meet(needed.authority());
/// assert!(effective.allows(&Request::Read(AbsPath::new("/project/src/main.rs")?)));
/// assert!(!effective.allows(&Request::Write(AbsPath::new("/project/src/main.rs")?)));
/// assert!(effective.within(granted.authority()).holds(), "a meet never widens");
/// assert!(!needed.authority().within(granted.authority()).holds());
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct Authority {
    read: PathScope,
    /// What may be mapped as code; it may be read too.
    code: PathScope,
    write: PathScope,
    create: PathScope,
    delete: PathScope,
    net: NetScope,
    listen: ListenScope,
    exec: FlagMap<Program>,
    env: FlagMap<Box<str>>,
    brokered: Brokered,
    ipc: FlagMap<Endpoint>,
    clock: Flags,
    calls: CountBound,
    generations: FlagMap<u64>,
    names: Names,
    programs: NamedPrograms,
}

/// What a program may be started as.
pub(crate) mod exec_flags {
    use crate::lattice::Flags;
    pub(crate) const SPAWN: Flags = Flags::bits(1);
    pub(crate) const NESTED: Flags = Flags::bits(2);
    pub(crate) const FROM_WRITABLE: Flags = Flags::bits(4);
    pub(crate) const ALL: Flags = Flags::bits(7);
}

/// What may be done with a variable. Injecting one that loads code is a permission of its own.
pub(crate) mod env_flags {
    use crate::lattice::Flags;
    pub(crate) const READ: Flags = Flags::bits(1);
    pub(crate) const INJECT: Flags = Flags::bits(2);
    pub(crate) const INJECT_LOADER: Flags = Flags::bits(4);
    pub(crate) const ALL: Flags = Flags::bits(7);
}

/// The permission of axes that have just one.
pub const ALLOWED: Flags = Flags::bits(1);

/// The clock's permissions as flags.
pub(crate) fn clock_flags(actions: ClockActions) -> Flags {
    let system = if actions.contains(ClockActions::SYSTEM) { 1 } else { 0 };
    let tzdata = if actions.contains(ClockActions::TZDATA) { 2 } else { 0 };
    Flags::bits(system | tzdata)
}

impl Authority {
    /// Everything. Only for the outermost boundary: meet it with what is needed.
    #[must_use]
    pub fn top() -> Self {
        Self {
            read: PathScope::Any,
            code: PathScope::Any,
            write: PathScope::Any,
            create: PathScope::Any,
            delete: PathScope::Any,
            net: NetScope::Any,
            listen: ListenScope::Any,
            exec: FlagMap::uniform(exec_flags::ALL),
            env: FlagMap::uniform(env_flags::ALL),
            brokered: Brokered::default(),
            ipc: FlagMap::uniform(ALLOWED),
            clock: Flags::bits(3),
            calls: CountBound::Unlimited,
            generations: FlagMap::uniform(ALLOWED),
            names: Names::Any,
            programs: NamedPrograms::default(),
        }
    }

    /// Nothing, not even one call.
    #[must_use]
    pub fn bottom() -> Self {
        Self {
            read: PathScope::None,
            code: PathScope::None,
            write: PathScope::None,
            create: PathScope::None,
            delete: PathScope::None,
            net: NetScope::None,
            listen: ListenScope::none(),
            exec: FlagMap::uniform(Flags::NONE),
            env: FlagMap::uniform(Flags::NONE),
            brokered: Brokered::default(),
            ipc: FlagMap::uniform(Flags::NONE),
            clock: Flags::NONE,
            calls: CountBound::AtMost(0),
            generations: FlagMap::uniform(Flags::NONE),
            names: Names::Any,
            programs: NamedPrograms::default(),
        }
    }

    /// What both allow, exactly.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            read: self.read.meet(&other.read),
            code: self.code.meet(&other.code),
            write: self.write.meet(&other.write),
            create: self.create.meet(&other.create),
            delete: self.delete.meet(&other.delete),
            net: self.net.meet(&other.net),
            listen: self.listen.meet(&other.listen),
            exec: self.exec.meet(&other.exec),
            env: self.env.meet(&other.env),
            brokered: self.brokered.meet(|name| self.gives(name), &other.brokered, |name| other.gives(name)),
            ipc: self.ipc.meet(&other.ipc),
            clock: self.clock.intersection(other.clock),
            calls: self.calls.meet(other.calls),
            generations: self.generations.meet(&other.generations),
            names: self.names.meet(&other.names),
            programs: self.programs.join(&other.programs),
        }
    }

    /// The same as a bound on what others grant: it says nothing of names.
    #[must_use]
    pub fn as_bound(self) -> Self {
        Self { names: Names::Any, ..self }
    }

    /// The paths that were granted for changing by name, also those that lie within another one's tree. A file that
    /// runs code later is open only where it is or lies below one of them.
    pub fn named(&self) -> impl Iterator<Item = &AbsPath> {
        self.names.paths().filter(|path| self.opens(path))
    }

    /// Whether anything may be made at a path or below it.
    fn opens(&self, path: &AbsPath) -> bool {
        let within = |pattern: &PathPattern| pattern.base().is_within(path);
        self.create.covers(path)
            || self.create.covers(&AbsPath::from_key(format!("{}\0x", path.key())))
            || patterns(&self.create).is_none_or(|patterns| patterns.iter().any(within))
    }

    /// The same authority for at most this many calls.
    #[must_use]
    pub fn at_most(&self, calls: u64) -> Self {
        Self { calls: self.calls.meet(CountBound::AtMost(calls)), ..self.clone() }
    }

    /// Whether the request is allowed.
    #[must_use]
    pub fn allows(&self, request: &Request) -> bool {
        match request {
            Request::Read(path) => self.read.covers(path),
            Request::MapCode(path) => self.code.covers(path),
            Request::Write(path) => self.write.covers(path),
            Request::Create(path) => self.create.covers(path),
            Request::Delete(path) => self.delete.covers(path),
            Request::Net(request) => self.net.allows(request),
            Request::Listen(listen) => self.listen.allows(*listen),
            Request::Spawn(spawn) => self.exec.flags_for(&spawn.program).contains(spawn.flags()),
            Request::ReadEnv(name) => self.env.flags_for(name).contains(env_flags::READ),
            Request::InjectEnv(name) => self.gives(name),
            Request::BrokerEnv { name, host } => self.gives(name) || self.brokered.allows(name, host),
            Request::Ipc(endpoint) => self.ipc.flags_for(endpoint).contains(ALLOWED),
            Request::Clock(actions) => self.clock.contains(clock_flags(*actions)),
        }
    }

    /// Whether a variable may be given whole.
    fn gives(&self, name: &str) -> bool {
        self.env.flags_for(&Box::from(name)).contains(request::inject_flag(name))
    }

    /// Whether the authority is good in this generation.
    #[must_use]
    pub fn allows_generation(&self, generation: u64) -> bool {
        self.generations.flags_for(&generation).contains(ALLOWED)
    }

    /// How many calls it is good for.
    #[must_use]
    pub const fn calls(&self) -> CountBound {
        self.calls
    }

    /// The paths that may be read.
    #[must_use]
    pub const fn read(&self) -> &PathScope {
        &self.read
    }

    /// The paths that may be mapped as code.
    #[must_use]
    pub const fn code(&self) -> &PathScope {
        &self.code
    }

    /// The programs that a line names and that may be started, also where every program may be: a sandbox shows them
    /// wherever they lie.
    pub(crate) fn named_programs(&self) -> impl Iterator<Item = (&Program, Flags)> {
        let flags = |program| (program, self.exec.flags_for(program));
        self.programs.iter().map(flags).filter(|(_, flags)| flags.contains(exec_flags::SPAWN))
    }

    /// The paths that may be changed.
    #[must_use]
    pub const fn write(&self) -> &PathScope {
        &self.write
    }

    /// The paths that may be created.
    #[must_use]
    pub const fn create(&self) -> &PathScope {
        &self.create
    }

    /// The paths that may be deleted.
    #[must_use]
    pub const fn delete(&self) -> &PathScope {
        &self.delete
    }

    /// The network requests that may be made.
    #[must_use]
    pub const fn net(&self) -> &NetScope {
        &self.net
    }

    pub(crate) const fn listen(&self) -> &ListenScope {
        &self.listen
    }

    pub(crate) const fn exec(&self) -> &FlagMap<Program> {
        &self.exec
    }

    pub(crate) const fn env(&self) -> &FlagMap<Box<str>> {
        &self.env
    }

    /// The variables that are used at some hosts only.
    #[must_use]
    pub const fn brokered(&self) -> &Brokered {
        &self.brokered
    }

    pub(crate) const fn ipc(&self) -> &FlagMap<Endpoint> {
        &self.ipc
    }
}

/// Semantic: the same requests, calls and generations. Undecided is not equal.
impl PartialEq for Authority {
    fn eq(&self, other: &Self) -> bool {
        self.within(other).holds() && other.within(self).holds()
    }
}
