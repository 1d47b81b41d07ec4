//! Which ports a network plan needs somebody to answer on.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Network;
use crate::net::{Host, HostPattern, PortRange};

/// More single ports than this count as any: nobody opens so many listeners.
const MAX_FIXED: u32 = 64;

/// The ports on which connections may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ports {
    /// These, in order; none if nobody may be reached.
    Fixed(Vec<u16>),
    /// More than can be listened on one by one.
    Any,
}

impl Network {
    /// The ports on which somebody may be reached.
    #[must_use]
    pub fn ports(&self) -> Ports {
        let ranges = match self {
            Self::None => return Ports::Fixed(Vec::new()),
            Self::Any => return Ports::Any,
            Self::Allow(rules) => rules.iter().map(|rule| rule.value.ports()),
        };
        let mut fixed = BTreeSet::new();
        for range in ranges {
            if u32::from(range.high()) - u32::from(range.low()) >= MAX_FIXED {
                return Ports::Any;
            }
            fixed.extend(range.low()..=range.high());
        }
        let few = u32::try_from(fixed.len()).is_ok_and(|count| count <= MAX_FIXED);
        if few { Ports::Fixed(fixed.into_iter().collect()) } else { Ports::Any }
    }

    /// The ports of the host's own loopback addresses that are granted by naming them. There the host's service
    /// is meant, not one of the sandbox's own; `*` does not name loopback, whatever else it opens.
    #[must_use]
    pub fn loopback_ports(&self) -> Vec<PortRange> {
        let named = self.rules().iter().filter(|rule| names_loopback(rule.value.host()));
        let ranges: BTreeSet<PortRange> = named.map(|rule| rule.value.ports()).collect();
        ranges.into_iter().collect()
    }
}

fn names_loopback(host: &HostPattern) -> bool {
    match host {
        HostPattern::Any => false,
        HostPattern::Name(name) | HostPattern::Below(name) => Host::Name(name.clone()).is_private(),
        HostPattern::Net(net) => {
            let within = |ip: IpAddr| ip.is_loopback();
            let holds = |ip: IpAddr| net.contains(&ip);
            within(net.network()) || holds(Ipv4Addr::LOCALHOST.into()) || holds(Ipv6Addr::LOCALHOST.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::facts::HostFacts;
    use crate::plan::Plan;

    fn network(texts: &[&str]) -> Network {
        let set: Vec<_> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let authority = Authority::from_capabilities(&set).unwrap();
        Plan::for_authority("t", &authority, &HostFacts::unknown()).unwrap().network().clone()
    }

    #[test]
    fn ports_are_listed_while_they_are_few() {
        assert_eq!(network(&[]).ports(), Ports::Fixed(vec![]));
        let few = network(&["net:connect:a.test:443", "net:connect:b.test:80-82", "net:connect:c.test:443"]);
        assert_eq!(few.ports(), Ports::Fixed(vec![80, 81, 82, 443]));
        assert_eq!(network(&["net:connect:a.test"]).ports(), Ports::Any);
        assert_eq!(network(&["net:connect:a.test:1-65"]).ports(), Ports::Any);
        assert_eq!(Network::Any.ports(), Ports::Any);
    }

    #[test]
    fn loopback_ports_are_those_that_rules_name() {
        let named = network(&[
            "net:connect:localhost:8080",
            "net:connect:127.0.0.0/8:9000-9001",
            "net:connect:[::1]:7",
            "net:connect:10.0.0.0/8:5",
            "net:connect:*:443?blockPrivate=false",
        ]);
        let texts: Vec<String> = named.loopback_ports().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["7", "8080", "9000-9001"]);
        assert!(Network::Any.loopback_ports().is_empty());
    }
}
