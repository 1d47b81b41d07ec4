//! The network of a confined command: its sockets are answered here, outside, by name.

use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_confine::EgressSockets;
use bailiwick_egress::{Egress, Event, Options, Running, Sockets};
use bailiwick_guard::network_event;
use bailiwick_policy::plan::Plan;

use super::record::Record;
use crate::args::run::Run;
use crate::terminal;

/// Answers the sockets until what is returned is dropped.
pub(super) fn serve(
    args: &Run,
    plan: &Plan,
    sockets: EgressSockets,
    record: &Arc<Record>,
) -> anyhow::Result<Running> {
    let (told, shown) = (Arc::clone(record), args.net_log);
    let tool = super::subject(plan).to_owned();
    let options = Options {
        resolver: args.names.resolver(),
        hosts: args.names.hosts(),
        events: Box::new(move |event| tell(&event, &told, &tool, shown)),
        ..Options::default()
    };
    let EgressSockets { dns_udp, dns_tcp, relays, redirected } = sockets;
    let sockets = Sockets { dns_udp, dns_tcp, relays, redirected };
    Egress::new(plan.network(), options).serve(sockets).context("cannot serve the command's network")
}

fn tell(event: &Event, record: &Record, tool: &str, shown: bool) {
    if shown {
        terminal::remark(&format!("{event}\n"));
    }
    if record.is_on() {
        // A journal that takes no more ends the run at its next word; the decision itself stands.
        drop(record.append(network_event(event, tool)));
    }
}
