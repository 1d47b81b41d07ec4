//! The one judge of enforcement: how well a [`Mechanism`] holds a plan, aspect by aspect.
//!
//! Every compile target and every sandbox describes its mechanism and asks here; none of them states a level itself.
//!
//! Invariants: what is granted whole, or not declared at all, is not held: nothing refuses it, so it is never
//! `kernel`. Adding a capability to a plan never raises a level. A property test holds both over generated plans.

use super::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, Layers, LimitMechanism, Mechanism,
    NetworkMechanism, ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use super::{Aspect, Coverage, Held, Level, Precision};
use crate::capability::{ClockActions, Endpoint, FsActions};
use crate::limits::{Limit, Limits};
use crate::net::{NetRule, Speech};
use crate::path::AbsPath;
use crate::plan::{FileGrant, MASKED, Mount, Network, Plan};

/// How well `mechanism` holds `plan`.
///
/// # Examples
///
/// Nothing refuses a program where all of them are granted, whatever holds the others:
///
/// ```
/// use bailiwick_policy::capability::CapabilitySet;
/// use bailiwick_policy::enforcement::mechanism::{ProgramMechanism, Words};
/// use bailiwick_policy::enforcement::{Level, judge};
/// use bailiwick_policy::facts::HostFacts;
/// use bailiwick_policy::plan::Plan;
///
/// let listed = ProgramMechanism::Listed(Words::exact("other programs are absent"));
/// let level = |line: &str| {
///     let granted = CapabilitySet::new([line]).unwrap();
///     let plan = Plan::for_authority("demo", granted.authority(), &HostFacts::unknown()).unwrap();
///     judge::programs(&plan, &listed).level
/// };
/// assert_eq!(level("exec:spawn:git"), Level::Kernel);
/// assert_eq!(level("exec:spawn:*"), Level::Unsupported);
/// ```
#[must_use]
pub fn coverage(plan: &Plan, mechanism: &Mechanism) -> Coverage {
    Coverage::from_fn(|aspect| match aspect {
        Aspect::Files => files(plan, &mechanism.files),
        Aspect::Network => network(plan, &mechanism.network),
        Aspect::Exec => programs(plan, &mechanism.programs),
        Aspect::Environment => environment(plan, &mechanism.environment),
        Aspect::Ipc => services(plan, &mechanism.services),
        Aspect::Processes => processes(plan, &mechanism.processes),
        Aspect::Clock => clock(plan),
        Aspect::Limits => limits(plan.limits(), &mechanism.limits),
    })
}

/// Files.
#[must_use]
pub fn files(plan: &Plan, mechanism: &FileMechanism) -> Held {
    match mechanism {
        FileMechanism::Mounts(words) => mounted(plan, *words),
        FileMechanism::Layered { has } => layered(plan, *has),
        FileMechanism::TreeRules(words) => tree_rules(plan, *words),
        FileMechanism::FoundRules { how, wider } => wider.iter().fold(Held::kernel(how), Held::superset),
        FileMechanism::PathRules(words) => words.kernel(),
        FileMechanism::Nothing(why) => Held::unsupported(*why),
    }
}

/// Whole trees, read-only or writable: exact unless a tree is more than was granted.
fn mounted(plan: &Plan, words: Words) -> Held {
    let mounts = plan.mounts();
    let wider: Vec<&Mount> = mounts.iter().filter(|mount| !mount.exact).collect();
    let held = Held::kernel(words.how);
    let held = match wider.split_first() {
        None => held,
        Some((first, rest)) => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            held.superset(format_args!(
                "`{}`{more} is mounted as a whole: a mount knows neither globs nor write without read",
                first.path
            ))
        }
    };
    words.wider.iter().fold(held, Held::superset)
}

fn layered(plan: &Plan, has: Layers) -> Held {
    let held = Held::kernel(if plan.files().iter().any(FileGrant::writable) {
        "an own mount namespace and root; names that run code later are decided inside, and nothing goes around that"
    } else {
        "an own mount namespace and root"
    });
    if plan.files().iter().any(only_creates) {
        return held.superset("where files may only be created, those that are there can be written too");
    }
    if !has.narrows {
        return held.superset("without Landlock, what may be written may also be read");
    }
    if !has.guards_names {
        return held.superset("without Landlock, names that run code later can be created");
    }
    held
}

fn tree_rules(plan: &Plan, words: Words) -> Held {
    let masked: Vec<AbsPath> = MASKED.iter().filter_map(|tree| AbsPath::new(tree).ok()).collect();
    let whole = |grant: &FileGrant| masked.iter().any(|tree| tree.is_within(&grant.source));
    let mut held = words.kernel();
    if plan.files().iter().any(whole) {
        held = held.superset("what no grant shows, such as /proc, lies in a granted tree");
    }
    match plan.files().iter().find(|grant| !grant.is_tree() || only_creates(grant)) {
        Some(grant) => held.superset(format_args!("`{}` is held as its directory", grant.pattern.value)),
        None => held,
    }
}

