//! The paths an authority allows on one axis: none, a conjunction of unions of patterns, or any.
//!
//! Containment is decided by indexes where they suffice and by a search otherwise.

use std::cmp::Ordering;

use super::contain::{Budget, Query};
use super::set::{GlobPattern, tree_glob};
use super::{AbsPath, PathPattern, PathSet};
use crate::lattice::{Bounds, Containment, Scope, Union};

/// A set of paths.
pub type PathScope = Scope<PathSet>;

/// Above this many pairs a meet of globs is kept as a conjunction.
const MAX_PAIRS: usize = 256;

impl PathScope {
    /// The union of resolved patterns.
    pub fn union<'a>(patterns: impl IntoIterator<Item = &'a PathPattern>) -> Self {
        let set = PathSet::new(patterns.into_iter());
        if set.as_ref().is_some_and(PathSet::is_everything) { Self::Any } else { Self::from_union(set) }
    }

    /// Whether `path` is in the set.
    #[must_use]
    pub fn covers(&self, path: &AbsPath) -> bool {
        self.admits(path)
    }
}

impl Union for PathSet {
    type Asked = AbsPath;
    type Pattern = PathPattern;

    fn everything() -> Self {
        Self::all_paths()
    }

    fn deciding(&self, path: &AbsPath) -> Option<PathPattern> {
        Self::deciding(self, path)
    }

    fn admits(&self, path: &AbsPath) -> bool {
        self.covers(path)
    }

    fn explicit_meet(&self, other: &Self) -> Option<Option<Self>> {
        explicit_meet(self, other)
    }

    fn join(&self, other: &Self) -> Self {
        self.joined(other)
    }

    fn within(clauses: &[&Self], bounds: Bounds<'_, Self>) -> Containment<AbsPath> {
        let mut budget = Budget::new();
        match bounds {
            Bounds::Nothing => clauses_within(clauses, None, &mut budget),
            Bounds::All(bounds) => bounds.iter().fold(Containment::Contained, |answer, bound| {
                answer.and_then(|| clauses_within(clauses, Some(bound), &mut budget))
            }),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.order_key().cmp(&other.order_key())
    }
}

/// Whether the conjunction is within the union (`None`: within nothing at all).
fn clauses_within(
    clauses: &[&PathSet],
    bound: Option<&PathSet>,
    budget: &mut Budget,
) -> Containment<AbsPath> {
    if let Some(bound) = bound
        && clauses.contains(&bound)
    {
        return Containment::Contained;
    }
    let Some((index, driver)) = clauses.iter().enumerate().min_by_key(|(_, set)| set.len()) else {
        return Containment::Contained;
    };
    let others: Vec<&PathSet> =
        clauses.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, set)| *set).collect();
    let mut answer = Containment::Contained;
    for tree in driver.trees() {
        answer = answer.and_then(|| tree_within(tree, &others, bound, budget));
        if matches!(answer, Containment::Exceeds(_)) {
            return answer;
        }
    }
    for glob in driver.globs() {
        answer = answer.and_then(|| glob_within(glob, &others, bound, budget));
        if matches!(answer, Containment::Exceeds(_)) {
            return answer;
        }
    }
    answer
}

fn tree_within(
    tree: &str,
    others: &[&PathSet],
    bound: Option<&PathSet>,
    budget: &mut Budget,
) -> Containment<AbsPath> {
    if bound.is_some_and(|bound| bound.tree_covers(tree)) {
        return Containment::Contained;
    }
    let top = AbsPath::from_key(tree);
    if !bound.is_some_and(|bound| bound.covers(&top)) && others.iter().all(|set| set.covers(&top)) {
        return Containment::Exceeds(top);
    }
    search(tree_glob(tree), others, bound, budget)
}

fn glob_within(
    glob: &GlobPattern,
    others: &[&PathSet],
    bound: Option<&PathSet>,
    budget: &mut Budget,
) -> Containment<AbsPath> {
    let known =
        bound.is_some_and(|set| set.tree_covers(&glob.prefix) || set.globs().binary_search(glob).is_ok());
    if known { Containment::Contained } else { search(glob.clone(), others, bound, budget) }
}

fn search(
    driver: GlobPattern,
    others: &[&PathSet],
    bound: Option<&PathSet>,
    budget: &mut Budget,
) -> Containment<AbsPath> {
    let base = driver.prefix.clone();
    let within = others.iter().map(|set| set.near(&base).collect()).collect();
    let outside = bound.map(|set| set.near(&base).collect()).unwrap_or_default();
    Query { driver, within, outside }.solve(budget)
}

/// The intersection as a union of patterns: `Some(None)` if it is empty, `None` if no such union is known.
fn explicit_meet(a: &PathSet, b: &PathSet) -> Option<Option<PathSet>> {
    let mut trees: Vec<Box<str>> = a.trees().iter().filter(|tree| b.tree_covers(tree)).cloned().collect();
    trees.extend(b.trees().iter().filter(|tree| a.tree_covers(tree)).cloned());
    let mut globs = Vec::new();
    let mut budget = Budget::new();
    let mut pairs = 0;
    for (one, two) in [(a, b), (b, a)] {
        for glob in one.globs() {
            if two.tree_covers(&glob.prefix) {
                globs.push(glob.clone());
                continue;
            }
            for other in two.near(&glob.prefix) {
                pairs += 1;
                if pairs > MAX_PAIRS {
                    return None;
                }
                globs.extend(pair_meet(glob, &other, &mut budget)?);
            }
        }
    }
    Some(PathSet::normal(trees, globs))
}

/// The smaller of two patterns if one is within the other, nothing if they are apart, else unknown.
fn pair_meet(a: &GlobPattern, b: &GlobPattern, budget: &mut Budget) -> Option<Option<GlobPattern>> {
    let ask = |within: Vec<Vec<GlobPattern>>,
               outside: Vec<GlobPattern>,
               driver: &GlobPattern,
               budget: &mut Budget| {
        Query { driver: driver.clone(), within, outside }.solve(budget).holds()
    };
    if ask(vec![], vec![b.clone()], a, budget) {
        return Some(Some(a.clone()));
    }
    if ask(vec![], vec![a.clone()], b, budget) {
        return Some(Some(b.clone()));
    }
    ask(vec![vec![b.clone()]], vec![], a, budget).then_some(None)
}
