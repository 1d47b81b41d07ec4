//! The small algebra the axes share: answers of a containment question, call bounds, and finite maps from
//! names to permissions with a permission for everything else.

mod bound;
mod flags;
mod scope;

pub use bound::CountBound;
pub use flags::{FlagMap, Flags};
pub use scope::{Clauses, Scope};

pub(crate) use scope::{Bounds, Union};

/// The answer to "is the first within the second?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment<W> {
    /// Everything the first allows, the second allows.
    Contained,
    /// The first allows this, the second does not.
    Exceeds(W),
    /// Not decided within the budget. Treat as not contained.
    Undecided,
}

impl<W> Containment<W> {
    /// Whether containment was shown. `Undecided` is not contained.
    #[must_use]
    pub const fn holds(&self) -> bool {
        matches!(self, Self::Contained)
    }

    /// The same answer about another kind of witness.
    pub fn map<V>(self, with: impl FnOnce(W) -> V) -> Containment<V> {
        match self {
            Self::Contained => Containment::Contained,
            Self::Exceeds(witness) => Containment::Exceeds(with(witness)),
            Self::Undecided => Containment::Undecided,
        }
    }

    /// Both must hold; a witness says more than `Undecided`.
    #[must_use]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Contained => next(),
            Self::Exceeds(witness) => Self::Exceeds(witness),
            Self::Undecided => match next() {
                Self::Exceeds(witness) => Self::Exceeds(witness),
                Self::Contained | Self::Undecided => Self::Undecided,
            },
        }
    }
}