/// Files may be made there and those that are there not be written, which no mount and no rule can tell apart.
fn only_creates(grant: &FileGrant) -> bool {
    grant.actions.contains(FsActions::CREATE) && !grant.actions.contains(FsActions::WRITE)
}

/// The network.
#[must_use]
pub fn network(plan: &Plan, mechanism: &NetworkMechanism) -> Held {
    let is_none = *plan.network() == Network::None;
    match mechanism {
        NetworkMechanism::Empty { wider, wider_with_services } => {
            let held = Held::kernel(if is_none {
                "an own network namespace with nothing but a loopback of its own"
            } else {
                "an own network namespace: nothing can be reached, not even the declared hosts"
            });
            let held = wider.iter().fold(held, Held::superset);
            let services = if plan.ipc().endpoints.is_empty() { &[][..] } else { wider_with_services };
            services.iter().fold(held, Held::superset)
        }
        NetworkMechanism::Supervised { none, .. } if is_none && plan.listens().is_empty() => none.kernel(),
        NetworkMechanism::Supervised { .. } if is_none => {
            Held::mediated("an own network namespace; connections come in through the supervisor alone")
        }
        NetworkMechanism::Supervised { some, unread, .. } => match unread.filter(|_| !speaks_raw(plan)) {
            Some(unread) => some.mediated().superset(unread),
            None => some.mediated(),
        },
        NetworkMechanism::Policies { words, .. } if is_none => words.mediated(),
        NetworkMechanism::Policies { words, unchecked, private_names } => {
            let held = words.mediated().superset(unchecked);
            if plan.network().opens_private_names() { held.superset(private_names) } else { held }
        }
        NetworkMechanism::Closed(words) if is_none => words.kernel(),
        NetworkMechanism::Closed(_) => {
            Held::unsupported("without a network namespace no host can be let through")
        }
        NetworkMechanism::Nothing(why) => Held::unsupported(*why),
    }
}

/// Whether every rule is for raw connections: there is nothing inside them to be read.
fn speaks_raw(plan: &Plan) -> bool {
    let raw = |rule: &NetRule| matches!(rule.speech(), Speech::Connect { raw: true, .. });
    let rules = plan.network().rules();
    !rules.is_empty() && rules.iter().all(|rule| raw(&rule.value))
}

/// Programs.
#[must_use]
pub fn programs(plan: &Plan, mechanism: &ProgramMechanism) -> Held {
    match mechanism {
        ProgramMechanism::Nothing(why) => Held::unsupported(*why),
        ProgramMechanism::Visible | ProgramMechanism::Listed(_) if plan.exec().any.is_some() => {
            Held::unsupported("every program is granted: nothing refuses one, wherever it lies")
        }
        ProgramMechanism::Visible => {
            Held::unsupported("every program that is visible can be started; there is no list of programs")
        }
        ProgramMechanism::Listed(words) if plan.files().iter().any(FileGrant::maps_code) => {
            words.kernel().superset("the loader can run a program that lies in a directory granted as code")
        }
        ProgramMechanism::Listed(words) => words.kernel(),
    }
}

/// What is said of a sandbox without a broker.
const UNBROKERED: &str = "nothing here puts a brokered secret into requests; `bailiwick run`, `wrap` and `serve` with the native sandbox do";

/// Variables.
#[must_use]
pub fn environment(plan: &Plan, mechanism: &EnvironmentMechanism) -> Held {
    let has_secrets = !plan.environment().brokered.is_empty();
    if has_secrets && !matches!(mechanism, EnvironmentMechanism::Brokered { .. }) {
        return Held::unsupported(UNBROKERED);
    }
    match mechanism {
        EnvironmentMechanism::Brokered { .. } if plan.environment().read_all => {
            Held::unsupported("every variable of the caller is granted: nothing keeps one out")
        }
        EnvironmentMechanism::Brokered { brokers, .. } if has_secrets => brokers.mediated(),
        EnvironmentMechanism::Brokered { words, .. } => words.kernel(),
        EnvironmentMechanism::Fresh { passes_all: true, .. } if plan.environment().read_all => {
            Held::unsupported("every variable of the caller is granted: nothing keeps one out")
        }
        EnvironmentMechanism::Fresh { words, .. } => words.kernel(),
        EnvironmentMechanism::Advisory(why) => Held::advisory(*why),
        EnvironmentMechanism::Nothing(why) => Held::unsupported(*why),
    }
}

