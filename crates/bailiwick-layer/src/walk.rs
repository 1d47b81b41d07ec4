//! Both directories of a layer side by side, entry by entry.

use std::ffi::{CStr, CString};
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fgetxattr, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::{Change, ChangeKind, EntryKind, LayerError, WrittenTree};

/// How many changes are looked at in one tree.
const MOST_CHANGES: usize = 200_000;
/// How deep directories may lie: each takes a descriptor.
pub(crate) const MOST_DEPTH: usize = 200;
/// How far behind the clock the time of a change may be: the kernel stamps files once a tick, the longest of which is this.
const TICK: Duration = Duration::from_millis(10);

pub(crate) fn changes(tree: &WrittenTree) -> Result<Vec<Change>, LayerError> {
    let at = |what| failed(what, &tree.path);
    let lower = directory(tree.lower.as_fd(), c".").map_err(at("open"))?;
    let upper = directory(tree.upper.as_fd(), c".").map_err(at("open what was written to"))?;
    let device = fstat(&lower).map_err(at("look at"))?.st_dev;
    let mut walk = Walk { tree, device, found: Vec::new() };
    // Of a copy nothing shows through: it is compared as a directory that was made anew.
    walk.compare(&tree.path, (upper.as_fd(), Some(lower.as_fd())), tree.is_copy, 0)?;
    Ok(walk.found)
}

/// What was written, and what the host has.
type Pair<'a> = (BorrowedFd<'a>, Option<BorrowedFd<'a>>);

struct Walk<'a> {
    tree: &'a WrittenTree,
    /// The file system of the host's directory.
    device: u64,
    found: Vec<Change>,
}

impl Walk<'_> {
    /// Compares one written directory with the one of the host, if the host has one. Of a directory that was made anew
    /// nothing of the host's is left, nor of those in it.
    fn compare(
        &mut self,
        path: &Path,
        (upper, lower): Pair<'_>,
        is_anew: bool,
        depth: usize,
    ) -> Result<(), LayerError> {
        if depth > MOST_DEPTH {
            return Err(LayerError::TooDeep { path: path.to_owned(), most: MOST_DEPTH });
        }
        let written = names(upper).map_err(failed("list what was written to", path))?;
        let is_anew = is_anew || is_opaque(upper);
        if let Some(lower) = lower.filter(|lower| is_anew && !self.was_left_out(*lower)) {
            for name in names(lower).map_err(failed("list", path))? {
                if written.binary_search(&name).is_err() && !self.cannot_be_copied(lower, &name) {
                    self.deleted(&below(path, &name), lower, &name, depth)?;
                }
            }
        }
        for name in written {
            self.entry(&below(path, &name), (upper, lower), (&name, is_anew), depth)?;
        }
        Ok(())
    }

    /// Whether a copy has nothing of a directory of the host, because something else is mounted there.
    fn was_left_out(&self, lower: BorrowedFd<'_>) -> bool {
        self.tree.is_copy && fstat(lower).is_ok_and(|about| about.st_dev != self.device)
    }

    /// Whether a copy never had an entry of the host.
    fn cannot_be_copied(&self, lower: BorrowedFd<'_>, name: &CStr) -> bool {
        let is_special =
            |there: Option<Stat>| there.is_some_and(|there| kind_of(&there) == EntryKind::Special);
        self.tree.is_copy && look(lower, name).is_ok_and(is_special)
    }

    fn entry(
        &mut self,
        path: &Path,
        (upper, lower): Pair<'_>,
        (name, is_anew): (&CStr, bool),
        depth: usize,
    ) -> Result<(), LayerError> {
        let written = look(upper, name)
            .transpose()
            .ok_or(Errno::NOENT)
            .flatten()
            .map_err(failed("look at what was written to", path))?;
        let there =
            lower.map(|lower| look(lower, name)).transpose().map_err(failed("look at", path))?.flatten();
        if is_whiteout(&written) {
            return match (lower, there) {
                (Some(lower), Some(_)) => self.deleted(path, lower, name, depth),
                _ => Ok(()),
            };
        }
        let kind = kind_of(&written);
        let old = there.as_ref().map(kind_of);
        let is_newer = there.as_ref().is_some_and(|there| self.is_newer(there));
        if kind == EntryKind::Directory {
            let is_kept = old == Some(EntryKind::Directory);
            let change = if there.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
            let has_other_mode = there.is_some_and(|there| (written.st_mode ^ there.st_mode) & 0o777 != 0);
            if !is_kept || has_other_mode {
                self.note(change, path, kind, is_newer && !is_kept)?;
            }
            let own = directory(upper, name).map_err(failed("open what was written to", path))?;
            let host = lower.filter(|_| is_kept).map(|lower| directory(lower, name));
            let host = host.transpose().map_err(failed("open", path))?;
            return self.compare(path, (own.as_fd(), host.as_ref().map(AsFd::as_fd)), is_anew, depth + 1);
        }
        match (there, lower) {
            (Some(there), Some(lower)) => {
                // A directory that made room for something else may hold what the host made meanwhile.
                let is_newer = is_newer
                    || (old == Some(EntryKind::Directory) && self.holds_newer(path, lower, name, depth)?);
                let differs = old != Some(kind)
                    || differs((upper, &written), (lower, &there), name).map_err(failed("compare", path))?;
                if differs { self.note(ChangeKind::Modified, path, kind, is_newer) } else { Ok(()) }
            }
            _ => self.note(ChangeKind::Added, path, kind, false),
        }
    }

    fn deleted(
        &mut self,
        path: &Path,
        lower: BorrowedFd<'_>,
        name: &CStr,
        depth: usize,
    ) -> Result<(), LayerError> {
        let Some(there) = look(lower, name).map_err(failed("look at", path))? else { return Ok(()) };
        let kind = kind_of(&there);
        let is_newer = (kind != EntryKind::Directory && self.is_newer(&there))
            || (kind == EntryKind::Directory && self.holds_newer(path, lower, name, depth)?);
        self.note(ChangeKind::Deleted, path, kind, is_newer)
    }

    /// Whether the host changed anything in a directory that the program removed.
    fn holds_newer(
        &self,
        path: &Path,
        lower: BorrowedFd<'_>,
        name: &CStr,
        depth: usize,
    ) -> Result<bool, LayerError> {
        if depth > MOST_DEPTH {
            return Err(LayerError::TooDeep { path: path.to_owned(), most: MOST_DEPTH });
        }
        let own = directory(lower, name).map_err(failed("open", path))?;
        if self.is_newer(&fstat(&own).map_err(failed("look at", path))?) {
            return Ok(true);
        }
        for name in names(own.as_fd()).map_err(failed("list", path))? {
            let Some(there) = look(own.as_fd(), &name).map_err(failed("look at", path))? else { continue };
            let is_newer = match kind_of(&there) {
                EntryKind::Directory => {
                    self.holds_newer(&below(path, &name), own.as_fd(), &name, depth + 1)?
                }
                EntryKind::File | EntryKind::Link | EntryKind::Special => self.is_newer(&there),
            };
            if is_newer {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_newer(&self, there: &Stat) -> bool {
        is_newer(there, self.tree.since)
    }

    fn note(
        &mut self,
        kind: ChangeKind,
        path: &Path,
        entry: EntryKind,
        is_conflict: bool,
    ) -> Result<(), LayerError> {
        if self.found.len() >= MOST_CHANGES {
            return Err(LayerError::TooMany { path: self.tree.path.clone(), most: MOST_CHANGES });
        }
        self.found.push(Change { kind, path: path.to_owned(), entry, is_conflict });
        Ok(())
    }
}

/// Whether the host changed an entry after that time.
#[expect(clippy::allow_attributes, reason = "the field types differ between architectures")]
pub(crate) fn is_newer(there: &Stat, since: SystemTime) -> bool {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "the field types differ"
    )]
    let seconds = u64::try_from(there.st_ctime).unwrap_or(0);
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "the field types differ"
    )]
    let nanoseconds = u32::try_from(there.st_ctime_nsec).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds) + TICK > since
}

