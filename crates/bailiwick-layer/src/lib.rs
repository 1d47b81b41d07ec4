//! What a confined program wrote to a copy-on-write layer: listed, and carried over to the host if its user wants that.
//!
//! A layer is two directories: the host's (`lower`), which the program only read, and the one that took what it wrote
//! (`upper`), in the format of the kernel's overlay or as a copy of everything. [`changes`] compares them; [`commit`] carries the changes over, with the
//! caller's own rights, after every process of the sandbox has ended.
//!
//! What the program wrote is hostile. Every step goes from an open directory to an entry of it, so no link is followed;
//! files, directories and links are all that is made, with modes that hold no setuid bit; a file appears whole, by a rename.
//!
//! Fails closed when: the host changed one of the paths since the program was started, a path runs code later, an entry is a
//! device, socket or FIFO, or a tree is too large or too deep. Nothing is carried over then.
//!
//! Residual: a host that changes a file between the last look and the rename loses that change. A file that the host
//! removed meanwhile and the program changed comes back. Hard links become files of their own; extended attributes stay
//! behind.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod carry;
mod walk;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bailiwick_policy::run_later::{self, Ground, Role};

/// One directory of the host, and what was written to it instead.
#[derive(Debug)]
pub struct WrittenTree {
    /// Where the directory lies on the host.
    pub path: PathBuf,
    /// The directory; opening it for its path alone is enough.
    pub lower: OwnedFd,
    /// What was written.
    pub upper: OwnedFd,
    /// Whether that holds everything, because the program worked on a copy, and not only what is different.
    pub is_copy: bool,
    /// When the program was about to start: what the host changed later is a conflict.
    pub since: SystemTime,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It was there and is different.
    Modified,
    /// It is gone.
    Deleted,
}

impl ChangeKind {
    /// `A`, `M` or `D`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link.
    Link,
    /// Anything else: it is never carried over.
    Special,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What became of it.
    pub kind: ChangeKind,
    /// Where, on the host.
    pub path: PathBuf,
    /// What it is now, or was.
    pub entry: EntryKind,
    /// Whether the host changed it since the program was started.
    pub is_conflict: bool,
}

/// Why a layer cannot be listed or carried over.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// More was written than is looked at.
    #[error("`{}` has more than {most} changes", path.display())]
    TooMany {
        /// The tree.
        path: PathBuf,
        /// How many are looked at.
        most: usize,
    },
    /// Directories lie too deep.
    #[error("`{}` lies deeper than {most} directories", path.display())]
    TooDeep {
        /// The first that does.
        path: PathBuf,
        /// How deep directories may lie.
        most: usize,
    },
    /// The host changed something meanwhile.
    #[error("the host changed `{}` since the program was started; nothing was carried over", path.display())]
    Conflict {
        /// The first.
        path: PathBuf,
    },
    /// A name runs code later.
    #[error("`{}` runs code later, so the layer is not carried over; copy what you want by hand", path.display())]
    RunsCode {
        /// The first.
        path: PathBuf,
    },
    /// An entry is neither a file, a directory nor a link.
    #[error("`{}` is no file, directory or link, so the layer is not carried over", path.display())]
    Special {
        /// The first.
        path: PathBuf,
    },
    /// The system failed.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Failed {
        /// What was to be done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a program changed in one tree, in order.
///
/// # Errors
/// What cannot be looked at.
pub fn changes(tree: &WrittenTree) -> Result<Vec<Change>, LayerError> {
    walk::changes(tree)
}

/// Carries everything over to the host, after all of it was found to be harmless; `home` is the user's, where start files
/// run code later, and `is_named` says which paths the user granted by name. How many changes were carried over.
///
/// # Errors
/// Why nothing was carried over, or, after [`LayerError::Failed`], where that ended.
pub fn commit(
    trees: &[WrittenTree],
    home: Option<&Path>,
    is_named: impl Fn(&Path) -> bool,
) -> Result<usize, LayerError> {
    let mut all = Vec::new();
    for tree in trees {
        let found = changes(tree)?;
        for change in &found {
            let path = change.path.clone();
            if change.is_conflict {
                return Err(LayerError::Conflict { path });
            }
            if change.entry == EntryKind::Special {
                return Err(LayerError::Special { path });
            }
            if runs_code_later(&path, &OnHost { home, trees }) && !is_named(&path) {
                return Err(LayerError::RunsCode { path });
            }
        }
        all.push((tree, found));
    }
    let mut count = 0;
    for (tree, found) in all {
        count += found.len();
        carry::carry_over(tree, &found)?;
    }
    Ok(count)
}

fn runs_code_later(path: &Path, ground: &OnHost<'_>) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    run_later::role(path.as_os_str().as_bytes(), ground) == Role::Protected
}

/// What is around a path of the host.
struct OnHost<'a> {
    home: Option<&'a Path>,
    trees: &'a [WrittenTree],
}

impl Ground for OnHost<'_> {
    fn is_home(&self, directory: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        // The top of a tree that may be written counts as a home, as it does for the sandbox.
        run_later::is_users_home(directory, self.home.map(|home| home.as_os_str().as_bytes()))
            || self.trees.iter().any(|tree| tree.path.as_os_str().as_bytes() == directory)
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        is_there(directory, ".git")
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        run_later::is_repository(|name| is_there(directory, name))
    }
}

fn is_there(directory: &[u8], name: &str) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(directory)).join(name).symlink_metadata().is_ok()
}
