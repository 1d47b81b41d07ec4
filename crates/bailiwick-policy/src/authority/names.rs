//! Which paths were granted for changing by name. A file that runs code later is open only where a line names it, so the
//! names stay visible where the sets of paths are merged or met.

use std::collections::BTreeSet;

use crate::capability::Program;
use crate::path::AbsPath;

/// The names of an authority. They bound nothing by themselves: what may be changed is said by the sets of paths.
#[derive(Debug, Clone)]
pub(crate) enum Names {
    /// Whatever others name: of a bound, which grants nothing itself.
    Any,
    /// These, and what lies below them.
    Only(BTreeSet<AbsPath>),
}

impl Names {
    /// What both name.
    pub(crate) fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, names) | (names, Self::Any) => names.clone(),
            (Self::Only(own), Self::Only(others)) => {
                let mine = own.iter().filter(|path| lies_in_one(path, others));
                let theirs = others.iter().filter(|path| lies_in_one(path, own));
                Self::Only(mine.chain(theirs).cloned().collect())
            }
        }
    }

    /// The paths; none of a bound.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        let paths = match self {
            Self::Any => None,
            Self::Only(paths) => Some(paths),
        };
        paths.into_iter().flatten()
    }
}

/// Whether a path is one of these or lies below one: it and each one above it is looked up.
fn lies_in_one(path: &AbsPath, names: &BTreeSet<AbsPath>) -> bool {
    let key = path.key();
    let ends = key.match_indices('\0').map(|(at, _)| at).chain([key.len()]);
    ends.filter_map(|end| key.get(..end)).any(|above| names.contains(&AbsPath::from_key(above)))
}

/// Which programs a line names. They bound nothing: what may be started is said by the map of programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedPrograms(BTreeSet<Program>);

impl NamedPrograms {
    pub(crate) fn insert(&mut self, program: Program) {
        self.0.insert(program);
    }

    /// What either names.
    pub(crate) fn join(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Program> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Names {
        Names::Only(paths.iter().map(|path| AbsPath::new(path).unwrap()).collect())
    }

    fn met(a: &Names, b: &Names) -> Vec<String> {
        let (one, other) = (a.meet(b), b.meet(a));
        let text = |names: &Names| names.paths().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(&one), text(&other));
        text(&one)
    }

    #[test]
    fn a_name_stays_where_both_name_it_or_what_it_lies_in() {
        let own = names(&["/w", "/w/.git/hooks", "/x/y"]);
        assert_eq!(met(&own, &names(&["/w/.git"])), ["/w/.git", "/w/.git/hooks"]);
        assert_eq!(met(&own, &names(&["/x", "/w/.github"])), ["/w/.github", "/x/y"]);
        assert_eq!(met(&own, &names(&["/"])), ["/w", "/w/.git/hooks", "/x/y"]);
        assert_eq!(met(&own, &names(&[])), [""; 0]);
        assert_eq!(met(&own, &Names::Any), ["/w", "/w/.git/hooks", "/x/y"], "a bound names nothing itself");
        assert_eq!(met(&Names::Any, &Names::Any), [""; 0]);
    }
}
