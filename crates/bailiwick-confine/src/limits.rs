//! Limits on memory, processes, processor time and file size: by control groups where this process may make them, by
//! resource limits where those hold the same, and by nothing otherwise, which is said.
//!
//! Resource limits count differently, and `Held` says so:
//! - memory: `RLIMIT_DATA`, for each process by itself. Not `RLIMIT_AS`: node and other runtimes reserve gigabytes of
//!   addresses they never touch and die of it;
//! - processes: `RLIMIT_NPROC` counts all processes of the user, unless the sandbox has its own user namespace on
//!   Linux 5.14 or newer, which counts for itself; it does not bind the host's root at all. So it is used only where
//!   it means what was asked;
//! - processor: there is no such limit (`RLIMIT_CPU` is a time, not a share).
//!
//! No core files are ever written. Time-outs are the supervisor's.
//!
//! Fails closed when: a group was made but the child cannot be moved into it ([`Applied::enter`]).

use std::io;
use std::os::fd::OwnedFd;

use bailiwick_policy::enforcement::mechanism::LimitMechanism;
use bailiwick_policy::enforcement::{Held, Level};
use bailiwick_policy::limits::Limits;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cgroup::{Controller, Group, Places, Version};

#[cfg(test)]
mod tests;

/// What decides whether a resource limit means what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Situation {
    /// The sandbox gets a user namespace of its own.
    pub(crate) own_user_namespace: bool,
    /// Its processes are the host's root to the kernel.
    pub(crate) host_root: bool,
    /// The kernel counts processes by user namespace (5.14 or newer).
    pub(crate) counts_by_namespace: bool,
}

impl Situation {
    /// That of a sandbox with its own user namespace, started by this process on this kernel.
    pub(crate) fn of_sandbox() -> Self {
        let release = rustix::system::uname();
        Self {
            own_user_namespace: true,
            host_root: rustix::process::getuid().is_root(),
            counts_by_namespace: counts_by_namespace(&release.release().to_string_lossy()),
        }
    }
}

/// Limits in force, or ready to be: groups that are made, resource limits that the child sets. Dropping it removes
/// the groups.
#[derive(Debug)]
pub(crate) struct Applied {
    groups: Vec<Group>,
    resources: Vec<(Resource, u64)>,
    held: Vec<(&'static str, Held)>,
}

impl Applied {
    /// Makes the groups and decides what holds each limit. Done before the child is there.
    pub(crate) fn prepare(limits: &Limits, places: &Places, situation: Situation) -> Self {
        let mut applied = Self { groups: Vec::new(), resources: vec![(Resource::Core, 0)], held: Vec::new() };
        if let Some(bytes) = limits.memory {
            applied.hold(Controller::Memory, bytes, places, situation);
        }
        if let Some(count) = limits.pids {
            applied.hold(Controller::Pids, count, places, situation);
        }
        if let Some(thousandths) = limits.cpu_milli {
            applied.hold(Controller::Cpu, thousandths, places, situation);
        }
        if let Some(bytes) = limits.file_size {
            applied.resources.push((Resource::Fsize, bytes));
            applied.held.push(("file size", Held::kernel("resource limit for each file")));
        }
        if limits.timeout_ms.is_some() {
            applied.held.push(("time", Held::mediated("the supervisor ends it when its time is over")));
        }
        applied
    }

    /// Whether there is a group that the child must be moved into.
    pub(crate) const fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Moves the child into its groups. It must be waiting: what it has started already would stay outside.
    ///
    /// # Errors
    /// The kernel's, and then the child must not go on.
    pub(crate) fn enter(&self, pid: u32) -> Result<(), Errno> {
        let errno = |fault: io::Error| Errno::from_io_error(&fault).unwrap_or(Errno::IO);
        self.groups.iter().try_for_each(|group| group.enter(pid)).map_err(errno)
    }

    /// The `cgroup.procs` files of the groups, opened: a process that writes a zero to each is in. For a child that goes in by itself.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn entrances(&self) -> Result<Vec<OwnedFd>, Errno> {
        self.groups.iter().map(Group::entrance).collect()
    }

    /// Sets the resource limits of the calling process, for ever. Allocation-free; called by the child.
    pub(crate) fn set_resources(&self) -> Result<(), Errno> {
        self.resources.iter().try_for_each(|(resource, value)| set_resource(*resource, *value))
    }

    /// The resource limits that the child sets.
    pub(crate) fn resources(&self) -> &[(Resource, u64)] {
        &self.resources
    }

    /// Kills what is in the groups.
    pub(crate) fn kill(&self) {
        self.groups.iter().for_each(Group::kill);
    }

