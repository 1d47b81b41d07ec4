//! The addresses that stand for names inside.
//!
//! Every granted name that is asked for gets one v4 and one v6 address of its own. They are never given to another
//! name in the session, so a program that keeps an old answer cannot reach somebody else with it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use crate::code::Code;
use crate::limits::{Bucket, Limits};

/// 198.18.0.0/15, set aside for benchmarks: nobody's real address.
const V4: u32 = 0xc612_0000;
const V4_SIZE: u32 = 1 << 17;
/// fd62:6169:6c69:7769::/64, a unique local prefix.
const V6: u128 = 0xfd62_6169_6c69_7769 << 64;

/// Names and their addresses.
#[derive(Debug)]
pub(crate) struct Names {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    most: u32,
    bucket: Bucket,
}

impl Names {
    pub(crate) fn new(limits: &Limits, now: Instant) -> Self {
        let most = limits.names.min(V4_SIZE - 2);
        let bucket = Bucket::new(limits.names_a_second, now);
        Self { numbers: HashMap::new(), names: Vec::new(), most, bucket }
    }

    /// The addresses that stand for `name`; it gets new ones when it has none yet.
    pub(crate) fn addresses(&mut self, name: &str, now: Instant) -> Result<(Ipv4Addr, Ipv6Addr), Code> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(addresses(*number));
        }
        let number = u32::try_from(self.names.len()).ok().filter(|number| *number < self.most);
        let number = number.filter(|_| self.bucket.take(now)).ok_or(Code::TooManyNames)?;
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        Ok(addresses(number))
    }

    /// The name that `ip` stands for.
    pub(crate) fn name(&self, ip: IpAddr) -> Option<&str> {
        let number = match ip {
            IpAddr::V4(v4) => v4.to_bits().checked_sub(V4 + 1)?,
            IpAddr::V6(v6) => u32::try_from(v6.to_bits().checked_sub(V6 + 1)?).ok()?,
        };
        self.names.get(usize::try_from(number).ok()?).map(|name| &**name)
    }
}

/// The names below wildcards that were looked up outside: each could carry a few bytes to the zone's servers.
#[derive(Debug)]
pub(crate) struct WildcardNames {
    zones: HashMap<Box<str>, HashSet<Box<str>>>,
    most: usize,
    bucket: Bucket,
}

impl WildcardNames {
    pub(crate) fn new(limits: &Limits, now: Instant) -> Self {
        let bucket = Bucket::new(limits.wildcard_lookups_a_second, now);
        Self { zones: HashMap::new(), most: limits.wildcard_names, bucket }
    }

    /// Whether `name` may be looked up: it was before, or one of its zones has room and it is not too soon.
    pub(crate) fn admit(&mut self, name: &str, zones: &[&str], now: Instant) -> bool {
        let names = |zone: &&&str| self.zones.get(**zone);
        if zones.iter().filter_map(|zone| names(&zone)).any(|names| names.contains(name)) {
            return true;
        }
        let room = zones.iter().find(|zone| names(zone).is_none_or(|names| names.len() < self.most));
        let Some(zone) = room.filter(|_| self.bucket.take(now)) else { return false };
        self.zones.entry((*zone).into()).or_default().insert(name.into())
    }
}

fn addresses(number: u32) -> (Ipv4Addr, Ipv6Addr) {
    (Ipv4Addr::from_bits(V4 + 1 + number), Ipv6Addr::from_bits(V6 + 1 + u128::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_addresses_and_no_other_gets_them() {
        let now = Instant::now();
        let limits = Limits { names: 3, names_a_second: 100, ..Limits::default() };
        let mut names = Names::new(&limits, now);
        let (v4, v6) = names.addresses("a.test", now).unwrap();
        assert_eq!(names.addresses("a.test", now).unwrap(), (v4, v6));
        let (other, _) = names.addresses("b.test", now).unwrap();
        assert_ne!(v4, other);
        assert_eq!(names.name(v4.into()), Some("a.test"));
        assert_eq!(names.name(v6.into()), Some("a.test"));
        names.addresses("c.test", now).unwrap();
        assert_eq!(names.addresses("d.test", now), Err(Code::TooManyNames));
        assert_eq!(names.addresses("a.test", now).unwrap(), (v4, v6), "the old ones still work");
        for nobody in
            ["198.18.0.0", "198.18.0.4", "198.19.255.255", "1.1.1.1", "fd62:6169:6c69:7769::4", "::1"]
        {
            assert_eq!(names.name(nobody.parse().unwrap()), None, "{nobody}");
        }
    }

    #[test]
    fn names_below_a_wildcard_are_counted_for_each_wildcard() {
        let now = Instant::now();
        let limits = Limits { wildcard_names: 2, wildcard_lookups_a_second: 100, ..Limits::default() };
        let mut names = WildcardNames::new(&limits, now);
        let mut admit = |name: &str, zones: &[&str]| names.admit(name, zones, now);
        assert!(admit("a.x.test", &["x.test"]) && admit("b.x.test", &["x.test"]));
        assert!(!admit("c.x.test", &["x.test"]), "spent");
        assert!(admit("a.x.test", &["x.test"]), "a name that was looked up costs nothing more");
        assert!(admit("a.y.test", &["y.test"]), "another wildcard has its own count");
        assert!(admit("c.x.test", &["x.test", "test"]), "a wider wildcard grants it too");
        let slow = Limits { wildcard_lookups_a_second: 1, ..Limits::default() };
        let mut names = WildcardNames::new(&slow, now);
        let admitted = (0..100).filter(|n| names.admit(&format!("n{n}.x.test"), &["x.test"], now)).count();
        assert_eq!(admitted, 10);
    }

    #[test]
    fn new_names_are_rationed() {
        let now = Instant::now();
        let mut names = Names::new(&Limits { names_a_second: 1, ..Limits::default() }, now);
        let given = (0..100).filter(|n| names.addresses(&format!("n{n}.test"), now).is_ok()).count();
        assert_eq!(given, 10);
    }
}
