//! The network of a launched program: its sockets are answered here, outside, by name, and every decision is an event.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

use bailiwick_broker::{BrokerError, BrokerProcess, BrokeredClient};
use bailiwick_confine::EgressSockets;
use bailiwick_egress::{Egress, EgressOutcome, Entrance, Event as NetworkEvent, Listeners, Options};
use bailiwick_egress::{Resolver, Running, Sockets, TlsEnd};
use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_policy::net::{Host, NetRule};
use bailiwick_policy::plan::{Network, Origin, Plan};

use crate::record::Recorder;

/// Addresses that names have whatever a name server says.
pub type FixedHosts = BTreeMap<Box<str>, Vec<IpAddr>>;

/// How names are found.
#[derive(Debug, Clone, Default)]
pub struct NameSources {
    /// Who is asked.
    pub resolver: Resolver,
    /// Names with fixed addresses. They are judged like all others.
    pub hosts: FixedHosts,
}

/// The most refusals that are remembered.
const MOST_REFUSED: usize = 64;

/// What the network of one or several programs was refused, each once. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct NetworkRefusals(Arc<Mutex<Vec<NetworkEvent>>>);

impl NetworkRefusals {
    /// Remembers a decision, if it is a refusal.
    pub(crate) fn note(&self, event: &NetworkEvent) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if event.refusal().is_some() && refused.len() < MOST_REFUSED && !refused.contains(event) {
            refused.push(event.clone());
        }
    }

    /// What was refused so far.
    #[must_use]
    pub fn all(&self) -> Vec<NetworkEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The network of a program: served, or not yet because it has no granted host and has not asked for a name.
pub(crate) enum ProgramNetwork {
    Unasked(Box<Egress>, Sockets),
    Served(#[expect(dead_code, reason = "dropping it ends it")] Running),
}

impl ProgramNetwork {
    /// Answers the program's sockets until this is dropped.
    pub(crate) fn serve(self) -> io::Result<Self> {
        match self {
            Self::Unasked(egress, sockets) => egress.serve(sockets).map(Self::Served),
            Self::Served(_) => Ok(self),
        }
    }

    /// The sockets on which a program without a granted host would ask for a name first; none where names are answered.
    pub(crate) fn unasked(&self) -> &[UdpSocket] {
        match self {
            Self::Unasked(_, sockets) => &sockets.dns_udp,
            Self::Served(_) => &[],
        }
    }
}

/// The network of a program, not served yet; `told` is called for every decision.
pub(crate) fn unserved(
    network: &Network,
    (sockets, listeners): (EgressSockets, Listeners),
    names: NameSources,
    tls_end: Option<Arc<dyn TlsEnd>>,
    told: impl Fn(&NetworkEvent) + Send + Sync + 'static,
) -> ProgramNetwork {
    let NameSources { resolver, hosts } = names;
    let events = Box::new(move |event: NetworkEvent| told(&event));
    let EgressSockets { dns_udp, dns_tcp, relays, entrances, redirected } = sockets;
    let entrances = entrances.into_iter().map(|(seed, listener)| Entrance::new(seed, listener)).collect();
    let sockets = Sockets { dns_udp, dns_tcp, relays, entrances, redirected };
    let egress = Egress::new(network, Options { resolver, hosts, events, tls_end, ..Options::default() });
    ProgramNetwork::Unasked(Box::new(egress.listening(listeners)), sockets)
}

/// The secrets of a plan, for requests that are made in this process and by no program of a sandbox; nothing if it brokers
/// none. Every decision is recorded.
///
/// # Errors
/// Which secret cannot be brokered for this plan, and why.
pub fn brokered_client(
    process: &Arc<BrokerProcess>,
    plan: &Plan,
    recorder: Recorder,
) -> Result<Option<BrokeredClient>, BrokerError> {
    let brokering = process.session(plan)?;
    let told = move |event: &NetworkEvent| recorder.network(event);
    Ok(brokering.map(|brokering| BrokeredClient::new(brokering, plan.network(), told)))
}

/// The rules of a network, each with the line that grants it.
#[derive(Debug, Clone, Default)]
pub(crate) struct GrantLines(Vec<(NetRule, String)>);

impl GrantLines {
    /// The rules of `plan`; `name` says where a line stands.
    pub(crate) fn new(plan: &Plan, name: impl Fn(Option<&Origin>) -> String) -> Self {
        let rules = plan.network().rules().iter();
        Self(rules.map(|rule| (rule.value.clone(), name(plan.origins(rule).next().as_ref()))).collect())
    }

    /// The line that decided: the one that names host and port; for a refusal, one that at least names the host.
    pub(crate) fn deciding(&self, decided: &NetworkEvent) -> Option<&str> {
        let host = Host::new(decided.host()).ok()?;
        let named = |rule: &NetRule| rule.host().matches(&host);
        let opens = |rule: &NetRule| decided.port().is_some_and(|port| rule.ports().contains(port));
        let exact = self.0.iter().find(|(rule, _)| named(rule) && opens(rule));
        let any = || self.0.iter().find(|(rule, _)| named(rule) && decided.refusal().is_some());
        exact.or_else(any).map(|(_, line)| line.as_str())
    }
}

/// A decision about one connection or name of a tool's network, as an event of the journal.
#[must_use]
pub fn network_event(decided: &NetworkEvent, tool: &str) -> Event {
    let port = decided.port().map(|port| format!(":{port}")).unwrap_or_default();
    match decided.outcome() {
        EgressOutcome::Allowed(address) => Event::new(RecordKind::EgressAllowed)
            .with_tool(tool.to_owned())
            .with_capability(format!("net:connect:{}{port}", written(decided.host())))
            .with_decision(Decision::Allow)
            .with_reason(format!("reached at {address}")),
        EgressOutcome::Accepted(peer) => Event::new(RecordKind::EgressAllowed)
            .with_tool(tool.to_owned())
            .with_capability(format!("net:listen:{}{port}", written(decided.host())))
            .with_decision(Decision::Allow)
            .with_reason(format!("a connection from {peer} was handed in")),
        EgressOutcome::Brokered(address, secrets) => Event::new(RecordKind::EgressAllowed)
            .with_tool(tool.to_owned())
            .with_capability(format!("net:connect:{}{port}", written(decided.host())))
            .with_decision(Decision::Allow)
            .with_code("secret-used")
            .with_reason(brokered(decided, &address.to_string(), secrets)),
        EgressOutcome::Refused(refusal) => {
            let event = Event::new(RecordKind::EgressDenied)
                .with_tool(tool.to_owned())
                .with_decision(Decision::Deny)
                .with_code(refusal.code().as_str())
                .with_reason(format!("{}{port}: {}", decided.host(), refusal.code().meaning()));
            // The grant that would allow it, if one would: that is what `log why` offers.
            match refusal.grant() {
                Some(grant) => event.with_capability(grant.to_owned()),
                None => event,
            }
        }
    }
}

/// Which secrets a request was given, and which request it was.
fn brokered(decided: &NetworkEvent, address: &str, secrets: &[Box<str>]) -> String {
    let request = decided.request().map(|request| format!("{request}: ")).unwrap_or_default();
    format!("{request}{} put in, reached at {address}", secrets.join(", "))
}

/// A host as it is written before a port.
fn written(host: &str) -> String {
    if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}
