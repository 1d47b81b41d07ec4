//! Files that a command writes for its user: whole or not at all, and never through a link.
//!
//! A path may lie in a directory that an agent can write, so a name there may be a link to any file of the user. A new
//! file is made beside the name, relative to the opened directory, and takes the name's place. Links on the way are
//! followed, except those in directories that the caller distrusts.
//!
//! Fails closed when: a link or a special file has the name (a link is replaced where a person forces it), or a link on the way lies in a distrusted directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Result, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::facts;

mod existing;
#[cfg(test)]
mod tests;

pub use self::existing::Existing;

/// Links that are followed before a path counts as endless, as the kernel counts.
const MOST_LINKS: usize = 40;
/// Names that are tried for a new file.
const MOST_DRAFTS: u32 = 100;

/// Writes a whole file.
pub fn write(path: &Path, text: &str, existing: Existing) -> Result<()> {
    let mut draft = Draft::begin(path, existing, &[])?;
    draft.write_all(text.as_bytes())?;
    draft.finish().map(drop)
}

/// A file in the making, beside the name that it will have. Dropped, it is removed.
pub struct Draft {
    place: Place,
    existing: Existing,
    name: OsString,
    file: File,
    is_finished: bool,
}

/// An opened directory and a name in it.
struct Place {
    directory: OwnedFd,
    real: PathBuf,
    name: OsString,
}

impl Draft {
    /// Begins a file. Links that lie in one of the `distrusted` directories are not followed.
    pub fn begin(path: &Path, existing: Existing, distrusted: &[PathBuf]) -> Result<Self> {
        let place = Place::open(path, distrusted)?;
        let mode = place.mode_of_new(existing)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..MOST_DRAFTS {
            let name = OsString::from(format!(".bailiwick-{}-{attempt}.new", std::process::id()));
            match rustix::fs::openat(
                &place.directory,
                &name,
                flags,
                mode.unwrap_or(Mode::from_raw_mode(0o666)),
            ) {
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
                Ok(file) => {
                    let draft = Self { place, existing, name, file: file.into(), is_finished: false };
                    if let Some(mode) = mode {
                        rustix::fs::fchmod(&draft.file, mode)?;
                    }
                    return Ok(draft);
                }
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Gives the file a mode of its own instead of that of the one it replaces.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?)
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<Placed> {
        self.file.flush()?;
        let Place { directory, name, .. } = &self.place;
        match self.existing {
            Existing::Replace | Existing::ReplaceLink => {
                rustix::fs::renameat(directory, &self.name, directory, name)?
            }
            Existing::Keep => self.place_anew()?,
        }
        self.is_finished = true;
        Ok(Placed { directory: directory.try_clone()?, name: name.clone(), file: self.file.try_clone()? })
    }
}

impl Draft {
    /// Takes the name only if nothing has it. Some network file systems know links for that and no renames.
    fn place_anew(&self) -> Result<()> {
        let Place { directory, name, .. } = &self.place;
        match rustix::fs::renameat_with(directory, &self.name, directory, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(directory, &self.name, directory, name, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(directory, &self.name, AtFlags::empty())?)
            }
            done => Ok(done?),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed stays beside the name and is never read.
            let _ = rustix::fs::unlinkat(&self.place.directory, &self.name, AtFlags::empty());
        }
    }
}

/// A file that has its name and is still open for writing.
pub struct Placed {
    directory: OwnedFd,
    name: OsString,
    file: File,
}

impl Placed {
    /// Writes to the file itself, whatever has its name by now.
    pub fn write_all(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes())
    }

