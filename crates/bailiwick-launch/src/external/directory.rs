//! A private directory with an artifact's files, removed when dropped.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use bailiwick_confine::{Fault, Step};
use bailiwick_policy::artifact::ArtifactFile;
use rustix::io::Errno;

use super::backends::private_directory;

/// The directory. Nobody but this user can look into it, for values of variables may be in its files.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    /// Makes it and writes the files.
    pub(super) fn write(within: &Path, files: &[ArtifactFile]) -> Result<Self, Fault> {
        let directory = Self(private_directory(within).map_err(|fault| at(&fault, within))?);
        files.iter().try_for_each(|file| directory.put(&file.name, &file.text))?;
        Ok(directory)
    }

    /// Writes one file, replacing what it held.
    pub(super) fn put(&self, name: &str, text: &str) -> Result<(), Fault> {
        let path = self.0.join(name);
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let written = if plain { write(&path, text) } else { Err(io::ErrorKind::InvalidFilename.into()) };
        written.map_err(|fault| at(&fault, &path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A name that is used once.
    pub(super) fn name(&self) -> &std::ffi::OsStr {
        self.0.file_name().unwrap_or_default()
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        // A runtime that maps users looks through these as somebody else.
        fs::DirBuilder::new().mode(0o755).recursive(true).create(parent)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
    file.write_all(text.as_bytes())
}

fn at(fault: &io::Error, path: &Path) -> Fault {
    Fault::new(Step::Open, Errno::from_io_error(fault).unwrap_or(Errno::IO)).at(path.display())
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
