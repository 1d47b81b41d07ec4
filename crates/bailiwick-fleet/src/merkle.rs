//! The Merkle tree of RFC 9162, section 2.1: hashes of leaves and nodes, inclusion and consistency proofs.
//!
//! A [`Frontier`] is what a growing tree needs to know of its past: the roots of its full subtrees, at most 64. Proofs are made from the
//! hashes of all leaves, and checked without them.

use serde::{Deserialize, Serialize};

use crate::Hash;

/// Why a proof shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The sizes or the index are impossible.
    #[error("the proof is for an impossible place in the tree")]
    Place,
    /// It has too few or too many hashes.
    #[error("the proof has the wrong number of hashes")]
    Length,
    /// It leads to another root.
    #[error("the proof leads to another root")]
    Root,
}

/// The roots of the full subtrees of a tree, the largest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frontier {
    size: u64,
    roots: Vec<Hash>,
}

impl Frontier {
    /// A tree of this size with these full subtrees; nothing if the number of subtrees is not that of the size.
    #[must_use]
    pub fn new(size: u64, roots: Vec<Hash>) -> Option<Self> {
        let fits = u64::from(size.count_ones()) == u64::try_from(roots.len()).unwrap_or(u64::MAX);
        fits.then_some(Self { size, roots })
    }

    /// How many leaves there are.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the full subtrees, the largest first.
    #[must_use]
    pub fn roots(&self) -> &[Hash] {
        &self.roots
    }

    /// Adds a leaf by its hash, see [`leaf_hash`].
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.roots.pop() else { break };
            node = node_hash(&left, &node);
        }
        self.roots.push(node);
        self.size += 1;
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut from_right = self.roots.iter().rev();
        let Some(last) = from_right.next() else { return empty_root() };
        from_right.fold(*last, |right, left| node_hash(left, &right))
    }
}

/// The root of a tree without leaves.
#[must_use]
pub fn empty_root() -> Hash {
    Hash::sha256(b"")
}

/// The hash of a leaf.
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Hash {
    Hash::of_parts(&[&[0], entry])
}

/// The hash of a node.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Hash::of_parts(&[&[1], left.as_bytes(), right.as_bytes()])
}

/// The root of the tree with these leaves.
#[must_use]
pub fn root(leaves: &[Hash]) -> Hash {
    let mut tree = Frontier::default();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    tree.root()
}

/// The proof that the leaf at `index` is in the tree; nothing if there is no such leaf.
#[must_use]
pub fn inclusion_proof(leaves: &[Hash], index: u64) -> Option<Vec<Hash>> {
    let mut index = usize::try_from(index).ok().filter(|index| *index < leaves.len())?;
    let mut part = leaves;
    let mut proof = Vec::new();
    while part.len() > 1 {
        let (left, right) = part.split_at_checked(left_size(part.len()))?;
        if index < left.len() {
            proof.push(root(right));
            part = left;
        } else {
            proof.push(root(left));
            index -= left.len();
            part = right;
        }
    }
    proof.reverse();
    Some(proof)
}

/// The proof that the tree of the first `old` leaves is a prefix of this one; nothing if `old` is zero or too large.
#[must_use]
pub fn consistency_proof(leaves: &[Hash], old: u64) -> Option<Vec<Hash>> {
    let mut old = usize::try_from(old).ok().filter(|old| *old > 0 && *old <= leaves.len())?;
    let mut part = leaves;
    let mut proof = Vec::new();
    let mut is_whole = true;
    while old < part.len() {
        let (left, right) = part.split_at_checked(left_size(part.len()))?;
        if old <= left.len() {
            proof.push(root(right));
            part = left;
        } else {
            proof.push(root(left));
            old -= left.len();
            part = right;
            is_whole = false;
        }
    }
    if !is_whole {
        proof.push(root(part));
    }
    proof.reverse();
    Some(proof)
}

/// Checks that the leaf at `index` is in the tree of this size and root.
///
/// # Errors
/// Why the proof does not show that.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::Place);
    }
    let mut place = Place { first: index, last: size - 1 };
    let mut node = *leaf;
    for sibling in proof {
        node = match place.step()? {
            Side::Left => node_hash(sibling, &node),
            Side::Right => node_hash(&node, sibling),
        };
    }
    judge(&place, node == *root)
}

/// Checks that the tree of `old_size` and `old_root` is a prefix of the tree of `size` and `root`. Every tree goes on from the empty one.
///
/// # Errors
/// Why the proof does not show that.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    size: u64,
    root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if old_size > size {
        return Err(ProofError::Place);
    }
    if old_size == 0 || old_size == size {
        if !proof.is_empty() {
            return Err(ProofError::Length);
        }
        let expected = if old_size == 0 { empty_root() } else { *root };
        return if expected == *old_root { Ok(()) } else { Err(ProofError::Root) };
    }
    let is_power = old_size.is_power_of_two();
    let mut hashes = is_power.then_some(old_root).into_iter().chain(proof);
    let start = *hashes.next().ok_or(ProofError::Length)?;
    let mut place = Place { first: old_size - 1, last: size - 1 };
    place.shift_by(place.first.trailing_ones());
    let (mut old_node, mut node) = (start, start);
    for sibling in hashes {
        match place.step()? {
            Side::Left => {
                old_node = node_hash(sibling, &old_node);
                node = node_hash(sibling, &node);
            }
            Side::Right => node = node_hash(&node, sibling),
        }
    }
    judge(&place, old_node == *old_root && node == *root)
}

/// Where a proof stands: `fn` and `sn` of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
struct Place {
    first: u64,
    last: u64,
}

/// On which side of a node its sibling is.
enum Side {
    Left,
    Right,
}

impl Place {
    /// Goes up by one hash of the proof.
    fn step(&mut self) -> Result<Side, ProofError> {
        if self.last == 0 {
            return Err(ProofError::Length);
        }
        let is_right = self.first & 1 == 1;
        if !is_right && self.first != self.last {
            self.shift_by(1);
            return Ok(Side::Right);
        }
        // A node without a right sibling keeps its hash until it becomes one itself.
        if !is_right {
            self.shift_by(self.first.trailing_zeros());
        }
        self.shift_by(1);
        Ok(Side::Left)
    }

    const fn shift_by(&mut self, count: u32) {
        self.first = if count < 64 { self.first >> count } else { 0 };
        self.last = if count < 64 { self.last >> count } else { 0 };
    }
}

const fn judge(place: &Place, is_equal: bool) -> Result<(), ProofError> {
    if place.last != 0 {
        return Err(ProofError::Length);
    }
    if is_equal { Ok(()) } else { Err(ProofError::Root) }
}

/// The largest power of two that is smaller.
const fn left_size(size: usize) -> usize {
    size.next_power_of_two() / 2
}

#[cfg(test)]
mod tests;
