//! Where the value of a secret may be used: `HOST` or `HOST:PORT` behind `?broker=`.

use std::collections::BTreeSet;
use std::fmt;

use crate::finding::{Code, Finding, Span};
use crate::net::{Host, HostPattern, NetRule, PortRange, Speech};

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// A host at which a secret's value takes the place of its placeholder: one name, never a pattern or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerHost {
    name: Box<str>,
    port: Option<u16>,
}

impl BrokerHost {
    /// Reads `host` or `host:port`.
    ///
    /// # Errors
    /// A finding if that is not the name of one host.
    pub fn new(text: &str) -> Result<Self, Finding> {
        let wrong = |help: &str| {
            Finding::new(
                Code::BrokerHost,
                format!("`{text}` is not a host that a secret can be brokered for"),
            )
            .at(Span::new(0, text.len()))
            .help(help)
        };
        let (host, port) = match text.split_once(':') {
            None => (text, None),
            Some((host, port)) => {
                let plain = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse::<u16>().ok().filter(|_| plain);
                (host, Some(port.ok_or_else(|| wrong("a port is a number from 1 to 65535"))?))
            }
        };
        match Host::new(host) {
            Ok(Host::Name(name)) if !host.contains('*') => Ok(Self { name, port }),
            Ok(_) | Err(_) => Err(wrong("write the exact name of one host, such as `api.github.com`")),
        }
    }

    /// The host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The one port, if there is only one; else 443 and every port that is granted for the host.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether a connection to this host and port is one.
    #[must_use]
    pub fn is_at(&self, host: &Host, port: u16) -> bool {
        matches!(host, Host::Name(name) if *name == self.name) && self.port.is_none_or(|own| own == port)
    }

    /// Whether every place of the other one is a place of this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }

    /// The connection that it implies: a secret without a way to its host is of no use.
    #[must_use]
    pub fn implied(&self) -> NetRule {
        let ports = PortRange::only(self.port.unwrap_or(HTTPS));
        NetRule::new(
            HostPattern::Name(self.name.clone()),
            ports,
            false,
            Speech::Connect { raw: false, ech: false },
        )
    }
}

impl fmt::Display for BrokerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The hosts of both, and no others.
pub(crate) fn common_hosts(one: &BTreeSet<BrokerHost>, other: &BTreeSet<BrokerHost>) -> BTreeSet<BrokerHost> {
    let mine = one.iter().filter(|host| covers(other, host));
    let theirs = other.iter().filter(|host| covers(one, host));
    mine.chain(theirs).cloned().collect()
}

/// Whether one of the hosts covers this one.
pub(crate) fn covers(hosts: &BTreeSet<BrokerHost>, host: &BrokerHost) -> bool {
    hosts.iter().any(|own| own.covers(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_exact_name() {
        for (text, printed) in
            [("API.github.com", "api.github.com"), ("api.github.com:8443", "api.github.com:8443")]
        {
            assert_eq!(BrokerHost::new(text).unwrap().to_string(), printed);
        }
        for text in [
            "",
            "*",
            "*.github.com",
            "1.2.3.4",
            "[::1]",
            "a.test:0",
            "a.test:080",
            "a.test:99999",
            "a.test:x",
            "a/b",
        ] {
            assert!(BrokerHost::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_without_a_port_covers_every_port() {
        let host = |text: &str| BrokerHost::new(text).unwrap();
        assert!(host("a.test").covers(&host("a.test:8443")) && host("a.test").covers(&host("a.test")));
        assert!(!host("a.test:443").covers(&host("a.test")) && !host("a.test").covers(&host("b.test")));
        let hosts = |all: &[&str]| all.iter().map(|text| host(text)).collect::<BTreeSet<_>>();
        assert_eq!(
            common_hosts(&hosts(&["a.test", "b.test:1"]), &hosts(&["a.test:1", "b.test:2"])),
            hosts(&["a.test:1"])
        );
    }
}
