//! A finite map from keys to permissions, with permissions for every other key.
//!
//! Kept in normal form (a key is listed only if it may do more than the rest), so equality is semantic and
//! meet and containment are pointwise and exact. A listed key never may do less than the rest.

use std::collections::BTreeMap;

/// A set of permissions as bits; what each bit means belongs to the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// No permission.
    pub const NONE: Self = Self(0);

    /// The permissions with these bits.
    #[must_use]
    pub const fn bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Permissions of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Permissions of both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those of `self` that `other` lacks.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Permissions by key, and for every key that is not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagMap<K: Ord> {
    rest: Flags,
    listed: BTreeMap<K, Flags>,
}

impl<K: Ord + Clone> FlagMap<K> {
    /// The same permissions for every key.
    #[must_use]
    pub const fn uniform(rest: Flags) -> Self {
        Self { rest, listed: BTreeMap::new() }
    }

    /// The union of grants: `None` as key is every key.
    pub fn union_of(grants: impl IntoIterator<Item = (Option<K>, Flags)>) -> Self {
        let mut map = Self::uniform(Flags::NONE);
        for (key, flags) in grants {
            match key {
                None => map.rest = map.rest.union(flags),
                Some(key) => {
                    let entry = map.listed.entry(key).or_default();
                    *entry = entry.union(flags);
                }
            }
        }
        let rest = map.rest;
        for flags in map.listed.values_mut() {
            *flags = flags.union(rest);
        }
        map.listed.retain(|_, flags| *flags != rest);
        map
    }

    /// What `key` may do.
    #[must_use]
    pub fn flags_for(&self, key: &K) -> Flags {
        self.listed.get(key).copied().unwrap_or(self.rest)
    }

    /// What every key that is not listed may do.
    #[must_use]
    pub const fn rest(&self) -> Flags {
        self.rest
    }

    /// The keys that may do more than the rest, in order.
    pub fn listed(&self) -> impl Iterator<Item = (&K, Flags)> {
        self.listed.iter().map(|(key, flags)| (key, *flags))
    }

    /// Whether nothing is permitted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.rest.is_empty() && self.listed.is_empty()
    }

    /// What both permit.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let rest = self.rest.intersection(other.rest);
        let keys = self.listed.keys().chain(other.listed.keys());
        let both = keys.map(|key| (key.clone(), self.flags_for(key).intersection(other.flags_for(key))));
        Self { rest, listed: both.filter(|(_, flags)| *flags != rest).collect() }
    }

    /// The first key that may do more here than there (`None`: any unlisted key), and what.
    #[must_use]
    pub fn excess(&self, other: &Self) -> Option<(Option<&K>, Flags)> {
        let listed = self.listed.iter().find_map(|(key, flags)| {
            let more = flags.minus(other.flags_for(key));
            (!more.is_empty()).then_some((Some(key), more))
        });
        let rest = self.rest.minus(other.rest);
        listed.or_else(|| (!rest.is_empty()).then_some((None, rest)))
    }
}
