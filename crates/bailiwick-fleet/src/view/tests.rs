//! Trees of many sizes, seen through their tiles.

use super::*;
use crate::merkle::leaf_hash;

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|number| leaf_hash(&number.to_be_bytes())).collect()
}

fn file(tile: Tile, leaves: &[Hash]) -> Vec<u8> {
    Tile::encode(&tile.hashes_in(leaves).unwrap())
}

fn opened(leaves: &[Hash]) -> CheckedTiles {
    let size = u64::try_from(leaves.len()).unwrap();
    let files: Vec<Vec<u8>> = edge(size).map(|tile| file(tile, leaves)).collect();
    CheckedTiles::open(size, &merkle::root(leaves), &files).unwrap()
}

/// All leaf hashes, read tile by tile.
fn read_all(view: &mut CheckedTiles, leaves: &[Hash]) -> Vec<Hash> {
    let size = u64::try_from(leaves.len()).unwrap();
    let mut read = Vec::new();
    for index in 0..size.div_ceil(256) {
        let mut last = view.hashes(0, index).map(<[Hash]>::to_vec);
        for tile in view.missing(0, index) {
            last = Some(view.check(tile, &file(tile, leaves)).unwrap());
        }
        read.extend(last.unwrap());
    }
    read
}

#[test]
fn every_leaf_is_reached_from_the_root() {
    for size in [1, 2, 255, 256, 257, 511, 512, 700, 65_535, 65_536, 65_537, 66_000] {
        let leaves = leaves(size);
        assert_eq!(read_all(&mut opened(&leaves), &leaves), leaves, "{size}");
    }
    assert!(CheckedTiles::open(0, &merkle::empty_root(), &[]).is_ok());
}

#[test]
fn a_smaller_size_has_the_root_it_had() {
    let leaves = leaves(66_000);
    let mut view = opened(&leaves);
    for size in [1, 255, 256, 300, 511, 512, 65_535, 65_536, 65_999, 66_000] {
        let mut found = BTreeMap::new();
        for (level, index) in view.needed_at(size).collect::<Vec<_>>() {
            let mut hashes = view.hashes(level, index).map(<[Hash]>::to_vec);
            for tile in view.missing(level, index) {
                hashes = Some(view.check(tile, &file(tile, &leaves)).unwrap());
            }
            found.insert((level, index), hashes.unwrap());
        }
        let tree = view.frontier_from(size, |level, index| found.get(&(level, index)).cloned()).unwrap();
        let expected = merkle::root(&leaves[..usize::try_from(size).unwrap()]);
        assert_eq!((tree.size(), tree.root()), (size, expected), "{size}");
    }
    assert_eq!(view.frontier_from(66_001, |_, _| None), None);
}

#[test]
fn a_tile_of_another_tree_is_refused() {
    let leaves = leaves(700);
    let root = merkle::root(&leaves);
    let good: Vec<Vec<u8>> = edge(700).map(|tile| file(tile, &leaves)).collect();
    assert!(CheckedTiles::open(700, &root, &good).is_ok());
    for at in 0..good.len() {
        let mut wrong = good.clone();
        wrong[at][5] ^= 1;
        assert!(matches!(CheckedTiles::open(700, &root, &wrong), Err(ViewError::Root(_, _))), "{at}");
        wrong[at].pop();
        assert!(matches!(CheckedTiles::open(700, &root, &wrong), Err(ViewError::Size(_))), "{at}");
    }
    assert!(CheckedTiles::open(700, &root, &good[..1]).is_err());
    let mut view = opened(&leaves);
    let tile = Tile { level: 0, index: 1, width: 256 };
    let bytes = file(tile, &leaves);
    assert!(view.check(Tile { index: 0, ..tile }, &bytes).is_err(), "another place");
    let mut wrong = bytes.clone();
    wrong[8191] ^= 1;
    assert!(view.check(tile, &wrong).is_err());
    assert_eq!(view.check(tile, &bytes).map(|hashes| hashes.len()), Ok(256));
}
