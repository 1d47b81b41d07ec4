//! Decisions of the network as events of the journal.

use bailiwick_egress::{Event as Decided, Outcome};
use bailiwick_policy::journal::{Decision, Event, Kind};

/// A decision about one connection or name of a tool's network.
#[must_use]
pub fn network_event(decided: &Decided, tool: &str) -> Event {
    let port = decided.port().map(|port| format!(":{port}")).unwrap_or_default();
    match decided.outcome() {
        Outcome::Allowed(address) => Event::new(Kind::EgressAllowed)
            .with_tool(tool.to_owned())
            .with_capability(format!("net:connect:{}{port}", written(decided.host())))
            .with_decision(Decision::Allow)
            .with_reason(format!("reached at {address}")),
        Outcome::Refused(refusal) => {
            let event = Event::new(Kind::EgressDenied)
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

/// A host as it is written before a port.
fn written(host: &str) -> String {
    if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}
