//! Where a tool may listen: ports that are open outside the sandbox.
//!
//! `0.0.0.0` and `::` stand for every address of their family; a port without an address is on both loopback
//! addresses. A set of such places is finite but for these wildcards, so meet and containment are exact place by place:
//! no list of single addresses holds a whole family.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::finding::{Code, Finding, Span};
use crate::lattice::Containment;

const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// One port that is listened on, as a capability says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listen {
    address: Option<IpAddr>,
    port: u16,
}

/// The places that an authority allows to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenScope {
    /// Every address and port.
    Any,
    /// These, none within another.
    Only(BTreeSet<SocketAddr>),
}

impl Listen {
    /// A port on loopback, or on one address; an unspecified address is every one of its family.
    #[must_use]
    pub fn new(address: Option<IpAddr>, port: u16) -> Self {
        Self { address: address.map(|address| address.to_canonical()), port }
    }

    /// The port.
    #[must_use]
    pub const fn port(self) -> u16 {
        self.port
    }

    /// The address; `None` is loopback.
    #[must_use]
    pub const fn address(self) -> Option<IpAddr> {
        self.address
    }

    /// Whether only this host can reach it.
    #[must_use]
    pub fn is_local(self) -> bool {
        self.address.is_none_or(|address| address.is_loopback())
    }

    /// Whether some of what `other` binds is allowed by this.
    pub(crate) fn shares_place(self, other: Self) -> bool {
        self.places().any(|own| other.places().any(|asked| covers(&own, &asked)))
    }

    /// What is bound: both loopback addresses where none is named.
    pub fn places(self) -> impl Iterator<Item = SocketAddr> {
        let port = self.port;
        let loopback = if self.address.is_none() { &LOOPBACK[..] } else { &[] };
        self.address.into_iter().chain(loopback.iter().copied()).map(move |ip| SocketAddr::new(ip, port))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            None => write!(f, "{}", self.port),
            Some(address) => write!(f, "{}", SocketAddr::new(address, self.port)),
        }
    }
}

impl ListenScope {
    pub(crate) const fn none() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// All of these together.
    pub(crate) fn union(listens: impl IntoIterator<Item = Listen>) -> Self {
        Self::of_places(listens.into_iter().flat_map(Listen::places).collect())
    }

    fn of_places(mut places: BTreeSet<SocketAddr>) -> Self {
        let families = places.iter().filter(|place| place.ip().is_unspecified());
        let families: Vec<SocketAddr> = families.copied().collect();
        let inner = |place: &SocketAddr| families.iter().any(|all| all != place && covers(all, place));
        places.retain(|place| !inner(place));
        Self::Only(places)
    }

    /// Whether all that `listen` binds is allowed.
    pub(crate) fn allows(&self, listen: Listen) -> bool {
        listen.places().all(|place| self.holds(&place))
    }

    fn holds(&self, asked: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Only(places) => places.iter().any(|place| covers(place, asked)),
        }
    }

    pub(crate) fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, scope) | (scope, Self::Any) => scope.clone(),
            (Self::Only(own), Self::Only(others)) => {
                let mine = own.iter().filter(|place| other.holds(place));
                let theirs = others.iter().filter(|place| self.holds(place));
                Self::of_places(mine.chain(theirs).copied().collect())
            }
        }
    }

    pub(crate) fn within(&self, other: &Self) -> Containment<Listen> {
        let exceeds = |place: SocketAddr| Containment::Exceeds(Listen::new(Some(place.ip()), place.port()));
        match (self, other) {
            (_, Self::Any) => Containment::Contained,
            (Self::Any, Self::Only(_)) => {
                let families = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
                let mut all = (1..=u16::MAX).flat_map(|port| families.map(|ip| SocketAddr::new(ip, port)));
                all.find(|place| !other.holds(place)).map_or(Containment::Contained, exceeds)
            }
            (Self::Only(_), Self::Only(_)) => {
                let more = self.listens().into_iter().flatten().find(|one| !other.allows(*one));
                more.map_or(Containment::Contained, Containment::Exceeds)
            }
        }
    }

    /// The capabilities that say it; `None` if it is everything.
    pub(crate) fn listens(&self) -> Option<Vec<Listen>> {
        let Self::Only(places) = self else { return None };
        let both = |port| LOOPBACK.iter().all(|ip| places.contains(&SocketAddr::new(*ip, port)));
        let one = |place: &SocketAddr| {
            let joined = LOOPBACK.contains(&place.ip()) && both(place.port());
            Listen::new((!joined).then(|| place.ip()), place.port())
        };
        let listens: BTreeSet<Listen> = places.iter().map(one).collect();
        Some(listens.into_iter().collect())
    }
}

