//! A union of path patterns, indexed so that membership is a binary search.
//!
//! Trees (patterns that cover a path and all below it) are kept as sorted keys of which none lies below
//! another, so the only candidate for a path is its predecessor. Other patterns are sorted by the key of their
//! literal prefix and found through the ancestors of the path.

use super::{AbsPath, Part, PathPattern, Root, SYMBOL, glob, is_at_or_below};

/// A non-empty union of patterns. Order and repetition of what it was made from leave no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSet {
    trees: Box<[Box<str>]>,
    globs: Box<[GlobPattern]>,
}

/// A pattern with a glob, its literal prefix apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlobPattern {
    pub(super) prefix: Box<str>,
    pub(super) rest: Box<[Part]>,
}

impl PathSet {
    /// The union of resolved patterns; `None` if there are none.
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = &'a PathPattern>) -> Option<Self> {
        let (mut trees, mut globs) = (Vec::new(), Vec::new());
        for pattern in patterns {
            let prefix = pattern.prefix_key();
            if pattern.is_tree() {
                trees.push(prefix);
            } else {
                let rest = pattern.parts().get(pattern.literal_prefix().len()..).unwrap_or_default();
                globs.push(GlobPattern { prefix, rest: rest.into() });
            }
        }
        Self::normal(trees, globs)
    }

    /// Sorts, removes repetition and whatever a tree covers.
    pub(super) fn normal(mut trees: Vec<Box<str>>, globs: Vec<GlobPattern>) -> Option<Self> {
        let (whole, mut globs): (Vec<_>, Vec<_>) =
            globs.into_iter().partition(|glob| *glob.rest == [Part::Deep]);
        trees.extend(whole.into_iter().map(|tree| tree.prefix));
        trees.sort_unstable();
        let mut kept: Vec<Box<str>> = Vec::with_capacity(trees.len());
        for tree in trees {
            if !kept.last().is_some_and(|above| is_at_or_below(&tree, above)) {
                kept.push(tree);
            }
        }
        globs.sort_unstable();
        globs.dedup();
        globs.retain(|glob| !tree_covers(&kept, &glob.prefix));
        let set = Self { trees: kept.into_boxed_slice(), globs: globs.into_boxed_slice() };
        (!set.trees.is_empty() || !set.globs.is_empty()).then_some(set)
    }

    /// The union of both.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let trees = self.trees.iter().chain(&other.trees).cloned().collect();
        let globs = self.globs.iter().chain(&other.globs).cloned().collect();
        Self::normal(trees, globs).unwrap_or_else(|| self.clone())
    }

    /// Every path.
    pub(super) fn all_paths() -> Self {
        Self { trees: Box::new(["".into()]), globs: Box::new([]) }
    }

    /// What clauses of a conjunction are sorted by.
    pub(super) const fn order_key(&self) -> (&[Box<str>], &[GlobPattern]) {
        (&self.trees, &self.globs)
    }

    /// Whether some pattern covers every path.
    pub(crate) fn is_everything(&self) -> bool {
        self.trees.first().is_some_and(|tree| tree.is_empty())
    }

    /// Whether the union covers `path`.
    #[must_use]
    pub fn covers(&self, path: &AbsPath) -> bool {
        tree_covers(&self.trees, path.key()) || self.deciding_glob(path).is_some()
    }

    /// The pattern that covers `path`, the widest first.
    #[must_use]
    pub fn deciding(&self, path: &AbsPath) -> Option<PathPattern> {
        match covering_tree(&self.trees, path.key()) {
            Some(tree) => Some(tree_pattern(tree)),
            None => self.deciding_glob(path).map(GlobPattern::pattern),
        }
    }

    fn deciding_glob(&self, path: &AbsPath) -> Option<&GlobPattern> {
        if self.globs.is_empty() {
            return None;
        }
        let key = path.key();
        let ancestors = key.match_indices('\0').map(|(at, _)| at).chain(std::iter::once(key.len()));
        ancestors.enumerate().find_map(|(depth, end)| {
            let prefix = key.get(..end).unwrap_or_default();
            self.globs_at(prefix)
                .iter()
                .find(|candidate| glob::matches_parts(&candidate.rest, path.components().skip(depth)))
        })
    }

    /// The glob patterns with exactly this literal prefix.
    fn globs_at(&self, prefix: &str) -> &[GlobPattern] {
        let from = self.globs.partition_point(|glob| *glob.prefix < *prefix);
        let after = self.globs.get(from..).unwrap_or_default();
        let count = after.partition_point(|glob| *glob.prefix == *prefix);
        after.get(..count).unwrap_or_default()
    }

    /// The patterns, trees first, each in order.
    pub fn patterns(&self) -> impl Iterator<Item = PathPattern> {
        self.trees.iter().map(|tree| tree_pattern(tree)).chain(self.globs.iter().map(GlobPattern::pattern))
    }

    /// How many patterns the union has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trees.len() + self.globs.len()
    }

    /// Never: a set has at least one pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) const fn trees(&self) -> &[Box<str>] {
        &self.trees
    }

    pub(super) const fn globs(&self) -> &[GlobPattern] {
        &self.globs
    }

    /// Whether one tree covers everything at and below the key.
    pub(super) fn tree_covers(&self, key: &str) -> bool {
        tree_covers(&self.trees, key)
    }

    /// The patterns that can match something at or below `base`: those above it, at it, or below it.
    pub(super) fn near<'a>(&'a self, base: &'a str) -> impl Iterator<Item = GlobPattern> + 'a {
        let from = self.trees.partition_point(|tree| **tree < *base);
        let below =
            self.trees.get(from..).unwrap_or_default().iter().take_while(move |t| is_at_or_below(t, base));
        let above = covering_tree(&self.trees, base).filter(|tree| *tree != base);
        let trees = above.into_iter().chain(below.map(|tree| &**tree)).map(tree_glob);
        let from = self.globs.partition_point(|glob| *glob.prefix < *base);
        let globs = self.globs.get(from..).unwrap_or_default();
        let globs_below = globs.iter().take_while(move |glob| is_at_or_below(&glob.prefix, base));
        let ancestors = base.match_indices('\0').map(|(at, _)| base.get(..at).unwrap_or_default());
        let globs_above = ancestors.flat_map(|prefix| self.globs_at(prefix));
        let globs = globs_above.chain(globs_below).cloned();
        trees.chain(globs)
    }
}

