//! The axes of an authority, as people see them.

use std::fmt;

/// One axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Reading files.
    FsRead,
    /// Changing, creating and deleting files.
    FsWrite,
    /// Starting programs.
    Exec,
    /// The network.
    Net,
    /// Environment variables.
    Env,
    /// Local sockets and buses.
    Ipc,
    /// Clock and time zones.
    Clock,
    /// How many calls.
    MaxCalls,
    /// In which generations.
    Generation,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Self; 9] = [
        Self::FsRead,
        Self::FsWrite,
        Self::Exec,
        Self::Net,
        Self::Env,
        Self::Ipc,
        Self::Clock,
        Self::MaxCalls,
        Self::Generation,
    ];

    /// Its stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FsRead => "fs_read",
            Self::FsWrite => "fs_write",
            Self::Exec => "exec",
            Self::Net => "net",
            Self::Env => "env",
            Self::Ipc => "ipc",
            Self::Clock => "clock",
            Self::MaxCalls => "max_calls",
            Self::Generation => "valid_for_generation",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
