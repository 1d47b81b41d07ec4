//! Trying something in a throw-away child.
#![expect(unsafe_code, reason = "clone and _exit have no safe wrapper")]

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::errno::check;

/// The namespaces that a sandbox has for itself.
pub(crate) const NAMESPACES: [(&str, libc::c_int); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

/// Runs `body` in a child with new namespaces and gives its result. `body` must make system calls only.
pub(crate) fn in_child(namespaces: libc::c_int, body: fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let flags = i64::from(namespaces | libc::SIGCHLD);
    // SAFETY: a clone without a stack and without shared memory is a fork: the child goes on with a copy of this
    // stack and leaves by `_exit` below, so nothing of this process runs twice.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    match check(pid)? {
        0 => {
            let code = body().map_or_else(Errno::raw_os_error, |()| 0);
            // SAFETY: ends the child at once, without destructors of what it copied.
            unsafe { libc::_exit(code) }
        }
        pid => outcome(pid),
    }
}

/// The number that a child ended with; a child that was killed was refused something.
fn outcome(pid: i32) -> Result<(), Errno> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    let status = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(code)),
        None => Err(Errno::PERM),
    }
}

/// Moves the calling thread, a child before exec, into new namespaces.
pub(crate) fn unshare(namespaces: libc::c_int) -> Result<(), Errno> {
    // SAFETY: takes flags; none of them shares or unshares memory or descriptors.
    let done = unsafe { libc::unshare(namespaces) };
    check(done.into()).map(|_| ())
}