/// Local services.
#[must_use]
pub fn services(plan: &Plan, mechanism: &ServiceMechanism) -> Held {
    let granted = plan.ipc();
    if granted.any {
        return Held::unsupported("every local service is granted: nothing refuses a connection");
    }
    match mechanism {
        ServiceMechanism::Nothing(why) => Held::unsupported(*why),
        ServiceMechanism::Asked(words) => words.mediated(),
        ServiceMechanism::ByName(words) => words.kernel(),
        ServiceMechanism::Visible(words) => visible_sockets(plan, *words),
        ServiceMechanism::Filtered { none, wider_with_files, .. } if granted.endpoints.is_empty() => {
            let files = if plan.files().is_empty() { &[][..] } else { wider_with_files };
            files.iter().fold(none.kernel(), Held::superset)
        }
        ServiceMechanism::Filtered { some, .. } => match some {
            DeclaredServices::Supervised(words) => words.mediated(),
            DeclaredServices::Visible(words) => visible_sockets(plan, *words),
            DeclaredServices::Nothing(why) => Held::unsupported(*why),
        },
    }
}

/// Where no filter looks at sockets, what is visible can be talked to.
fn visible_sockets(plan: &Plan, words: Words) -> Held {
    let mut held =
        Held::kernel("abstract sockets end at the network namespace; of others the granted are visible");
    if plan.ipc().endpoints.iter().any(|endpoint| endpoint.value == Endpoint::X11) {
        held = held.superset("X11 displays share one directory");
    }
    if !plan.files().is_empty() {
        held = held.superset("a socket inside a granted directory can be connected to");
    }
    words.wider.iter().fold(held, Held::superset)
}

/// Other processes.
#[must_use]
pub fn processes(plan: &Plan, mechanism: &ProcessMechanism) -> Held {
    match mechanism {
        ProcessMechanism::Kernel { nested, .. } if plan.nested_sandbox() => nested.kernel(),
        ProcessMechanism::Kernel { words, .. } => words.kernel(),
        ProcessMechanism::Nothing(why) => Held::unsupported(*why),
    }
}

/// The clock and the time zones, which no sandbox here hides.
#[must_use]
pub fn clock(plan: &Plan) -> Held {
    let all = ClockActions::SYSTEM.union(ClockActions::TZDATA);
    if plan.clock().is_some_and(|granted| granted.contains(all)) {
        return Held::unsupported("the clock and the time zones are granted: nothing refuses them");
    }
    Held::unsupported("every process can read the clock, and the base shows the time zones")
}

/// Limits: as good as the weakest that is declared.
#[must_use]
pub fn limits(declared: &Limits, mechanism: &LimitMechanism) -> Held {
    if declared.declared().next().is_none() {
        return Held::unsupported("no limit is declared: nothing is limited");
    }
    match mechanism {
        LimitMechanism::Kernel(holds, how) => by_kernel(declared, holds, how),
        LimitMechanism::KernelAsRoot(holds, how, wider) => match by_kernel(declared, holds, how) {
            held if held.level == Level::Kernel
                && declared.declared().any(|limit| limit != Limit::FileSize) =>
            {
                held.superset(wider)
            }
            held => held,
        },
        LimitMechanism::Supervised(holds, how) => match by_kernel(declared, holds, how) {
            held if held.level == Level::Kernel && declared.timeout_ms.is_some() => Held::mediated(
                "control groups and resource limits; the supervisor ends it when its time is over",
            ),
            held => held,
        },
        LimitMechanism::Advisory(holds, how) if declared.declared().all(|limit| holds.contains(&limit)) => {
            Held::advisory(*how)
        }
        LimitMechanism::Advisory(..) => by_kernel(declared, &[], ""),
        LimitMechanism::Found(found) => weakest(found),
    }
}

fn by_kernel(declared: &Limits, holds: &[Limit], how: &str) -> Held {
    let missed: Vec<&str> =
        declared.declared().filter(|limit| !holds.contains(limit)).map(Limit::as_str).collect();
    if missed.is_empty() {
        Held::kernel(how)
    } else {
        Held::unsupported(format!("nothing here holds {}", missed.join(", ")))
    }
}

fn weakest(found: &[(&str, Held)]) -> Held {
    let level = found.iter().map(|(_, held)| held.level).min().unwrap_or(Level::Unsupported);
    let precision = found.iter().map(|(_, held)| held.precision).min().unwrap_or(Precision::Superset);
    let why: Vec<String> = found.iter().map(|(what, held)| format!("{what}: {}", held.why)).collect();
    Held { level, precision, why: why.join("; ") }
}

#[cfg(test)]
mod tests;
