//! Changes carried over to the host, one entry at a time, each from an open directory.

use std::ffi::{CStr, CString};
use std::io::{Read as _, Seek as _, SeekFrom as From, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, SeekFrom, fchmod, mkdirat, openat, readlinkat, renameat_with,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::walk::{MOST_DEPTH, directory, failed, file, is_newer, kind_of, look, names};
use crate::{Change, ChangeKind, EntryKind, LayerError, WrittenTree};

/// Carries the changes of one tree over, in their order: a directory comes before what lies in it.
pub(crate) fn carry_over(tree: &WrittenTree, changes: &[Change]) -> Result<(), LayerError> {
    let mut serial = 0_u64;
    for change in changes {
        serial += 1;
        carry(tree, change, serial).map_err(|errno| match errno {
            Errno::STALE => LayerError::Conflict { path: change.path.clone() },
            errno => failed("carry over", &change.path)(errno),
        })?;
    }
    Ok(())
}

fn carry(tree: &WrittenTree, change: &Change, serial: u64) -> Result<(), Errno> {
    let rest = change.path.strip_prefix(&tree.path).map_err(|_| Errno::INVAL)?;
    let name = name_of(rest)?;
    let lower = parent_of(tree.lower.as_fd(), rest)?;
    let there = look(lower.as_fd(), &name)?;
    // Looked at again: another process may have changed it since it was listed.
    let is_conflict = match (&there, change.kind) {
        (None, ChangeKind::Deleted) => return Ok(()),
        (Some(_), ChangeKind::Added) => change.entry != EntryKind::Directory,
        (Some(there), _) => kind_of(there) != EntryKind::Directory && is_newer(there, tree.since),
        (None, ChangeKind::Added | ChangeKind::Modified) => false,
    };
    if is_conflict {
        return Err(Errno::STALE);
    }
    if change.kind == ChangeKind::Deleted {
        return remove(lower.as_fd(), &name, 0);
    }
    let upper = parent_of(tree.upper.as_fd(), rest)?;
    let written = look(upper.as_fd(), &name)?.ok_or(Errno::NOENT)?;
    let mode = Mode::from_raw_mode(written.st_mode & 0o777);
    let is_in_the_way = there.as_ref().is_some_and(|there| {
        (kind_of(there) == EntryKind::Directory) != (kind_of(&written) == EntryKind::Directory)
    });
    if is_in_the_way {
        remove(lower.as_fd(), &name, 0)?;
    }
    let spare =
        CString::new(format!(".bailiwick-{}-{serial}", std::process::id())).map_err(|_| Errno::INVAL)?;
    match kind_of(&written) {
        EntryKind::Directory => match mkdirat(&lower, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => return fchmod(directory(lower.as_fd(), &name)?, mode | Mode::RWXU),
            Err(errno) => return Err(errno),
        },
        EntryKind::Link => symlinkat(&*readlinkat(&upper, &name, Vec::new())?, &lower, &spare)?,
        EntryKind::File => {
            if let Err(errno) = copy(file(upper.as_fd(), &name)?, lower.as_fd(), &spare, mode) {
                let _ = unlinkat(&lower, &spare, AtFlags::empty());
                return Err(errno);
            }
        }
        EntryKind::Special => return Err(Errno::INVAL),
    }
    let flags = if there.is_none() { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
    renameat_with(&lower, &spare, &lower, &name, flags).map_err(|errno| {
        let _ = unlinkat(&lower, &spare, AtFlags::empty());
        if errno == Errno::EXIST { Errno::STALE } else { errno }
    })
}

/// The directory that an entry lies in, one component after the other.
fn parent_of(tree: BorrowedFd<'_>, rest: &Path) -> Result<OwnedFd, Errno> {
    let mut open = directory(tree, c".")?;
    for part in rest.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = part else { return Err(Errno::INVAL) };
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        open = directory(open.as_fd(), &name)?;
    }
    Ok(open)
}

fn name_of(rest: &Path) -> Result<CString, Errno> {
    let name = rest.file_name().ok_or(Errno::INVAL)?;
    CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)
}

/// Removes an entry with all that lies in it.
fn remove(parent: BorrowedFd<'_>, name: &CStr, depth: usize) -> Result<(), Errno> {
    let Some(there) = look(parent, name)? else { return Ok(()) };
    if kind_of(&there) != EntryKind::Directory {
        return unlinkat(parent, name, AtFlags::empty());
    }
    if depth > MOST_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let own = directory(parent, name)?;
    for name in names(own.as_fd())? {
        remove(own.as_fd(), &name, depth + 1)?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Copies a file into a new one, its holes as holes: what is large may be mostly nothing.
fn copy(mut from: std::fs::File, to: BorrowedFd<'_>, name: &CStr, mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = std::fs::File::from(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    let errno = |fault: std::io::Error| Errno::from_io_error(&fault).unwrap_or(Errno::IO);
    let length = from.metadata().map_err(errno)?.len();
    to.set_len(length).map_err(errno)?;
    let mut at = 0;
    while at < length {
        let start = match rustix::fs::seek(&from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno),
        };
        let end = rustix::fs::seek(&from, SeekFrom::Hole(start))?;
        from.seek(From::Start(start)).map_err(errno)?;
        to.seek(From::Start(start)).map_err(errno)?;
        std::io::copy(&mut (&mut from).take(end.saturating_sub(start)), &mut to).map_err(errno)?;
        at = end;
    }
    to.flush().map_err(errno)?;
    fchmod(&to, mode)
}
