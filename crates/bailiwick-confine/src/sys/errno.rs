//! The results of raw system calls.

use rustix::io::Errno;

/// The result of a raw system call that returns a descriptor or a small number.
pub(crate) fn check(result: libc::c_long) -> Result<i32, Errno> {
    if result < 0 { Err(last()) } else { i32::try_from(result).map_err(|_| Errno::OVERFLOW) }
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
