//! Files that a command writes for its user, where directories cannot be held open: whole or not at all.
//!
//! Residual: a link that takes the name's place after it was looked at is replaced, never followed; a link on the way is
//! followed.

use std::fs;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

mod existing;

pub use self::existing::Existing;

/// Writes a whole file.
pub fn write(path: &Path, text: &str, existing: Existing) -> Result<()> {
    let mut draft = Draft::begin(path, existing, &[])?;
    draft.write_all(text.as_bytes())?;
    draft.finish()
}

/// A file in the making, beside the name that it will have. Dropped, it is removed.
pub struct Draft {
    path: PathBuf,
    existing: Existing,
    file: NamedTempFile,
}

impl Draft {
    /// Begins a file.
    pub fn begin(path: &Path, existing: Existing, _: &[PathBuf]) -> Result<Self> {
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
        if is_link && existing == Existing::Replace {
            return Err(Error::new(ErrorKind::InvalidInput, "it is a link or no regular file"));
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { path: path.to_owned(), existing, file: NamedTempFile::new_in(dir)? })
    }

    /// Gives the file a mode, where files have one.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            self.file.as_file().set_permissions(fs::Permissions::from_mode(mode))
        }
        #[cfg(not(unix))]
        {
            let _ = mode;
            Ok(())
        }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush()?;
        let placed = match self.existing {
            Existing::Replace | Existing::ReplaceLink => self.file.persist(&self.path),
            Existing::Keep => self.file.persist_noclobber(&self.path),
        };
        placed.map(drop).map_err(|refused| refused.error)
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
