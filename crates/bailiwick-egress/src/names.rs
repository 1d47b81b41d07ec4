//! The addresses that stand for names inside.
//!
//! Every granted name that is asked for gets one v4 and one v6 address of its own. They are never given to another
//! name in the session, so a program that keeps an old answer cannot reach another host with it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use crate::blocks::Blocks;
use crate::code::Code;
use crate::limits::{Bucket, Limits};

/// Names and their addresses.
#[derive(Debug)]
pub(crate) struct Names {
    blocks: Blocks,
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    most: u32,
    bucket: Bucket,
}

impl Names {
    pub(crate) fn new(blocks: Blocks, limits: &Limits, now: Instant) -> Self {
        let most = limits.names.min(Blocks::ROOM);
        let bucket = Bucket::new(limits.names_a_second, now);
        Self { blocks, numbers: HashMap::new(), names: Vec::new(), most, bucket }
    }

    /// The addresses that stand for `name`; it gets new ones when it has none yet.
    pub(crate) fn addresses(&mut self, name: &str, now: Instant) -> Result<(Ipv4Addr, Ipv6Addr), Code> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(self.blocks.addresses(*number));
        }
        let number = u32::try_from(self.names.len()).ok().filter(|number| *number < self.most);
        let number = number.filter(|_| self.bucket.take(now)).ok_or(Code::TooManyNames)?;
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        Ok(self.blocks.addresses(number))
    }

    /// The name that `ip` stands for.
    pub(crate) fn name(&self, ip: IpAddr) -> Option<&str> {
        self.names.get(usize::try_from(self.blocks.number(ip)?).ok()?).map(|name| &**name)
    }

    /// Whether `ip` is kept for names and has none.
    pub(crate) fn is_unassigned(&self, ip: IpAddr) -> bool {
        self.blocks.contain(ip) && self.name(ip).is_none()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Rules;

    fn names(limits: &Limits, now: Instant) -> Names {
        Names::new(Blocks::beyond(&Rules::new(&bailiwick_policy::plan::Network::Any)), limits, now)
    }

    #[test]
    fn a_name_keeps_its_addresses_and_no_other_gets_them() {
        let now = Instant::now();
        let limits = Limits { names: 3, names_a_second: 100, ..Limits::default() };
        let mut names = names(&limits, now);
        let (v4, v6) = names.addresses("a.test", now).unwrap();
        assert_eq!(names.addresses("a.test", now).unwrap(), (v4, v6));
        let (other, _) = names.addresses("b.test", now).unwrap();
        assert_ne!(v4, other);
        assert_eq!(names.name(v4.into()), Some("a.test"));
        assert_eq!(names.name(v6.into()), Some("a.test"));
        names.addresses("c.test", now).unwrap();
        assert_eq!(names.addresses("d.test", now), Err(Code::TooManyNames));
        assert_eq!(names.addresses("a.test", now).unwrap(), (v4, v6), "the old ones still work");
        for (unassigned, ours) in [
            ("44.128.0.0", true),
            ("44.128.0.4", true),
            ("44.128.255.255", true),
            ("3062:6169:6c69:7769::4", true),
            ("3062:6169:6c69:7769:1::1", true),
            ("44.127.255.255", false),
            ("1.1.1.1", false),
            ("::1", false),
        ] {
            let ip = unassigned.parse().unwrap();
            assert_eq!((names.name(ip), names.is_unassigned(ip)), (None, ours), "{unassigned}");
        }
        assert!(!names.is_unassigned(v4.into()) && !names.is_unassigned(v6.into()));
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
        let mut names = names(&Limits { names_a_second: 1, ..Limits::default() }, now);
        let given = (0..100).filter(|n| names.addresses(&format!("n{n}.test"), now).is_ok()).count();
        assert_eq!(given, 10);
    }
}
