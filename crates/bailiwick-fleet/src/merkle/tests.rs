//! The published vectors of the tree's hashes, and proofs of every place in small trees against a brute-force model.

use super::*;
use proptest::prelude::*;

/// The entries of the test vectors that implementations of RFC 6962 and RFC 9162 share, in hexadecimal.
const ENTRIES: [&[u8]; 8] = [
    b"",
    &[0x00],
    &[0x10],
    &[0x20, 0x21],
    &[0x30, 0x31],
    &[0x40, 0x41, 0x42, 0x43],
    &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
    &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
];

/// The roots of the trees of the first one to eight of them.
const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn leaves(count: u32) -> Vec<Hash> {
    (0..count).map(|number| leaf_hash(&number.to_be_bytes())).collect()
}

/// The root as section 2.1.1 defines it, without a frontier.
fn defined_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(left_size(leaves.len()));
            node_hash(&defined_root(left), &defined_root(right))
        }
    }
}

#[test]
fn roots_are_those_of_the_published_vectors() {
    assert_eq!(empty_root().to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    let leaves = ENTRIES.map(leaf_hash);
    for (count, expected) in (1..).zip(ROOTS) {
        assert_eq!(root(&leaves[..count]).to_string(), expected);
    }
}

#[test]
fn proofs_are_those_of_the_published_vectors() {
    let leaves = ENTRIES.map(leaf_hash);
    let shown = |proof: Option<Vec<Hash>>| proof.unwrap().iter().map(Hash::to_string).collect::<Vec<_>>();
    assert_eq!(
        shown(inclusion_proof(&leaves, 5)),
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ]
    );
    assert_eq!(
        shown(consistency_proof(&leaves, 6)),
        [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ]
    );
}

#[test]
fn every_place_in_small_trees_is_proved_and_nothing_else_is() {
    let all = leaves(40);
    for size in 1..=all.len() {
        let (tree, whole) = (&all[..size], size as u64);
        let head = root(tree);
        assert_eq!(head, defined_root(tree));
        for index in 0..size {
            let proof = inclusion_proof(tree, index as u64).unwrap();
            for (other, leaf) in tree.iter().enumerate() {
                let verdict = verify_inclusion(leaf, index as u64, whole, &proof, &head);
                assert_eq!(verdict.is_ok(), other == index, "{other} as {index} of {size}");
            }
        }
        for old in 1..=size {
            let proof = consistency_proof(tree, old as u64).unwrap();
            for claimed in 0..=size {
                let old_root = root(&tree[..old]);
                let verdict = verify_consistency(claimed as u64, &old_root, whole, &head, &proof);
                assert_eq!(verdict.is_ok(), claimed == old, "{claimed} for {old} of {size}");
            }
        }
        assert_eq!(inclusion_proof(tree, whole), None);
        assert_eq!(consistency_proof(tree, whole + 1), None);
        assert_eq!(consistency_proof(tree, 0), None);
    }
}

#[test]
fn a_tree_goes_on_from_the_empty_one_and_from_itself() {
    let all = leaves(5);
    let head = root(&all);
    assert_eq!(verify_consistency(0, &empty_root(), 5, &head, &[]), Ok(()));
    assert_eq!(verify_consistency(0, &head, 5, &head, &[]), Err(ProofError::Root));
    assert_eq!(verify_consistency(5, &head, 5, &head, &[]), Ok(()));
    assert_eq!(verify_consistency(5, &empty_root(), 5, &head, &[]), Err(ProofError::Root));
    assert_eq!(verify_consistency(6, &head, 5, &head, &[]), Err(ProofError::Place));
    assert_eq!(verify_inclusion(&head, 0, 0, &[], &head), Err(ProofError::Place));
}

#[test]
fn a_frontier_is_not_made_with_subtrees_that_do_not_fit() {
    assert!(Frontier::new(3, leaves(2)).is_some());
    assert!(Frontier::new(3, leaves(1)).is_none());
    assert!(Frontier::new(0, leaves(1)).is_none());
}

proptest! {
    #[test]
    fn a_proof_that_was_changed_shows_nothing(
        size in 2_u32..300, old in 1_u32..300, at in any::<prop::sample::Index>(), bit in 0_usize..256
    ) {
        let all = leaves(size);
        let old = old % (size - 1) + 1;
        let (old_root, head) = (root(&all[..old as usize]), root(&all));
        let mut proof = consistency_proof(&all, old.into()).unwrap();
        prop_assert_eq!(verify_consistency(old.into(), &old_root, size.into(), &head, &proof), Ok(()));
        let at = at.index(proof.len());
        let mut bytes = *proof[at].as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        proof[at] = Hash::from_bytes(bytes);
        prop_assert!(verify_consistency(old.into(), &old_root, size.into(), &head, &proof).is_err());
    }

    #[test]
    fn a_longer_or_shorter_proof_shows_nothing(size in 2_u32..300, index in 0_u32..300, extra in 0_usize..4) {
        let all = leaves(size);
        let leaf = all[usize::try_from(index % size).unwrap()];
        let (index, head) = (u64::from(index % size), root(&all));
        let proof = inclusion_proof(&all, index).unwrap();
        prop_assert!(verify_inclusion(&leaf, index, size.into(), &proof[1..], &head).is_err());
        let longer = [&proof[..], &all[..=extra.min(all.len() - 1)]].concat();
        prop_assert!(verify_inclusion(&leaf, index, size.into(), &longer, &head).is_err());
    }

    #[test]
    fn two_different_pasts_never_have_one_future(size in 2_u32..200, old in 1_u32..200, changed in any::<prop::sample::Index>()) {
        let old = old % (size - 1) + 1;
        let mine = leaves(size);
        let mut theirs = mine.clone();
        theirs[changed.index(old as usize)] = leaf_hash(b"another past");
        let proof = consistency_proof(&theirs, old.into()).unwrap();
        let verdict = verify_consistency(old.into(), &root(&mine[..old as usize]), size.into(), &root(&theirs), &proof);
        prop_assert!(verdict.is_err());
    }
}
