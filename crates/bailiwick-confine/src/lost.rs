//! What a program wrote in the sandbox's own directories, and loses with them.
//!
//! The first process hands out one descriptor of each private directory; they are looked at when every process has ended.
//! Names alone are read: no file is opened, no link is followed and no mount is entered.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};

/// How many entries are looked at: what is beyond is not counted.
const MOST_ENTRIES: usize = 10_000;
/// How many names are kept.
const MOST_NAMES: usize = 3;

/// Files that are gone with the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostFiles {
    /// How many, at least.
    pub count: usize,
    /// Whether there may be more.
    pub is_partial: bool,
    /// The first of them, by path inside.
    pub first: Vec<PathBuf>,
}

/// The private directories of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct PrivateDirectories {
    /// Where they are inside, in the order of the descriptors.
    pub(crate) places: Vec<PathBuf>,
    /// What is not counted, with everything below: what the sandbox put there, and caches.
    pub(crate) own: BTreeSet<PathBuf>,
    /// Where the home is, and the path that the program knows it by.
    pub(crate) home: (PathBuf, PathBuf),
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl PrivateDirectories {
    /// What was written there. The descriptors are closed.
    pub(crate) fn take_lost(&mut self) -> LostFiles {
        let mut lost = LostFiles::default();
        let mut left = MOST_ENTRIES;
        for (place, directory) in self.places.iter().zip(std::mem::take(&mut self.descriptors)) {
            self.look(place, directory.as_fd(), &mut left, &mut lost);
        }
        lost
    }

    fn look(&self, place: &Path, root: BorrowedFd<'_>, left: &mut usize, lost: &mut LostFiles) {
        let mut directories = VecDeque::from([PathBuf::from(".")]);
        while let Some(directory) = directories.pop_front() {
            for (name, kind) in entries(root, &directory) {
                let Some(less) = left.checked_sub(1) else {
                    lost.is_partial = true;
                    return;
                };
                *left = less;
                let below = directory.join(name);
                let path: PathBuf = place.join(&below).components().collect();
                if self.own.contains(&path) {
                    continue;
                }
                if kind == FileType::Directory {
                    directories.push_back(below);
                } else {
                    lost.add(self.as_known(path));
                }
            }
        }
    }

    /// A path as the program knows it: a home may be reached through a link.
    fn as_known(&self, path: PathBuf) -> PathBuf {
        let (real, known) = &self.home;
        match path.strip_prefix(real) {
            Ok(below) if real != known => known.join(below),
            _ => path,
        }
    }
}

impl LostFiles {
    fn add(&mut self, path: PathBuf) {
        self.count += 1;
        if self.first.len() < MOST_NAMES {
            self.first.push(path);
        }
    }
}

/// The names in a directory, in order; none if it cannot be read.
fn entries(root: BorrowedFd<'_>, directory: &Path) -> Vec<(std::ffi::OsString, FileType)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let opened = rustix::fs::openat2(root, directory, flags, Mode::empty(), resolve);
    let Ok(listing) = opened.and_then(Dir::new) else { return Vec::new() };
    let mut found: Vec<_> = listing
        .map_while(Result::ok)
        .take(MOST_ENTRIES + 2)
        .filter(|entry| ![&b"."[..], b".."].contains(&entry.file_name().to_bytes()))
        .map(|entry| (OsStr::from_bytes(entry.file_name().to_bytes()).to_owned(), entry.file_type()))
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_and_the_sandboxes_own_are_not() {
        let held = tempfile::tempdir().unwrap();
        let root = held.path();
        for directory in ["a/b", "granted", ".cache/x"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["z", "a/one", "a/b/two", "granted/host", ".cache/x/y", "placed"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let own = ["/tmp/granted", "/tmp/.cache", "/tmp/placed"].map(PathBuf::from);
        let descriptor = std::fs::File::open(root).unwrap().into();
        let mut private = PrivateDirectories {
            places: vec![PathBuf::from("/tmp")],
            own: own.into_iter().collect(),
            home: ("/tmp/a".into(), "/srv/anna".into()),
            descriptors: vec![descriptor],
        };
        let lost = private.take_lost();
        let first = ["/tmp/link", "/tmp/z", "/srv/anna/one"].map(PathBuf::from).to_vec();
        assert_eq!(lost, LostFiles { count: 4, is_partial: false, first });
        assert_eq!(private.take_lost(), LostFiles::default());
    }
}
