//! Exact containment of unions of network rules.
//!
//! A rule that one other rule covers is settled at once. Otherwise the rule is cut into atoms that no rule in
//! question divides further (a host, a stretch of ports, a way of speaking) and each atom is looked up on both
//! sides. Fails closed when there are more atoms than the budget: `Undecided`.

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::host::{address, edges, interval, is_below};
use super::request::{SampledHosts, SampledPlace};
use super::{
    Host, HostPattern, Method, Methods, NetRequest, NetRule, NetSet, PortRange, Scheme, Schemes, Speak,
    Speech, UrlPath,
};
use crate::lattice::Containment;
use crate::path::{PathPattern, PathScope};

/// Atoms looked at in one question.
const MAX_ATOMS: usize = 200_000;

/// Whether the conjunction is within the union (`None`: within nothing at all).
pub(super) fn within(clauses: &[&NetSet], bound: Option<&NetSet>) -> Containment<NetRequest> {
    if clauses.iter().any(|set| Some(*set) == bound) {
        return Containment::Contained;
    }
    let Some((index, driver)) = clauses.iter().enumerate().min_by_key(|(_, set)| set.rules().len()) else {
        return Containment::Contained;
    };
    let others = clauses.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, set)| *set).collect();
    let mut question = Question { others, bound, atoms: 0 };
    let mut answer = Containment::Contained;
    for rule in driver.rules() {
        answer = answer.and_then(|| question.rule_within(rule));
        if matches!(answer, Containment::Exceeds(_)) {
            break;
        }
    }
    answer
}

struct Question<'a> {
    others: Vec<&'a NetSet>,
    bound: Option<&'a NetSet>,
    atoms: usize,
}

