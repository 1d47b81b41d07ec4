//! Special-purpose addresses: everything that is not a plain public unicast address.
//!
//! The tables are those of the IANA special-purpose registries, plus multicast, deprecated site-local and
//! v4-compatible addresses and, for v6, whatever lies outside the global unicast block. A v4 address inside a
//! v6 one is judged as that v4 address: mapped ones are unmapped, NAT64 ones looked into.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address and prefix length of each special v4 block.
const V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// First address and prefix length of each special block inside 2000::/3.
const V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

const GLOBAL_UNICAST: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const NAT64: ([u16; 8], u32) = ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// The address that is really meant: a v4-mapped v6 address is its v4 address.
#[must_use]
pub const fn canonical_ip(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// Whether an address is of special purpose: never reached unless it is named.
#[must_use]
pub fn is_special(ip: IpAddr) -> bool {
    match canonical_ip(ip) {
        IpAddr::V4(v4) => V4.iter().any(|(first, length)| in_v4(v4, *first, *length)),
        IpAddr::V6(v6) => is_special_v6(v6),
    }
}

/// Blocks that together hold every special address, for those who can only list them. Of v6 they hold the NAT64
/// block as a whole: a list of blocks cannot look into its addresses.
#[must_use]
pub fn special_blocks() -> Vec<ipnet::IpNet> {
    let beyond_global = [([0; 8], 3), ([0x4000, 0, 0, 0, 0, 0, 0, 0], 2), ([0x8000, 0, 0, 0, 0, 0, 0, 0], 1)];
    let v4 = V4.iter().map(|(first, length)| (IpAddr::V4((*first).into()), *length));
    let v6 = beyond_global.iter().chain(V6).map(|(first, length)| (IpAddr::V6((*first).into()), *length));
    let block = |(first, length): (IpAddr, u32)| ipnet::IpNet::new(first, u8::try_from(length).ok()?).ok();
    v4.chain(v6).filter_map(block).collect()
}

fn is_special_v6(ip: Ipv6Addr) -> bool {
    if in_v6(ip, NAT64) {
        let [.., a, b, c, d] = ip.octets();
        return is_special(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
    }
    !in_v6(ip, GLOBAL_UNICAST) || V6.iter().any(|block| in_v6(ip, *block))
}

fn in_v4(ip: Ipv4Addr, first: [u8; 4], length: u32) -> bool {
    (ip.to_bits() ^ Ipv4Addr::from(first).to_bits()).leading_zeros() >= length
}

fn in_v6(ip: Ipv6Addr, (first, length): ([u16; 8], u32)) -> bool {
    (ip.to_bits() ^ Ipv6Addr::from(first).to_bits()).leading_zeros() >= length
}

/// The first address of every stretch of v4 space that is wholly special or wholly not.
pub(super) fn v4_edges() -> impl Iterator<Item = u128> {
    V4.iter().flat_map(|(first, length)| {
        let low = u128::from(Ipv4Addr::from(*first).to_bits());
        [low, low + (1 << (32 - length))]
    })
}

/// The same for v6 space. Inside NAT64 the v4 edges appear again.
pub(super) fn v6_edges() -> impl Iterator<Item = u128> {
    let blocks = V6.iter().copied().chain([GLOBAL_UNICAST, NAT64]).flat_map(|(first, length)| {
        let low = Ipv6Addr::from(first).to_bits();
        [low, low + (1 << (128 - length))]
    });
    let nat64 = Ipv6Addr::from(NAT64.0).to_bits();
    blocks.chain(v4_edges().map(move |edge| nat64 + edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registry_range_is_special_at_both_ends() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.31.196.0", "192.31.196.255"),
            ("192.52.193.0", "192.52.193.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("192.175.48.0", "192.175.48.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("::", "::"),
            ("::1", "::1"),
            ("::7f00:1", "::ffff"),
            ("::ffff:10.0.0.1", "::ffff:127.0.0.1"),
            ("::ffff:0:0:0", "::ffff:0:ffff:ffff"),
            ("64:ff9b::a00:1", "64:ff9b::7f00:1"),
            ("64:ff9b:1::", "64:ff9b:1:ffff::"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff::"),
            ("2001:2::", "2001:2:0:ffff::"),
            ("2001:20::", "2001:2f::"),
            ("2001:db8::", "2001:db8:ffff::"),
            ("2002:7f00:1::", "2002:ffff::"),
            ("2620:4f:8000::", "2620:4f:8000:ffff::"),
            ("3fff::", "3fff:fff::"),
            ("5f00::", "5f00:ffff::"),
            ("fc00::", "fdff::"),
            ("fe80::", "febf::"),
            ("fec0::", "feff::"),
            ("ff00::", "ffff::"),
        ] {
            assert!(is_special(first.parse().unwrap()), "{first}");
            assert!(is_special(last.parse().unwrap()), "{last}");
        }
    }

    #[test]
    fn the_blocks_hold_what_is_special_and_nothing_public_but_nat64() {
        let blocks = special_blocks();
        assert_eq!(blocks.len(), V4.len() + 3 + V6.len());
        let held = |ip: IpAddr| blocks.iter().any(|block| block.contains(&ip));
        let numbers = v4_edges().flat_map(|edge| [edge, edge.saturating_sub(1)]);
        for number in numbers.filter_map(|number| u32::try_from(number).ok()) {
            let ip = IpAddr::V4(number.into());
            assert_eq!(held(ip), is_special(ip), "{ip}");
        }
        for number in v6_edges().flat_map(|edge| [edge, edge.saturating_sub(1)]) {
            let ip = IpAddr::V6(number.into());
            assert!(held(ip) >= is_special(ip), "{ip}");
            assert!(is_special(ip) || !held(ip) || in_v6(Ipv6Addr::from(number), NAT64), "{ip}");
        }
    }

    #[test]
    fn neighbours_are_public() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2000::",
            "2001:200::",
            "2003::",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "::ffff:1.1.1.1",
            "3ffe::",
        ] {
            assert!(!is_special(public.parse().unwrap()), "{public}");
        }
    }
}
