//! Placeholders: empty folders on the host that keep a name from coming into being while a sandbox needs that.
//!
//! Whoever uses one holds a shared lock on it; who finds at the end that nobody else does removes it. It is only
//! ever removed as an empty folder, so nothing of anybody's can be lost. The supervisor removes it when the
//! sandbox has ended; so does a watcher outside of it, should the supervisor have been killed. If both are killed
//! at once, the next sandbox on the same folder finds it by its mode, uses it and removes it.
//!
//! Nobody waits for a lock: watcher and supervisor share theirs, so whoever waited could wait for itself.

use std::ffi::CString;
use std::fs::Metadata;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use super::image::Identity;
use crate::sys::clone::{self, Home, Started};
use crate::sys::descriptors;

/// The mode that marks a placeholder: nobody else makes empty folders like that.
const MODE: u32 = 0o1555;

/// How often a placeholder that is being removed is looked at again, and after how long: about a second in all.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// One placeholder, in use.
#[derive(Debug)]
pub(crate) struct Placeholder {
    parent: OwnedFd,
    name: CString,
    held: OwnedFd,
    identity: Identity,
}

/// Whether something is a placeholder, from this sandbox or another.
pub(crate) fn is_one(found: &Metadata) -> bool {
    found.is_dir() && found.mode() & 0o7777 == MODE && found.nlink() <= 2
}

impl Placeholder {
    /// Makes one at a path, or joins the one that is there. `None` if nobody could make anything there.
    pub(crate) fn make(path: &Path) -> Result<Option<Self>, Errno> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
        let parent = super::grants::open(folder)?;
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        for _ in 0..TRIES {
            match rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(MODE)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(None),
                Err(errno) => return Err(errno),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
                Err(Errno::NOENT) => continue, // its last user has just removed it
                opened => opened?,
            };
            match rustix::fs::flock(&held, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => {
                    std::thread::sleep(PAUSE); // its last user is removing it
                    continue;
                }
                locked => locked?,
            }
            let stat = rustix::fs::fstat(&held)?;
            if stat.st_nlink > 0 {
                return Ok(Some(Self { parent, name, held, identity: Identity::of(&stat) }));
            }
        }
        Err(Errno::BUSY)
    }

    /// The folder's inode.
    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    /// Removes it if nobody else uses it. Does not allocate.
    fn remove(&self) {
        if rustix::fs::flock(&self.held, FlockOperation::NonBlockingLockExclusive).is_err() {
            return; // another sandbox uses it, and will remove it
        }
        let there = rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|stat| Identity::of(&stat) == self.identity) {
            let _ = rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR); // not empty: not ours any more
        }
        let _ = rustix::fs::flock(&self.held, FlockOperation::Unlock); // what was never locked cannot fail
    }
}

/// The placeholders of one sandbox; dropped, they are removed.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    all: Vec<Placeholder>,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct Watcher(OwnedFd);

impl Placeholders {
    pub(crate) const fn new(all: Vec<Placeholder>) -> Self {
        Self { all, watcher: None }
    }

    /// Starts the watcher, which removes them when the sandbox's first process has ended.
    pub(crate) fn watch(&mut self, sandbox: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.all.is_empty() {
            return Ok(());
        }
        let mut kept: Vec<u32> = vec![sandbox.as_raw_fd().cast_unsigned()];
        for placeholder in &self.all {
            kept.extend([&placeholder.parent, &placeholder.held].map(|fd| fd.as_raw_fd().cast_unsigned()));
        }
        kept.sort_unstable();
        let watch = Watch { kept: &kept, sandbox, all: &self.all };
        let Started { pidfd, .. } = clone::start(Home::Host, wait_and_remove, &watch)?;
        self.watcher = Some(Watcher(pidfd));
        Ok(())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for placeholder in &self.all {
            placeholder.remove();
        }
        if let Some(Watcher(pidfd)) = &self.watcher {
            let wait = || rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            let _ = rustix::io::retry_on_intr(wait); // ends by itself: the sandbox has
        }
    }
}

struct Watch<'a> {
    kept: &'a [u32],
    sandbox: BorrowedFd<'a>,
    all: &'a [Placeholder],
}

/// The watcher: a process of the host that reads nothing and waits for one thing.
fn wait_and_remove(watch: &Watch<'_>) -> ! {
    let _ = rustix::process::setsid(); // a signal to the caller's group is not for it
    descriptors::keep_only(watch.kept);
    let mut ready = [PollFd::from_borrowed_fd(watch.sandbox, PollFlags::IN)];
    while rustix::event::poll(&mut ready, None) == Err(Errno::INTR) {}
    for placeholder in watch.all {
        placeholder.remove();
    }
    clone::exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_while_one_is_removed_makes_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("closed");
        let first = Placeholder::make(&path).unwrap().unwrap();
        rustix::fs::flock(&first.held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let (say, heard) = std::sync::mpsc::channel();
        let other = path.clone();
        let waits = std::thread::spawn(move || say.send(Placeholder::make(&other)));
        std::thread::sleep(20 * PAUSE);
        assert!(heard.try_recv().is_err(), "one that is being removed is not used");
        rustix::fs::unlinkat(&first.parent, &first.name, AtFlags::REMOVEDIR).unwrap();
        // The lock stays, as that of a watcher does which shares it with a supervisor that is busy.
        let second = heard.recv_timeout(Duration::from_secs(20)).unwrap().unwrap().unwrap();
        assert!(second.identity() != first.identity());
        waits.join().unwrap().unwrap();
    }

    #[test]
    fn a_removed_one_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("closed");
        let first = Placeholder::make(&path).unwrap().unwrap();
        let second = Placeholder::make(&path).unwrap().unwrap();
        assert!(second.identity() == first.identity());
        first.remove();
        assert!(path.exists(), "the other uses it");
        second.remove();
        assert!(!path.exists());
        rustix::fs::flock(&first.held, FlockOperation::NonBlockingLockExclusive).unwrap();
    }
}
