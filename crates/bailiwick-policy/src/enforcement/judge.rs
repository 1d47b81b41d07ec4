//! Judgements that follow from a plan alone, or from a plan and a mechanism, the same for every target and sandbox that
//! has it.
//!
//! What is granted whole, or not declared at all, is held by nobody: nothing refuses it, so it is never `kernel`.

use super::Held;
use crate::capability::{ClockActions, Endpoint};
use crate::manifest::{Limit, Limits};
use crate::plan::{Mount, Network, Plan};

/// The clock and the time zones, which no sandbox here hides.
#[must_use]
pub fn clock(plan: &Plan) -> Held {
    let all = ClockActions::SYSTEM.union(ClockActions::TZDATA);
    if plan.clock().is_some_and(|granted| granted.contains(all)) {
        return Held::unsupported("the clock and the time zones are granted: nothing refuses them");
    }
    Held::unsupported("every process can read the clock, and the base shows the time zones")
}

/// Files, where whole trees are mounted read-only or writable, `how`: exact unless a tree is more than was granted.
#[must_use]
pub fn mounted_files(plan: &Plan, how: &str) -> Held {
    let mounts = plan.mounts();
    let wider: Vec<&Mount> = mounts.iter().filter(|mount| !mount.exact).collect();
    let Some((first, rest)) = wider.split_first() else { return Held::kernel(how) };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    Held::kernel(how).superset(format_args!(
        "`{}`{more} is mounted as a whole: a mount knows neither globs nor write without read",
        first.path
    ))
}

/// The network, where a sandbox has a namespace with nothing in it.
#[must_use]
pub fn no_network(plan: &Plan) -> Held {
    Held::kernel(match plan.network() {
        Network::None => "an own network namespace with nothing but a loopback of its own",
        Network::Allow(_) | Network::Any => {
            "an own network namespace: nothing can be reached, not even the declared hosts"
        }
    })
}

/// Local services, where no filter looks at sockets: what is visible can be talked to.
#[must_use]
pub fn visible_sockets(plan: &Plan) -> Held {
    let held =
        Held::kernel("abstract sockets end at the network namespace; of others the granted are visible");
    let displays = plan.ipc().endpoints.iter().any(|endpoint| endpoint.value == Endpoint::X11);
    let held = if displays { held.superset("X11 displays share one folder") } else { held };
    if plan.files().is_empty() {
        held
    } else {
        held.superset("a socket inside a granted folder can be connected to")
    }
}

/// Programs, where nothing chooses among those that are visible.
#[must_use]
pub fn every_program(plan: &Plan) -> Held {
    if plan.exec().any.is_some() {
        return Held::unsupported("every program is granted: nothing refuses one, wherever it lies");
    }
    Held::unsupported("every program that is visible can be started; there is no list of programs")
}

/// Limits, of which those in `holds` are held by the kernel, `how`. As good as the weakest that is declared.
#[must_use]
pub fn limits(declared: &Limits, holds: &[Limit], how: &str) -> Held {
    let missed: Vec<&str> =
        declared.declared().filter(|limit| !holds.contains(limit)).map(Limit::as_str).collect();
    match (declared.declared().next(), &*missed) {
        (None, _) => no_limits(),
        (Some(_), []) => Held::kernel(how),
        (Some(_), missed) => Held::unsupported(format!("nothing here holds {}", missed.join(", "))),
    }
}

/// A plan that declares no limit.
#[must_use]
pub fn no_limits() -> Held {
    Held::unsupported("no limit is declared: nothing is limited")
}
