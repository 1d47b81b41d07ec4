//! The other side of a filter that asks: receiving a call, reading its arguments, answering it.
#![expect(unsafe_code, reason = "the kernel's interface")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;

use super::errno::check;

const RECEIVE: libc::Ioctl = request(0xc050_2100);
const SEND: libc::Ioctl = request(0xc018_2101);
const ID_VALID: libc::Ioctl = request(0x4008_2102);
const ADD_FD: libc::Ioctl = request(0x4018_2103);
const SET_FLAGS: libc::Ioctl = request(0x4008_2104);
const SYNC_WAKE_UP: libc::c_ulong = 1;
const ADD_FD_AT: u32 = 1;
const ADD_FD_AND_ANSWER: u32 = 2;
const CONTINUE: u32 = 1;

/// A request of the kernel's, 32 bits, in the type that this C library takes.
#[cfg(not(any(target_env = "musl", target_os = "android")))]
const fn request(number: u32) -> libc::Ioctl {
    number as libc::Ioctl
}

/// A request of the kernel's, 32 bits, in the type that this C library takes.
#[cfg(any(target_env = "musl", target_os = "android"))]
const fn request(number: u32) -> libc::Ioctl {
    number.cast_signed()
}

/// `struct seccomp_notif`: a call that waits for an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TrappedCall {
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

/// How long a call is as bytes, to pass it on.
pub(crate) const TRAPPED_CALL_LENGTH: usize = 80;

