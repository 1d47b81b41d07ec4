//! Where a call leads: the directory, opened, and the last component in it; and whether that name runs code later.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use bailiwick_layout::weakened;
use bailiwick_policy::run_later::{self, Ground, Role};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, readlinkat_raw, statat};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::call::Named;
use super::text::{Split, Text, lies_in, split};
use super::{Desk, Identity, Turn};
use crate::native::guarded::{Guarded, PRIVATE, Tree};
use crate::sys::here;
use crate::sys::notify::TrappedCall;

/// An entry of a directory in a guarded tree.
pub(super) struct Spot<'a> {
    pub(super) tree: &'a Tree,
    /// The directory.
    pub(super) parent: OwnedFd,
    /// The entry's name.
    pub(super) name: Text,
    /// Where the directory is inside the sandbox.
    pub(super) inside: Text,
    /// Where the entry is on the host: what it is judged by.
    pub(super) real: Text,
    /// Whether the caller wants a directory there.
    pub(super) slash: bool,
    /// When this process came to work in the directory.
    since: u64,
}

/// What may be done to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Anything.
    Free,
    /// Anything but to bring along what lies below it: protected names would appear.
    OnTheWay,
    /// Nothing.
    Refused,
}

impl<'a> Desk<'a> {
    /// Where a path of a caller leads; `None` if that is in no guarded tree, or nowhere.
    pub(super) fn spot(&self, asked: &TrappedCall, what: &Named) -> Option<Spot<'a>> {
        let path = what.path.as_bytes();
        match self.base(asked, what.at, path)? {
            None => self.spot_from(self.root.as_fd(), path),
            Some(base) if path.first() == Some(&b'/') => {
                self.spot_at(base.as_fd(), path, ResolveFlags::IN_ROOT)
            }
            Some(base) => self.spot_from(base.as_fd(), path),
        }
    }

    /// The same of a call that changes something there, or what becomes of the call instead.
    ///
    /// The kernel decides what leads elsewhere, but not what leads nowhere: until it looks, another thread may have made the
    /// missing directory, and the net refuses whatever was not judged here.
    pub(super) fn spot_or_turn(&self, asked: &TrappedCall, what: &Named) -> Result<Spot<'a>, Turn> {
        if let Some(spot) = self.spot(asked, what) {
            return Ok(spot);
        }
        if self.is_nowhere(asked, what) {
            return Err(Errno::NOENT.into());
        }
        self.spot(asked, what).ok_or(Turn::Proceed)
    }

    /// Whether a directory on the way is missing. What is this process' own is not the caller's.
    fn is_nowhere(&self, asked: &TrappedCall, what: &Named) -> bool {
        let path = what.path.as_bytes();
        if path.starts_with(b"/proc/") || path.starts_with(b"/dev/") {
            return false;
        }
        let Some(Split { parent, .. }) = split(path) else { return false };
        let opened = match self.base(asked, what.at, path) {
            None => return false,
            Some(None) => directory(self.root.as_fd(), parent, ResolveFlags::empty()),
            Some(Some(base)) if path.first() == Some(&b'/') => {
                directory(base.as_fd(), parent, ResolveFlags::IN_ROOT)
            }
            Some(Some(base)) => directory(base.as_fd(), parent, ResolveFlags::empty()),
        };
        opened.is_err_and(|errno| errno == Errno::NOENT)
    }

    /// The same from a directory that is open here.
    pub(super) fn spot_from(&self, base: BorrowedFd<'_>, path: &[u8]) -> Option<Spot<'a>> {
        self.spot_at(base, path, ResolveFlags::empty())
    }

    fn spot_at(&self, base: BorrowedFd<'_>, path: &[u8], resolve: ResolveFlags) -> Option<Spot<'a>> {
        let Split { parent, name, slash } = split(path)?;
        let parent = directory(base, parent, resolve).ok()?;
        let inside = directory_path(parent.as_fd()).ok()?;
        let tree = self.guarded.tree_around(inside.as_bytes())?;
        let real = real_path(tree, &inside, name)?;
        let since = MOVES.load(Ordering::Relaxed);
        Some(Spot { tree, parent, name: Text::from_bytes(name).ok()?, inside, real, slash, since })
    }

    /// The spots of both paths of a call. Where both name the same directory in the same words it is looked for once.
    pub(super) fn two_spots(
        &self,
        asked: &TrappedCall,
        [from, to]: [&Named; 2],
    ) -> Result<[Spot<'a>; 2], Turn> {
        let old = self.spot_or_turn(asked, from)?;
        let beside = |new: Split<'_>| {
            let is_same =
                from.at == to.at && split(from.path.as_bytes()).is_some_and(|old| old.parent == new.parent);
            let parent = is_same.then(|| rustix::io::fcntl_dupfd_cloexec(&old.parent, 3).ok()).flatten()?;
            let real = real_path(old.tree, &old.inside, new.name)?;
            let inside = Text::from_bytes(old.inside.as_bytes()).ok()?;
            let name = Text::from_bytes(new.name).ok()?;
            Some(Spot { tree: old.tree, parent, name, inside, real, slash: new.slash, since: old.since })
        };
        let new = match split(to.path.as_bytes()).and_then(beside) {
            Some(new) => new,
            None => self.spot_or_turn(asked, to)?,
        };
        Ok([old, new])
    }

    /// The directory that a caller's path starts from: `Some(None)` is the root.
    #[expect(clippy::option_option, reason = "no directory, or the root, or another")]
    pub(super) fn base(&self, asked: &TrappedCall, at: i32, path: &[u8]) -> Option<Option<OwnedFd>> {
        let absolute = path.first() == Some(&b'/');
        if absolute && !self.nested {
            return Some(None);
        }
        if absolute {
            return self.link_of(asked.thread, c"root").ok().map(Some);
        }
        if at == libc::AT_FDCWD {
            return self.link_of(asked.thread, c"cwd").ok().map(Some);
        }
        descriptor_of(asked.thread, at).ok().map(Some)
    }

    /// What `/proc` has of a thread: its root or its working directory.
    fn link_of(&self, thread: u32, name: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&self.proc, DecInt::new(thread), flags, Mode::empty())?;
        rustix::fs::openat(&own, name, flags, Mode::empty())
    }

    /// The program that a thread runs.
    pub(super) fn program_of(&self, thread: u32) -> Result<Text, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&self.proc, DecInt::new(thread), flags, Mode::empty())?;
        let mut text = Text::new();
        text.fill(|room| readlinkat_raw(&own, c"exe", room))?;
        Ok(text)
    }

    /// Where an open file or directory is inside the sandbox.
    pub(super) fn path_of(&self, descriptor: BorrowedFd<'_>) -> Result<Text, Errno> {
        let mut text = Text::new();
        text.fill(|room| {
            let number = DecInt::from_fd(descriptor);
            readlinkat_raw(&self.own, number, room)
        })?;
        Ok(text)
    }

    /// What may be done to an entry.
    pub(super) fn judge(&self, spot: &Spot<'_>) -> Judged {
        self.judge_path(spot.real.as_bytes())
    }

    /// The same by its path on the host.
    pub(super) fn judge_path(&self, real: &[u8]) -> Judged {
        let judged = self.weigh(real);
        if judged == Judged::Refused && !self.guarded.is_closed(real) {
            self.tell_protected(real);
        }
        judged
    }

    /// The same, of which no one is told.
    pub(super) fn weigh(&self, real: &[u8]) -> Judged {
        if weakened::NAMES || lies_in(real, PRIVATE) {
            return Judged::Free;
        }
        if self.guarded.is_closed(real) {
            return Judged::Refused;
        }
        match run_later::role(real, &Around { desk: self }) {
            Role::Free => Judged::Free,
            Role::OnTheWay => Judged::OnTheWay,
            Role::Protected if self.guarded.is_lifted(real) || self.is_fresh(real) => Judged::Free,
            Role::Protected => Judged::Refused,
        }
    }

    /// Whether a path lies in a repository that was made by this very program, outside of any other.
    pub(super) fn is_fresh(&self, real: &[u8]) -> bool {
        if self.fresh.iter().all(Option::is_none) {
            return false;
        }
        let ends = real.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.chain([real.len()]).filter_map(|end| real.get(..end)).any(|above| {
            above.ends_with(b"/.git")
                && self.identity_at(above).is_some_and(|own| self.fresh.contains(&Some(own)))
        })
    }

    fn identity_at(&self, real: &[u8]) -> Option<Identity> {
        let inside = self.guarded.inside(real)?;
        let found = statat(&self.root, inside.as_c().ok()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(found.st_mode) == FileType::Directory).then(|| Identity::from_stat(&found))
    }

    /// Whether something exists in a directory of the host that the sandbox sees.
    fn exists(&self, directory: &[u8], name: &[u8]) -> Option<bool> {
        let mut path = self.guarded.inside(directory)?;
        path.push(b"/").ok()?;
        path.push(name).ok()?;
        Some(statat(&self.root, path.as_c().ok()?, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Whether a directory lies in a git work tree: it or one above it holds a `.git`.
    pub(super) fn is_in_work_tree(&self, tree: &Tree, directory: &[u8]) -> bool {
        !lies_in(directory, PRIVATE) && (tree.in_work_tree || self.work_tree(tree, directory).is_some())
    }

    /// The length of the path of the innermost work tree around a directory of the host, within its writable tree.
    pub(super) fn work_tree(&self, tree: &Tree, directory: &[u8]) -> Option<usize> {
        let mut end = directory.len();
        loop {
            let above = directory.get(..end)?;
            if !lies_in(above, &tree.source) {
                return None;
            }
            if self.exists(above, b".git") != Some(false) {
                return Some(end);
            }
            end = above.iter().rposition(|byte| *byte == b'/')?;
        }
    }

    /// Whether git would take the directory of an entry for a repository once the entry is there.
    pub(super) fn completes_repository(&self, spot: &Spot<'_>) -> bool {
        const PARTS: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];
        let name = spot.name.as_bytes();
        if !PARTS.iter().any(|part| part.eq_ignore_ascii_case(name)) {
            return false;
        }
        let Ok(directory) = spot.tree.real(spot.inside.as_bytes()) else { return true };
        // Whatever runs code in a submodule's repository was judged before it is one.
        if run_later::is_module(directory.as_bytes(), &Around { desk: self }) {
            return false;
        }
        let is_there = |part: &&[u8]| self.exists(directory.as_bytes(), part) != Some(false);
        let others = PARTS.iter().filter(|part| !part.eq_ignore_ascii_case(name));
        !self.is_fresh(directory.as_bytes())
            && self.exists(directory.as_bytes(), name) != Some(true)
            && others.filter(|part| is_there(part)).count() == 2
            && self.is_in_work_tree(spot.tree, directory.as_bytes())
    }
}

/// How often this process went to work in another directory. It has one thread.
static MOVES: AtomicU64 = AtomicU64::new(0);

/// Works in a directory from now on. No path is relative to that.
pub(super) fn work_in(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    MOVES.fetch_add(1, Ordering::Relaxed);
    rustix::process::fchdir(directory)
}

/// Where an open directory is inside the sandbox: asking for the own working directory takes a third of what asking
/// `/proc` for the path of a descriptor does.
fn directory_path(directory: BorrowedFd<'_>) -> Result<Text, Errno> {
    work_in(directory)?;
    working_path()
}

fn working_path() -> Result<Text, Errno> {
    let mut text = Text::new();
    text.fill(here::path)?;
    Ok(text)
}

/// Where the directory of an entry is now.
pub(super) fn path_now(spot: &Spot<'_>) -> Result<Text, Errno> {
    // Mostly this process still works there.
    if MOVES.load(Ordering::Relaxed) == spot.since {
        working_path()
    } else {
        directory_path(spot.parent.as_fd())
    }
}

/// Where an entry of a directory is on the host.
fn real_path(tree: &Tree, inside: &Text, name: &[u8]) -> Option<Text> {
    let mut real = tree.real(inside.as_bytes()).ok()?;
    if real.as_bytes() != b"/" {
        real.push(b"/").ok()?;
    }
    real.push(name).ok()?;
    Some(real)
}

/// A directory, no magic link followed: those are this process' own.
fn directory(base: BorrowedFd<'_>, path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = Text::from_bytes(if path.is_empty() { b"." } else { path })?;
    openat2(base, path.as_c()?, flags, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS)
}

/// What an entry is; `None` if it is not there.
pub(super) fn kind_at(spot: &Spot<'_>) -> Option<FileType> {
    let found = statat(&spot.parent, spot.name.as_c().ok()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// Whether a directory holds nothing; no if that cannot be seen.
pub(super) fn is_empty(spot: &Spot<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened =
        spot.name.as_c().and_then(|name| rustix::fs::openat(&spot.parent, name, flags, Mode::empty()));
    let Ok(directory) = opened else { return false };
    let mut room = [std::mem::MaybeUninit::uninit(); 1024];
    let mut entries = rustix::fs::RawDir::new(&directory, &mut room);
    while let Some(entry) = entries.next() {
        if !entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")) {
            return false;
        }
    }
    true
}

/// Another thread's descriptor, duplicated.
pub(super) fn descriptor_of(thread: u32, descriptor: i32) -> Result<OwnedFd, Errno> {
    let process = thread_descriptor(thread)?;
    pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())
}

/// A descriptor of another thread itself; of its process where the kernel knows no better.
pub(super) fn thread_descriptor(thread: u32) -> Result<OwnedFd, Errno> {
    /// `PIDFD_THREAD`, from 6.9.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    match pidfd_open(thread, THREAD) {
        Err(Errno::INVAL) => pidfd_open(thread, PidfdFlags::empty()),
        opened => opened,
    }
}

/// What is around a path of the host, as far as the sandbox sees it. What it does not see may be anything.
struct Around<'d, 'a> {
    desk: &'d Desk<'a>,
}

impl Ground for Around<'_, '_> {
    fn is_home(&self, directory: &[u8]) -> bool {
        Guarded::is_home(self.desk.guarded, directory)
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        self.desk.exists(directory, b".git").unwrap_or(true)
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        run_later::is_repository(|name| self.desk.exists(directory, name.as_bytes()).unwrap_or(true))
    }
}
