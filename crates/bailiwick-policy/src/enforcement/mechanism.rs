//! What a target or a sandbox holds a plan with, described as a value: one mechanism for each aspect.
//!
//! A mechanism knows no plan. What it holds of a given plan is [`judge::coverage`](super::judge::coverage)'s answer, so
//! two that have the same mechanism cannot report different levels.

use super::Held;
use crate::limits::Limit;

/// The words for a mechanism: how it works, and what it always leaves open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words {
    /// How it works, one line for people.
    pub how: &'static str,
    /// What can be done beyond what was declared, whatever the plan says.
    pub wider: &'static [&'static str],
}

impl Words {
    /// A mechanism that holds just what was declared.
    #[must_use]
    pub const fn exact(how: &'static str) -> Self {
        Self { how, wider: &[] }
    }

    /// A mechanism that lets more be done than was declared.
    #[must_use]
    pub const fn superset(how: &'static str, wider: &'static [&'static str]) -> Self {
        Self { how, wider }
    }

    /// Held by the kernel.
    pub(super) fn kernel(self) -> Held {
        self.widened(Held::kernel(self.how))
    }

    /// Held by a supervisor outside.
    pub(super) fn mediated(self) -> Held {
        self.widened(Held::mediated(self.how))
    }

    fn widened(self, held: Held) -> Held {
        self.wider.iter().fold(held, Held::superset)
    }
}

/// What holds files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileMechanism {
    /// Whole trees are mounted read-only or writable in a root of its own.
    Mounts(Words),
    /// A root of its own with rules on top: our native sandbox.
    Layered {
        /// What of it this host has.
        has: Layers,
    },
    /// Landlock's rules by tree, on the host's own root.
    TreeRules(Words),
    /// Landlock's rules for what was found at the plan's paths, on the host's own root.
    FoundRules {
        /// Which Landlock it is.
        how: String,
        /// What it leaves open.
        wider: Vec<&'static str>,
    },
    /// The kernel compares every path with the plan's patterns.
    PathRules(Words),
    /// Nothing.
    Nothing(&'static str),
}

/// What the native sandbox has besides mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// Landlock's rules are in force, or a mount alone allows no more than any grant does.
    pub narrows: bool,
    /// Names that run code later are decided by name.
    pub guards_names: bool,
}

/// What holds the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkMechanism {
    /// A network namespace with nothing in it: nothing can be reached, whatever is declared.
    Empty {
        /// What it leaves open.
        wider: &'static [&'static str],
        /// What it leaves open besides where a local service is declared.
        wider_with_services: &'static [&'static str],
    },
    /// The kernel leaves no way out; where hosts are declared, one that a supervisor decides.
    Supervised {
        /// Without any declared host.
        none: Words,
        /// With declared hosts.
        some: Words,
        /// What the supervisor does not read, if it lets more be said than was declared: rules for raw connections
        /// need no reading.
        unread: Option<&'static str>,
    },
    /// A cluster's plugin enforces policies on addresses, if it does.
    Policies {
        /// How.
        words: Words,
        /// What it does not check where hosts are declared.
        unchecked: &'static str,
        /// What a rule that opens private addresses opens for names.
        private_names: &'static str,
    },
    /// The kernel refuses every socket; no host can be let through.
    Closed(Words),
    /// Nothing.
    Nothing(&'static str),
}

/// What holds which programs may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramMechanism {
    /// The kernel refuses programs that are not granted.
    Listed(Words),
    /// Every program that is visible can be started.
    Visible,
    /// Nothing.
    Nothing(&'static str),
}

/// What holds the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentMechanism {
    /// A new process gets the declared variables.
    Fresh {
        /// How.
        words: Words,
        /// Whether a grant of all variables passes all of the caller's on.
        passes_all: bool,
    },
    /// The same, by a sandbox whose supervisor puts brokered secrets into requests: our native one.
    Brokered {
        /// How variables are held.
        words: Words,
        /// How, where a secret is brokered.
        brokers: Words,
    },
    /// The process has a copy of its own, if its code is honest.
    Advisory(&'static str),
    /// Nothing.
    Nothing(&'static str),
}

/// What holds local services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceMechanism {
    /// What is visible can be connected to.
    Visible(Words),
    /// Without a declared service no socket can be made that reaches one.
    Filtered {
        /// Without a declared service.
        none: Words,
        /// What can be reached besides where a directory is granted.
        wider_with_files: &'static [&'static str],
        /// With one.
        some: DeclaredServices,
    },
    /// A process of the sandbox refuses every socket; no service is declared.
    Asked(Words),
    /// The kernel compares names and paths of services with the plan.
    ByName(Words),
    /// Nothing.
    Nothing(&'static str),
}

/// What holds local services that are declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeclaredServices {
    /// A supervisor is asked for each connection.
    Supervised(Words),
    /// What is visible can be connected to.
    Visible(Words),
    /// They cannot be let through.
    Nothing(&'static str),
}

/// What keeps other processes out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessMechanism {
    /// The kernel.
    Kernel {
        /// How.
        words: Words,
        /// How, where a program brings a sandbox of its own.
        nested: Words,
    },
    /// Nothing.
    Nothing(&'static str),
}

/// What holds limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitMechanism {
    /// These, by the kernel.
    Kernel(&'static [Limit], &'static str),
    /// The same; for all but the size of files only where root starts it, as these words say.
    KernelAsRoot(&'static [Limit], &'static str, &'static str),
    /// These by the kernel, and the time by a supervisor.
    Supervised(&'static [Limit], &'static str),
    /// These, if the process is honest; nothing if another one is declared too.
    Advisory(&'static [Limit], &'static str),
    /// Each as it was found on this host.
    Found(Vec<(&'static str, Held)>),
}

/// What a target or a sandbox holds a plan with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mechanism {
    /// Files.
    pub files: FileMechanism,
    /// The network.
    pub network: NetworkMechanism,
    /// Programs.
    pub programs: ProgramMechanism,
    /// Variables.
    pub environment: EnvironmentMechanism,
    /// Local services.
    pub services: ServiceMechanism,
    /// Other processes.
    pub processes: ProcessMechanism,
    /// Limits.
    pub limits: LimitMechanism,
}
