//! Facts of files that were read before, by the hash of their content.
//!
//! An entry counts only if it names the very key it is looked up by: the version, the data, the language and the
//! text. Whatever else is there is ignored, and written anew. Nothing here ever fails a scan.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::knowledge;
use crate::model::Unit;
use crate::parse::Grammar;

/// Changes whenever facts come out differently.
const FORMAT: &str = "2";
/// The largest entry that is read.
const MAX_ENTRY: u64 = 64 * 1024 * 1024;

/// A directory of entries.
pub(crate) struct Cache {
    directory: PathBuf,
    /// What every key begins with.
    about: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    unit: Unit,
}

impl Cache {
    pub(crate) fn new(directory: PathBuf) -> Self {
        let mut hash = Sha256::new();
        for part in [env!("CARGO_PKG_VERSION"), FORMAT].into_iter().chain(knowledge::FILES) {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Self { directory, about: hash.finalize().into() }
    }

    /// The key of a text.
    pub(crate) fn key(&self, grammar: Grammar, text: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.about);
        hash.update(grammar.index().to_le_bytes());
        hash.update(text);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The facts under a key, if they are there and whole.
    pub(crate) fn load(&self, key: &str) -> Option<Unit> {
        let path = self.path(key)?;
        if std::fs::metadata(&path).ok()?.len() > MAX_ENTRY {
            return None;
        }
        let entry: Entry = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        (entry.key == key).then_some(entry.unit)
    }

    /// Keeps facts, or does not.
    pub(crate) fn store(&self, key: String, unit: Unit) -> Unit {
        let entry = Entry { key, unit };
        let written = serde_json::to_vec(&entry).ok().zip(self.path(&entry.key));
        if let Some((bytes, path)) = written {
            drop(write(&path, &bytes));
        }
        entry.unit
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let (head, tail) = key.split_at_checked(2)?;
        Some(self.directory.join(head).join(format!("{tail}.json")))
    }
}

/// Whole or not at all: another scan may read at the same time.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    private_directory(directory)?;
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&draft, bytes)?;
    std::fs::rename(&draft, path)
}

#[cfg(unix)]
fn private_directory(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn private_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)
}
