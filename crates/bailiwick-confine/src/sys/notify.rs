//! The supervisor's side of a filter that asks: receiving a call, reading its arguments, answering it.
#![expect(unsafe_code, reason = "the kernel's interface")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;

use super::errno::check;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const ID_VALID: libc::c_ulong = 0x4008_2102;
const ADD_FD: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const SYNC_WAKE_UP: libc::c_ulong = 1;
const ADD_FD_AT: u32 = 1;

/// `struct seccomp_notif`: a call that waits for an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    /// Its name until it is answered.
    pub(crate) id: u64,
    /// The thread, as this process' pid namespace numbers it.
    pub(crate) thread: u32,
    flags: u32,
    /// The number of the call.
    pub(crate) number: i32,
    arch: u32,
    instruction: u64,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct seccomp_notif_addfd`.
#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

/// Waits for a call.
///
/// # Errors
/// `ENOENT` if the caller died meanwhile.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> Result<Asked, Errno> {
    let mut asked = Asked::default();
    // SAFETY: `asked` has the kernel's layout, is zero as the kernel demands, and lives through the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut asked) };
    check(done.into()).map(|_| asked)
}

/// Whether the call still waits. What was read of its thread before this says so is that thread's, not that of a
/// later one with the same number.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads one `u64`, which lives through the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), ID_VALID, &raw const id) };
    done == 0
}

/// Answers a call: it returns 0 or fails. Never lets the kernel go on with it.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Result<(), Errno>) -> Result<(), Errno> {
    let error = answer.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
    let response = Response { id, value: 0, error, flags: 0 };
    // SAFETY: `response` has the kernel's layout and lives through the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw const response) };
    check(done.into()).map(|_| ())
}

/// Puts `source` in the place of the caller's descriptor `target`.
pub(crate) fn replace_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    source: BorrowedFd<'_>,
    target: u32,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let target_flags = if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
    let source = source.as_raw_fd().cast_unsigned();
    let add = AddFd { id, flags: ADD_FD_AT, source, target, target_flags };
    // SAFETY: `add` has the kernel's layout and lives through the call; `source` is open while it is borrowed.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), ADD_FD, &raw const add) };
    check(done.into()).map(|_| ())
}

/// Hands the processor straight to the supervisor and back: from 6.6, eight times cheaper on an idle machine.
pub(crate) fn wake_in_step(listener: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes an integer.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
    check(done.into()).map(|_| ())
}

/// Reads another thread's memory; fails unless all of `into` could be read.
pub(crate) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    let wanted = into.len();
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: wanted };
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: wanted };
    let thread = i32::try_from(thread).map_err(|_| Errno::SRCH)?;
    // SAFETY: the kernel writes at most `wanted` bytes to `into`, which is exclusively borrowed; the remote address
    // is another process' and the kernel checks it.
    let read = unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    let read = check(libc::c_long::try_from(read).map_err(|_| Errno::FAULT)?)?;
    if usize::try_from(read) == Ok(wanted) { Ok(()) } else { Err(Errno::FAULT) }
}

/// Connects a socket to an address in the kernel's own form, whatever its family.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel copies `length` bytes from `address`, which lives through the call, and checks them.
    let done = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    check(done.into()).map(|_| ())
}

/// Whether the kernel of a listener knows how to replace descriptors (5.9): it must find the made-up call missing, not
/// the request unknown.
pub(crate) fn can_replace_descriptors(listener: std::os::fd::RawFd) -> Result<(), Errno> {
    // SAFETY: the caller has just been given this descriptor and nobody closes it meanwhile.
    let listener = unsafe { BorrowedFd::borrow_raw(listener) };
    match replace_descriptor(listener, u64::MAX, listener, 0, true) {
        Err(Errno::NOENT) => Ok(()),
        Ok(()) => Err(Errno::NOTSUP),
        Err(errno) => Err(errno),
    }
}
