//! Directories that are looked into, and files that are replaced whole.
//!
//! A directory is opened once, where it really lies; a walk goes on from that descriptor and asks here what it
//! may see. One record covers all of it where the call may see everything below; otherwise every file that is opened
//! has its own. A file is replaced by a new one beside it that takes its name, all relative to the opened directory, if
//! the call may create and delete there; else it is written in place.
//!
//! Fails closed when containment cannot be decided (only what is covered by itself is seen), when the path keeps
//! changing, and for what stays closed to every tool. Residual: a directory that is moved while it is open
//! is still the directory that was checked.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use bailiwick_policy::authority::{Authority, Request};
use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::lattice::Containment;
use bailiwick_policy::path::{AbsPath, PathPattern, PathScope};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::closed::Use;
use super::{MAX_LOOKS, ToolContext};
use crate::open::{How, NotOpened, WriteMode, open_directory, open_exactly};
use crate::tool::ToolError;

/// What is looked for in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What lies there: any grant on a path shows its name.
    Names,
    /// What the files say: only a grant to read does.
    Contents,
}

/// A directory or file that was opened to be looked into.
#[derive(Debug)]
pub(crate) struct OpenedPath {
    /// The directory or file itself.
    pub(crate) file: File,
    /// Where it really lies.
    pub(crate) path: AbsPath,
    /// Whether everything below may be seen.
    pub(crate) whole: bool,
}

/// Which file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    /// Whatever is there, or nothing.
    Any,
    /// None: it must be new.
    New,
    /// The very file that was read, unchanged.
    Same(Stamp),
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    changed: (i64, i64),
    size: i64,
}

/// How a file came to its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// There was none before.
    pub(crate) created: bool,
    /// No reader could see it half written.
    pub(crate) atomic: bool,
}

impl Stamp {
    pub(crate) fn from_file(file: &File) -> std::io::Result<Self> {
        Ok(Self::from(&rustix::fs::fstat(file)?))
    }
}

impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
        Self { file: (stat.st_dev, stat.st_ino), changed: (stat.st_mtime, nanos), size: stat.st_size }
    }
}

impl ToolContext {
    /// Opens a directory or file to look into it and what lies below.
    ///
    /// # Errors
    /// The denial, recorded, if nothing there may be seen; or the system's own reason.
    pub(crate) fn open_place(&self, path: &str, look: Look) -> Result<OpenedPath, ToolError> {
        for _ in 0..MAX_LOOKS {
            let real = self.real(path)?;
            self.stay_out(&real, Use::Read)?;
            let reach = self.reach(&real, look);
            let asked = Request::Read(real.clone());
            if reach == Reach::Nothing || self.authority.allows(&asked) {
                self.check(&asked, || {
                    format!("read of \"{}\" is not within the granted authority", path.escape_debug())
                })?;
            } else {
                self.still_granted()?;
                self.record(format!("look into {real}"), None)?;
            }
            match open_exactly(&real, How::Read) {
                Ok(file) => return Ok(OpenedPath { file, path: real, whole: reach == Reach::Whole }),
                Err(not_opened) => self.look_again(path, not_opened)?,
            }
        }
        Err(self.restless(path))
    }

    /// Whether `path`, met in an opened directory, may be seen by itself. Not recorded.
    pub(crate) fn may_see(&self, path: &AbsPath, look: Look) -> bool {
        !self.is_never_granted(Path::new(&path.to_string()))
            && self.scopes(look).iter().any(|scope| scope.covers(path))
    }

    /// Whether something at or below `path` may be seen. Not recorded.
    pub(crate) fn leads_on(&self, path: &AbsPath, look: Look) -> bool {
        self.reach(path, look) != Reach::Nothing
    }

    /// May this file, met in an opened directory, be read?
    ///
    /// # Errors
    /// The denial, recorded.
    pub(crate) fn check_met(&self, path: &AbsPath) -> Result<(), ToolError> {
        self.check(&Request::Read(path.clone()), || {
            format!("read of \"{path}\" is not within the granted authority")
        })
    }

    /// Gives a file new content, and says how.
    ///
    /// # Errors
    /// The denial, recorded; the system's own reason; that the file is not the one meant.
    pub(crate) fn replace(&self, path: &str, content: &[u8], only: Only) -> Result<Written, ToolError> {
        for _ in 0..MAX_LOOKS {
            let real = self.real(path)?;
            self.stay_out(&real, Use::Change)?;
            let only = self.check_replacing(path, &real, only)?;
            match self.replace_once(&real, content, only) {
                Ok(written) => return Ok(written),
                Err(NotReplaced::NotOpened(not_opened)) => self.look_again(path, not_opened)?,
                Err(NotReplaced::Other(why)) => {
                    return Err(ToolError::failed(format!("cannot write `{}`: {why}", path.escape_debug())));
                }
                Err(NotReplaced::Denied(error)) => return Err(error),
            }
        }
        Err(self.restless(path))
    }

