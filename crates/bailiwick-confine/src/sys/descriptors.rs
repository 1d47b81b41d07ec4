//! Descriptors as numbers: closing those that are not expected, taking ownership of new ones.
#![expect(unsafe_code, reason = "close_range has no safe wrapper, and a number does not say who owns it")]

use std::ops::Range;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Closes every descriptor in the range. Only for processes that are about to exec, or that own nothing there any more.
pub(crate) fn close(range: Range<u32>) {
    if range.is_empty() {
        return;
    }
    // SAFETY: touches no memory; the callers are a new process's last steps, after which no owner of a descriptor
    // in the range is used or dropped.
    unsafe { libc::syscall(libc::SYS_close_range, range.start, range.end - 1, 0) };
}

/// Takes on a descriptor that a system call has just made.
pub(crate) fn adopt(fresh: RawFd) -> OwnedFd {
    // SAFETY: the callers pass what a call has returned as a new descriptor, which nothing else owns.
    unsafe { OwnedFd::from_raw_fd(fresh) }
}

/// Closes every descriptor but these, which are sorted. For a new process that uses no others.
pub(crate) fn keep_only(kept: &[u32]) {
    let mut next = 0;
    for descriptor in kept {
        close(next..*descriptor);
        next = descriptor + 1;
    }
    close(next..u32::MAX);
}

/// A copy of a descriptor that this process was started with, never one of the first three. Where it is closed the copy
/// is `/dev/null`, as what std's own processes find there.
///
/// # Errors
/// What the kernel says.
pub(crate) fn inherited(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: borrowed for one call, which answers with an error if the number is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    match rustix::io::fcntl_dupfd_cloexec(descriptor, 3) {
        Err(Errno::BADF) => {
            let nothing = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::fcntl_dupfd_cloexec(nothing, 3)
        }
        copied => copied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_descriptor_is_inherited_as_an_empty_one() {
        let device = |descriptor: &OwnedFd| rustix::fs::fstat(descriptor).unwrap().st_rdev;
        let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert_eq!(device(&inherited(1_000_000).unwrap()), device(&null));
        let zero = OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
        assert_eq!(device(&inherited(std::os::fd::AsRawFd::as_raw_fd(&zero)).unwrap()), device(&zero));
    }
}
