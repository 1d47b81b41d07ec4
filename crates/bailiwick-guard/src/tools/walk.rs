//! Walking a directory that was opened, in the order of names, each directory before what lies in it.
//!
//! Everything is reached from the descriptor of the directory above it, by calls in which the kernel follows no link and
//! leaves that directory no other way. Links are met, never followed. Where the call may see only parts, what it may not
//! see is passed over in silence, as are names that cannot be judged because they are not UTF-8.
//!
//! Holds one descriptor a level and names of bounded number and size.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use bailiwick_policy::path::AbsPath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

use crate::gate::{Look, OpenedPath, ToolContext, child};
use crate::open::NO_LINKS;
use crate::tool::ToolError;

/// The most names of one directory that are worth keeping.
pub(super) const MAX_NAMES: usize = 100_000;

/// Bytes of all names that are kept, of all directories that a walk is in.
pub(super) const MAX_KEPT: usize = 24 * 1024 * 1024;

/// What a name takes besides its letters.
const PER_NAME: usize = 64;

/// A walk through a directory.
pub(super) struct Walk<'c> {
    context: &'c ToolContext,
    look: Look,
    whole: bool,
    levels: Vec<Level>,
    /// How many levels are walked.
    depth: usize,
    /// How many names of one directory are kept.
    keep: usize,
    /// Directories that could not be opened.
    pub(super) unreadable: usize,
    /// A directory had more names than were kept.
    pub(super) overfull: bool,
}

struct Level {
    directory: OwnedFd,
    /// Where it lies, as far as that can be written.
    path: Option<AbsPath>,
    /// Its path below the start, with a slash behind it.
    shown: String,
    names: std::vec::IntoIter<Vec<u8>>,
    /// Bytes of the names that were kept.
    kept: usize,
}

/// Why a directory was not entered.
pub(super) enum NotEntered {
    /// The call was cancelled, or its grant revoked.
    Stopped(ToolError),
    /// The system's own reason.
    Io(std::io::Error),
}

impl NotEntered {
    /// The error of the call.
    pub(super) fn into_error(self, failed: impl FnOnce(std::io::Error) -> ToolError) -> ToolError {
        match self {
            Self::Stopped(error) => error,
            Self::Io(error) => failed(error),
        }
    }
}

impl From<rustix::io::Errno> for NotEntered {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// What was met.
pub(super) struct Met {
    /// Its path below the start; bytes that are not UTF-8 are replaced.
    pub(super) shown: String,
    /// What it is.
    pub(super) kind: FileKind,
    /// Bytes, of a file.
    pub(super) size: u64,
    /// Where a link points.
    pub(super) target: Option<String>,
    path: Option<AbsPath>,
    name: Vec<u8>,
}

/// What lies in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    File,
    Directory,
    Link,
    Other,
}

impl FileKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "folder",
            Self::Link => "link",
            Self::Other => "other",
        }
    }

    fn from_stat(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

impl<'c> Walk<'c> {
    /// A walk from an opened directory, so many levels deep, keeping so many names of each directory.
    pub(super) fn new(
        context: &'c ToolContext,
        look: Look,
        place: OpenedPath,
        depth: usize,
        keep: usize,
    ) -> Result<Self, NotEntered> {
        let mut walk = Self {
            context,
            look,
            whole: place.whole,
            levels: Vec::new(),
            depth,
            keep,
            unreadable: 0,
            overfull: false,
        };
        walk.enter(place.file.into(), Some(place.path), String::new())?;
        Ok(walk)
    }

    /// What is met next; nothing at the end.
    ///
    /// # Errors
    /// The denial, if the grant was revoked meanwhile.
    pub(super) fn next(&mut self) -> Result<Option<Met>, ToolError> {
        loop {
            self.context.still_granted()?;
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            let Some(name) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            // What is gone meanwhile is not there.
            let Ok(stat) = rustix::fs::statat(&level.directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let met = level.met(name, &stat);
            if !self.sees(&met) {
                continue;
            }
            if met.kind == FileKind::Directory && self.levels.len() < self.depth {
                self.descend(&met)?;
            }
            return Ok(Some(met));
        }
    }

    /// Opens a file that was just met, for reading. Nothing if it is no plain file any more, or cannot be opened.
    ///
    /// # Errors
    /// The denial, where each file is asked for by itself.
    pub(super) fn open(&self, met: &Met) -> Result<Option<File>, ToolError> {
        let Some(level) = self.levels.last() else { return Ok(None) };
        if !self.whole {
            match &met.path {
                Some(path) => self.context.check_met(path)?,
                None => return Ok(None),
            }
        }
        let opened = below(&level.directory, &met.name, OFlags::NONBLOCK | OFlags::NOCTTY);
        let plain = |file: &OwnedFd| {
            rustix::fs::fstat(file).is_ok_and(|stat| FileKind::from_stat(&stat) == FileKind::File)
        };
        Ok(opened.ok().filter(plain).map(File::from))
    }

    fn sees(&self, met: &Met) -> bool {
        let closed = |path: &AbsPath| self.context.is_never_granted(Path::new(&path.to_string()));
        if self.whole {
            return !met.path.as_ref().is_some_and(closed);
        }
        let Some(path) = &met.path else { return false };
        self.context.may_see(path, self.look)
            || (met.kind == FileKind::Directory && self.context.leads_on(path, self.look))
    }

    fn descend(&mut self, met: &Met) -> Result<(), ToolError> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let entered = below(&level.directory, &met.name, OFlags::DIRECTORY)
            .map_err(NotEntered::from)
            .and_then(|directory| self.enter(directory, met.path.clone(), format!("{}/", met.shown)));
        match entered {
            Ok(()) => Ok(()),
            Err(NotEntered::Stopped(error)) => Err(error),
            Err(NotEntered::Io(_)) => {
                self.unreadable += 1;
                Ok(())
            }
        }
    }

    fn enter(&mut self, directory: OwnedFd, path: Option<AbsPath>, shown: String) -> Result<(), NotEntered> {
        let room = MAX_KEPT.saturating_sub(self.levels.iter().map(|level| level.kept).sum());
        let (mut names, mut kept) = (BTreeSet::new(), 0);
        let size = |name: &Vec<u8>| name.len() + PER_NAME;
        for entry in Dir::read_from(&directory)? {
            self.context.still_granted().map_err(NotEntered::Stopped)?;
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = name.to_vec();
            kept += size(&name);
            names.insert(name);
            if names.len() > self.keep || kept > room {
                kept -= names.pop_last().as_ref().map_or(0, size);
                self.overfull = true;
            }
        }
        let names = names.into_iter().collect::<Vec<_>>().into_iter();
        self.levels.push(Level { directory, path, shown, names, kept });
        Ok(())
    }
}

impl Level {
    fn met(&self, name: Vec<u8>, stat: &Stat) -> Met {
        let kind = FileKind::from_stat(stat);
        let text = std::str::from_utf8(&name).ok();
        let path = self.path.as_ref().zip(text).and_then(|(directory, name)| child(directory, name));
        let target = (kind == FileKind::Link)
            .then(|| rustix::fs::readlinkat(&self.directory, &*name, Vec::new()).ok())
            .flatten()
            .map(|target| String::from_utf8_lossy(target.as_bytes()).into_owned());
        Met {
            shown: format!("{}{}", self.shown, String::from_utf8_lossy(&name)),
            kind,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            target,
            path,
            name,
        }
    }
}

/// Opens what has this name in the directory, whatever it is, but never a link.
fn below(directory: &OwnedFd, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat2(directory, name, flags, Mode::empty(), NO_LINKS | ResolveFlags::BENEATH)
}
