//! Trees of mounts, and what they forbid.
#![expect(unsafe_code, reason = "open_tree_attr and mount_setattr have no safe wrapper")]

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use bailiwick_layout::entries::Attributes;
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;

use super::descriptors::adopt;
use super::errno::check;

const fn change(attributes: Attributes) -> libc::mount_attr {
    libc::mount_attr { attr_set: attributes.bits(), attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 }
}

/// A tree once more, mounted nowhere yet, with attributes added to it and to all mounts below it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn copy(directory: BorrowedFd<'_>, path: &CStr, attributes: Attributes) -> Result<OwnedFd, Errno> {
    if AT_ONCE.get() == Some(&true) {
        return copy_at_once(directory, path, attributes);
    }
    copy_in_two(directory, path, attributes)
}

/// Finds out whether a tree can be copied in one call. A sandbox that is being made cannot try: see
/// [`run_in_parallel`](super::clone::run_in_parallel).
pub(crate) fn look() {
    AT_ONCE.get_or_init(|| {
        let (nowhere, nothing) = (-1, std::ptr::null::<libc::mount_attr>());
        // SAFETY: no attributes but a size for them: a kernel that has the call refuses it unseen.
        let refused = unsafe { libc::syscall(SYS_OPEN_TREE_ATTR, nowhere, c"".as_ptr(), 0, nothing, 1) };
        check(refused) == Err(Errno::INVAL)
    });
}

static AT_ONCE: OnceLock<bool> = OnceLock::new();

const TREE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE)
    .union(OpenTreeFlags::AT_SYMLINK_NOFOLLOW)
    .union(OpenTreeFlags::AT_EMPTY_PATH);

/// One call instead of two (Linux 6.15); a sandbox has dozens of mounts.
fn copy_at_once(directory: BorrowedFd<'_>, path: &CStr, attributes: Attributes) -> Result<OwnedFd, Errno> {
    let change = change(attributes);
    // SAFETY: a C string, and a valid `mount_attr` of the size given, both alive.
    let tree = unsafe {
        libc::syscall(
            SYS_OPEN_TREE_ATTR,
            directory.as_raw_fd(),
            path.as_ptr(),
            TREE.bits(),
            std::ptr::from_ref(&change),
            size_of::<libc::mount_attr>(),
        )
    };
    check(tree).map(adopt)
}

/// Its number is the same on every architecture.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

fn copy_in_two(directory: BorrowedFd<'_>, path: &CStr, attributes: Attributes) -> Result<OwnedFd, Errno> {
    let tree = rustix::mount::open_tree(directory, path, TREE)?;
    set(tree.as_fd(), attributes, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)?;
    Ok(tree)
}

/// Adds attributes to a mount and to none below it.
///
/// # Errors
/// What the kernel says.
pub(crate) fn restrict_alone(mount: BorrowedFd<'_>, attributes: Attributes) -> Result<(), Errno> {
    set(mount, attributes, libc::AT_EMPTY_PATH)
}

fn set(mount: BorrowedFd<'_>, attributes: Attributes, flags: libc::c_int) -> Result<(), Errno> {
    let change = change(attributes);
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
    check(done).map(drop)
}

#[cfg(test)]
mod tests {
    use rustix::fs::StatVfsMountFlags;

    use super::*;

    /// In a mount namespace of a thread's own, which takes privileges: without them there is nothing to compare.
    #[test]
    fn one_call_restricts_a_tree_as_two_do() {
        look();
        let wanted = Attributes::READ_ONLY.and(Attributes::NO_EXEC);
        let forbidden = |tree: Result<OwnedFd, Errno>| Ok(rustix::fs::fstatvfs(tree?)?.f_flag);
        let apart = std::thread::spawn(move || {
            // SAFETY: this thread ends here, and uses no path relative to a working directory.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?;
            let two = forbidden(copy_in_two(rustix::fs::CWD, c"/usr", wanted))?;
            Ok::<_, Errno>((two, forbidden(copy(rustix::fs::CWD, c"/usr", wanted))?))
        });
        match apart.join().unwrap() {
            Ok((two, one)) => {
                assert!(two.contains(StatVfsMountFlags::RDONLY | StatVfsMountFlags::NOEXEC), "{two:?}");
                assert_eq!(one, two);
            }
            lacking => assert_eq!(lacking, Err(Errno::PERM)),
        }
    }
}
