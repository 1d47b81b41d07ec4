//! The state directory: sessions, trust and approvals, for one user only.
//!
//! Files have mode 0600 in a directory of mode 0700 that belongs to the user; links are not followed; a file is
//! replaced by renaming a complete one over it, under a lock. Fails closed when any of that cannot be had.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use bailiwick_journal::private;

/// The version of what is written here. What has none was written by 0.1.0 and is read as version 0.
pub(crate) const VERSION: u32 = 1;

/// The largest file that is read whole.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Why the state cannot be used: the step and its cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} `{path}`: {why}")]
pub struct StateFault {
    step: &'static str,
    path: PathBuf,
    why: String,
}

impl StateFault {
    pub(crate) fn new(step: &'static str, path: &Path, why: impl ToString) -> Self {
        Self { step, path: path.to_path_buf(), why: why.to_string() }
    }
}

/// A state directory that was found to be safe to use.
#[derive(Debug, Clone)]
pub struct State {
    dir: PathBuf,
}

impl State {
    /// Opens the directory, which is made if it is not there.
    ///
    /// # Errors
    /// If it belongs to another user, other users may write to it, or it cannot be made.
    pub fn open(dir: &Path) -> Result<Self, StateFault> {
        for dir in [dir, &dir.join("sessions")] {
            private::make_directory(dir).map_err(|error| StateFault::new("create", dir, error))?;
            let found = fs::metadata(dir).map_err(|error| StateFault::new("look at", dir, error))?;
            if let Some(why) = private::directory_fault(&found) {
                return Err(StateFault::new("use", dir, format_args!("it {why}")));
            }
        }
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Refuses a file that a newer program wrote: what it means is not known here.
    pub(crate) fn check_version(&self, name: &str, version: u32) -> Result<(), StateFault> {
        if version <= VERSION {
            return Ok(());
        }
        let why = format!("it has version {version}, and this program knows {VERSION}: use the newer one");
        Err(StateFault::new("use", &self.path(name), why))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Opens a file for reading and appending, made if it is not there, and locks it until it is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File, StateFault> {
        let path = self.path(name);
        let file = private::options().read(true).append(true).create(true).open(&path);
        let file = file.map_err(|error| StateFault::new("open", &path, error))?;
        file.lock().map_err(|error| StateFault::new("lock", &path, error))?;
        Ok(file)
    }

    /// The whole of a file; `None` if it is not there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StateFault> {
        let path = self.path(name);
        let file = match private::options().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateFault::new("open", &path, error)),
        };
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE).read_to_end(&mut bytes);
        read.map_err(|error| StateFault::new("read", &path, error))?;
        Ok(Some(bytes))
    }

    /// Puts a complete file in the place of another. The caller holds its lock.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8], durable: bool) -> Result<(), StateFault> {
        let (path, next) = (self.path(name), self.path(&format!("{name}.next")));
        let write = || -> std::io::Result<()> {
            let mut file = private::options().write(true).create(true).truncate(true).open(&next)?;
            file.write_all(bytes)?;
            if durable {
                file.sync_all()?;
            }
            fs::rename(&next, &path)
        };
        write().map_err(|error| StateFault::new("replace", &path, error))
    }
}
