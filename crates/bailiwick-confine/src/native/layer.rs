//! A copy-on-write layer: what the program writes to a directory of the host goes to memory, and the host stays as it is.
//!
//! One file system in memory, mounted nowhere, holds two directories for each layered tree. The kernel's overlay shows the
//! host's directory with the written one over it. Both are named by descriptor, so no character of a path means anything to
//! the kernel's options. Rules of Landlock are opened on the merged tree afterwards.
//!
//! Fails closed when: the kernel refuses an overlay. Nothing is started then.
//! Residual: an overlay does not show what is mounted below its directory; moving a directory of the host answers `EXDEV`,
//! as between file systems, and programs copy it then.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::desk::text::Text;
use super::image::LayerPlace;

/// The file system that holds all layers of a sandbox.
pub(super) fn store(size: &CStr) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, c"mode", c"0700")?;
    rustix::mount::fsconfig_set_string(&context, c"size", size)?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context)
}

/// The host's directory with a layer over it, mounted nowhere yet.
pub(super) fn over(
    lower: BorrowedFd<'_>,
    store: BorrowedFd<'_>,
    place: &LayerPlace,
) -> Result<OwnedFd, Errno> {
    // The top of the merged tree has the mode of the written directory.
    let mode = Mode::from_raw_mode(rustix::fs::fstat(lower)?.st_mode & 0o777);
    let upper = made(store, &place.upper, mode)?;
    let work = made(store, &place.work, Mode::RWXU)?;
    let context = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, c"source", c"layer")?;
    let lower = by_descriptor(lower)?;
    // From 6.8; earlier kernels know the older name.
    if rustix::mount::fsconfig_set_string(&context, c"lowerdir+", lower.as_c()?).is_err() {
        rustix::mount::fsconfig_set_string(&context, c"lowerdir", lower.as_c()?)?;
    }
    rustix::mount::fsconfig_set_string(&context, c"upperdir", by_descriptor(upper.as_fd())?.as_c()?)?;
    rustix::mount::fsconfig_set_string(&context, c"workdir", by_descriptor(work.as_fd())?.as_c()?)?;
    rustix::mount::fsconfig_set_flag(&context, c"userxattr")?;
    rustix::mount::fsconfig_set_string(&context, c"index", c"off")?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context)
}

fn mounted(context: &OwnedFd) -> Result<OwnedFd, Errno> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn made(store: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::OFlags;
    rustix::fs::mkdirat(store, name, mode)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(store, name, flags, Mode::empty())
}

/// A path that leads to a descriptor of this process. Does not allocate.
fn by_descriptor(descriptor: BorrowedFd<'_>) -> Result<Text, Errno> {
    let mut path = Text::from_bytes(b"/proc/self/fd/")?;
    path.push(rustix::path::DecInt::new(descriptor.as_raw_fd()).as_bytes())?;
    Ok(path)
}