    /// Adds to the end of a file.
    ///
    /// # Errors
    /// The denial, recorded; or the system's own reason.
    pub(crate) fn append(&self, path: &str, content: &[u8]) -> Result<Written, ToolError> {
        let existed = std::fs::exists(self.real(path)?.to_string()).unwrap_or(true);
        let mut file = self.open_write(path, WriteMode::Append)?;
        let failed = |error| ToolError::failed(format!("cannot write `{}`: {error}", path.escape_debug()));
        file.write_all(content).map_err(failed)?;
        Ok(Written { created: !existed, atomic: false })
    }

    /// A grant to create alone makes every replacement one that must be new.
    fn check_replacing(&self, path: &str, real: &AbsPath, only: Only) -> Result<Only, ToolError> {
        let create = Request::Create(real.clone());
        let write = Request::Write(real.clone());
        let new = only == Only::New
            || (only == Only::Any
                && !self.authority.allows(&write)
                && self.authority.allows(&create)
                && !std::fs::exists(real.to_string()).unwrap_or(true));
        let (request, verb) = if new { (create, "create") } else { (write, "write") };
        self.check(&request, || {
            format!("{verb} of \"{}\" is not within the granted authority", path.escape_debug())
        })?;
        Ok(if new { Only::New } else { only })
    }

    fn replace_once(&self, real: &AbsPath, content: &[u8], only: Only) -> Result<Written, NotReplaced> {
        let old = if only == Only::New { None } else { existing(real)? };
        if let Only::Same(stamp) = only
            && old.as_ref().map(Stamp::from_file).transpose()? != Some(stamp)
        {
            return Err(NotReplaced::Other("it changed since it was read".to_owned()));
        }
        let created = old.is_none();
        if self.swap(real, old.as_ref(), content, only)? {
            return Ok(Written { created, atomic: true });
        }
        let mut file = match old {
            Some(file) => file,
            None => open_exactly(real, How::Write(WriteMode::CreateNew))?,
        };
        file.rewind()?;
        file.write_all(content)?;
        file.set_len(u64::try_from(content.len()).unwrap_or(u64::MAX))?;
        Ok(Written { created, atomic: false })
    }

    /// Writes a new file beside the old one and gives it the name. `false` if that cannot be done here.
    fn swap(
        &self,
        real: &AbsPath,
        old: Option<&File>,
        content: &[u8],
        only: Only,
    ) -> Result<bool, NotReplaced> {
        let Some((parent, name)) = split(real) else { return Ok(false) };
        let spare = format!(".bailiwick-{}.tmp", random()?);
        let Some(beside) = child(&parent, &spare) else { return Ok(false) };
        let target =
            if old.is_some() { Request::Delete(real.clone()) } else { Request::Create(real.clone()) };
        let needed = [Request::Create(beside.clone()), Request::Delete(beside), target];
        if !needed.iter().all(|request| self.authority.allows(request)) {
            return Ok(false);
        }
        for request in &needed {
            self.check(request, || format!("{request} is not within the granted authority"))
                .map_err(NotReplaced::Denied)?;
        }
        let directory = open_directory(&parent)?;
        let kept = match old {
            Some(old) => match kept(&directory, &name, old)? {
                Some(kept) => Some(kept),
                None => return Ok(false),
            },
            None => None,
        };
        let Some(spare) = Spare::make(&directory, spare, kept.as_ref(), content)? else { return Ok(false) };
        spare.take_name(&name, only)
    }

    fn scopes(&self, look: Look) -> Vec<&PathScope> {
        let authority = &self.authority;
        match look {
            Look::Contents => vec![authority.read()],
            Look::Names => {
                vec![authority.read(), authority.write(), authority.create(), authority.delete()]
            }
        }
    }

    fn reach(&self, path: &AbsPath, look: Look) -> Reach {
        let line = Capability::Fs { actions: FsActions::READ, path: PathPattern::below(path) };
        let Ok(tree) = Authority::from_capabilities(&[line]) else { return Reach::Nothing };
        let scopes = self.scopes(look);
        if scopes.iter().any(|scope| tree.read().within(scope).holds()) {
            return Reach::Whole;
        }
        let shared = |scope: &&PathScope| {
            matches!(tree.read().meet(scope).within(&PathScope::None), Containment::Exceeds(_))
        };
        if scopes.iter().any(shared) { Reach::Parts } else { Reach::Nothing }
    }
}

/// How much of what lies at or below a path may be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Whole,
    Parts,
    Nothing,
}

/// Why a file was not replaced.
#[derive(Debug)]
enum NotReplaced {
    NotOpened(NotOpened),
    Denied(ToolError),
    Other(String),
}

impl From<NotOpened> for NotReplaced {
    fn from(not_opened: NotOpened) -> Self {
        Self::NotOpened(not_opened)
    }
}

impl From<std::io::Error> for NotReplaced {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<Errno> for NotReplaced {
    fn from(errno: Errno) -> Self {
        std::io::Error::from(errno).into()
    }
}

/// A new file beside the one it is to replace. It goes unless it takes the name.
struct Spare<'a> {
    directory: &'a OwnedFd,
    name: String,
}

