//! Signals: blocked around a clone, read by pid 1, open again in the program.
#![expect(unsafe_code, reason = "signal masks and signalfd have no safe wrapper")]

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

/// The mask that was in force before [`block_all`].
pub(crate) struct Mask(libc::sigset_t);

/// Blocks every signal of this thread.
pub(crate) fn block_all() -> Mask {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: fills the whole set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is a full set and `before` room for one; with these arguments the call cannot fail.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: the call above has written it.
    Mask(unsafe { before.assume_init() })
}

impl Mask {
    /// Puts the mask back.
    pub(crate) fn restore(&self) {
        // SAFETY: the set was filled by the kernel; the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Blocks no signal of this thread any more.
pub(crate) fn unblock_all() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: empties the whole set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: `none` is a valid set; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
}

/// A descriptor that is readable when a child has ended. SIGCHLD must be blocked.
///
/// # Errors
/// What the kernel says.
pub(crate) fn child_ends() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: empties the whole set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was initialised above, and SIGCHLD is a signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: a valid set; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends any signal number to a process and all of its group; a group that is gone is no error.
pub(crate) fn send_to_group(leader: rustix::process::Pid, signal: i32) {
    // SAFETY: kill takes any numbers and touches no memory.
    unsafe { libc::kill(-leader.as_raw_nonzero().get(), signal) };
}

/// Sends any signal number to a process; a process that is gone is no error.
pub(crate) fn send(to: rustix::process::Pid, signal: i32) {
    // SAFETY: kill takes any numbers and touches no memory.
    unsafe { libc::kill(to.as_raw_nonzero().get(), signal) };
}

/// Sends any signal number to every process that this one may signal, but to itself. For pid 1: those are the sandbox's.
pub(crate) fn send_to_others(signal: i32) {
    // SAFETY: kill takes any numbers and touches no memory.
    unsafe { libc::kill(-1, signal) };
}
