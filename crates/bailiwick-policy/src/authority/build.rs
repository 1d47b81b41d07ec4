//! Making an authority from lines that were granted together.

use super::{ALLOWED, Authority, Axis, clock_flags, env_flags, exec_flags};
use crate::capability::{
    Capability, ClockActions, Endpoint, EnvActions, FsActions, Program, is_loader_variable,
};
use crate::finding::Finding;
use crate::lattice::{CountBound, FlagMap, Flags};
use crate::net::{NetRule, NetScope};
use crate::path::{PathPattern, PathScope};

/// What the lines of a grant say, axis by axis, before it becomes an authority.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    files: Vec<(FsActions, PathPattern)>,
    net: Vec<NetRule>,
    exec: Vec<(Option<Program>, Flags)>,
    env: Vec<(Option<Box<str>>, Flags)>,
    ipc: Vec<(Option<Endpoint>, Flags)>,
    clock: Flags,
}

impl Authority {
    /// What the capabilities allow together, for any number of calls.
    ///
    /// # Errors
    /// A finding if a path variable is left.
    pub fn of(capabilities: &[Capability]) -> Result<Self, Finding> {
        let mut parts = Parts::default();
        for capability in capabilities {
            parts.add(capability)?;
        }
        Ok(parts.authority())
    }
}

impl Parts {
    /// Adds one line.
    pub(crate) fn add(&mut self, capability: &Capability) -> Result<(), Finding> {
        capability.require_resolved()?;
        match capability {
            Capability::Fs { actions, path } => self.files.push((*actions, path.clone())),
            Capability::Net(rule) => self.net.push(rule.clone()),
            Capability::Exec { program, nested_sandbox, from_writable } => {
                let nested = if *nested_sandbox { exec_flags::NESTED } else { Flags::NONE };
                let writable = if *from_writable { exec_flags::FROM_WRITABLE } else { Flags::NONE };
                self.exec.push((program.clone(), exec_flags::SPAWN.union(nested).union(writable)));
            }
            Capability::Env { actions, name } => {
                self.env.push((name.clone(), flags_of(*actions, name.as_deref())))
            }
            Capability::Ipc(endpoint) => self.ipc.push((Some(endpoint.clone()), ALLOWED)),
            Capability::Clock(actions) => self.add_clock(*actions),
            Capability::Assert { .. } => {}
        }
        Ok(())
    }

    pub(crate) fn add_clock(&mut self, actions: ClockActions) {
        self.clock = self.clock.union(clock_flags(actions));
    }

    /// Every variable may be read and given, those that load code excepted.
    pub(crate) fn add_every_variable(&mut self) {
        self.env.push((None, env_flags::READ.union(env_flags::INJECT)));
    }

    /// Every local service.
    pub(crate) fn add_every_endpoint(&mut self) {
        self.ipc.push((None, ALLOWED));
    }

    /// The authority for any number of calls, in any generation.
    pub(crate) fn authority(self) -> Authority {
        let scope = |action: FsActions| {
            PathScope::union(self.files.iter().filter(|(own, _)| own.contains(action)).map(|(_, path)| path))
        };
        let write = scope(FsActions::WRITE);
        let only_writes = self.files.iter().all(|(own, _)| {
            own.contains(FsActions::WRITE)
                || !(own.contains(FsActions::CREATE) || own.contains(FsActions::DELETE))
        });
        // Mostly nobody grants creation or deletion alone: then all three are one set.
        let alone = |action| if only_writes { write.clone() } else { scope(action) };
        Authority {
            read: scope(FsActions::READ),
            create: alone(FsActions::CREATE),
            delete: alone(FsActions::DELETE),
            write,
            net: NetScope::union(self.net),
            exec: FlagMap::union_of(self.exec),
            env: FlagMap::union_of(self.env),
            ipc: FlagMap::union_of(self.ipc),
            clock: self.clock,
            calls: CountBound::Unlimited,
            generations: FlagMap::uniform(ALLOWED),
        }
    }
}

fn flags_of(actions: EnvActions, name: Option<&str>) -> Flags {
    let read = if actions.contains(EnvActions::READ) { env_flags::READ } else { Flags::NONE };
    let inject = match name {
        _ if !actions.contains(EnvActions::INJECT) => Flags::NONE,
        Some(name) if is_loader_variable(name) => env_flags::INJECT_LOADER,
        _ => env_flags::INJECT,
    };
    read.union(inject)
}

/// The parts of an authority that only some dialects speak of.
impl Authority {
    /// The same authority, unbounded on the axes that `axis` picks. For dialects that leave axes unspecified.
    pub(crate) fn with_top_where(self, axis: impl Fn(Axis) -> bool) -> Self {
        let top = Self::top();
        let (files, writes) = (axis(Axis::FsRead), axis(Axis::FsWrite));
        Self {
            read: if files { top.read } else { self.read },
            write: if writes { top.write } else { self.write },
            create: if writes { top.create } else { self.create },
            delete: if writes { top.delete } else { self.delete },
            net: if axis(Axis::Net) { top.net } else { self.net },
            exec: if axis(Axis::Exec) { top.exec } else { self.exec },
            env: if axis(Axis::Env) { top.env } else { self.env },
            ipc: if axis(Axis::Ipc) { top.ipc } else { self.ipc },
            clock: if axis(Axis::Clock) { top.clock } else { self.clock },
            calls: self.calls,
            generations: self.generations,
        }
    }

    pub(crate) fn with_bounds(self, calls: CountBound, generations: FlagMap<u64>) -> Self {
        Self { calls, generations, ..self }
    }
}
