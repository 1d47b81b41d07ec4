//! A tree that is only seen through its tiles: each is checked against the signed root before it is believed.
//!
//! The tiles at the right edge give the root by themselves, so they are checked together. Every other tile is full, and its root stands in a
//! tile of the level above. What is checked here says of any smaller size which root the tree had there: that shows a fork.
//!
//! Fails closed when: a tile leads to another hash, or the one above it was not checked before.

use std::collections::BTreeMap;

use crate::Hash;
use crate::merkle::{self, Frontier};
use crate::tile::{Tile, TileError, WIDTH};

/// The highest level that a tree of 2^64 leaves has.
const TOP_LEVEL: u8 = 7;

/// A tree of which some tiles were checked. Tiles of level 0 are kept only at the edge.
#[derive(Debug, Clone)]
pub struct CheckedTiles {
    size: u64,
    kept: BTreeMap<(u8, u64), Vec<Hash>>,
}

/// Why a tile is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It has not the size that its path says.
    #[error(transparent)]
    Size(#[from] TileError),
    /// The edge leads to another root than the signed one.
    #[error("the tiles at the edge lead to the root {0}, not to the signed root {1}")]
    Root(Hash, Hash),
    /// A tile leads to another hash than the tile above it has.
    #[error("the tile `{0}` is not the one that the tree has")]
    Tile(String),
}

/// The tiles that give the root of a tree of this size: at most one of each level, none of them full.
pub fn edge(size: u64) -> impl Iterator<Item = Tile> {
    (0..=TOP_LEVEL).filter_map(move |level| {
        let width = width_at(size, level);
        (width > 0).then_some(Tile { level, index: index_at(size, level), width })
    })
}

impl CheckedTiles {
    /// The tree of this size and root, from the files of its [`edge`] in the same order.
    ///
    /// # Errors
    /// If they are not those of the tree.
    pub fn open(size: u64, root: &Hash, files: &[Vec<u8>]) -> Result<Self, ViewError> {
        let mut kept = BTreeMap::new();
        for (tile, file) in edge(size).zip(files) {
            kept.insert((tile.level, tile.index), tile.decode(file)?);
        }
        let view = Self { size, kept };
        let found = view.frontier_at(size).map_or_else(merkle::empty_root, |tree| tree.root());
        if found == *root { Ok(view) } else { Err(ViewError::Root(found, *root)) }
    }

    /// The full tiles that still have to be checked before this one, the highest first; this one is the last. None if it is known.
    #[must_use]
    pub fn missing(&self, level: u8, index: u64) -> Vec<Tile> {
        let mut missing = Vec::new();
        let (mut level, mut index) = (level, index);
        while level <= TOP_LEVEL && !self.kept.contains_key(&(level, index)) {
            missing.push(Tile { level, index, width: WIDTH });
            (level, index) = (level + 1, index / u64::from(WIDTH));
        }
        missing.reverse();
        missing
    }

    /// Checks a full tile and returns its hashes.
    ///
    /// # Errors
    /// If it is not the tree's, or the tile above it was not checked.
    pub fn check(&mut self, tile: Tile, file: &[u8]) -> Result<Vec<Hash>, ViewError> {
        let hashes = tile.decode(file)?;
        let above = self.kept.get(&(tile.level + 1, tile.index / u64::from(WIDTH)));
        let place = usize::try_from(tile.index % u64::from(WIDTH)).unwrap_or_default();
        let expected = above.and_then(|above| above.get(place));
        if tile.width != WIDTH || expected != Some(&merkle::root(&hashes)) {
            return Err(ViewError::Tile(tile.path()));
        }
        if tile.level > 0 {
            self.kept.insert((tile.level, tile.index), hashes.clone());
        }
        Ok(hashes)
    }

    /// The hashes of a tile that was checked and is kept.
    #[must_use]
    pub fn hashes(&self, level: u8, index: u64) -> Option<&[Hash]> {
        self.kept.get(&(level, index)).map(Vec::as_slice)
    }

    /// The tiles that say which root the tree had at a smaller size: level and place. They are given to [`CheckedTiles::frontier_from`].
    pub fn needed_at(&self, size: u64) -> impl Iterator<Item = (u8, u64)> {
        edge(size).map(|tile| (tile.level, tile.index))
    }

    /// The tree at a smaller size, from the hashes of [`CheckedTiles::needed_at`]; nothing if one is missing.
    #[must_use]
    pub fn frontier_from(
        &self,
        size: u64,
        hashes: impl Fn(u8, u64) -> Option<Vec<Hash>>,
    ) -> Option<Frontier> {
        if size > self.size {
            return None;
        }
        let mut roots = Vec::new();
        for level in (0..=TOP_LEVEL).rev() {
            let width = width_at(size, level);
            if width == 0 {
                continue;
            }
            let tile = hashes(level, index_at(size, level))?;
            let mut rest = tile.get(..usize::from(width))?;
            for bit in (0..8).rev().filter(|bit| width >> bit & 1 == 1) {
                let (full, behind) = rest.split_at_checked(1 << bit)?;
                roots.push(merkle::root(full));
                rest = behind;
            }
        }
        Frontier::new(size, roots)
    }

    /// The tree at a smaller size, from kept tiles alone.
    fn frontier_at(&self, size: u64) -> Option<Frontier> {
        self.frontier_from(size, |level, index| self.hashes(level, index).map(<[Hash]>::to_vec))
    }
}

/// How many hashes of the tile at the edge count on this level.
fn width_at(size: u64, level: u8) -> u16 {
    u16::try_from(size >> (8 * u32::from(level)) & 0xff).unwrap_or_default()
}

/// Where the tile at the edge is on this level.
const fn index_at(size: u64, level: u8) -> u64 {
    match size.checked_shr(8 * (level as u32 + 1)) {
        Some(index) => index,
        None => 0,
    }
}

#[cfg(test)]
mod tests;
