//! What the native sandbox holds a plan with, on this host or on one that has all it uses. How well that holds a plan is
//! for `bailiwick_policy::enforcement::judge` to say.

use bailiwick_layout::refusal::Refusal;
use bailiwick_policy::enforcement::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, Layers, LimitMechanism, Mechanism,
    NetworkMechanism, ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Coverage, Floor, judge};
use bailiwick_policy::limits::Limit;
use bailiwick_policy::plan::Plan;

use crate::seccomp::UnixSockets;

/// What the host gives and what the plan came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means {
    /// The Landlock version; 0 is none.
    pub(crate) landlock: u32,
    /// Whether the filter of system calls is in force.
    pub(crate) filter: bool,
    /// Who refuses Unix sockets.
    pub(crate) sockets: UnixSockets,
    /// Whether a mount alone allows more than some grant does.
    pub(crate) files_need_rules: bool,
    /// Whether every name that runs code later is covered.
    pub(crate) protected: bool,
}

/// How well the native sandbox holds a plan on a host that has all it uses: Landlock, the filter of system calls and
/// control groups. `Status` says what a host really held.
#[must_use]
pub fn native_coverage(plan: &Plan) -> Coverage {
    judge::coverage(plan, &native_mechanism())
}

/// What the native sandbox holds plans with on such a host.
#[must_use]
pub fn native_mechanism() -> Mechanism {
    let means = Means {
        landlock: 1,
        filter: true,
        sockets: UnixSockets::None,
        files_need_rules: true,
        protected: true,
    };
    let all = &[Limit::Memory, Limit::Pids, Limit::Cpu, Limit::FileSize, Limit::Timeout];
    let how = "control groups, and a resource limit for the size of files";
    mechanism(means, LimitMechanism::Supervised(all, how))
}

/// Refuses what holds a plan less well than asked; without a floor, than the plan's own.
pub(crate) fn ensure_floor(coverage: &Coverage, plan: &Plan, floor: Option<&Floor>) -> Result<(), Refusal> {
    let shortfalls = coverage.below(floor.unwrap_or(&plan.floor()));
    if shortfalls.is_empty() { Ok(()) } else { Err(Refusal::BelowFloor { shortfalls }) }
}

/// What it holds a plan with here.
pub(crate) fn mechanism(means: Means, limits: LimitMechanism) -> Mechanism {
    let rules = means.landlock > 0;
    let has = Layers { narrows: rules || !means.files_need_rules, guards_names: means.protected };
    let namespaces = Words::exact("own user and pid namespaces, no capabilities");
    Mechanism {
        files: FileMechanism::Layered { has },
        network: NetworkMechanism::Supervised {
            none: Words::exact("an own network namespace without a way out"),
            some: Words::exact("an own network namespace whose only way out is the supervisor"),
            unread: None,
        },
        programs: ProgramMechanism::Listed(Words::superset(
            "other programs are absent or on mounts without code",
            if rules && means.filter {
                // The list is not compared with what this host really has there.
                &["programs among the system's libraries are closed by a list of known directories"]
            } else {
                &["without Landlock and the filter, code can be started from memory"]
            },
        )),
        environment: EnvironmentMechanism::Brokered {
            words: Words::exact("a new process with only these variables"),
            brokers: Words::exact(
                "a new process with only these variables; brokered secrets stay outside, and a process there puts them into requests",
            ),
        },
        services: services(means),
        processes: ProcessMechanism::Kernel { words: namespaces, nested: namespaces },
        limits,
    }
}

const fn services(means: Means) -> ServiceMechanism {
    if matches!(means.sockets, UnixSockets::Told) {
        return ServiceMechanism::Asked(Words::exact(
            "the sandbox's first process refuses local sockets, own ipc namespace",
        ));
    }
    if !means.filter {
        return ServiceMechanism::Nothing(
            "without the filter, socket files that are visible can be connected to",
        );
    }
    ServiceMechanism::Filtered {
        none: Words::exact("the filter refuses local sockets, own ipc namespace"),
        wider_with_files: &[],
        some: DeclaredServices::Supervised(Words::exact(
            "the filter asks the supervisor for each connection",
        )),
    }
}
