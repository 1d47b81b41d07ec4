//! Paths as the text of tlog-tiles gives them, and files that are too short, too long or of another width.

use super::*;
use crate::merkle::{leaf_hash, root};
use proptest::prelude::*;

#[test]
fn paths_are_those_of_the_text() {
    let path = |level, index, width| Tile { level, index, width }.path();
    assert_eq!(path(0, 0, 256), "tile/0/000");
    assert_eq!(path(0, 1_234_067, 256), "tile/0/x001/x234/067");
    assert_eq!(path(1, 273, 112), "tile/1/273.p/112");
    assert_eq!(EntryBundle { index: 1_000, width: 1 }.path(), "tile/entries/x001/000.p/1");
    let hash = crate::Hash::sha256(b"");
    assert_eq!(LogFile::Heads(hash).path(), format!("heads/{hash}"));
}

#[test]
fn the_files_of_a_tree_are_those_of_the_text() {
    let of_size = |size| tiles(size).map(|tile| tile.path()).collect::<Vec<_>>();
    assert_eq!(of_size(0), [""; 0]);
    assert_eq!(of_size(1), ["tile/0/000.p/1"]);
    assert_eq!(of_size(256), ["tile/0/000", "tile/1/000.p/1"]);
    let large = of_size(70_000);
    assert_eq!(large.len(), 274 + 2 + 1);
    assert!(large.contains(&"tile/0/273.p/112".to_owned()));
    assert!(large.contains(&"tile/1/001.p/17".to_owned()));
    assert!(large.contains(&"tile/2/000.p/1".to_owned()));
    let from = |first, size| entry_bundles(first, size).map(|bundle| bundle.path()).collect::<Vec<_>>();
    assert_eq!(from(0, 0), [""; 0]);
    assert_eq!(from(5, 5), [""; 0]);
    assert_eq!(from(256, 256), [""; 0]);
    assert_eq!(from(255, 257), ["tile/entries/000", "tile/entries/001.p/1"]);
    assert_eq!(from(256, 257), ["tile/entries/001.p/1"]);
}

#[test]
fn another_spelling_of_a_path_names_nothing() {
    for path in [
        "",
        "/",
        "checkpoint/",
        "../checkpoint",
        "tile/0",
        "tile/0/",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/x000/001",
        "tile/0/001/001",
        "tile/00/001",
        "tile/8/000",
        "tile/-1/000",
        "tile/0/+01",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/",
        "tile/0/../0/000",
        "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
        "tile/entries/000.p/1/",
        "heads/",
        "heads/..",
        "HEADS/000",
    ] {
        assert_eq!(LogFile::parse(path), None, "{path}");
    }
}

#[test]
fn a_tile_of_another_size_is_refused() {
    let tile = Tile { level: 0, index: 0, width: 2 };
    let bytes = Tile::encode(&[leaf_hash(b"a"), leaf_hash(b"b")]);
    assert_eq!(tile.decode(&bytes).unwrap().len(), 2);
    for wrong in
        [&bytes[..63], &bytes[..32], &[], &[&bytes[..], &[0]].concat(), &[&bytes[..], &bytes[..]].concat()]
    {
        assert_eq!(tile.decode(wrong), Err(TileError::Size { expected: 64, actual: wrong.len() }));
    }
}

#[test]
fn an_entry_bundle_of_another_size_is_refused() {
    let bundle = EntryBundle { index: 0, width: 2 };
    let bytes = EntryBundle::encode(&["one", ""]).unwrap();
    assert_eq!(bundle.decode(&bytes).unwrap(), [&b"one"[..], b""]);
    assert_eq!(bundle.decode(&bytes[..6]), Err(TileError::Truncated(1)));
    assert_eq!(bundle.decode(&bytes[..4]), Err(TileError::Truncated(0)));
    assert_eq!(bundle.decode(&[]), Err(TileError::Truncated(0)));
    assert_eq!(bundle.decode(&[&bytes[..], &[0]].concat()), Err(TileError::Trailing(1)));
    assert_eq!(EntryBundle { index: 0, width: 1 }.decode(&bytes), Err(TileError::Trailing(2)));
    let large = vec![0; MAX_ENTRY + 1];
    assert_eq!(EntryBundle::encode(&[&[][..], &large]), Err(TileError::TooLarge(1, MAX_ENTRY + 1)));
}

#[test]
fn a_tile_above_holds_the_roots_of_the_tiles_below() {
    let leaves: Vec<_> = (0..600_u32).map(|number| leaf_hash(&number.to_be_bytes())).collect();
    let above = Tile { level: 1, index: 0, width: 2 }.hashes_in(&leaves).unwrap();
    let below = Tile { level: 0, index: 1, width: 256 }.hashes_in(&leaves).unwrap();
    assert_eq!(above[1], root(&below));
    assert_eq!(Tile { level: 1, index: 0, width: 3 }.hashes_in(&leaves), None);
    assert_eq!(Tile { level: 7, index: u64::MAX, width: 1 }.hashes_in(&leaves), None);
}

proptest! {
    #[test]
    fn a_path_is_read_back(level in 0_u8..8, index in any::<u64>(), width in 1_u16..=256, is_tile in any::<bool>()) {
        let file = if is_tile { LogFile::Tile(Tile { level, index, width }) } else { LogFile::Entries(EntryBundle { index, width }) };
        prop_assert_eq!(LogFile::parse(&file.path()), Some(file));
    }

    #[test]
    fn entries_are_read_back(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..=256)) {
        let bundle = EntryBundle { index: 0, width: u16::try_from(entries.len()).unwrap() };
        let bytes = EntryBundle::encode(&entries).unwrap();
        prop_assert_eq!(bundle.decode(&bytes).unwrap(), entries);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200), width in 1_u16..=256) {
        let bundle = EntryBundle { index: 0, width };
        if let Ok(entries) = bundle.decode(&bytes) {
            prop_assert_eq!(EntryBundle::encode(&entries).unwrap(), bytes);
        }
    }
}
