//! Attributes of mounts.
#![expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// What a mount forbids. Mounts are private besides: nothing that the host mounts later shows up inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes(u64);

impl Attributes {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const READ_ONLY: Self = Self(libc::MOUNT_ATTR_RDONLY);
    pub(crate) const NO_SUID: Self = Self(libc::MOUNT_ATTR_NOSUID);
    pub(crate) const NO_DEVICES: Self = Self(libc::MOUNT_ATTR_NODEV);
    pub(crate) const NO_EXEC: Self = Self(libc::MOUNT_ATTR_NOEXEC);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Adds attributes to a mount and to all mounts below it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn restrict(mount: BorrowedFd<'_>, attributes: Attributes) -> Result<(), Errno> {
    set(mount, attributes, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)
}

/// Adds attributes to a mount and to none below it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn restrict_alone(mount: BorrowedFd<'_>, attributes: Attributes) -> Result<(), Errno> {
    set(mount, attributes, libc::AT_EMPTY_PATH)
}

fn set(mount: BorrowedFd<'_>, attributes: Attributes, flags: libc::c_int) -> Result<(), Errno> {
    let change =
        libc::mount_attr { attr_set: attributes.0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    // SAFETY: the path is an empty C string, and `change` a valid `mount_attr` of the size given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(&change),
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}
