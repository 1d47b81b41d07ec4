//! The log's files: where they are (C2SP tlog-tiles), and what is in them.
//!
//! A tile of level 0 holds the hashes of up to 256 leaves. A tile of a higher level holds the roots of full tiles of the level below. An
//! entry bundle holds the entries of a tile of level 0, each after its length in two bytes. A file is as wide as its path says, or it
//! is refused.

use std::fmt::Write as _;

use crate::Hash;
use crate::merkle;

/// How many hashes or entries a full file has.
pub const WIDTH: u16 = 256;

/// The largest entry: its length has two bytes.
pub const MAX_ENTRY: usize = 65_535;

/// The largest entry bundle.
pub const MAX_BUNDLE: usize = 256 * (MAX_ENTRY + 2);

/// The largest checkpoint that is read.
pub const MAX_CHECKPOINT: usize = 16 * 1024;

/// The largest file of journal heads that is read.
pub const MAX_HEADS: usize = 64 * 1024 * 1024;

/// The highest level that a tree of 2^64 leaves has.
const TOP_LEVEL: u8 = 7;

/// A file of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFile {
    /// The signed head.
    Checkpoint,
    /// Hashes.
    Tile(Tile),
    /// Entries.
    Entries(EntryBundle),
    /// Journal heads, by the SHA-256 of the file, see [`crate::entry::HeadBatch`].
    Heads(Hash),
}

/// A file of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    /// Its level.
    pub level: u8,
    /// Its place on its level.
    pub index: u64,
    /// How many hashes it has: 1 to 256.
    pub width: u16,
}

/// A file of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryBundle {
    /// Its place: its first entry is 256 times this.
    pub index: u64,
    /// How many entries it has: 1 to 256.
    pub width: u16,
}

/// Why a file of the log is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileError {
    /// It has not the size that its path says.
    #[error("the tile has {actual} bytes, not {expected}")]
    Size {
        /// What its path says.
        expected: usize,
        /// What it has.
        actual: usize,
    },
    /// It ends within an entry.
    #[error("the entry bundle ends within entry {0}")]
    Truncated(u16),
    /// There is something behind the last entry.
    #[error("the entry bundle has {0} bytes behind its last entry")]
    Trailing(usize),
    /// An entry cannot be written.
    #[error("entry {0} has {1} bytes; at most {MAX_ENTRY} fit")]
    TooLarge(usize, usize),
}

impl Tile {
    /// Its path below the log's URL.
    #[must_use]
    pub fn path(&self) -> String {
        format!("tile/{}/{}", self.level, place(self.index, self.width))
    }

    /// Its bytes from its hashes.
    #[must_use]
    pub fn encode(hashes: &[Hash]) -> Vec<u8> {
        hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
    }

    /// Its hashes from its bytes.
    ///
    /// # Errors
    /// If it is not as wide as its path says.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<Hash>, TileError> {
        let expected = usize::from(self.width) * 32;
        let (hashes, rest) = bytes.as_chunks::<32>();
        if bytes.len() != expected || !rest.is_empty() {
            return Err(TileError::Size { expected, actual: bytes.len() });
        }
        Ok(hashes.iter().map(|hash| Hash::from_bytes(*hash)).collect())
    }

    /// Its hashes in the tree with these leaves; nothing if that tree has no such tile.
    #[must_use]
    pub fn hashes_in(&self, leaves: &[Hash]) -> Option<Vec<Hash>> {
        let below = 256_usize.checked_pow(u32::from(self.level))?;
        let first = usize::try_from(self.index).ok()?.checked_mul(256)?.checked_mul(below)?;
        let span = leaves.get(first..first.checked_add(below.checked_mul(usize::from(self.width))?)?)?;
        Some(span.chunks_exact(below).map(merkle::root).collect())
    }
}

impl EntryBundle {
    /// Its path below the log's URL.
    #[must_use]
    pub fn path(&self) -> String {
        format!("tile/entries/{}", place(self.index, self.width))
    }

