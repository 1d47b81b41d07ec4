//! Steps that a child takes between fork and exec.
#![expect(unsafe_code, reason = "what runs after a fork must be argued for")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;

use super::errno::check;

/// Lets the child of `command` take `steps` right before exec; if they fail, nothing is started and `spawn` has the
/// error. The steps must not allocate, lock or panic: another thread of the parent may have held a lock at the fork.
pub(crate) fn before_exec(
    command: &mut Command,
    mut steps: impl FnMut() -> Result<(), Errno> + Send + Sync + 'static,
) {
    // SAFETY: every caller in this crate passes only system calls on values made before the fork, as demanded above.
    unsafe { command.pre_exec(move || steps().map_err(std::io::Error::from)) };
}

/// Keeps every descriptor but the first three from the program that is about to be started.
pub(crate) fn hide_descriptors() -> Result<(), Errno> {
    const CLOSE_ON_EXEC: libc::c_uint = 4;
    // SAFETY: only sets a flag on descriptors; touches no memory and closes nothing.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOSE_ON_EXEC) };
    check(done).map(|_| ())
}
