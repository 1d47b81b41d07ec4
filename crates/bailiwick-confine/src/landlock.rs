//! Landlock: file rights by path, and the reach of signals and abstract sockets.
//!
//! A [`Ruleset`] is made in the parent at the best version that the kernel has; rules for paths that exist only
//! inside the new root are added by the child, without allocation, and the last step is to restrict itself.
//! Everything is refused that the version knows and no rule allows.
//!
//! Fails closed when: the kernel has no Landlock (an error here; the caller decides whether mounts are enough), a
//! rule cannot be added (the child must not go on).
//! Residual: what the version does not know is not refused; [`Level::missing`] names it. Landlock knows neither
//! chmod, utimes, xattr nor stat: read-only mounts hold those. It is no network confinement and is not used as one.

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use crate::sys::landlock as sys;
pub(crate) use bailiwick_layout::rights::*;

const MAKE_CHAR: Access = 1 << 6;
const MAKE_BLOCK: Access = 1 << 11;
/// What the first version knows; the later ones each add to it.
const FIRST: Access = EXECUTE | READ | WRITE_FILE | REMOVE | MAKE | MAKE_CHAR | MAKE_SOCKET | MAKE_BLOCK;

/// Abstract Unix sockets and signals of processes outside.
const SCOPE_ALL: u64 = 0b11;

/// What the kernel's Landlock can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(u32);

impl Level {
    /// The newest version whose rights are known here; later ones only add what this does not ask for.
    const NEWEST: u32 = 9;

    /// Asks the kernel.
    pub(crate) fn of_kernel() -> Result<Self, Fault> {
        match sys::version() {
            Ok(version) if version > 0 => Ok(Self(version.unsigned_abs().min(Self::NEWEST))),
            Ok(_) | Err(Errno::NOSYS) => Err(Fault::Absent),
            Err(Errno::OPNOTSUPP) => Err(Fault::Disabled),
            Err(errno) => Err(Fault::Create(errno)),
        }
    }

    /// The version of the kernel's interface.
    pub(crate) const fn version(self) -> u32 {
        self.0
    }

    /// What this version leaves open and a newer one does not, in words.
    pub(crate) fn missing(self) -> impl Iterator<Item = &'static str> {
        let gaps = [
            (2, "moving files between directories is refused altogether"),
            (3, "truncating files is not held"),
            (5, "device control is not held"),
            (6, "signals and abstract sockets are held by namespaces alone"),
        ];
        gaps.into_iter().filter(move |(since, _)| self.0 < *since).map(|(_, gap)| gap)
    }

    /// Whether processes outside cannot be signalled.
    pub(crate) const fn holds_signals(self) -> bool {
        self.scoped() != 0
    }

    /// The rights that are refused unless a rule allows them.
    const fn handled(self) -> Access {
        match self.0 {
            ..=1 => FIRST,
            2 => FIRST | REFER,
            3 | 4 => FIRST | REFER | TRUNCATE,
            5.. => FIRST | REFER | TRUNCATE | IOCTL_DEV,
        }
    }

    const fn scoped(self) -> u64 {
        if self.0 >= 6 { SCOPE_ALL } else { 0 }
    }
}

/// Why there is no ruleset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The kernel is too old or built without it.
    #[error("the kernel has no landlock (Linux 5.13 or newer, built with it)")]
    Absent,
    /// It is not among the active security modules.
    #[error("landlock is switched off: add `landlock` to the kernel's `lsm=` parameter")]
    Disabled,
    /// The kernel refused a ruleset.
    #[error("landlock ruleset: {0}")]
    Create(Errno),
    /// The kernel refused a rule.
    #[error("landlock rule: {0}")]
    Rule(Errno),
}

impl Fault {
    /// The kernel's word.
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::Absent => Errno::NOSYS,
            Self::Disabled => Errno::OPNOTSUPP,
            Self::Create(errno) | Self::Rule(errno) => errno,
        }
    }
}

/// Rules that are not yet in force.
#[derive(Debug)]
pub(crate) struct Ruleset {
    fd: OwnedFd,
    level: Level,
    handled: Access,
}

impl Ruleset {
    /// A ruleset with rules for paths that exist already, at the best version there is.
    pub(crate) fn build(rules: &[Rule]) -> Result<Self, Fault> {
        Self::at(Level::of_kernel()?, rules)
    }

    fn at(level: Level, rules: &[Rule]) -> Result<Self, Fault> {
        let fd = sys::create(level.handled(), level.scoped()).map_err(Fault::Create)?;
        Self { fd, level, handled: level.handled() }.with(rules)
    }

    /// A ruleset that refuses nothing but changes: a second layer, under a first one that refuses all.
    pub(crate) fn net(rules: &[Rule]) -> Result<Self, Fault> {
        let level = Level::of_kernel()?;
        let handled = level.handled() & (WRITE | MAKE_CHAR | MAKE_SOCKET | MAKE_BLOCK);
        let fd = sys::create(handled, 0).map_err(Fault::Create)?;
        Self { fd, level, handled }.with(rules)
    }

    fn with(self, rules: &[Rule]) -> Result<Self, Fault> {
        for Rule { fd, access } in rules {
            self.add_raw(fd.as_fd(), *access).map_err(Fault::Rule)?;
        }
        Ok(self)
    }

    /// What it can hold.
    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// The version of the kernel's interface that it uses.
    pub(crate) const fn abi(&self) -> u32 {
        self.level.version()
    }

    /// Allows `access` on a path and what is below it, less what the version does not know and, for a file, less what
    /// only directories have. Allocation-free.
    pub(crate) fn add_raw(&self, path: BorrowedFd<'_>, access: Access) -> Result<(), Errno> {
        let directory = FileType::from_raw_mode(fstat(path)?.st_mode) == FileType::Directory;
        let possible = if directory { self.handled } else { self.handled & FILE_RIGHTS };
        // A rule without rights is an error to the kernel and says nothing.
        match access & possible {
            0 => Ok(()),
            access => sys::add_path(self.fd.as_fd(), path, access),
        }
    }

    /// Holds the calling thread and all it starts to the rules, for ever. Allocation-free; `no_new_privs` is set.
    pub(crate) fn restrict_self(&self) -> Result<(), Errno> {
        sys::restrict_self(self.fd.as_fd())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "landlock {}", self.0)
    }
}

#[cfg(test)]
mod tests;
