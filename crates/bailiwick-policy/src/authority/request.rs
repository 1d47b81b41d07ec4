//! One thing a tool wants to do.

use std::fmt;

use super::{Axis, env_flags, exec_flags};
use crate::capability::{ClockActions, Endpoint, Program, is_loader_variable};
use crate::lattice::Flags;
use crate::net::{Listen, NetRequest};
use crate::path::AbsPath;

/// One concrete act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Read a file or list a directory.
    Read(AbsPath),
    /// Map a file as code.
    MapCode(AbsPath),
    /// Change a file.
    Write(AbsPath),
    /// Create a file or directory.
    Create(AbsPath),
    /// Delete a file or directory.
    Delete(AbsPath),
    /// Speak to a host.
    Net(NetRequest),
    /// Be reached from outside on a port.
    Listen(Listen),
    /// Start a program.
    Spawn(Spawn),
    /// See the caller's variable.
    ReadEnv(Box<str>),
    /// Be given a variable.
    InjectEnv(Box<str>),
    /// Talk to a local service.
    Ipc(Endpoint),
    /// See the clock or time zones.
    Clock(ClockActions),
}

/// The start of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// Which program.
    pub program: Program,
    /// It brings a sandbox of its own.
    pub nested_sandbox: bool,
    /// It lies in a directory that the sandbox can write.
    pub from_writable: bool,
}

impl Spawn {
    /// A plain start of `program`.
    #[must_use]
    pub const fn plain(program: Program) -> Self {
        Self { program, nested_sandbox: false, from_writable: false }
    }

    pub(super) fn flags(&self) -> Flags {
        let nested = if self.nested_sandbox { exec_flags::NESTED } else { Flags::NONE };
        let writable = if self.from_writable { exec_flags::FROM_WRITABLE } else { Flags::NONE };
        exec_flags::SPAWN.union(nested).union(writable)
    }
}

/// Which permission injecting `name` needs.
pub(super) fn inject_flag(name: &str) -> Flags {
    if is_loader_variable(name) { env_flags::INJECT_LOADER } else { env_flags::INJECT }
}

impl Request {
    /// The axis that decides.
    #[must_use]
    pub const fn axis(&self) -> Axis {
        match self {
            Self::Read(_) | Self::MapCode(_) => Axis::FsRead,
            Self::Write(_) | Self::Create(_) | Self::Delete(_) => Axis::FsWrite,
            Self::Net(_) | Self::Listen(_) => Axis::Net,
            Self::Spawn(_) => Axis::Exec,
            Self::ReadEnv(_) | Self::InjectEnv(_) => Axis::Env,
            Self::Ipc(_) => Axis::Ipc,
            Self::Clock(_) => Axis::Clock,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {path}"),
            Self::MapCode(path) => write!(f, "map {path} as code"),
            Self::Write(path) => write!(f, "write {path}"),
            Self::Create(path) => write!(f, "create {path}"),
            Self::Delete(path) => write!(f, "delete {path}"),
            Self::Net(request) => write!(f, "reach {request}"),
            Self::Listen(listen) => write!(f, "listen on {listen}"),
            Self::Spawn(spawn) => {
                write!(f, "start {}", spawn.program)?;
                if spawn.nested_sandbox {
                    f.write_str(" with a sandbox of its own")?;
                }
                if spawn.from_writable { f.write_str(" from a writable directory") } else { Ok(()) }
            }
            Self::ReadEnv(name) => write!(f, "see the variable {name}"),
            Self::InjectEnv(name) => write!(f, "be given the variable {name}"),
            Self::Ipc(endpoint) => write!(f, "talk to {endpoint}"),
            Self::Clock(actions) => write!(f, "see the clock ({actions})"),
        }
    }
}
