//! Where this process works, without allocating.
#![expect(unsafe_code, reason = "the C library's and rustix's getcwd allocate")]

use rustix::io::Errno;

use super::errno::check;

/// The path of the working directory within this process' root; its length.
///
/// # Errors
/// `ENOENT` if the directory was removed or is not below the root, else what the kernel says.
pub(crate) fn path(into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `len` bytes to `into`, which is exclusively borrowed.
    let written = unsafe { libc::syscall(libc::SYS_getcwd, into.as_mut_ptr(), into.len()) };
    let with_zero = usize::try_from(check(written)?).map_err(|_| Errno::OVERFLOW)?;
    // What is not below the root has a word in brackets before its path.
    if into.first() == Some(&b'/') { Ok(with_zero.saturating_sub(1)) } else { Err(Errno::NOENT) }
}
