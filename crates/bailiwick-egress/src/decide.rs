//! The decision: may a connection to this host and port go on, and to which addresses? One pure function.
//!
//! It is asked again as more becomes known: nothing but the target, then the addresses, then what the client says
//! first. Each answer is final but for the two that ask for more. So nothing is resolved for a host that is not
//! granted, and nothing is dialled before everything is known.
//!
//! Fails closed when there is no rule, no address, or one special-purpose address among several: an answer is
//! taken as a whole or not at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bailiwick_policy::authority::{Authority, Request as Asked};
use bailiwick_policy::net::{
    Host, HostPattern, Method, NetRequest, NetRule, NetSet, PortRange, Scheme, Speak, Speech, UrlPath,
    canonical_ip, is_special,
};
use bailiwick_policy::plan::Network;

use crate::code::Code;
use crate::hello::{Hello, Request};

/// The rules of a plan, made ready for questions.
#[derive(Debug, Clone)]
pub struct Rules(Option<NetSet>);

/// Whom a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name or address.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// What is known of a connection so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// What the host resolves to, once it was asked for.
    pub addresses: Option<&'a [IpAddr]>,
    /// What the client said first, once it was read.
    pub hello: Option<&'a Hello>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Resolve the host and ask again.
    Resolve,
    /// Read what the client says first and ask again.
    Listen,
    /// Dial.
    Allow(Pass),
    /// Close.
    Refuse(Refusal),
}

/// What may be dialled, and what is due afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The addresses that were judged, never empty; no other may be dialled.
    pub addresses: Vec<IpAddr>,
    /// What is due afterwards.
    pub stream: Stream,
}

/// What is due once the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Nothing: bytes are copied.
    Opaque,
    /// TLS: bytes are copied, but a second client hello that the server asks for is judged too.
    Tls,
    /// Plain HTTP: every further request is judged too.
    Requests,
}

/// A refusal: its code, and the smallest grant that would have allowed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: Code,
    grant: Option<String>,
}

impl Rules {
    /// The rules of a network plan. "Any" is every name, port and protocol, but no private address.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let everything = || {
            let speech = Speech::Connect { raw: true, ech: false };
            NetRule::new(HostPattern::Any, PortRange::ANY, false, speech)
        };
        Self(match network {
            Network::None => None,
            Network::Any => NetSet::new([everything()]),
            Network::Allow(rules) => NetSet::new(rules.iter().map(|rule| rule.value.clone())),
        })
    }

    /// Whether a rule names `host`, on whatever port.
    #[must_use]
    pub fn name(&self, host: &Host) -> bool {
        self.matching(host).next().is_some()
    }

    /// The zones of the wildcards that grant `host`, the narrowest first, if only wildcards do. The labels below them
    /// are the client's choice and, once looked up, reach the servers of the zone.
    pub(crate) fn wildcards_of(&self, host: &Host) -> Option<Vec<&str>> {
        let mut zones = Vec::new();
        for rule in self.matching(host) {
            let HostPattern::Below(zone) = rule.host() else { return None };
            zones.push(&**zone);
        }
        zones.sort_unstable_by_key(|zone| std::cmp::Reverse(zone.len()));
        Some(zones)
    }

    /// The hosts of all rules.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &HostPattern> {
        self.0.iter().flat_map(NetSet::rules).map(NetRule::host)
    }

    fn matching<'s>(&'s self, host: &Host) -> impl Iterator<Item = &'s NetRule> {
        self.0.iter().flat_map(move |set| set.matching(host))
    }

    /// Whether a rule names this private address itself, on this port.
    fn name_address(&self, address: IpAddr, port: u16) -> bool {
        let by_address = |rule: &NetRule| matches!(rule.host(), HostPattern::Net(_)) && rule.opens_private();
        self.matching(&Host::Ip(address)).any(|rule| rule.ports().contains(port) && by_address(rule))
    }
}

impl Target {
    /// A connection to `host`.
    #[must_use]
    pub const fn new(host: Host, port: u16) -> Self {
        Self { host, port }
    }

    /// `localhost`, if that is another name of the host: programs look it up in a file of their own.
    fn alias(&self) -> Option<Host> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let is_loopback = matches!(self.host, Host::Ip(ip) if loopback.contains(&ip));
        is_loopback.then(|| Host::Name("localhost".into()))
    }

    /// Whether `host` is whom the connection is for.
    fn is(&self, host: &Host) -> bool {
        self.host == *host || self.alias().as_ref() == Some(host)
    }
}

impl Refusal {
    /// A refusal that no grant would lift.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self { code, grant: None }
    }

    /// The same refusal with the grant that would lift it.
    #[must_use]
    pub fn grantable(mut self, grant: impl Into<String>) -> Self {
        self.grant = Some(grant.into());
        self
    }

    /// The refusal of a name that no rule has.
    #[must_use]
    pub fn of_name(host: &Host) -> Self {
        Self::new(Code::HostNotGranted).grantable(format!("net:connect:{host}"))
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The smallest grant that would have allowed it.
    #[must_use]
    pub fn grant(&self) -> Option<&str> {
        self.grant.as_deref()
    }
}

