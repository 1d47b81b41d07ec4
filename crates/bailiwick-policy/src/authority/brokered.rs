//! Secrets that are put into requests to some hosts and that the program itself never has.
//!
//! Being given a variable allows all that brokering it allows: a name that may be given whole is not listed here.

use std::collections::{BTreeMap, BTreeSet};

use crate::capability::{BrokerHost, common_hosts, covers};

/// The hosts of each brokered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brokered(BTreeMap<Box<str>, BTreeSet<BrokerHost>>);

impl Brokered {
    /// The union of grants, without the names that `is_given` whole.
    pub(crate) fn union_of(
        grants: impl IntoIterator<Item = (Box<str>, BrokerHost)>,
        is_given: impl Fn(&str) -> bool,
    ) -> Self {
        let mut all: BTreeMap<Box<str>, BTreeSet<BrokerHost>> = BTreeMap::new();
        for (name, host) in grants.into_iter().filter(|(name, _)| !is_given(name)) {
            let hosts = all.entry(name).or_default();
            if !covers(hosts, &host) {
                hosts.retain(|own| !host.covers(own));
                hosts.insert(host);
            }
        }
        Self(all)
    }

    /// What both allow; each side says which names it gives whole.
    pub(crate) fn meet(
        &self,
        is_given: impl Fn(&str) -> bool,
        other: &Self,
        is_given_there: impl Fn(&str) -> bool,
    ) -> Self {
        let none = BTreeSet::new();
        let names: BTreeSet<&Box<str>> = self.0.keys().chain(other.0.keys()).collect();
        let hosts = |all: &Self, name: &str| all.0.get(name).unwrap_or(&none).clone();
        let both = names.into_iter().map(|name| {
            let met = match (is_given(name), is_given_there(name)) {
                (true, _) => hosts(other, name),
                (false, true) => hosts(self, name),
                (false, false) => common_hosts(&hosts(self, name), &hosts(other, name)),
            };
            (name.clone(), met)
        });
        Self(both.filter(|(_, hosts)| !hosts.is_empty()).collect())
    }

    /// Whether a variable may be used at a host.
    pub(crate) fn allows(&self, name: &str, host: &BrokerHost) -> bool {
        self.0.get(name).is_some_and(|hosts| covers(hosts, host))
    }

    /// Every variable and its hosts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<BrokerHost>)> {
        self.0.iter().map(|(name, hosts)| (&**name, hosts))
    }

    /// Every variable with one of its hosts each.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &BrokerHost)> {
        self.0.iter().flat_map(|(name, hosts)| hosts.iter().map(move |host| (&**name, host)))
    }
}
