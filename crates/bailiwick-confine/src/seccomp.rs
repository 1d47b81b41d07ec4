//! The system-call filter: which of the programs compiled from `seccomp.toml` a plan gets.
//!
//! The programs are static: nothing is built at run time, so the child can install one between clone and exec.
//! What each variant refuses, and why, is in the data file and nowhere else.
//!
//! Fails closed when: the architecture is foreign (the process is killed), a call is newer than the list (`ENOSYS`),
//! the first process of a filter that asks is gone (`ENOSYS`, by the kernel). A program inside can add filters but not
//! take one away, nor put itself before our supervisor: the kernel refuses a second listener.
//! Residual: arguments behind pointers are not seen; a call that takes such is refused whole or left to Landlock
//! and the mounts.

use crate::command::Watch;

#[cfg(test)]
mod tests;

mod compiled {
    //! `build.rs` writes this from `seccomp.toml`.
    include!(concat!(env!("OUT_DIR"), "/seccomp.rs"));
}

#[cfg(target_arch = "aarch64")]
use compiled::{AARCH64 as PROGRAMS, AARCH64_ASK as ASKS};
#[cfg(target_arch = "x86_64")]
use compiled::{X86_64 as PROGRAMS, X86_64_ASK as ASKS};
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system-call filter knows x86_64 and aarch64 only");

/// What a plan needs that the filter refuses otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Every program may run, so memory files may.
    pub(crate) any_exec: bool,
    /// A program brings a sandbox of its own: namespaces.
    pub(crate) nested_sandbox: bool,
    /// It is the filter of the first process, which reads the arguments of calls that it decides.
    pub(crate) desk: bool,
    /// Unix sockets.
    pub(crate) unix_sockets: UnixSockets,
}

/// Whom a Unix socket may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// Only the other end of a pair.
    #[default]
    None,
    /// None is made, but that is refused by the first process, which tells it.
    Told,
    /// Whom the supervisor outside connects it to: see [`Asking`].
    Mediated,
}

impl Needs {
    /// The order of `FLAGS` in `build.rs`.
    fn index(self) -> usize {
        let mediated = self.unix_sockets != UnixSockets::None;
        let flags = [self.any_exec, self.nested_sandbox, self.desk, mediated];
        flags.into_iter().rev().fold(0, |index, flag| index << 1 | usize::from(flag))
    }
}

/// Added to an index: no network at all.
const OFFLINE: usize = 1 << 4;

/// The filter for a sandbox with its own network namespace.
pub(crate) fn program(needs: Needs) -> &'static [libc::sock_filter] {
    at(needs.index())
}

/// The filter for a sandbox without one: no socket of any network family.
pub(crate) fn program_offline(needs: Needs) -> &'static [libc::sock_filter] {
    at(needs.index() | OFFLINE)
}

/// What the first process decides call by call, by a second filter with a listener: [`crate::sys::seccomp::install`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asking {
    /// Every connect.
    pub(crate) unix_mediated: bool,
    /// Every call that makes, moves, removes or changes a file by its name.
    pub(crate) guarded: bool,
    /// Calls that are only looked at, to name what is refused.
    pub(crate) watch: Watch,
    /// What is refused there in place of the first filter.
    pub(crate) refused: RefusedCalls,
}

/// Calls that the first process refuses, which it can tell; a refusal of the first filter is not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RefusedCalls {
    /// Every Unix socket.
    pub(crate) sockets: bool,
    /// Every namespace.
    pub(crate) namespaces: bool,
}

impl Asking {
    /// The second filter; `None` if nothing is asked.
    pub(crate) fn program(self) -> Option<&'static [libc::sock_filter]> {
        let watch = match self.watch {
            Watch::Nothing => 0b0000,
            Watch::Programs => 0b0100,
            Watch::Files | Watch::Everything => 0b1100,
        };
        let index = usize::from(self.unix_mediated) | usize::from(self.guarded) << 1 | watch;
        let index =
            index | usize::from(self.refused.sockets) << 4 | usize::from(self.refused.namespaces) << 5;
        (index > 0).then(|| ASKS.get(index).copied().unwrap_or_default())
    }
}

/// An empty program, which the kernel refuses, if there were no such variant.
fn at(index: usize) -> &'static [libc::sock_filter] {
    PROGRAMS.get(index).copied().unwrap_or_default()
}