    /// Its bytes from its entries.
    ///
    /// # Errors
    /// If an entry is too large.
    pub fn encode<B: AsRef<[u8]>>(entries: &[B]) -> Result<Vec<u8>, TileError> {
        let mut bytes = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let entry = entry.as_ref();
            let length = u16::try_from(entry.len()).map_err(|_| TileError::TooLarge(at, entry.len()))?;
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(entry);
        }
        Ok(bytes)
    }

    /// Its entries from its bytes.
    ///
    /// # Errors
    /// If it has fewer or more entries than its path says, or ends within one.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, TileError> {
        let mut rest = bytes;
        let mut entries = Vec::with_capacity(usize::from(self.width));
        for at in 0..self.width {
            let (length, behind) = rest.split_first_chunk::<2>().ok_or(TileError::Truncated(at))?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (entry, behind) = behind.split_at_checked(length).ok_or(TileError::Truncated(at))?;
            entries.push(entry);
            rest = behind;
        }
        if rest.is_empty() { Ok(entries) } else { Err(TileError::Trailing(rest.len())) }
    }
}

impl LogFile {
    /// Its path below the log's URL.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Checkpoint => "checkpoint".to_owned(),
            Self::Tile(tile) => tile.path(),
            Self::Entries(bundle) => bundle.path(),
            Self::Heads(hash) => format!("heads/{hash}"),
        }
    }

    /// What a path below the log's URL names, without a slash at its start; nothing if it is not written exactly as [`LogFile::path`] does.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let file = Self::parse_loosely(path)?;
        (file.path() == path).then_some(file)
    }

    fn parse_loosely(path: &str) -> Option<Self> {
        if path == "checkpoint" {
            return Some(Self::Checkpoint);
        }
        if let Some(hash) = path.strip_prefix("heads/") {
            return Some(Self::Heads(hash.parse().ok()?));
        }
        let (level, place) = path.strip_prefix("tile/")?.split_once('/')?;
        let (digits, width) = match place.split_once(".p/") {
            Some((digits, width)) => (digits, width.parse().ok().filter(|width| (1..WIDTH).contains(width))?),
            None => (place, WIDTH),
        };
        let index = digits.split('/').try_fold(0_u64, |index, group| {
            let group: u64 = group.strip_prefix('x').unwrap_or(group).parse().ok()?;
            index.checked_mul(1000)?.checked_add(group)
        })?;
        if level == "entries" {
            return Some(Self::Entries(EntryBundle { index, width }));
        }
        let level = level.parse().ok().filter(|level| *level <= TOP_LEVEL)?;
        Some(Self::Tile(Tile { level, index, width }))
    }
}

/// The tiles of a tree of this size, level by level.
pub fn tiles(size: u64) -> impl Iterator<Item = Tile> {
    (0..=TOP_LEVEL).flat_map(move |level| {
        let hashes = size >> (8 * u32::from(level));
        split(hashes).map(move |(index, width)| Tile { level, index, width })
    })
}

/// The entry bundles that hold the entries from `first` on, in a tree of this size.
pub fn entry_bundles(first: u64, size: u64) -> impl Iterator<Item = EntryBundle> {
    let skipped = usize::try_from(first / 256).unwrap_or(usize::MAX);
    let none = first >= size;
    split(if none { 0 } else { size }).skip(skipped).map(|(index, width)| EntryBundle { index, width })
}

/// Places and widths of the files that this many items fill.
fn split(items: u64) -> impl Iterator<Item = (u64, u16)> {
    let full = items / 256;
    let rest = u16::try_from(items % 256).unwrap_or_default();
    (0..full).map(|index| (index, WIDTH)).chain((rest > 0).then_some((full, rest)))
}

/// Digits in threes, all but the last with an `x` before them, and the width if the file is not full.
fn place(index: u64, width: u16) -> String {
    let mut groups = vec![format!("{:03}", index % 1000)];
    let mut rest = index / 1000;
    while rest > 0 {
        groups.push(format!("x{:03}", rest % 1000));
        rest /= 1000;
    }
    groups.reverse();
    let mut text = groups.join("/");
    if width < WIDTH {
        // Writing to a `String` cannot fail.
        let _ = write!(text, ".p/{width}");
    }
    text
}

#[cfg(test)]
mod tests;