impl TrappedCall {
    /// The call as bytes.
    pub(crate) fn to_bytes(self) -> [u8; TRAPPED_CALL_LENGTH] {
        let words = [
            self.id,
            u64::from(self.thread) | u64::from(self.flags) << 32,
            u64::from(self.number.cast_unsigned()) | u64::from(self.arch) << 32,
            self.instruction,
        ];
        let mut bytes = [0; TRAPPED_CALL_LENGTH];
        for (room, word) in bytes.chunks_exact_mut(8).zip(words.into_iter().chain(self.arguments)) {
            room.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// A call from bytes, where another process made it a call of this thread.
    pub(crate) fn from_bytes(bytes: &[u8; TRAPPED_CALL_LENGTH], thread: u32) -> Self {
        let mut words = [0; 10];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        let [id, _, number, instruction, arguments @ ..] = words;
        let low = |word: u64| u32::try_from(word & 0xffff_ffff).unwrap_or_default();
        let (number, arch) = (low(number).cast_signed(), low(number >> 32));
        Self { id, thread, flags: 0, number, arch, instruction, arguments }
    }
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
pub(crate) fn receive(listener: BorrowedFd<'_>) -> Result<TrappedCall, Errno> {
    let mut asked = TrappedCall::default();
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

/// Answers a call: it returns 0 or fails. The kernel does not go on with it.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Result<(), Errno>) -> Result<(), Errno> {
    let error = answer.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
    respond(listener, &Response { id, value: 0, error, flags: 0 })
}

/// Lets the kernel go on with a call, which reads its arguments again: only where other rules hold whatever they are.
pub(crate) fn proceed(listener: BorrowedFd<'_>, id: u64) -> Result<(), Errno> {
    respond(listener, &Response { id, value: 0, error: 0, flags: CONTINUE })
}

/// Answers a call with a new descriptor of the caller's.
pub(crate) fn give_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    source: BorrowedFd<'_>,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let target_flags = if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
    let source = source.as_raw_fd().cast_unsigned();
    let mut add = AddFd { id, flags: ADD_FD_AND_ANSWER, source, target: 0, target_flags };
    match add_descriptor(listener, &add) {
        // Before 5.14: in two steps.
        Err(Errno::INVAL) => {
            add.flags = 0;
            let value = add_descriptor(listener, &add)?.into();
            respond(listener, &Response { id, value, error: 0, flags: 0 })
        }
        done => done.map(|_| ()),
    }
}

fn add_descriptor(listener: BorrowedFd<'_>, add: &AddFd) -> Result<i32, Errno> {
    // SAFETY: `add` has the kernel's layout and lives through the call; its source is open while it is borrowed.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), ADD_FD, std::ptr::from_ref(add)) };
    check(done.into())
}

fn respond(listener: BorrowedFd<'_>, response: &Response) -> Result<(), Errno> {
    // SAFETY: `response` has the kernel's layout and lives through the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), SEND, std::ptr::from_ref(response)) };
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
    add_descriptor(listener, &AddFd { id, flags: ADD_FD_AT, source, target, target_flags }).map(|_| ())
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
    if read_some(thread, address, into)? == wanted { Ok(()) } else { Err(Errno::FAULT) }
}

/// Reads a string of another thread's, without its zero; its length. A page at a time, so that the end of a mapping
/// behind the string is no fault.
pub(crate) fn read_string(thread: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    const PAGE: u64 = 4096;
    /// Most paths are short.
    const FIRST: usize = 256;
    let mut done = 0;
    while let Some(room) = into.get_mut(done..).filter(|room| !room.is_empty()) {
        let from = address.checked_add(done as u64).ok_or(Errno::FAULT)?;
        let to_page_end = usize::try_from(PAGE - from % PAGE).map_err(|_| Errno::FAULT)?;
        let most = if done == 0 { FIRST } else { room.len() };
        let length = to_page_end.min(most).min(room.len());
        let read = read_some(thread, from, room.get_mut(..length).unwrap_or_default())?;
        let bytes = room.get(..read).unwrap_or_default();
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => return Ok(done + end),
            None if read == 0 => return Err(Errno::FAULT),
            None => done += read,
        }
    }
    Err(Errno::NAMETOOLONG)
}

/// Reads two strings of another thread's at once, as far as both lie near the start of a page's rest; how long each is.
/// `None` for one that has to be read by itself.
pub(crate) fn read_two_strings(thread: u32, from: [u64; 2], into: [&mut [u8]; 2]) -> [Option<usize>; 2] {
    const PAGE: u64 = 4096;
    const FIRST: usize = 256;
    let [first, second] = into;
    let length = |from: u64, room: &[u8]| {
        usize::try_from(PAGE - from % PAGE).unwrap_or_default().min(FIRST).min(room.len())
    };
    let lengths = [length(from[0], first), length(from[1], second)];
    let room = |room: &mut [u8], iov_len| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len };
    let local = [room(first, lengths[0]), room(second, lengths[1])];
    let (Ok(one), Ok(other), Ok(thread)) =
        (usize::try_from(from[0]), usize::try_from(from[1]), i32::try_from(thread))
    else {
        return [None, None];
    };
    let there =
        |address, iov_len| libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len };
    let remote = [there(one, lengths[0]), there(other, lengths[1])];
    // SAFETY: the kernel writes at most the two lengths to the two rooms, each at least as long and exclusively borrowed;
    // the remote addresses are another process' and the kernel checks them.
    let read = unsafe { libc::process_vm_readv(thread, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
    let read = usize::try_from(read).unwrap_or_default();
    let end = |room: &[u8], read: usize| room.get(..read)?.iter().position(|byte| *byte == 0);
    [end(first, read.min(lengths[0])), end(second, read.saturating_sub(lengths[0]).min(lengths[1]))]
}

fn read_some(thread: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let wanted = into.len();
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: wanted };
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: wanted };
    let thread = i32::try_from(thread).map_err(|_| Errno::SRCH)?;
    // SAFETY: the kernel writes at most `wanted` bytes to `into`, which is exclusively borrowed; the remote address
    // is another process' and the kernel checks it.
    let read = unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    let read = check(libc::c_long::try_from(read).map_err(|_| Errno::FAULT)?)?;
    usize::try_from(read).map_err(|_| Errno::FAULT)
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
    // SAFETY: the caller has just been given this descriptor and nothing closes it meanwhile.
    let listener = unsafe { BorrowedFd::borrow_raw(listener) };
    match replace_descriptor(listener, u64::MAX, listener, 0, true) {
        Err(Errno::NOENT) => Ok(()),
        Ok(()) => Err(Errno::NOTSUP),
        Err(errno) => Err(errno),
    }
}
