//! A copy-on-write layer: what the program writes to a directory of the host goes to memory, and the host stays as it is.
//!
//! One file system in memory, mounted nowhere, holds two directories for each layered tree. The kernel's overlay shows the
//! host's directory with the written one over it. Both are named by descriptor, so no character of a path means anything to
//! the kernel's options. Rules of Landlock are opened on the merged tree afterwards.
//!
//! Where the kernel refuses an overlay, and for a single file, a copy takes its place: in the same file system, so bounded by its
//! size, and by a number of entries. What is neither file, directory nor link is left out of it.
//!
//! Fails closed when: the kernel refuses an overlay and the copy is too large, too deep, or holds what cannot be read. Nothing
//! is started then.
//! Residual: an overlay does not show what is mounted below its directory, nor does a copy; moving a directory of the host answers
//! `EXDEV` in an overlay, as between file systems, and programs copy it then.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use bailiwick_layout::entries::{Attributes, LayerPlace};
use bailiwick_layout::fault::Step;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};

use super::desk::text::Text;
use crate::sys::mount::{copy, restrict_alone};

const MOUNTED: &CStr = c".bailiwick-layers";
/// How many entries a copy may have.
const MOST_ENTRIES: usize = 100_000;
/// How deep its directories may lie.
const MOST_DEPTH: usize = 100;
/// How much of a file is copied by one call.
const PIECE: usize = 1 << 24;

/// The file system that holds all layers of a sandbox.
pub(super) struct Store {
    inner: OwnedFd,
    is_mounted: bool,
    /// How many entries copies may still have.
    left: usize,
}

impl Store {
    pub(super) fn new(size: &CStr) -> Result<Self, Errno> {
        Ok(Self { inner: store(size)?, is_mounted: false, left: MOST_ENTRIES })
    }

    /// A directory or file of the host that takes writes without changing, mounted nowhere yet.
    pub(super) fn tree(
        &mut self,
        root: BorrowedFd<'_>,
        lower: BorrowedFd<'_>,
        place: &LayerPlace,
        attributes: Attributes,
    ) -> Result<OwnedFd, (Step, Errno)> {
        if place.file.is_none()
            && let Ok(merged) = over(lower, self.inner.as_fd(), place)
        {
            restrict_alone(merged.as_fd(), attributes).map_err(|errno| (Step::Layer, errno))?;
            return Ok(merged);
        }
        self.copied(root, lower, place, attributes).map_err(|errno| (Step::Copy, errno))
    }

    fn copied(
        &mut self,
        root: BorrowedFd<'_>,
        lower: BorrowedFd<'_>,
        place: &LayerPlace,
        attributes: Attributes,
    ) -> Result<OwnedFd, Errno> {
        let about = fstat(lower)?;
        match &place.file {
            Some(name) => {
                let around = made(self.inner.as_fd(), &place.upper, Mode::RWXU)?;
                let by_descriptor = by_descriptor(lower)?;
                let source = rustix::fs::open(by_descriptor.as_c()?, READ - OFlags::NOFOLLOW, Mode::empty())?;
                copy_opened(&source, around.as_fd(), name)?;
            }
            None => {
                let mode = Mode::from_raw_mode(about.st_mode & 0o777);
                let to = made(self.inner.as_fd(), &place.copy, mode)?;
                let from = openat(lower, c".", READ | OFlags::DIRECTORY, Mode::empty())?;
                copy_entries(&from, &to, about.st_dev, (MOST_DEPTH, &mut self.left))?;
            }
        }
        if !self.is_mounted {
            rustix::fs::mkdirat(root, MOUNTED, Mode::RWXU)?;
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            rustix::mount::move_mount(&self.inner, c"", root, MOUNTED, flags)?;
            self.is_mounted = true;
        }
        copy(root, &place.mounted, attributes)
    }

    /// Takes the store out of the new root, where it was mounted for copies.
    pub(super) fn leave(self, root: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
        if self.is_mounted {
            rustix::process::fchdir(root)?;
            rustix::mount::unmount(MOUNTED, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
            rustix::fs::unlinkat(root, MOUNTED, AtFlags::REMOVEDIR)?;
        }
        Ok(self.inner)
    }
}

/// How what is copied is opened: never through a link, and never waiting.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Copies what lies in a directory; how deep it may lie, and how many entries may come, is counted down.
fn copy_entries(
    from: &OwnedFd,
    to: &OwnedFd,
    device: u64,
    (depth, left): (usize, &mut usize),
) -> Result<(), Errno> {
    let mut room = [MaybeUninit::uninit(); 2048];
    let mut entries = rustix::fs::RawDir::new(from, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *left = left.checked_sub(1).ok_or(Errno::DQUOT)?;
        let about = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => {
                let own = made(to.as_fd(), name, Mode::from_raw_mode(about.st_mode & 0o777))?;
                // What is mounted below does not show, as in an overlay.
                if about.st_dev == device {
                    let deeper = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
                    let from = openat(from, name, READ | OFlags::DIRECTORY, Mode::empty())?;
                    copy_entries(&from, &own, device, (deeper, &mut *left))?;
                }
            }
            FileType::RegularFile => {
                copy_opened(&openat(from, name, READ, Mode::empty())?, to.as_fd(), name)?;
            }
            FileType::Symlink => copy_link(from, to, name)?,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
    }
    Ok(())
}

fn copy_opened(from: &OwnedFd, to: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let about = fstat(from)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = openat(to, name, flags, Mode::from_raw_mode(about.st_mode & 0o777))?;
    while rustix::fs::sendfile(&to, from, None, PIECE)? > 0 {}
    Ok(())
}

fn copy_link(from: &OwnedFd, to: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let mut target = Text::new();
    target.fill(|room| rustix::fs::readlinkat_raw(from, name, room))?;
    rustix::fs::symlinkat(target.as_c()?, to, name)
}

fn store(size: &CStr) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, c"mode", c"0700")?;
    rustix::mount::fsconfig_set_string(&context, c"size", size)?;
    rustix::mount::fsconfig_create(&context)?;
    mounted(&context)
}

/// The host's directory with a layer over it, mounted nowhere yet.
fn over(lower: BorrowedFd<'_>, store: BorrowedFd<'_>, place: &LayerPlace) -> Result<OwnedFd, Errno> {
    // The top of the merged tree has the mode of the written directory.
    let mode = Mode::from_raw_mode(fstat(lower)?.st_mode & 0o777);
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
