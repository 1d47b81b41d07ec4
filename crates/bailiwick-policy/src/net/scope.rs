//! The requests an authority allows on the network axis: none, a conjunction of unions of rules, or any.

use std::sync::Arc;

use super::decide;
use super::{HostPattern, NetRequest, NetRule, NetSet, PortRange, Speech};
use crate::lattice::Containment;

/// A set of network requests. `Any` is more than `net:connect:*`: private addresses and raw bytes too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetScope {
    /// No request.
    None,
    /// Requests that every clause allows.
    Only(NetClauses),
    /// Every request.
    Any,
}

/// A non-empty conjunction of unions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetClauses(Vec<Arc<NetSet>>);

/// Above this many pairs of rules a meet is kept as a conjunction.
const MAX_PAIRS: usize = 4096;

impl NetClauses {
    /// The unions, all of which must allow a request.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = &NetSet> {
        self.0.iter().map(|set| &**set)
    }
}

impl NetScope {
    /// The union of the rules.
    pub(crate) fn union(rules: impl IntoIterator<Item = NetRule>) -> Self {
        NetSet::new(rules).map_or(Self::None, |set| Self::Only(NetClauses(vec![Arc::new(set)])))
    }

    /// Whether `request` is in the set.
    #[must_use]
    pub fn allows(&self, request: &NetRequest) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Only(clauses) => clauses.0.iter().all(|set| set.allows(request)),
        }
    }

    /// The rules that let `request` through, one of each clause; empty if it is not allowed.
    #[must_use]
    pub fn deciding(&self, request: &NetRequest) -> Vec<NetRule> {
        match self {
            Self::None => Vec::new(),
            Self::Any => vec![everything()],
            Self::Only(clauses) => {
                let found: Option<Vec<_>> =
                    clauses.0.iter().map(|set| set.deciding(request).cloned()).collect();
                found.unwrap_or_default()
            }
        }
    }

    /// The requests in both.
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

    fn meet_set(self, new: &Arc<NetSet>) -> Self {
        let Self::Only(NetClauses(mut clauses)) = self else { return self };
        if clauses.contains(new) {
            return Self::Only(NetClauses(clauses));
        }
        if let [only] = &*clauses
            && let Some(met) = explicit_meet(only, new)
        {
            return met.map_or(Self::None, |set| Self::Only(NetClauses(vec![Arc::new(set)])));
        }
        clauses.push(Arc::clone(new));
        clauses.sort_by(|a, b| a.rules().cmp(b.rules()));
        Self::Only(NetClauses(clauses))
    }

    /// Whether every request here is also in `other`, with one that is not.
    #[must_use]
    pub fn within(&self, other: &Self) -> Containment<NetRequest> {
        let everything_set;
        let clauses: Vec<&NetSet> = match self {
            Self::None => return Containment::Contained,
            Self::Any => {
                everything_set = NetSet::new([everything()]);
                everything_set.iter().collect()
            }
            Self::Only(clauses) => clauses.sets().collect(),
        };
        match other {
            Self::Any => Containment::Contained,
            Self::None => decide::within(&clauses, None),
            Self::Only(bounds) => bounds.sets().fold(Containment::Contained, |answer, bound| {
                answer.and_then(|| decide::within(&clauses, Some(bound)))
            }),
        }
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