impl<'a> Spare<'a> {
    /// Writes it; nothing if the directory takes no new files or the owner cannot be kept.
    fn make(
        directory: &'a OwnedFd,
        name: String,
        kept: Option<&Stat>,
        content: &[u8],
    ) -> Result<Option<Self>, NotReplaced> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_bits_retain(if kept.is_some() { 0o600 } else { 0o644 });
        let made = match rustix::fs::openat(directory, &name, flags, mode) {
            Ok(made) => made,
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NAMETOOLONG) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let spare = Self { directory, name };
        let mut file = File::from(made);
        file.write_all(content)?;
        if let Some(old) = kept {
            let own = rustix::fs::fstat(&file)?;
            let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            let same = (own.st_uid, own.st_gid) == (old.st_uid, old.st_gid);
            if !same && rustix::fs::fchown(&file, Some(owner.0), Some(owner.1)).is_err() {
                return Ok(None);
            }
            // Never more than it had: whose rights a program takes on is not a matter of its old content.
            rustix::fs::fchmod(&file, Mode::from_bits_retain(old.st_mode & 0o1777))?;
        }
        Ok(Some(spare))
    }

    fn take_name(self, name: &str, only: Only) -> Result<bool, NotReplaced> {
        let flags = if only == Only::New { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        let renamed = rustix::fs::renameat_with(self.directory, &self.name, self.directory, name, flags);
        match renamed {
            Ok(()) => {
                std::mem::forget(self);
                Ok(true)
            }
            Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        // Nothing more can be done about it; its name says whose it is.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// The file that is there, opened for writing.
fn existing(real: &AbsPath) -> Result<Option<File>, NotReplaced> {
    match open_exactly(real, How::Write(WriteMode::Modify)) {
        Ok(file) => Ok(Some(file)),
        Err(NotOpened::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(not_opened) => Err(not_opened.into()),
    }
}

/// What the new file keeps of the old one; nothing if it has more than a new file can be given.
fn kept(directory: &OwnedFd, name: &str, old: &File) -> Result<Option<Stat>, NotReplaced> {
    let stat = rustix::fs::fstat(old)?;
    let there = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    if !there.is_ok_and(|there| Stamp::from(&there).file == Stamp::from(&stat).file) {
        return Err(NotOpened::Changed.into());
    }
    let mut names = [0_u8; 1024];
    let plain = match rustix::fs::flistxattr(old, names.as_mut_slice()) {
        Ok(length) => names
            .get(..length)
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .all(|name| name.is_empty() || name == b"security.selinux"),
        Err(Errno::OPNOTSUPP) => true,
        Err(_) => false,
    };
    Ok(plain.then_some(stat))
}

/// The path of `name` in `directory`; nothing if that is no name.
pub(crate) fn child(directory: &AbsPath, name: &str) -> Option<AbsPath> {
    let directory = directory.to_string();
    let single = !name.contains('/') && !name.is_empty();
    AbsPath::new(&format!("{}/{name}", directory.trim_end_matches('/'))).ok().filter(|_| single)
}

/// The directory of a path, and its name there.
fn split(path: &AbsPath) -> Option<(AbsPath, String)> {
    let text = path.to_string();
    let (directory, name) = text.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
    let directory = AbsPath::new(if directory.is_empty() { "/" } else { directory }).ok()?;
    Some((directory, name.to_owned()))
}

fn random() -> Result<String, NotReplaced> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| NotReplaced::Other(error.to_string()))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::outcome::Output;
    use crate::{Registry, Session, Tool};
    use bailiwick_journal::{Journal, Options, new_session};
    use bailiwick_manifest::caveats::Caveats;

    /// Reads a file, lets another change it, and replaces it.
    struct Late;

    impl Tool for Late {
        fn name(&self) -> &str {
            "late"
        }

        fn schema(&self) -> Value {
            json!({})
        }

        async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
            let path = args["path"].as_str().unwrap();
            let stamp = Stamp::from_file(&context.open_read(path)?).unwrap();
            match args["meanwhile"].as_str() {
                Some("gone") => std::fs::remove_file(path).unwrap(),
                Some(text) => std::fs::write(path, text).unwrap(),
                None => {}
            }
            context.replace(path, b"late", Only::Same(stamp))?;
            Ok(Output::default())
        }
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let journal =
            Journal::open(&dir.path().join("journal"), new_session().unwrap(), Options::default()).unwrap();
        let registry = Registry::builder(journal, Session::new("/")).tool(Late).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let path = dir.path().join("file");
        let late = |meanwhile: Value| {
            std::fs::write(&path, "first").unwrap();
            let args = json!({ "path": path.to_str().unwrap(), "meanwhile": meanwhile });
            let done = runtime.block_on(registry.dispatch("late", args, &Caveats::top()));
            (done.map_err(|error| error.to_string()), std::fs::read_to_string(&path).unwrap_or_default())
        };
        assert_eq!(late(Value::Null), (Ok(Output::default()), "late".to_owned()));
        for (meanwhile, left) in [("second", "second"), ("gone", "")] {
            let (said, is) = late(meanwhile.into());
            assert!(said.unwrap_err().contains("changed since it was read"));
            assert_eq!(is, left);
        }
    }
}
