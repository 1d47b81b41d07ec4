//! Files and directories for their owner alone: made with modes 0700 and 0600, opened without following a link.
//!
//! Residual: only Unix tells who owns a file. Elsewhere no directory counts as private, so nothing is written; what
//! is there can be read.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a directory, and those above it, for the user alone. One that is there stays as it is.
///
/// # Errors
/// If it cannot be made.
pub fn make_directory(dir: &Path) -> io::Result<()> {
    system::make_directory(dir)
}

/// Why a directory is not the user's alone, if it is not.
#[must_use]
pub fn directory_fault(found: &Metadata) -> Option<&'static str> {
    system::directory_fault(found)
}

/// Opens files without following a link or waiting for a FIFO; a file that is made has mode 0600.
#[must_use]
pub fn options() -> OpenOptions {
    system::options()
}

/// Why a file that holds a secret is not the user's alone, if it is not.
#[must_use]
pub fn secret_fault(found: &Metadata) -> Option<&'static str> {
    system::file_fault(found)
}

/// Whether both are the same file.
pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    system::is_same_file(one, other)
}

/// Fills `bytes` from `offset` on.
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    system::read_exact_at(file, bytes, offset)
}

/// Writes all of `bytes` from `offset` on.
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    system::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
mod system {
    use super::{File, Metadata, OpenOptions, Path, io};
    use rustix::fs::OFlags;
    use std::fs::DirBuilder;
    use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};

    pub(super) fn make_directory(dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)
    }

    pub(super) fn directory_fault(found: &Metadata) -> Option<&'static str> {
        let others = (found.mode() & 0o022 != 0).then_some("can be written to by others: use mode 0700");
        owner_fault(found).or(others)
    }

    pub(super) fn file_fault(found: &Metadata) -> Option<&'static str> {
        owner_fault(found).or((found.mode() & 0o177 != 0).then_some("has the wrong mode: use 0600"))
    }

    fn owner_fault(found: &Metadata) -> Option<&'static str> {
        (found.uid() != rustix::process::geteuid().as_raw()).then_some("belongs to another user")
    }

    pub(super) fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        options
    }

    pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }

    pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(bytes, offset)
    }

    pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }
}

#[cfg(not(unix))]
mod system {
    use super::{File, Metadata, OpenOptions, Path, io};
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

    const NOT_PRIVATE: &str = "cannot be kept from other users on this system: it is written on Unix only";

    pub(super) fn make_directory(_: &Path) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NOT_PRIVATE))
    }

    pub(super) fn directory_fault(_: &Metadata) -> Option<&'static str> {
        Some(NOT_PRIVATE)
    }

    pub(super) fn file_fault(_: &Metadata) -> Option<&'static str> {
        Some(NOT_PRIVATE)
    }

    pub(super) fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Files are compared only where they are written.
    pub(super) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
        true
    }

    pub(super) fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    pub(super) fn write_all_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }
}
