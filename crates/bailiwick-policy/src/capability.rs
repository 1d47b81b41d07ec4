//! Capabilities: what an author writes, one line each, as `kind:actions:scope[?refinement=value&…]`.
//!
//! Reading is strict and closed: whatever is not known is a finding, never a default. Printing is canonical,
//! and what is printed reads back as the same value.

mod broker;
mod loader;
mod parse;
mod print;
mod set;
mod words;

pub use broker::BrokerHost;
pub use loader::is_loader_variable;
pub use parse::{
    MAX_CAPABILITY, Scribe, check_env_name, parse, parse_endpoint, parse_program, read_behind,
    read_network_entry,
};
pub use set::CapabilitySet;
pub use words::{ClockActions, Endpoint, EnvActions, FsActions, Program, nearest};

pub(crate) use broker::{common_hosts, covers};

use std::collections::BTreeSet;

use crate::finding::{Code, Finding};
use crate::net::{Listen, NetRule};
use crate::path::{AbsPath, PathPattern};

/// One line of what a tool needs or a session grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// `fs:…`
    Fs {
        /// Read, write, create, delete.
        actions: FsActions,
        /// Which paths.
        path: PathPattern,
    },
    /// `net:connect:…`, `net:http:…`, `net:https:…`
    Net(NetRule),
    /// `net:listen:…`
    Listen(Listen),
    /// `exec:spawn:…`
    Exec {
        /// Which program; `None` is every program.
        program: Option<Program>,
        /// The program brings a sandbox of its own.
        nested_sandbox: bool,
        /// The program may lie in a directory that the sandbox can write.
        from_writable: bool,
    },
    /// `env:…`
    Env {
        /// Read, inject.
        actions: EnvActions,
        /// Which variable; `None` is every variable (only for reading, only in grants).
        name: Option<Box<str>>,
    },
    /// `env:inject:…?broker=…`
    Broker {
        /// Which variable.
        name: Box<str>,
        /// Where its value is put into requests; never empty.
        hosts: BTreeSet<BrokerHost>,
    },
    /// `ipc:connect:…`
    Ipc(Endpoint),
    /// `clock:…`
    Clock(ClockActions),
    /// `assert:…`: a promise that no sandbox can hold; kept for people.
    Assert {
        /// A stable id.
        id: Box<str>,
        /// What is promised.
        description: Option<Box<str>>,
    },
}

impl Capability {
    /// Reads a capability as a grant: no path variables, and `env:read:*` is allowed.
    ///
    /// # Errors
    /// The finding that says what is wrong with the text, and how to write it.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_policy::capability::Capability;
    ///
    /// let workspace = Capability::new("fs:write,read:/workspace")?;
    /// assert_eq!(workspace.to_string(), "fs:read,write:/workspace");
    /// assert!(Capability::new("fs:raed:/workspace").is_err());
    /// # Ok::<(), bailiwick_policy::finding::Finding>(())
    /// ```
    pub fn new(text: impl AsRef<str>) -> Result<Self, Finding> {
        parse(text.as_ref(), Scribe::Grant)
    }

    /// Whether the capability has no path variable left.
    #[must_use]
    pub fn is_resolved(&self) -> bool {
        match self {
            Self::Fs { path, .. } => path.is_resolved(),
            Self::Net(_)
            | Self::Listen(_)
            | Self::Exec { .. }
            | Self::Env { .. }
            | Self::Broker { .. }
            | Self::Ipc(_)
            | Self::Clock(_)
            | Self::Assert { .. } => true,
        }
    }

    /// The variable that the capability puts into the environment, if it does.
    #[must_use]
    pub fn injected(&self) -> Option<&str> {
        let Self::Env { actions, name: Some(name) } = self else { return None };
        actions.contains(EnvActions::INJECT).then_some(name)
    }

    /// The variable whose value the capability has put into requests, if it does.
    #[must_use]
    pub fn brokered(&self) -> Option<&str> {
        if let Self::Broker { name, .. } = self { Some(name) } else { None }
    }

    /// The id of the promise that the capability is, if it is one.
    #[must_use]
    pub fn promise(&self) -> Option<&str> {
        if let Self::Assert { id, .. } = self { Some(id) } else { None }
    }

    /// Replaces a path variable by its value on this host.
    ///
    /// # Errors
    /// A finding if the variable has no value.
    pub fn resolve(&self, value: impl Fn(&str) -> Option<AbsPath>) -> Result<Self, Finding> {
        match self {
            Self::Fs { actions, path } => Ok(Self::Fs { actions: *actions, path: path.resolve(value)? }),
            Self::Net(_)
            | Self::Listen(_)
            | Self::Exec { .. }
            | Self::Env { .. }
            | Self::Broker { .. }
            | Self::Ipc(_)
            | Self::Clock(_)
            | Self::Assert { .. } => Ok(self.clone()),
        }
    }

    /// The same, from the variables of a host.
    pub(crate) fn require_resolved(&self) -> Result<(), Finding> {
        if self.is_resolved() {
            return Ok(());
        }
        Err(Finding::new(Code::PathVariableUnresolved, format!("`{self}` still has a variable"))
            .help("resolve it against the host first"))
    }
}

impl std::str::FromStr for Capability {
    type Err = Finding;

    /// Reads a capability as a grant: no path variables, and `env:read:*` is allowed.
    fn from_str(text: &str) -> Result<Self, Finding> {
        Self::new(text)
    }
}

impl TryFrom<&str> for Capability {
    type Error = Finding;

    fn try_from(text: &str) -> Result<Self, Finding> {
        text.parse()
    }
}

/// What [`Capability::new`] answers can be handed on as it is: [`CapabilitySet::new`] collects the findings.
impl TryFrom<Result<Self, Finding>> for Capability {
    type Error = Finding;

    fn try_from(read: Result<Self, Finding>) -> Result<Self, Finding> {
        read
    }
}

impl TryFrom<&Result<Self, Finding>> for Capability {
    type Error = Finding;

    fn try_from(read: &Result<Self, Finding>) -> Result<Self, Finding> {
        read.clone()
    }
}

impl From<&Self> for Capability {
    fn from(capability: &Self) -> Self {
        capability.clone()
    }
}