    /// What holds each limit that was asked for.
    pub(crate) fn each(&self) -> &[(&'static str, Held)] {
        &self.held
    }

    /// The limits that were asked for and nothing holds, each with the reason.
    pub(crate) fn unheld(&self) -> Vec<String> {
        let unheld = self.held.iter().filter(|(_, held)| held.level == Level::Unsupported);
        unheld.map(|(limit, held)| format!("the limit of `{limit}` is not held: {}", held.why)).collect()
    }

    /// The same for the judge.
    pub(crate) fn mechanism(&self) -> LimitMechanism {
        LimitMechanism::Found(self.held.clone())
    }

    fn hold(&mut self, controller: Controller, value: u64, places: &Places, situation: Situation) {
        let mut refused = None;
        for (version, place) in places.offering(controller) {
            match self.hold_by_group(controller, value, places, (version, place)) {
                Ok(()) => return self.held.push((controller.as_str(), Held::kernel(described(version)))),
                Err(fault) => refused = Some(fault),
            }
        }
        let why =
            refused.map_or_else(|| "no control group".to_owned(), |fault| format!("control group: {fault}"));
        let (resource, held) = by_resource(controller, situation, &why);
        self.resources.extend(resource.map(|resource| (resource, value)));
        self.held.push((controller.as_str(), held));
    }

    fn hold_by_group(
        &mut self,
        controller: Controller,
        value: u64,
        places: &Places,
        (version, place): (Version, &std::path::Path),
    ) -> io::Result<()> {
        if let Some(group) = self.groups.iter().find(|group| group.is_in(place)) {
            return set(group, controller, value);
        }
        let group = places.make(version, place)?;
        set(&group, controller, value)?;
        self.groups.push(group);
        Ok(())
    }
}

/// Sets both limits, so that the process cannot raise it again. A limit that is lower already stays.
pub(crate) fn set_resource(resource: Resource, value: u64) -> Result<(), Errno> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| value.min(maximum));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
}

const fn described(version: Version) -> &'static str {
    match version {
        Version::V2 => "control group v2",
        Version::V1 => "control group v1",
    }
}

/// The length of the kernel's accounting period for processor time, in microseconds.
const PERIOD: u64 = 100_000;

fn set(group: &Group, controller: Controller, value: u64) -> io::Result<()> {
    match (controller, group.version()) {
        (Controller::Memory, Version::V2) => {
            group.set("memory.max", &value.to_string())?;
            group.set_if_there("memory.swap.max", "0")?;
            group.set_if_there("memory.oom.group", "1")
        }
        (Controller::Memory, Version::V1) => {
            group.set("memory.limit_in_bytes", &value.to_string())?;
            group.set_if_there("memory.memsw.limit_in_bytes", &value.to_string())
        }
        // One more for the process that reaps the others.
        (Controller::Pids, _) => group.set("pids.max", &value.saturating_add(1).to_string()),
        (Controller::Cpu, Version::V2) => group.set("cpu.max", &format!("{} {PERIOD}", quota(value))),
        (Controller::Cpu, Version::V1) => {
            group.set("cpu.cfs_period_us", &PERIOD.to_string())?;
            group.set("cpu.cfs_quota_us", &quota(value).to_string())
        }
    }
}

/// Microseconds in each period; the kernel takes no less than a thousand.
const fn quota(thousandths: u64) -> u64 {
    let quota = thousandths.saturating_mul(PERIOD / 1000);
    if quota < 1000 { 1000 } else { quota }
}

/// What a resource limit holds where there is no group.
fn by_resource(controller: Controller, situation: Situation, why: &str) -> (Option<Resource>, Held) {
    match controller {
        Controller::Memory => {
            let held = Held::kernel(format!("resource limit ({why})"))
                .superset("for each process by itself, shared memory not counted");
            (Some(Resource::Data), held)
        }
        Controller::Pids if situation.host_root => {
            (None, Held::unsupported(format!("{why}, and a resource limit does not bind root")))
        }
        Controller::Pids if situation.own_user_namespace && situation.counts_by_namespace => {
            (Some(Resource::Nproc), Held::kernel(format!("resource limit of the user namespace ({why})")))
        }
        Controller::Pids => {
            let because = "and a resource limit would count all processes of the user";
            (None, Held::unsupported(format!("{why}, {because}")))
        }
        Controller::Cpu => (None, Held::unsupported(format!("{why}; delegate the cpu controller"))),
    }
}

/// Whether a kernel of this release counts processes by user namespace.
pub(crate) fn counts_by_namespace(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (5, 14)
}