/// May the connection go on?
#[must_use]
pub fn decide(rules: &Rules, target: &Target, known: Known<'_>) -> Verdict {
    let alias = target.alias();
    let named: Vec<&NetRule> =
        rules.matching(&target.host).chain(alias.iter().flat_map(|alias| rules.matching(alias))).collect();
    let refuse = |code, speak, private| Verdict::Refuse(refusal(target, code, speak, private));
    if named.is_empty() {
        return refuse(Code::HostNotGranted, Speak::Tls, false);
    }
    let here: Vec<&NetRule> = named.into_iter().filter(|rule| rule.ports().contains(target.port)).collect();
    if here.is_empty() {
        return refuse(Code::PortNotGranted, Speak::Tls, false);
    }
    let Some(addresses) = known.addresses else { return Verdict::Resolve };
    let addresses: Vec<IpAddr> = addresses.iter().copied().map(canonical_ip).collect();
    if addresses.is_empty() {
        return Verdict::Refuse(Refusal::new(Code::NameUnresolved));
    }
    let private = |ip: &IpAddr| is_special(*ip) && !rules.name_address(*ip, target.port);
    let private = addresses.iter().any(private);
    let open: Vec<&NetRule> = here.into_iter().filter(|rule| rule.opens_private() || !private).collect();
    if open.is_empty() {
        return refuse(Code::AddressPrivate, Speak::Tls, true);
    }
    if open.iter().any(|rule| matches!(rule.speech(), Speech::Connect { raw: true, .. })) {
        return Verdict::Allow(Pass { addresses, stream: Stream::Opaque });
    }
    let Some(hello) = known.hello else { return Verdict::Listen };
    match spoken(&open, target, hello) {
        Ok(stream) => Verdict::Allow(Pass { addresses, stream }),
        Err((code, speak)) => refuse(code, speak, private),
    }
}

type Fault = (Code, Option<Speak>);

/// Whether what the client says first is for the target and granted by one of the rules.
fn spoken(open: &[&NetRule], target: &Target, hello: &Hello) -> Result<Stream, (Code, Speak)> {
    match hello {
        Hello::Tls { name, hidden } => tls(open, target, name.as_deref(), *hidden).map(|()| Stream::Tls),
        Hello::Http(request) => http(open, target, request).map(|()| Stream::Requests),
        Hello::Unreadable(code) => Err((*code, None)),
        Hello::Other => Err((Code::ProtocolNotGranted, Some(Speak::Raw))),
    }
    .map_err(|(code, speak)| (code, speak.unwrap_or(Speak::Raw)))
}

fn tls(open: &[&NetRule], target: &Target, name: Option<&str>, hidden: bool) -> Result<(), Fault> {
    let secure = |rule: &&&NetRule| match rule.speech() {
        Speech::Connect { .. } => true,
        Speech::Http { schemes, .. } => schemes.contains(Scheme::Https),
    };
    let mut secured = open.iter().filter(secure).peekable();
    if secured.peek().is_none() {
        return Err((Code::RequestNotGranted, Some(Speak::Tls)));
    }
    match (name, &target.host) {
        (None, Host::Ip(_)) => {}
        (None, Host::Name(_)) => return Err((Code::TlsNameMissing, Some(Speak::Raw))),
        (Some(name), _) => {
            if !Host::new(name).is_ok_and(|host| target.is(&host)) {
                return Err((Code::TlsNameOther, Some(Speak::Raw)));
            }
        }
    }
    let shows = |rule: &&NetRule| matches!(rule.speech(), Speech::Connect { ech: true, .. });
    if hidden && !secured.any(shows) {
        return Err((Code::TlsNameHidden, Some(Speak::HiddenTls)));
    }
    Ok(())
}

fn http(open: &[&NetRule], target: &Target, request: &Request) -> Result<(), Fault> {
    let same_port = request.port.is_none_or(|port| port == target.port);
    if !(target.is(&request.host) && same_port) {
        return Err((Code::HttpHostOther, None));
    }
    // Methods are case-sensitive: a server may take `get` for something else. A field that names another method or
    // path leaves nothing that a rule for some requests could judge.
    let method = Method::new(&request.method).ok().filter(|method| *method.as_str() == *request.method);
    let method = method.filter(|_| !request.overridden);
    let path = UrlPath::of_target(&request.path);
    let ambiguous = request.overridden || matches!(path, UrlPath::Ambiguous { .. });
    let speak = method.map(|method| Speak::Http { scheme: Scheme::Http, method, path });
    let plain = |rule: &&NetRule| match &speak {
        Some(speak) => rule.speech().allows(speak),
        None => matches!(rule.speech(), Speech::Connect { .. }),
    };
    if open.iter().any(plain) {
        return Ok(());
    }
    let code = if ambiguous { Code::RequestAmbiguous } else { Code::RequestNotGranted };
    Err((code, Some(speak.unwrap_or(Speak::Tls))))
}

/// The refusal with its smallest grant; none lifts what cannot be read.
fn refusal(target: &Target, code: Code, speak: Speak, private: bool) -> Refusal {
    let lifted =
        !matches!(code, Code::HttpHostOther | Code::HttpUnreadable | Code::HttpTunnel | Code::TlsUnreadable);
    let request = NetRequest::new(target.host.clone(), target.port, speak);
    let request = if private { request.resolved_privately() } else { request };
    let nothing = Authority::from_capabilities(&[]).ok().filter(|_| lifted);
    let asked = Asked::Net(request);
    let grant = nothing.and_then(|nothing| nothing.explain(&asked).smallest_grant().map(ToString::to_string));
    Refusal { code, grant }
}

#[cfg(test)]
pub(crate) mod tests;
