//! How well the native backend holds each aspect of a plan, with what this host has or a current one would.

use bailiwick_policy::capability::FsActions;
use bailiwick_policy::enforcement::{Aspect, Coverage, Held, Level, judge};
use bailiwick_policy::manifest::{Limit, Limits};
use bailiwick_policy::plan::{Network, Plan};

/// What the host gives and what the plan came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means {
    /// The Landlock version; 0 is none.
    pub(crate) landlock: u32,
    /// Whether the filter of system calls is in force.
    pub(crate) filter: bool,
    /// Whether a mount alone allows more than some grant does.
    pub(crate) files_need_rules: bool,
    /// Whether every name that runs code later is covered.
    pub(crate) protected: bool,
}

/// How well the native sandbox holds a plan on a host that has all it uses: Landlock, the filter of system calls and
/// control groups. `Status` says what a host really held.
#[must_use]
pub fn native_coverage(plan: &Plan) -> Coverage {
    let means = Means { landlock: 1, filter: true, files_need_rules: true, protected: true };
    of(plan, means, best_limits(plan.limits()))
}

/// How limits are held where there are control groups.
fn best_limits(limits: &Limits) -> Held {
    let holds = [Limit::Memory, Limit::Pids, Limit::Cpu, Limit::FileSize, Limit::Timeout];
    let held = judge::limits(limits, &holds, "control groups, and a resource limit for the size of files");
    if held.level == Level::Kernel && limits.timeout_ms.is_some() {
        return Held::mediated(
            "control groups and resource limits; the supervisor ends it when its time is over",
        );
    }
    held
}

/// How each aspect is held.
pub(crate) fn of(plan: &Plan, means: Means, limits: Held) -> Coverage {
    Coverage::of(|aspect| match aspect {
        Aspect::Files => files(plan, means),
        Aspect::Network => network(plan),
        Aspect::Exec => exec(plan, means),
        Aspect::Environment => Held::kernel("a new process with only these variables"),
        Aspect::Ipc => ipc(plan, means),
        Aspect::Processes => Held::kernel("own user and pid namespaces, no capabilities"),
        Aspect::Clock => judge::clock(plan),
        Aspect::Limits => limits.clone(),
    })
}

fn files(plan: &Plan, means: Means) -> Held {
    let guarded = plan.files().iter().any(bailiwick_policy::plan::FileGrant::writable);
    let held = Held::kernel(if guarded {
        "an own mount namespace and root; names that run code later are decided inside, and nothing goes around that"
    } else {
        "an own mount namespace and root"
    });
    let create_only =
        |actions: FsActions| actions.contains(FsActions::CREATE) && !actions.contains(FsActions::WRITE);
    if plan.files().iter().any(|grant| create_only(grant.actions)) {
        return held.superset("where files may only be created, those that are there can be written too");
    }
    if means.files_need_rules && means.landlock == 0 {
        return held.superset("without Landlock, what may be written may also be read");
    }
    if !means.protected {
        return held.superset("without Landlock, names that run code later can be created");
    }
    held
}

fn network(plan: &Plan) -> Held {
    match plan.network() {
        Network::None => Held::kernel("an own network namespace without a way out"),
        Network::Allow(_) | Network::Any => {
            Held::mediated("an own network namespace whose only way out is the supervisor")
        }
    }
}

fn exec(plan: &Plan, means: Means) -> Held {
    if plan.exec().any.is_some() {
        return Held::kernel("every program of the system is granted");
    }
    let held = Held::kernel("other programs are absent or on mounts without code");
    if means.filter && means.landlock > 0 {
        // The list is not compared with what this host really has there.
        return held.superset("programs among the system's libraries are closed by a list of known folders");
    }
    held.superset("without Landlock and the filter, code can be started from memory")
}

fn ipc(plan: &Plan, means: Means) -> Held {
    let none = plan.ipc().endpoints.is_empty() && !plan.ipc().any;
    match (means.filter, none) {
        (true, true) => Held::kernel("the filter refuses local sockets, own ipc namespace"),
        (true, false) => Held::mediated("the filter asks the supervisor for each connection"),
        (false, _) => {
            Held::unsupported("without the filter, socket files that are visible can be connected to")
        }
    }
}
