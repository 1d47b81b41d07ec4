//! What a directory holds, as two digests: of its content, and of what the kernel says about its files.
//!
//! The second is read in milliseconds. It has the time of the last change of every file, which no program of an ordinary
//! user can set: where it is the same, the content is.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bailiwick_policy::digest::Digest;
use sha2::{Digest as _, Sha256};

/// Every file below a directory, in order.
fn walk(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            }
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The digest of names, kinds and contents.
pub(crate) fn content(dir: &Path) -> io::Result<Digest> {
    let mut sha = Sha256::new();
    for path in walk(dir)? {
        let found = path.symlink_metadata()?;
        let held = match () {
            () if found.is_dir() => Digest::ZERO,
            () if found.is_symlink() => Digest::sha256(std::fs::read_link(&path)?.as_os_str().as_bytes()),
            () if found.is_file() => file_digest(&path)?,
            () => {
                return Err(io::Error::other(format!(
                    "`{}` is neither a file nor a directory",
                    path.display()
                )));
            }
        };
        add_name(&mut sha, dir, &path);
        // The kind of file, and whether its owner may run it.
        sha.update((found.mode() & 0o170_100).to_le_bytes());
        sha.update(held.as_bytes());
    }
    Ok(Digest::from_bytes(sha.finalize().into()))
}

/// The digest of what the kernel says of every file.
pub(crate) fn stamp(dir: &Path) -> io::Result<Digest> {
    let mut sha = Sha256::new();
    for path in walk(dir)? {
        let found = path.symlink_metadata()?;
        add_name(&mut sha, dir, &path);
        for number in
            [found.dev(), found.ino(), found.size(), u64::from(found.mode()), u64::from(found.uid())]
        {
            sha.update(number.to_le_bytes());
        }
        for time in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
            sha.update(time.to_le_bytes());
        }
    }
    Ok(Digest::from_bytes(sha.finalize().into()))
}

fn add_name(sha: &mut Sha256, dir: &Path, path: &Path) {
    let name = path.strip_prefix(dir).unwrap_or(path).as_os_str().as_bytes();
    sha.update(name.len().to_le_bytes());
    sha.update(name);
}

fn file_digest(path: &Path) -> io::Result<Digest> {
    Ok(Digest::sha256(&std::fs::read(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_changes_the_digests() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b");
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(&file, "one").unwrap();
        let (first, stamped) = (content(dir.path()).unwrap(), stamp(dir.path()).unwrap());
        assert_eq!((content(dir.path()).unwrap(), stamp(dir.path()).unwrap()), (first, stamped));
        let times = file.metadata().unwrap().modified().unwrap();
        std::fs::write(&file, "two").unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(times).unwrap();
        assert_ne!(stamp(dir.path()).unwrap(), stamped, "the time of the change cannot be set");
        assert_ne!(content(dir.path()).unwrap(), first);
        std::fs::write(&file, "one").unwrap();
        assert_eq!(content(dir.path()).unwrap(), first);
        std::os::unix::fs::symlink("b", dir.path().join("a/c")).unwrap();
        assert_ne!(content(dir.path()).unwrap(), first);
    }
}
