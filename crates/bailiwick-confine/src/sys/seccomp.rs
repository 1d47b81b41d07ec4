//! Installing a system-call filter on the calling thread.
//!
//! Allocation-free and lock-free: it runs between clone and exec. `no_new_privs` must be set before, or the kernel
//! refuses (without `CAP_SYS_ADMIN`).
#![expect(unsafe_code, reason = "the kernel's interface")]

use std::os::fd::RawFd;

use rustix::io::Errno;

use super::errno::check;

const SET_MODE_FILTER: libc::c_uint = 1;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
/// From 5.19: a signal that does not kill waits until the supervisor has answered.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// Holds the calling thread and all it starts to `program`, for ever. With `notify`, the descriptor on which a
/// supervisor receives the calls that the program does not decide; it is close-on-exec.
pub(crate) fn install(program: &[libc::sock_filter], notify: bool) -> Result<Option<RawFd>, Errno> {
    if !notify {
        return set_filter(program, 0).map(|_| None);
    }
    match set_filter(program, NEW_LISTENER | WAIT_KILLABLE) {
        Err(Errno::INVAL) => set_filter(program, NEW_LISTENER).map(Some),
        done => done.map(Some),
    }
}

fn set_filter(program: &[libc::sock_filter], flags: libc::c_ulong) -> Result<RawFd, Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` points to `len` instructions that live through the call; the kernel copies and checks them
    // and writes to neither.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
    check(done)
}

/// Keeps a listener open across exec, under a number that a test knows.
#[cfg(test)]
pub(crate) fn keep_at(listener: RawFd, number: RawFd) -> Result<(), Errno> {
    // SAFETY: takes two numbers; the child of a test has nothing at the second one.
    let done = unsafe { libc::dup2(listener, number) };
    check(done.into()).map(|_| ())
}