impl GlobPattern {
    pub(super) fn pattern(&self) -> PathPattern {
        let literals = AbsPath::from_key(self.prefix.clone());
        let mut names = literals.components().peekable();
        let variable = names.next_if(|name| name.starts_with(SYMBOL));
        let root =
            variable.map_or(Root::Slash, |name| Root::Variable(name.trim_start_matches(SYMBOL).into()));
        let parts = names.map(|name| Part::Literal(name.into())).chain(self.rest.iter().cloned()).collect();
        PathPattern { root, parts }
    }
}

/// A tree as a glob pattern: its key, then `**`.
pub(super) fn tree_glob(tree: &str) -> GlobPattern {
    GlobPattern { prefix: tree.into(), rest: Box::new([Part::Deep]) }
}

fn tree_pattern(tree: &str) -> PathPattern {
    tree_glob(tree).pattern()
}

/// The tree at or above the key, if any. The trees are sorted and none is below another.
fn covering_tree<'a>(trees: &'a [Box<str>], key: &str) -> Option<&'a str> {
    let after = trees.partition_point(|tree| **tree <= *key);
    let candidate = after.checked_sub(1).and_then(|index| trees.get(index))?;
    is_at_or_below(key, candidate).then_some(&**candidate)
}

fn tree_covers(trees: &[Box<str>], key: &str) -> bool {
    covering_tree(trees, key).is_some()
}
