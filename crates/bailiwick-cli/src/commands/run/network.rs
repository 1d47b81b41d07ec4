//! The network of a confined command: its sockets are answered here, outside, by name.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bailiwick_confine::EgressSockets;
use bailiwick_egress::{Egress, Event, Options, Running, Sockets};
use bailiwick_guard::network_event;
use bailiwick_policy::plan::Plan;

use super::record::Record;
use crate::args::run::Run;
use crate::terminal;

/// The most refusals that are remembered.
const MOST_REFUSED: usize = 16;

/// What the network of a command was refused, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Vec<Event>>>);

impl Refusals {
    fn note(&self, event: &Event) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if event.refusal().is_some() && refused.len() < MOST_REFUSED && !refused.contains(event) {
            refused.push(event.clone());
        }
    }

    /// What was refused so far.
    pub(super) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers the sockets until what is returned is dropped.
pub(super) fn serve(
    args: &Run,
    plan: &Plan,
    sockets: EgressSockets,
    record: &Arc<Record>,
    refusals: &Refusals,
) -> anyhow::Result<Running> {
    let (told, shown, refusals) = (Arc::clone(record), args.net_log, refusals.clone());
    let tool = super::subject(plan).to_owned();
    let options = Options {
        resolver: args.names.resolver(),
        hosts: args.names.hosts(),
        events: Box::new(move |event| {
            refusals.note(&event);
            tell(&event, &told, &tool, shown);
        }),
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