    /// Removes the file, if the name is still its own.
    pub fn withdraw(self) {
        let own = rustix::fs::fstat(&self.file).map(|about| (about.st_dev, about.st_ino));
        let named = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if own.is_ok() && own == named.map(|about| (about.st_dev, about.st_ino)) {
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

impl Place {
    fn open(path: &Path, distrusted: &[PathBuf]) -> Result<Self> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let walked = walk(path.parent().unwrap_or(Path::new("")), distrusted)?;
        if let Some(missing) = walked.missing.first() {
            let missing = walked.real.join(missing);
            return Err(Error::new(
                std::io::ErrorKind::NotFound,
                format!("there is no `{}`", missing.display()),
            ));
        }
        Ok(Self { directory: walked.directory, real: walked.real, name })
    }

    /// The mode that a new file gets from the one in its place; none if there is none.
    fn mode_of_new(&self, existing: Existing) -> Result<Option<Mode>> {
        let about = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            about => about?,
        };
        if existing == Existing::Keep {
            return Err(Errno::EXIST.into());
        }
        let shown = self.real.join(&self.name);
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => Ok(Some(Mode::from_raw_mode(about.st_mode & 0o777))),
            FileType::Symlink if existing == Existing::ReplaceLink => Ok(None),
            FileType::Symlink => Err(Error::other(format!(
                "`{}` is a link, which is not followed; name the file itself",
                shown.display()
            ))),
            FileType::Directory => Err(Errno::ISDIR.into()),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(Error::other(format!("`{}` is not a regular file", shown.display()))),
        }
    }
}

/// Where a path really lies, whether or not there is anything. Links are followed unless they lie in one of the
/// `distrusted` directories.
pub fn real_path(path: &Path, distrusted: &[PathBuf]) -> Result<PathBuf> {
    let Walked { real, missing, .. } = walk(path, distrusted)?;
    Ok(missing.iter().fold(real, |real, name| real.join(name)))
}

/// How far a path leads: the last directory (or the directory of the last file) and what is not there behind it.
struct Walked {
    directory: OwnedFd,
    real: PathBuf,
    missing: Vec<OsString>,
}

fn walk(path: &Path, distrusted: &[PathBuf]) -> Result<Walked> {
    let root =
        || rustix::fs::openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let whole = if path.is_absolute() { path.to_owned() } else { facts::here()?.join(path) };
    let mut rest: Vec<OsString> = names(&whole).rev().collect();
    let mut done = Walked { directory: root()?, real: PathBuf::from("/"), missing: Vec::new() };
    let mut links = 0;
    while let Some(name) = rest.pop() {
        match step(&done.directory, &name)? {
            Step::Directory(next) => {
                done.directory = next;
                if name == ".." {
                    done.real.pop();
                } else {
                    done.real.push(name);
                }
            }
            Step::Link(target) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if distrusted.iter().any(|directory| done.real.starts_with(directory)) {
                    return Err(Error::other(format!(
                        "`{}` is a link in a directory that the command can write; name what it leads to",
                        done.real.join(&name).display()
                    )));
                }
                if target.is_absolute() {
                    (done.directory, done.real) = (root()?, PathBuf::from("/"));
                }
                rest.extend(names(&target).rev());
            }
            Step::End => {
                done.missing = std::iter::once(name).chain(rest.into_iter().rev()).collect();
                if done.missing.iter().any(|name| name == "..") {
                    return Err(Errno::NOENT.into());
                }
                return Ok(done);
            }
        }
    }
    Ok(done)
}

/// What one name of a path is.
enum Step {
    Directory(OwnedFd),
    Link(PathBuf),
    /// A file, or nothing.
    End,
}

fn step(directory: &OwnedFd, name: &OsStr) -> Result<Step> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()) {
        Ok(next) => Ok(Step::Directory(next)),
        Err(Errno::NOENT) => Ok(Step::End),
        Err(errno @ (Errno::NOTDIR | Errno::LOOP)) => {
            match rustix::fs::readlinkat(directory, name, Vec::new()) {
                Ok(target) => Ok(Step::Link(PathBuf::from(OsString::from_vec(target.into_bytes())))),
                Err(Errno::INVAL) if errno == Errno::NOTDIR => Ok(Step::End),
                Err(_) => Err(errno.into()),
            }
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The names of a path, without the root and without `.`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
