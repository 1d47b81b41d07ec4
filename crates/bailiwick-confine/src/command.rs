//! What to run: a program, its arguments, where, with which values and which descriptors.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use bailiwick_policy::capability::Endpoint;
use bailiwick_policy::enforcement::Floor;

/// A program and how it is started.
#[derive(Debug)]
pub struct Command {
    /// Its name or path. A name is looked for where [`Search`] says, then in the system's program directories.
    pub program: OsString,
    /// Its arguments, without itself.
    pub args: Vec<OsString>,
    /// Where it starts; `/` if that is not visible inside.
    pub cwd: Option<PathBuf>,
    /// Values of variables. Only names that the plan injects or lets be read are passed on.
    pub env: BTreeMap<OsString, OsString>,
    /// Its descriptors 0 to 2.
    pub stdio: Stdio,
}

impl Command {
    /// A program without arguments, on the caller's own descriptors.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            stdio: Stdio::Inherit,
        }
    }
}

/// What a program has as descriptors 0 to 2. It has no others.
#[derive(Debug)]
pub enum Stdio {
    /// The caller's own.
    Inherit,
    /// These.
    Descriptors {
        /// 0
        stdin: OwnedFd,
        /// 1
        stdout: OwnedFd,
        /// 2
        stderr: OwnedFd,
    },
    /// A terminal of the sandbox's own, whose other end is [`Confined::terminal`](crate::Confined::terminal).
    Terminal,
}

/// What the caller demands besides the plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What must be held at least; the plan's own floor if absent.
    pub floor: Option<Floor>,
    /// The caller's home, whose start files stay closed wherever it is granted.
    pub home: Option<PathBuf>,
    /// Where this host has the sockets of local services.
    pub services: Vec<(Endpoint, PathBuf)>,
    /// What is looked at, for [`Confined::observations`](crate::Confined::observations). The native sandbox alone can.
    pub watch: Watch,
    /// Which refusals are told of that the system-call filter makes alone otherwise.
    pub told_refusals: ToldRefusals,
    /// Where programs are looked for besides the system's directories.
    pub search: Search,
    /// Whether what is written in the sandbox's own directories is counted at the end.
    pub counts_lost: bool,
    /// Whether what is written to directories of the host goes to a copy-on-write layer, for
    /// [`Confined::take_layer`](crate::Confined::take_layer). Nothing of the host changes then.
    pub layered: bool,
    /// What stands inside for brokered secrets. The native sandbox alone can.
    pub brokered: BrokeredInside,
    /// Files and directories that are code of the command, besides what its program brings: it can read them, and cannot write
    /// them in a writable tree that they lie in.
    pub code: Vec<PathBuf>,
    /// What else of its own it can read; where it lies in a granted tree, it is what that makes of it.
    pub data: Vec<PathBuf>,
}

/// What stands inside for secrets that are kept outside: nothing of it is secret.
#[derive(Debug, Clone, Default)]
pub struct BrokeredInside {
    /// Placeholders, by the variables that have them. Only variables that the plan brokers are set.
    pub placeholders: BTreeMap<OsString, OsString>,
    /// Files with these contents, in place of what the host has there.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// What of a program is looked at, to name what it was refused. Nothing is decided by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watch {
    /// Nothing.
    #[default]
    Nothing,
    /// Programs that it starts, ports that it listens on, names that run code later. Costs nothing but there.
    Programs,
    /// Every file that it looks for, too. Each open and each stat takes some microseconds more.
    Files,
    /// Everything that it touches, refused or not, for [`Confined::take_accesses`](crate::Confined::take_accesses). Where
    /// the kernel has no notification the sandbox does not start.
    Everything,
}

/// Refusals that are told of, where something is looked at. The sandbox's first process then refuses these calls, not the filter;
/// nothing else takes longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToldRefusals {
    /// None.
    #[default]
    None,
    /// Of Unix sockets, where none is granted.
    Sockets,
    /// Of namespaces too, which programs with a sandbox of their own ask for.
    SocketsAndNamespaces,
}

/// Where programs are looked for by name, before the system's program directories.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The directories of the caller's `PATH`: for the command itself and what it is started by. The caller chose it.
    pub callers: Vec<PathBuf>,
    /// Directories for the names in a plan, from the user's settings. A tool has no say in them.
    pub named: Vec<PathBuf>,
    /// The caller's variables that choose a version of a tool, see [`CHOOSING_VARIABLES`](crate::CHOOSING_VARIABLES).
    pub variables: BTreeMap<OsString, OsString>,
}
