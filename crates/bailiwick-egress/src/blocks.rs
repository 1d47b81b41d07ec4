//! The two blocks from which names get their addresses inside.
//!
//! Programs that screen addresses themselves must take the blocks for public: every special-purpose block, such as
//! 198.18.0.0/15, makes them refuse each name. Yet no host of the Internet should be hidden by them. So v4 addresses
//! come from a part of the amateur radio network that is for tests alone and not routed, and v6 addresses from global
//! unicast space that no registry has. A plan that grants addresses of a block gets the next one.
//!
//! Residual: under `*`, or with all candidates granted, real hosts in the first candidate are not reached by address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bailiwick_policy::net::HostPattern;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::decide::Rules;

const V4_LENGTH: u8 = 16;
const V6_LENGTH: u8 = 64;
/// 44.128.0.0/16 is for tests; the others belong to the US Department of Defense, which does not serve from them.
const V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(44, 128, 0, 0),
    Ipv4Addr::new(29, 98, 0, 0),
    Ipv4Addr::new(26, 98, 0, 0),
    Ipv4Addr::new(22, 98, 0, 0),
];
/// All in 2d00::/8, 2e00::/7 or 3000::/4, which are global unicast and unallocated.
const V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0x3062, 0x6169, 0x6c69, 0x7769, 0, 0, 0, 0),
    Ipv6Addr::new(0x2d62, 0x6169, 0x6c69, 0x7769, 0, 0, 0, 0),
    Ipv6Addr::new(0x2e62, 0x6169, 0x6c69, 0x7769, 0, 0, 0, 0),
    Ipv6Addr::new(0x2f62, 0x6169, 0x6c69, 0x7769, 0, 0, 0, 0),
];

/// One block of each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    v4: Ipv4Net,
    v6: Ipv6Net,
}

impl Blocks {
    /// How many names have room: the first and the last v4 address look like a network's own.
    pub(crate) const ROOM: u32 = (1 << (32 - V4_LENGTH)) - 2;

    /// The first blocks of which `rules` grant no address.
    pub(crate) fn beyond(rules: &Rules) -> Self {
        let granted: Vec<IpNet> = rules
            .patterns()
            .filter_map(|pattern| match pattern {
                HostPattern::Net(net) => Some(*net),
                HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) => None,
            })
            .collect();
        Self {
            v4: first_free(V4.map(|first| Ipv4Net::new_assert(first, V4_LENGTH)), &granted),
            v6: first_free(V6.map(|first| Ipv6Net::new_assert(first, V6_LENGTH)), &granted),
        }
    }

    /// The addresses of the name with this number, which is below [`Blocks::ROOM`].
    pub(crate) fn addresses(&self, number: u32) -> (Ipv4Addr, Ipv6Addr) {
        let v4 = self.v4.network().to_bits() + 1 + number;
        let v6 = self.v6.network().to_bits() + 1 + u128::from(number);
        (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(v6))
    }

    /// The number of the name that has this address, if the name exists.
    pub(crate) fn number(&self, ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(v4) => v4.to_bits().checked_sub(self.v4.network().to_bits() + 1),
            IpAddr::V6(v6) => u32::try_from(v6.to_bits().checked_sub(self.v6.network().to_bits() + 1)?).ok(),
        }
    }

    /// Whether the address is from one of the blocks, with a name or without.
    pub(crate) fn contain(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(v4) => self.v4.contains(&v4),
            IpAddr::V6(v6) => self.v6.contains(&v6),
        }
    }
}

/// The first candidate that shares no address with a granted block; the very first if there is none.
fn first_free<N: Copy + Into<IpNet>>(candidates: [N; 4], granted: &[IpNet]) -> N {
    let [first, ..] = candidates;
    let free = |candidate: &N| !granted.iter().any(|other| overlap((*candidate).into(), *other));
    candidates.into_iter().find(free).unwrap_or(first)
}

fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::net::is_special;

    use super::*;
    use crate::decide::tests::rules;

    fn blocks(grants: &str) -> Blocks {
        Blocks::beyond(&rules(grants))
    }

    #[test]
    fn every_candidate_is_public_from_end_to_end() {
        for first in V4 {
            let block = Ipv4Net::new_assert(first, V4_LENGTH);
            assert!(!is_special(block.network().into()) && !is_special(block.broadcast().into()), "{block}");
        }
        for first in V6 {
            let block = Ipv6Net::new_assert(first, V6_LENGTH);
            assert!(!is_special(block.network().into()) && !is_special(block.broadcast().into()), "{block}");
        }
    }

    #[test]
    fn granted_addresses_are_avoided() {
        let usual = blocks("net:connect:a.test net:connect:10.0.0.0/8");
        assert_eq!(usual, blocks("net:connect:*"));
        for grant in ["net:connect:44.128.7.7:80", "net:connect:44.128.0.0/10", "net:connect:44.128.3.0/24"] {
            let moved = blocks(grant);
            assert!(moved.v4 != usual.v4 && moved.v6 == usual.v6, "{grant}");
        }
        let moved = blocks("net:connect:[3062:6169::/32] net:connect:[2d62:6169:6c69:7769::5]");
        assert!(moved.v4 == usual.v4 && moved.v6.network() == V6[2], "{moved:?}");
        assert_eq!(blocks("net:connect:0.0.0.0/0 net:connect:[::/0]"), usual, "no candidate is left");
    }

    #[test]
    fn the_last_name_still_has_an_address_of_its_own() {
        let blocks = blocks("net:connect:*");
        let (v4, v6) = blocks.addresses(Blocks::ROOM - 1);
        assert_eq!(v4, Ipv4Addr::new(44, 128, 255, 254));
        assert!(blocks.contain(v4.into()) && blocks.contain(v6.into()));
        assert_eq!(blocks.number(v4.into()), Some(Blocks::ROOM - 1));
        assert_eq!(blocks.number(v6.into()), Some(Blocks::ROOM - 1));
        assert!(!blocks.contain("44.129.0.0".parse().unwrap()) && !blocks.contain("::1".parse().unwrap()));
    }
}
