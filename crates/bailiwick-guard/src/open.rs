//! Opening what was checked, even while someone swaps links.
//!
//! A path is first followed to where it really leads, that place is checked, and then opened by a call in which
//! the kernel follows no link at all. If a link appeared in between, the call fails and everything is done again.
//!
//! Fails closed when the kernel has no `openat2`, when the path keeps changing, and for anything that is neither
//! a plain file nor a directory. Residual: a hard link is the file itself; a bind mount is part of the tree.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use bailiwick_policy::path::AbsPath;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// An existing file, its content kept.
    Modify,
    /// A new file; fails if there is one.
    CreateNew,
    /// A new file, or an existing one emptied.
    Replace,
    /// A new or existing file, written at its end.
    Append,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Read,
    Write(WriteMode),
}

/// Why a checked path was not opened.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// A link appeared: look again.
    Changed,
    /// It is a device, a pipe or a socket.
    NotAFile,
    /// The system's own reason.
    Io(io::Error),
}

/// No link is followed, wherever it stands in the path.
pub(crate) const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// Opens exactly the directory `path`, which has no links in it, to reach what lies in it.
pub(crate) fn open_directory(path: &AbsPath) -> Result<OwnedFd, NotOpened> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(rustix::fs::CWD, path.to_string(), flags, Mode::empty(), NO_LINKS);
    opened.map_err(not_opened)
}

/// Opens exactly `path`, which has no links in it.
pub(crate) fn open_exactly(path: &AbsPath, how: How) -> Result<File, NotOpened> {
    let flags = match how {
        How::Read => OFlags::RDONLY,
        How::Write(WriteMode::Modify) => OFlags::RDWR,
        How::Write(WriteMode::CreateNew) => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        // Emptied only once it is known to be a plain file.
        How::Write(WriteMode::Replace) => OFlags::RDWR | OFlags::CREATE,
        How::Write(WriteMode::Append) => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
    };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_bits_retain(0o644) } else { Mode::empty() };
    let opened = rustix::fs::openat2(rustix::fs::CWD, path.to_string(), flags, mode, NO_LINKS);
    let opened = opened.map_err(not_opened)?;
    let kind = rustix::fs::fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind.map_err(|errno| NotOpened::Io(errno.into()))? {
        FileType::RegularFile | FileType::Directory => {}
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => return Err(NotOpened::NotAFile),
    }
    let file = File::from(opened);
    if how == How::Write(WriteMode::Replace) {
        file.set_len(0).map_err(NotOpened::Io)?;
    }
    Ok(file)
}

fn not_opened(errno: Errno) -> NotOpened {
    match errno {
        Errno::LOOP | Errno::XDEV | Errno::AGAIN => NotOpened::Changed,
        Errno::NXIO => NotOpened::NotAFile,
        other => NotOpened::Io(other.into()),
    }
}
