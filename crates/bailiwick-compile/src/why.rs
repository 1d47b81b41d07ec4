//! What the coverage of several targets says in the same words.

use bailiwick_policy::enforcement::Held;
use bailiwick_policy::plan::{Network, Plan};

use crate::script;

/// Files, by mounts: how, and what the mounts widen.
pub(crate) fn files(plan: &Plan, how: &str) -> Held {
    let held = Held::kernel(how);
    match plan.mounts().iter().find(|mount| !mount.exact) {
        None => held,
        Some(mount) => held.superset(format_args!(
            "`{}` is mounted as a whole: a mount knows neither globs nor write without read",
            mount.path
        )),
    }
}

/// The network of a sandbox that has none of its own.
pub(crate) fn no_network(plan: &Plan) -> Held {
    Held::kernel(match plan.network() {
        Network::None => "an own network namespace with nothing but a loopback of its own",
        Network::Allow(_) | Network::Any => {
            "an own network namespace: nothing can be reached, not even the declared hosts"
        }
    })
}

/// Local services, for a sandbox without a socket filter: what is visible can be talked to.
pub(crate) fn visible_sockets(plan: &Plan) -> Held {
    let held =
        Held::kernel("abstract sockets end at the network namespace; of others the granted are visible");
    let shared =
        plan.ipc().endpoints.iter().any(|own| own.value == bailiwick_policy::capability::Endpoint::X11);
    match (plan.files().is_empty(), shared) {
        (true, false) => held,
        (true, true) => held.superset("X11 displays share one folder"),
        (false, _) => held.superset("a socket inside a granted folder can be connected to"),
    }
}

/// The notes about variables that whoever starts the sandbox must set.
pub(crate) fn environment_notes(plan: &Plan, how: &str, notes: &mut Vec<String>) {
    let environment = plan.environment();
    let names: Vec<&str> = script::passed(plan).collect();
    if !names.is_empty() {
        notes.push(format!("set {} when starting it: {how}", names.join(", ")));
    }
    if environment.read_all {
        notes.push("`env:read:*` passes nothing: name each variable".to_owned());
    }
}
