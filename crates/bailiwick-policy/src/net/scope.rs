//! The requests an authority allows on the network axis: none, a conjunction of unions of rules, or any.

use std::cmp::Ordering;

use super::decide;
use super::{HostPattern, NetRequest, NetRule, NetSet, PortRange, Speech};
use crate::lattice::{Bounds, Containment, Scope, Union};

/// A set of network requests. `Any` is more than `net:connect:*`: private addresses and raw bytes too.
pub type NetScope = Scope<NetSet>;

/// Above this many pairs of rules a meet is kept as a conjunction.
const MAX_PAIRS: usize = 4096;

impl NetScope {
    /// The union of the rules.
    pub fn union(rules: impl IntoIterator<Item = NetRule>) -> Self {
        Self::from_union(NetSet::new(rules))
    }

    /// Whether `request` is in the set.
    #[must_use]
    pub fn allows(&self, request: &NetRequest) -> bool {
        self.admits(request)
    }
}

impl Union for NetSet {
    type Asked = NetRequest;
    type Pattern = NetRule;

    fn everything() -> Self {
        Self::of_one(everything())
    }

    fn deciding(&self, request: &NetRequest) -> Option<NetRule> {
        Self::deciding(self, request).cloned()
    }

    fn admits(&self, request: &NetRequest) -> bool {
        self.allows(request)
    }

    fn explicit_meet(&self, other: &Self) -> Option<Option<Self>> {
        explicit_meet(self, other)
    }

    fn join(&self, other: &Self) -> Self {
        Self::new(self.rules().iter().chain(other.rules()).cloned()).unwrap_or_else(|| self.clone())
    }

    fn within(clauses: &[&Self], bounds: Bounds<'_, Self>) -> Containment<NetRequest> {
        match bounds {
            Bounds::Nothing => decide::within(clauses, None),
            Bounds::All(bounds) => bounds.iter().fold(Containment::Contained, |answer, bound| {
                answer.and_then(|| decide::within(clauses, Some(bound)))
            }),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.rules().cmp(other.rules())
    }
}

/// The rule that allows every request.
fn everything() -> NetRule {
    NetRule::new(HostPattern::Any, PortRange::ANY, true, Speech::Connect { raw: true, ech: false })
}

/// The intersection as a union of rules: `Some(None)` if it is empty, `None` if no such union is known.
fn explicit_meet(a: &NetSet, b: &NetSet) -> Option<Option<NetSet>> {
    if a.rules().len() * b.rules().len() > MAX_PAIRS {
        return None;
    }
    let mut rules: Vec<NetRule> = Vec::new();
    for one in a.rules() {
        for two in b.rules() {
            rules.extend(one.meet(two)?);
        }
    }
    Some(NetSet::new(rules))
}
