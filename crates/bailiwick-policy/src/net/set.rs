//! A union of network rules, indexed by host.

use std::collections::BTreeMap;

use super::{Host, HostPattern, NetRequest, NetRule};

/// With more blocks of addresses than this, those that others cover are kept.
const MAX_BLOCKS: usize = 1_000;

/// A non-empty union of rules. Order and repetition of what it was made from leave no trace.
#[derive(Debug, Clone)]
pub struct NetSet {
    rules: Box<[NetRule]>,
    names: BTreeMap<Box<str>, Vec<usize>>,
    below: BTreeMap<Box<str>, Vec<usize>>,
    any: Vec<usize>,
    nets: Vec<usize>,
}

impl PartialEq for NetSet {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Eq for NetSet {}

impl NetSet {
    /// The union of the rules; `None` if there are none.
    pub fn new(rules: impl IntoIterator<Item = NetRule>) -> Option<Self> {
        let mut rules: Vec<NetRule> = rules.into_iter().flat_map(NetRule::written).collect();
        rules.sort_unstable();
        rules.dedup();
        let all = Self::indexed(rules);
        let covered: Vec<bool> = (0..all.rules.len()).map(|index| all.is_covered(index)).collect();
        let kept = all.rules.into_iter().zip(covered).filter(|(_, covered)| !covered).map(|(rule, _)| rule);
        let set = Self::indexed(kept.collect());
        (!set.rules.is_empty()).then_some(set)
    }

    /// Whether another rule allows all that this one does; of equals, the first is kept.
    fn is_covered(&self, index: usize) -> bool {
        let Some(rule) = self.rules.get(index) else { return false };
        if matches!(rule.host(), HostPattern::Net(_)) && self.nets.len() > MAX_BLOCKS {
            return false;
        }
        let mut others = self.enclosing_indexes(rule.host()).filter(|other| **other != index);
        others.any(|other| {
            let wider = self.rules.get(*other);
            wider.is_some_and(|wider| wider.covers(rule) && (*other < index || !rule.covers(wider)))
        })
    }

    /// The union of one rule.
    pub(super) fn of_one(rule: NetRule) -> Self {
        Self::indexed(vec![rule])
    }

    fn indexed(rules: Vec<NetRule>) -> Self {
        let mut set = Self {
            rules: Box::new([]),
            names: BTreeMap::new(),
            below: BTreeMap::new(),
            any: Vec::new(),
            nets: Vec::new(),
        };
        for (index, rule) in rules.iter().enumerate() {
            match rule.host() {
                HostPattern::Any => set.any.push(index),
                HostPattern::Name(name) => set.names.entry(name.clone()).or_default().push(index),
                HostPattern::Below(name) => set.below.entry(name.clone()).or_default().push(index),
                HostPattern::Net(_) => set.nets.push(index),
            }
        }
        set.rules = rules.into_boxed_slice();
        set
    }

    /// The rules, in order.
    #[must_use]
    pub const fn rules(&self) -> &[NetRule] {
        &self.rules
    }

    /// The first rule that allows `request`.
    #[must_use]
    pub fn deciding(&self, request: &NetRequest) -> Option<&NetRule> {
        self.matching(request.host()).find(|rule| rule.allows(request))
    }

    /// Whether a rule allows `request`.
    #[must_use]
    pub fn allows(&self, request: &NetRequest) -> bool {
        self.deciding(request).is_some()
    }

    /// The rules whose hosts include `host`.
    pub fn matching<'s, 'h>(&'s self, host: &'h Host) -> impl Iterator<Item = &'s NetRule> + use<'s, 'h> {
        let (name, nets) = match host {
            Host::Name(name) => (&**name, [].iter()),
            Host::Ip(_) => ("", self.nets.iter()),
        };
        let nets = nets.filter(move |index| self.rule_matches(**index, host));
        let found = self.any.iter().chain(self.indexes_of(name, true)).chain(nets);
        found.filter_map(|index| self.rules.get(*index))
    }

    /// The rules whose hosts may include all of `pattern`.
    pub(super) fn enclosing<'s, 'h>(
        &'s self,
        pattern: &'h HostPattern,
    ) -> impl Iterator<Item = &'s NetRule> + use<'s, 'h> {
        self.enclosing_indexes(pattern).filter_map(|index| self.rules.get(*index))
    }

    fn enclosing_indexes<'s, 'h>(
        &'s self,
        pattern: &'h HostPattern,
    ) -> impl Iterator<Item = &'s usize> + use<'s, 'h> {
        let (name, exact, own, nets) = match pattern {
            HostPattern::Any => ("", false, None, [].iter()),
            HostPattern::Name(name) => (&**name, true, None, [].iter()),
            HostPattern::Below(name) => (&**name, false, self.below.get(name), [].iter()),
            HostPattern::Net(_) => ("", false, None, self.nets.iter()),
        };
        let own = own.into_iter().flatten();
        self.any.iter().chain(own).chain(self.indexes_of(name, exact)).chain(nets)
    }

    /// Rules for the name itself (if `exact`) and for everything below one of its parents.
    fn indexes_of<'s, 'h>(
        &'s self,
        name: &'h str,
        exact: bool,
    ) -> impl Iterator<Item = &'s usize> + use<'s, 'h> {
        let own = exact.then(|| self.names.get(name)).flatten();
        let parents = name.match_indices('.').filter_map(|(dot, _)| name.get(dot + 1..));
        own.into_iter().flatten().chain(parents.filter_map(|parent| self.below.get(parent)).flatten())
    }

    fn rule_matches(&self, index: usize, host: &Host) -> bool {
        self.rules.get(index).is_some_and(|rule| rule.host().matches(host))
    }
}