impl Question<'_> {
    fn rule_within(&mut self, rule: &NetRule) -> Containment<NetRequest> {
        let covered =
            self.bound.is_some_and(|set| set.enclosing(rule.host()).any(|other| other.covers(rule)));
        if covered {
            return Containment::Contained;
        }
        let hosts = self.host_atoms(rule.host());
        let unnamed = self.fresh_label();
        self.atoms += hosts.len();
        if self.atoms > MAX_ATOMS {
            return Containment::Undecided;
        }
        let mut answer = Containment::Contained;
        for host in hosts {
            let privacy: &[bool] = match (&host, host.is_private(), rule.opens_private()) {
                (_, true, true) => &[true],
                (_, true, false) => &[],
                (Host::Name(_), false, true) => &[false, true],
                (_, false, _) => &[false],
            };
            for private in privacy {
                answer = answer.and_then(|| {
                    let found = self.host_within(rule, &host, *private);
                    found.map(|request| self.as_sample(request, rule, &unnamed))
                });
                if !answer.holds() {
                    return answer;
                }
            }
        }
        answer
    }

    /// An example with the hosts and ports that it stands for.
    fn as_sample(&self, request: NetRequest, rule: &NetRule, unnamed: &str) -> NetRequest {
        let hosts = match request.host() {
            Host::Name(name) if **name == *unnamed => SampledHosts::Unnamed,
            Host::Name(name) => match name.split_once('.') {
                Some((label, parent)) if label == unnamed => SampledHosts::UnnamedBelow(parent.into()),
                _ => SampledHosts::Itself,
            },
            Host::Ip(_) => SampledHosts::Itself,
        };
        let stretches = self.port_atoms(rule.ports(), request.host());
        let next = stretches.into_iter().find(|start| *start > request.port());
        let ports = PortRange::only(request.port()).until(next.map_or(rule.ports().high(), |next| next - 1));
        request.standing_for(SampledPlace { hosts, ports })
    }

    fn host_within(&mut self, rule: &NetRule, host: &Host, private: bool) -> Containment<NetRequest> {
        for port in self.port_atoms(rule.ports(), host) {
            self.atoms += 1;
            if self.atoms > MAX_ATOMS {
                return Containment::Undecided;
            }
            let ask = |speak: Speak| {
                let request = NetRequest::new(host.clone(), port, speak);
                if private { request.resolved_privately() } else { request }
            };
            let answer = self.speech_within(rule.speech(), &ask);
            if !answer.holds() {
                return answer;
            }
        }
        Containment::Contained
    }

    fn speech_within(&self, speech: &Speech, ask: &dyn Fn(Speak) -> NetRequest) -> Containment<NetRequest> {
        let everything = PathPattern::everything();
        let (schemes, methods, path) = match speech {
            Speech::Connect { raw, ech } => {
                let ways = [(true, Speak::Tls), (*raw || *ech, Speak::HiddenTls), (*raw, Speak::Raw)];
                let beyond = ways.into_iter().filter(|(may, _)| *may).map(|(_, speak)| ask(speak));
                if let Some(request) = beyond.into_iter().find(|request| self.exceeds(request)) {
                    return Containment::Exceeds(request);
                }
                (Schemes::from_list(&Scheme::ALL), Methods::ALL, &everything)
            }
            Speech::Http { schemes, methods, path } => (*schemes, *methods, path),
        };
        for scheme in schemes.iter() {
            for method in self.method_atoms(methods) {
                let at = |path| ask(Speak::Http { scheme, method, path: UrlPath::Clear(path) });
                let answer = self.paths_within(path, &at(path.base())).map(at);
                if !answer.holds() {
                    return answer;
                }
                let ambiguous = UrlPath::ambiguous("/.", "it has a component of dots");
                let odd = ask(Speak::Http { scheme, method, path: ambiguous });
                if path.is_everything() && self.exceeds(&odd) {
                    return Containment::Exceeds(odd);
                }
            }
        }
        Containment::Contained
    }

    /// Whether `path` is covered for requests that are like `like` but for their path.
    fn paths_within(&self, path: &PathPattern, like: &NetRequest) -> Containment<crate::path::AbsPath> {
        let scope_of = |set: &NetSet| {
            let rules = set.matching(like.host()).filter_map(|rule| path_for(rule, like));
            PathScope::union(rules.collect::<Vec<_>>().iter())
        };
        let asked = self.others.iter().fold(PathScope::union([path]), |met, set| met.meet(&scope_of(set)));
        asked.within(&self.bound.map_or(PathScope::None, scope_of))
    }

    fn exceeds(&self, request: &NetRequest) -> bool {
        self.others.iter().all(|set| set.allows(request))
            && !self.bound.is_some_and(|set| set.allows(request))
    }

    fn rules(&self) -> impl Iterator<Item = &NetRule> {
        self.others.iter().copied().chain(self.bound).flat_map(NetSet::rules)
    }

    /// One host for every way the rules can tell hosts of `pattern` apart; the likeliest witness first.
    fn host_atoms(&self, pattern: &HostPattern) -> Vec<Host> {
        match pattern {
            HostPattern::Name(name) => vec![Host::Name(name.clone())],
            HostPattern::Below(parent) => self.name_atoms(Some(parent)),
            HostPattern::Net(net) => self.ip_atoms(*net),
            HostPattern::Any => {
                let mut atoms = self.name_atoms(None);
                atoms.extend(self.ip_atoms(IpNet::V4(Ipv4Net::default())));
                atoms.extend(self.ip_atoms(IpNet::V6(Ipv6Net::default())));
                atoms
            }
        }
    }

    fn name_atoms(&self, parent: Option<&str>) -> Vec<Host> {
        let label = self.fresh_label();
        let fresh = |parent: &str| Host::Name(format!("{label}.{parent}").into());
        let mut atoms = vec![parent.map_or_else(|| Host::Name(label.clone().into()), fresh)];
        for rule in self.rules() {
            match rule.host() {
                HostPattern::Name(name) if parent.is_none_or(|parent| is_below(name, parent)) => {
                    atoms.push(Host::Name(name.clone()));
                }
                HostPattern::Below(name) if parent.is_none_or(|parent| is_below(name, parent)) => {
                    atoms.push(fresh(name));
                }
                HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) | HostPattern::Net(_) => {}
            }
        }
        atoms
    }

    /// A label that is in no rule's name.
    fn fresh_label(&self) -> String {
        let taken = |label: &str| {
            self.rules().any(|rule| match rule.host() {
                HostPattern::Name(name) | HostPattern::Below(name) => name.contains(label),
                HostPattern::Any | HostPattern::Net(_) => false,
            })
        };
        let mut candidates = (0_u64..).map(|number| format!("other{number}"));
        candidates.find(|label| !taken(label)).unwrap_or_default()
    }

    fn ip_atoms(&self, net: IpNet) -> Vec<Host> {
        let (low, high) = interval(net);
        let mut starts: BTreeSet<u128> = edges(net).collect();
        for rule in self.rules() {
            if let HostPattern::Net(other) = rule.host()
                && other.max_prefix_len() == net.max_prefix_len()
            {
                let (first, last) = interval(*other);
                starts.extend([Some(first), last.checked_add(1)].into_iter().flatten());
            }
        }
        starts.insert(low);
        starts.range(low..=high).map(|number| Host::Ip(address(net, *number))).collect()
    }

    /// The first port of every stretch of `ports` that no rule for `host` divides.
    fn port_atoms(&self, ports: PortRange, host: &Host) -> Vec<u16> {
        let mut starts = BTreeSet::from([ports.low()]);
        for set in self.others.iter().copied().chain(self.bound) {
            for rule in set.matching(host) {
                starts.extend(
                    [Some(rule.ports().low()), rule.ports().high().checked_add(1)].into_iter().flatten(),
                );
            }
        }
        starts.range(ports.low()..=ports.high()).copied().collect()
    }

    /// One method of every group that no rule divides.
    fn method_atoms(&self, methods: Methods) -> Vec<Method> {
        let masks: BTreeSet<Methods> = self
            .rules()
            .filter_map(|rule| match rule.speech() {
                Speech::Http { methods, .. } => Some(*methods),
                Speech::Connect { .. } => None,
            })
            .collect();
        let groups = masks.into_iter().fold(vec![methods], |groups, mask| {
            groups
                .into_iter()
                .flat_map(|group| [group.meet(mask), group.minus(mask)])
                .filter(|g| !g.is_empty())
                .collect()
        });
        groups.into_iter().filter_map(|group| group.iter().next()).collect()
    }
}

/// The paths that `rule` allows for requests like `like`, if any.
fn path_for(rule: &NetRule, like: &NetRequest) -> Option<PathPattern> {
    let Speak::Http { scheme, method, .. } = like.speak() else { return None };
    let reached = rule.ports().contains(like.port()) && (rule.opens_private() || !like.is_private());
    match rule.speech() {
        Speech::Connect { .. } if reached => Some(PathPattern::everything()),
        Speech::Http { schemes, methods, path }
            if reached && schemes.contains(*scheme) && methods.contains(*method) =>
        {
            Some(path.clone())
        }
        Speech::Connect { .. } | Speech::Http { .. } => None,
    }
}