fn covers(place: &SocketAddr, asked: &SocketAddr) -> bool {
    let all = place.ip().is_unspecified() && place.is_ipv4() == asked.is_ipv4();
    place.port() == asked.port() && (all || place.ip() == asked.ip())
}

/// Reads `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
pub(crate) fn parse_listen(text: &str) -> Result<Listen, Finding> {
    let (address, port) = text.rsplit_once(':').map_or((None, text), |(ip, port)| (Some(ip), port));
    let at = |part: &str| Span::new(text.len() - part.len(), text.len());
    let bare = (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(port);
    let Some(number) = bare.and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != 0) else {
        return Err(Finding::new(Code::PortInvalid, format!("`{port}` is not a port to listen on"))
            .at(at(port))
            .help("write one number from 1 to 65535, such as `net:listen:8080`"));
    };
    let Some(address) = address else { return Ok(Listen::new(None, number)) };
    let bracketed = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match bracketed {
        Some(v6) => v6.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => address.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    ip.map(|ip| Listen::new(Some(ip), number)).ok_or_else(|| {
        let help = match address {
            "localhost" => format!("write `net:listen:{number}`, which is loopback alone"),
            "*" => format!("write `net:listen:0.0.0.0:{number}` for every address of this host"),
            _ => "write an address of this host, IPv6 in brackets, or nothing for loopback".to_owned(),
        };
        Finding::new(Code::HostInvalid, format!("`{address}` is not an address to listen on"))
            .at(Span::new(0, address.len()))
            .help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(texts: &[&str]) -> ListenScope {
        ListenScope::union(texts.iter().map(|text| parse_listen(text).unwrap()))
    }

    /// Every subset of a small universe, judged place by place, is the model.
    #[test]
    fn meet_and_containment_are_those_of_sets() {
        let texts = ["80", "127.0.0.1:80", "[::1]:80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "81"];
        let universe = ["127.0.0.1:80", "[::1]:80", "10.0.0.1:80", "9.9.9.9:80", "[2::]:80", "[::1]:81"];
        let universe = universe.map(|text| text.parse::<SocketAddr>().unwrap());
        let subsets = (0_u32..1 << texts.len()).map(|mask| {
            let chosen = (0..texts.len()).filter(|bit| mask & (1 << bit) != 0);
            scope(&chosen.map(|index| texts[index]).collect::<Vec<_>>())
        });
        let scopes: Vec<ListenScope> = subsets.chain([ListenScope::Any]).collect();
        for a in &scopes {
            assert!(a.listens().is_none_or(|listens| ListenScope::union(listens) == *a), "{a:?}");
            for b in &scopes {
                let met = a.meet(b);
                for place in &universe {
                    assert_eq!(met.holds(place), a.holds(place) && b.holds(place), "{a:?} {b:?} {place}");
                }
                let model = universe.iter().all(|place| !a.holds(place) || b.holds(place));
                // Ports beyond the universe are in `Any` alone.
                let model = model && (*a != ListenScope::Any || *b == ListenScope::Any);
                assert_eq!(a.within(b).holds(), model, "{a:?} {b:?}");
                if let Containment::Exceeds(more) = a.within(b) {
                    assert!(a.allows(more) && !b.allows(more), "{a:?} {b:?} {more}");
                }
            }
        }
    }

    #[test]
    fn places_read_back_as_they_are_printed() {
        for (text, printed) in [
            ("8080", "8080"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[0:0::1]:65535", "[::1]:65535"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ] {
            let read = parse_listen(text).unwrap();
            assert_eq!(read.to_string(), printed);
            assert_eq!(parse_listen(printed).unwrap(), read);
        }
    }
}
