//! A scope: nothing, a conjunction of unions, or everything. Shared by the axes whose unions are patterns.
//!
//! A meet is stored explicitly where the union type knows how, and as a conjunction otherwise, so it is always
//! exact. Containment asks the union type, which decides or says that it could not.

use std::sync::Arc;

use super::Containment;

/// A union of patterns that scopes are made of; never empty.
pub trait Union: Sized + PartialEq {
    /// What is asked about.
    type Asked;
    /// One pattern of the union.
    type Pattern;

    /// The union that admits everything.
    fn everything() -> Self;

    /// The pattern that admits `asked`, if one does.
    fn deciding(&self, asked: &Self::Asked) -> Option<Self::Pattern>;

    /// Whether some pattern admits `asked`.
    fn admits(&self, asked: &Self::Asked) -> bool;

    /// What both admit, as a union: `Some(None)` for nothing, `None` if no such union is known.
    fn explicit_meet(&self, other: &Self) -> Option<Option<Self>>;

    /// What either admits.
    fn join(&self, other: &Self) -> Self;

    /// Whether the conjunction of `clauses` is within `bounds`, all of them; no bound at all is nothing.
    fn within(clauses: &[&Self], bounds: Bounds<'_, Self>) -> Containment<Self::Asked>;

    /// A total order, so that conjunctions have one form.
    fn order(&self, other: &Self) -> std::cmp::Ordering;
}

/// What a conjunction is compared with.
pub enum Bounds<'a, U> {
    /// Nothing is admitted.
    Nothing,
    /// All of these must admit.
    All(&'a [&'a U]),
}

/// A set of whatever the union type is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope<U> {
    /// Nothing.
    None,
    /// What every clause admits.
    Only(Clauses<U>),
    /// Everything.
    Any,
}

/// A non-empty conjunction of unions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clauses<U>(Vec<Arc<U>>);

impl<U> Clauses<U> {
    /// The unions, all of which must admit.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = &U> {
        self.0.iter().map(|set| &**set)
    }
}

impl<U: Union + Clone> Scope<U> {
    /// The scope of one union.
    pub(crate) fn from_union(set: Option<U>) -> Self {
        set.map_or(Self::None, |set| Self::Only(Clauses(vec![Arc::new(set)])))
    }

    /// Whether `asked` is in the set.
    #[must_use]
    pub fn admits(&self, asked: &U::Asked) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Only(clauses) => clauses.0.iter().all(|set| set.admits(asked)),
        }
    }

    /// The patterns that admit `asked`, one of each clause; empty if it is not in the set.
    #[must_use]
    pub fn deciding(&self, asked: &U::Asked) -> Vec<U::Pattern> {
        match self {
            Self::None => Vec::new(),
            Self::Any => U::everything().deciding(asked).into_iter().collect(),
            Self::Only(clauses) => {
                let found: Option<Vec<_>> = clauses.0.iter().map(|set| set.deciding(asked)).collect();
                found.unwrap_or_default()
            }
        }
    }

    /// What is in both.
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

    /// What is in either, exactly. For lines that are granted together; authority on its way down only meets.
    #[must_use]
    pub(crate) fn join(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::None, scope) | (scope, Self::None) => scope.clone(),
            (Self::Only(a), Self::Only(b)) => {
                let pairs = a.sets().flat_map(|one| b.sets().map(move |two| Arc::new(one.join(two))));
                pairs.fold(Self::Any, |joined, set| match joined {
                    Self::Any => Self::Only(Clauses(vec![set])),
                    Self::None | Self::Only(_) => joined.meet_set(&set),
                })
            }
        }
    }

    /// How many unions must agree; 0 for nothing and for everything.
    pub(crate) const fn clauses(&self) -> usize {
        match self {
            Self::None | Self::Any => 0,
            Self::Only(clauses) => clauses.0.len(),
        }
    }

    fn meet_set(self, new: &Arc<U>) -> Self {
        let Self::Only(Clauses(mut clauses)) = self else { return self };
        if clauses.contains(new) {
            return Self::Only(Clauses(clauses));
        }
        let explicit =
            clauses.iter().enumerate().find_map(|(at, old)| old.explicit_meet(new).map(|met| (at, met)));
        match explicit {
            Some((_, None)) => Self::None,
            Some((at, Some(met))) => {
                clauses.remove(at);
                let met = Arc::new(met);
                if clauses.is_empty() {
                    Self::Only(Clauses(vec![met]))
                } else {
                    Self::Only(Clauses(clauses)).meet_set(&met)
                }
            }
            None => {
                clauses.push(Arc::clone(new));
                clauses.sort_by(|a, b| a.order(b));
                Self::Only(Clauses(clauses))
            }
        }
    }

    /// Whether everything here is also in `other`, with an example of what is not.
    #[must_use]
    pub fn within(&self, other: &Self) -> Containment<U::Asked> {
        let everything;
        let clauses: Vec<&U> = match self {
            Self::None => return Containment::Contained,
            Self::Any => {
                everything = U::everything();
                vec![&everything]
            }
            Self::Only(clauses) => clauses.sets().collect(),
        };
        match other {
            Self::Any => Containment::Contained,
            Self::None => U::within(&clauses, Bounds::Nothing),
            Self::Only(bounds) => U::within(&clauses, Bounds::All(&bounds.sets().collect::<Vec<_>>())),
        }
    }
}
