//! The paths an authority allows on one axis: none, a conjunction of unions of patterns, or any.
//!
//! A meet is stored explicitly where the result is again a union of patterns and as a conjunction otherwise,
//! so it is always exact. Containment is decided by indexes where they suffice and by a search otherwise.

use std::sync::Arc;

use super::contain::{Budget, Query};
use super::set::{GlobPattern, tree_glob};
use super::{AbsPath, PathPattern, PathSet};
use crate::lattice::Containment;

/// A set of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathScope {
    /// No path.
    None,
    /// Paths that every clause covers.
    Only(PathClauses),
    /// Every path.
    Any,
}

/// A non-empty conjunction of unions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathClauses(Vec<Arc<PathSet>>);

/// Above this many pairs a meet of globs is kept as a conjunction.
const MAX_PAIRS: usize = 256;

impl PathClauses {
    /// The unions, all of which must cover a path.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = &PathSet> {
        self.0.iter().map(|set| &**set)
    }
}

impl PathScope {
    /// The union of resolved patterns.
    pub(crate) fn union<'a>(patterns: impl IntoIterator<Item = &'a PathPattern>) -> Self {
        Self::of_set(PathSet::new(patterns.into_iter()))
    }

    fn of_set(set: Option<PathSet>) -> Self {
        match set {
            None => Self::None,
            Some(set) if set.is_everything() => Self::Any,
            Some(set) => Self::Only(PathClauses(vec![Arc::new(set)])),
        }
    }

    /// Whether `path` is in the set.
    #[must_use]
    pub fn covers(&self, path: &AbsPath) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Only(clauses) => clauses.0.iter().all(|set| set.covers(path)),
        }
    }

    /// The patterns that let `path` in, one of each clause; empty for a path that is not covered.
    #[must_use]
    pub fn deciding(&self, path: &AbsPath) -> Vec<PathPattern> {
        match self {
            Self::None => Vec::new(),
            Self::Any => vec![PathPattern::everything()],
            Self::Only(clauses) => {
                let found: Option<Vec<_>> = clauses.0.iter().map(|set| set.deciding(path)).collect();
                found.unwrap_or_default()
            }
        }
    }

    /// The paths in both.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Any, scope) | (scope, Self::Any) => scope.clone(),
            (Self::Only(a), Self::Only(b)) => {
                b.0.iter().fold(Self::Only(a.clone()), |met, set| met.meet_set(set))
            }
        }
    }

    fn meet_set(self, new: &Arc<PathSet>) -> Self {
        let Self::Only(PathClauses(mut clauses)) = self else { return self };
        if clauses.contains(new) {
            return Self::Only(PathClauses(clauses));
        }
        for index in 0..clauses.len() {
            let explicit = clauses.get(index).and_then(|old| explicit_meet(old, new));
            match explicit {
                Some(None) => return Self::None,
                Some(Some(met)) => {
                    clauses.remove(index);
                    let met = Arc::new(met);
                    if clauses.is_empty() {
                        return Self::Only(PathClauses(vec![met]));
                    }
                    return Self::Only(PathClauses(clauses)).meet_set(&met);
                }
                None => {}
            }
        }
        clauses.push(Arc::clone(new));
        clauses.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        Self::Only(PathClauses(clauses))
    }

    /// Whether every path here is also in `other`, with a path that is not.
    #[must_use]
    pub fn within(&self, other: &Self) -> Containment<AbsPath> {
        let mut budget = Budget::new();
        let everything;
        let clauses = match self {
            Self::None => return Containment::Contained,
            Self::Any => {
                everything = [Arc::new(PathSet::everything())];
                &everything[..]
            }
            Self::Only(clauses) => &clauses.0,
        };
        match other {
            Self::Any => Containment::Contained,
            Self::None => clauses_within(clauses, None, &mut budget),
            Self::Only(bounds) => bounds.0.iter().fold(Containment::Contained, |answer, bound| {
                answer.and_then(|| clauses_within(clauses, Some(bound), &mut budget))
            }),
        }
    }
}

/// Whether the conjunction is within the union (`None`: within nothing at all).
fn clauses_within(
    clauses: &[Arc<PathSet>],
    bound: Option<&PathSet>,
    budget: &mut Budget,
) -> Containment<AbsPath> {
    if let Some(bound) = bound
        && clauses.iter().any(|set| **set == *bound)
    {
        return Containment::Contained;
    }
    let Some((index, driver)) = clauses.iter().enumerate().min_by_key(|(_, set)| set.len()) else {
        return Containment::Contained;
    };
    let others: Vec<&PathSet> =
        clauses.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, set)| &**set).collect();
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
