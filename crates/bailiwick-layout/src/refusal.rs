//! Refusals: why a plan cannot be held for a command on this host, and what to write to change that.

use std::path::PathBuf;

use bailiwick_policy::enforcement::Shortfall;

use crate::fault::Fault;

/// Nothing was started, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No such program.
    #[error("`{name}` is not in the system's program directories; give its path")]
    NotFound {
        /// As it was given.
        name: String,
    },
    /// No such file.
    #[error("`{}` does not exist", path.display())]
    NoSuchProgram {
        /// As it was given.
        path: PathBuf,
    },
    /// Not a program.
    #[error("`{}` is not executable", path.display())]
    NotExecutable {
        /// Where it lies.
        path: PathBuf,
    },
    /// A script whose interpreter is not there.
    #[error("`{}` needs the interpreter `{interpreter}`, which this host does not have", path.display())]
    NoInterpreter {
        /// The script.
        path: PathBuf,
        /// What its first line names.
        interpreter: String,
    },
    /// A path that is to be written does not exist.
    #[error("`{path}` is granted for writing and does not exist; create it first: `mkdir -p {path}`")]
    MissingPath {
        /// As it was granted.
        path: String,
    },
    /// A device, socket or FIFO that is to be written, where writes go to a layer.
    #[error(
        "`{path}` is granted for writing and is neither a file nor a directory: no layer can hold what is written to it"
    )]
    NoLayer {
        /// As it was granted.
        path: String,
    },
    /// A path is not text that the kernel takes.
    #[error("`{path}` cannot be opened: {reason}")]
    Unreachable {
        /// As it was granted.
        path: String,
        /// What the kernel said.
        reason: String,
    },
    /// A pattern matches too much.
    #[error(
        "`{pattern}` matches more than {most} paths; grant the directory: `--cap fs:{actions}:{directory}`"
    )]
    TooManyMatches {
        /// The pattern.
        pattern: String,
        /// How many are taken.
        most: usize,
        /// What it grants.
        actions: String,
        /// The directory that holds all matches.
        directory: String,
    },
    /// A value has a NUL in it.
    #[error("`{what}` has a NUL byte in it")]
    Nul {
        /// Which argument, variable or path.
        what: String,
    },
    /// A descriptor would lead out of the sandbox.
    #[error("descriptor {number} is a directory: a program could reach the host's files through it")]
    DirectoryDescriptor {
        /// 0, 1 or 2.
        number: i32,
    },
    /// What would be held is less than what is demanded.
    #[error("this host cannot hold what is demanded: {}", list(shortfalls))]
    BelowFloor {
        /// What is missing.
        shortfalls: Vec<Shortfall>,
    },
    /// A backend cannot be used.
    #[error("`{backend}` cannot be used: {why}; {fix}")]
    Unusable {
        /// Which.
        backend: String,
        /// What was seen.
        why: String,
        /// What a person can do about it.
        fix: String,
    },
    /// Preparing failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Refusal {
    /// The exit code of a command that ends so: 126 and 127 as in shells.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } | Self::NoSuchProgram { .. } => 127,
            Self::NotExecutable { .. } | Self::NoInterpreter { .. } => 126,
            Self::MissingPath { .. }
            | Self::NoLayer { .. }
            | Self::Unreachable { .. }
            | Self::TooManyMatches { .. }
            | Self::Nul { .. }
            | Self::DirectoryDescriptor { .. }
            | Self::BelowFloor { .. }
            | Self::Unusable { .. }
            | Self::Fault(_) => 125,
        }
    }
}

fn list(shortfalls: &[Shortfall]) -> String {
    shortfalls.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