pub(crate) fn failed(what: &'static str, path: &Path) -> impl Fn(Errno) -> LayerError {
    let path = path.to_owned();
    move |errno| LayerError::Failed { what, path: path.clone(), source: errno.into() }
}

/// An entry that is looked at without following a link; `None` if it is not there.
pub(crate) fn look(directory: BorrowedFd<'_>, name: &CStr) -> Result<Option<Stat>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A directory in another one; never through a link.
pub(crate) fn directory(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

pub(crate) fn kind_of(found: &Stat) -> EntryKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => EntryKind::Special,
    }
}

/// How the overlay says that an entry of the host is gone.
fn is_whiteout(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && found.st_rdev == 0
}

/// Whether nothing of the host's directory of that name is there any more.
pub(crate) fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0; 4];
    fgetxattr(directory, c"user.overlay.opaque", &mut value)
        .is_ok_and(|length| length > 0 && value[0] == b'y')
}

/// The names in a directory, in order.
pub(crate) fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            found.push(entry.file_name().to_owned());
        }
    }
    found.sort();
    Ok(found)
}

fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Whether two entries of one kind and name differ: in mode, length, content or target.
fn differs(
    (upper, written): (BorrowedFd<'_>, &Stat),
    (lower, there): (BorrowedFd<'_>, &Stat),
    name: &CStr,
) -> Result<bool, Errno> {
    if (written.st_mode ^ there.st_mode) & 0o777 != 0 || written.st_size != there.st_size {
        return Ok(true);
    }
    match kind_of(written) {
        EntryKind::Link => Ok(readlinkat(upper, name, Vec::new())? != readlinkat(lower, name, Vec::new())?),
        EntryKind::File => contents_differ(file(upper, name)?, file(lower, name)?),
        EntryKind::Directory | EntryKind::Special => Ok(false),
    }
}

/// A file, opened for reading; never through a link, and never waiting.
pub(crate) fn file(directory: BorrowedFd<'_>, name: &CStr) -> Result<std::fs::File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty()).map(std::fs::File::from)
}

fn contents_differ(one: std::fs::File, other: std::fs::File) -> Result<bool, Errno> {
    let mut bytes = (std::io::BufReader::new(one).bytes(), std::io::BufReader::new(other).bytes());
    loop {
        match (bytes.0.next().transpose(), bytes.1.next().transpose()) {
            (Ok(None), Ok(None)) => return Ok(false),
            (Ok(one), Ok(other)) if one == other => {}
            (Ok(_), Ok(_)) => return Ok(true),
            (Err(fault), _) | (_, Err(fault)) => {
                return Err(Errno::from_io_error(&fault).unwrap_or(Errno::IO));
            }
        }
    }
}
