//! Making an authority from lines that were granted together.

use super::brokered::Brokered;
use super::lines::{patterns, rules};
use std::collections::BTreeSet;

use super::names::{NamedPrograms, Names};
use super::request::inject_flag;
use super::{ALLOWED, Authority, Axis, clock_flags, env_flags, exec_flags};
use crate::capability::{
    BrokerHost, Capability, ClockActions, Endpoint, EnvActions, FsActions, Program, is_loader_variable,
};
use crate::finding::{Code, Finding};
use crate::lattice::{CountBound, FlagMap, Flags};
use crate::net::{Listen, ListenScope, NetRule, NetScope};
use crate::path::{AbsPath, PathPattern, PathScope};

/// The most unions that an authority made of narrowed grants may be a conjunction of.
const MAX_CLAUSES: usize = 64;

/// What the lines of a grant say, axis by axis, before it becomes an authority.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    files: Vec<(FsActions, PathPattern)>,
    net: Vec<NetRule>,
    listen: Vec<Listen>,
    listen_anywhere: bool,
    /// Paths and hosts that no list of patterns says.
    entangled: Vec<Entangled>,
    exec: Vec<(Option<Program>, Flags)>,
    env: Vec<(Option<Box<str>>, Flags)>,
    brokered: Vec<(Box<str>, BrokerHost)>,
    ipc: Vec<(Option<Endpoint>, Flags)>,
    clock: Flags,
    names: BTreeSet<AbsPath>,
    programs: NamedPrograms,
}

/// A conjunction that has to be joined as it is.
#[derive(Debug, Clone)]
enum Entangled {
    Files(FsActions, PathScope),
    Net(NetScope),
}

impl Authority {
    /// What the capabilities allow together, for any number of calls.
    ///
    /// # Errors
    /// A finding if a path variable is left.
    pub fn from_capabilities(capabilities: &[Capability]) -> Result<Self, Finding> {
        let mut parts = Parts::default();
        for capability in capabilities {
            parts.add(capability)?;
        }
        Ok(parts.authority())
    }
}

impl Parts {
    /// Adds one line.
    ///
    /// # Errors
    /// A finding if a path variable is left.
    pub fn add(&mut self, capability: &Capability) -> Result<(), Finding> {
        capability.require_resolved()?;
        match capability {
            Capability::Fs { actions, path } => {
                if actions.contains(FsActions::CREATE) {
                    self.names.insert(path.base());
                }
                self.files.push((*actions, path.clone()));
            }
            Capability::Net(rule) => self.net.push(rule.clone()),
            Capability::Listen(listen) => self.listen.push(*listen),
            Capability::Exec { program, nested_sandbox, from_writable } => {
                let nested = if *nested_sandbox { exec_flags::NESTED } else { Flags::NONE };
                let writable = if *from_writable { exec_flags::FROM_WRITABLE } else { Flags::NONE };
                program.iter().for_each(|program| self.programs.insert(program.clone()));
                self.exec.push((program.clone(), exec_flags::SPAWN.union(nested).union(writable)));
            }
            Capability::Env { actions, name } => {
                self.env.push((name.clone(), flags_of(*actions, name.as_deref())))
            }
            Capability::Broker { name, hosts } => {
                self.net.extend(hosts.iter().map(BrokerHost::implied));
                self.brokered.extend(hosts.iter().map(|host| (name.clone(), host.clone())));
            }
            Capability::Ipc(endpoint) => self.ipc.push((Some(endpoint.clone()), ALLOWED)),
            Capability::Clock(actions) => self.add_clock(*actions),
            Capability::Assert { .. } => {}
        }
        Ok(())
    }

    /// What may be known of the clock.
    pub fn add_clock(&mut self, actions: ClockActions) {
        self.clock = self.clock.union(clock_flags(actions));
    }

    /// Every variable may be read and given, those that load code excepted.
    pub fn add_every_variable(&mut self) {
        self.env.push((None, env_flags::READ.union(env_flags::INJECT)));
    }

    /// Every local service.
    pub fn add_every_endpoint(&mut self) {
        self.ipc.push((None, ALLOWED));
    }

    /// Adds all that an authority allows, its bounds on calls and generations apart.
    ///
    /// # Errors
    /// A finding if too many conjunctions would have to be joined.
    pub fn add_authority(&mut self, more: &Authority) -> Result<(), Finding> {
        for (scope, action) in [
            (&more.read, FsActions::READ),
            (&more.code, FsActions::CODE),
            (&more.write, FsActions::WRITE),
            (&more.create, FsActions::CREATE),
            (&more.delete, FsActions::DELETE),
        ] {
            // What may be written may be created and deleted too: it is said by `write` already.
            let is_part_of_writing = FsActions::WRITE.contains(action) && action != FsActions::WRITE;
            if is_part_of_writing && *scope == more.write {
                continue;
            }
            match patterns(scope) {
                Some(patterns) => self.files.extend(patterns.into_iter().map(|path| (action, path))),
                None => self.entangled.push(Entangled::Files(action, scope.clone())),
            }
        }
        match rules(&more.net) {
            Some(rules) => self.net.extend(rules),
            None => self.entangled.push(Entangled::Net(more.net.clone())),
        }
        match more.listen.listens() {
            Some(listens) => self.listen.extend(listens),
            None => self.listen_anywhere = true,
        }
        self.exec.extend(grants(&more.exec));
        self.env.extend(grants(&more.env));
        self.brokered.extend(more.brokered.pairs().map(|(name, host)| (name.into(), host.clone())));
        self.ipc.extend(grants(&more.ipc));
        self.clock = self.clock.union(more.clock);
        self.names.extend(more.named().cloned());
        self.programs = self.programs.join(&more.programs);
        self.check_clauses()
    }

    /// Joining conjunctions multiplies their clauses, action by action.
    fn check_clauses(&self) -> Result<(), Finding> {
        let files = |action: FsActions| {
            let own = self.entangled.iter().filter_map(move |one| match one {
                Entangled::Files(actions, scope) if actions.contains(action) => Some(scope.clauses().max(1)),
                Entangled::Files(..) | Entangled::Net(_) => None,
            });
            own.fold(1, usize::saturating_mul)
        };
        let net = self.entangled.iter().filter_map(|one| match one {
            Entangled::Net(scope) => Some(scope.clauses().max(1)),
            Entangled::Files(..) => None,
        });
        let most = FsActions::NAMES.iter().map(|(_, action)| files(*action)).max().unwrap_or(1);
        if most.max(net.fold(1, usize::saturating_mul)) <= MAX_CLAUSES {
            return Ok(());
        }
        let message = "lines and policies of many tools overlap in globs that neither contains";
        Err(Finding::new(Code::PlanInexpressible, message)
            .help("write the lines of these tools as narrow as their policies"))
    }

    fn files_for(&self, action: FsActions) -> PathScope {
        let own = self.files.iter().filter(|(own, _)| own.contains(action)).map(|(_, path)| path);
        self.entangled.iter().fold(PathScope::union(own), |scope, one| match one {
            Entangled::Files(actions, more) if actions.contains(action) => scope.join(more),
            Entangled::Files(..) | Entangled::Net(_) => scope,
        })
    }

    fn hosts(&mut self) -> NetScope {
        let own = NetScope::union(std::mem::take(&mut self.net));
        self.entangled.iter().fold(own, |scope, one| match one {
            Entangled::Net(more) => scope.join(more),
            Entangled::Files(..) => scope,
        })
    }

    /// The authority for any number of calls, in any generation.
    #[must_use]
    pub fn authority(mut self) -> Authority {
        let net = self.hosts();
        let env = FlagMap::union_of(std::mem::take(&mut self.env));
        let is_given = |name: &str| env.flags_for(&Box::from(name)).contains(inject_flag(name));
        let brokered = Brokered::union_of(std::mem::take(&mut self.brokered), is_given);
        let scope = |action: FsActions| self.files_for(action);
        let write = scope(FsActions::WRITE);
        let alone = |own: FsActions| {
            !own.contains(FsActions::WRITE)
                && (own.contains(FsActions::CREATE) || own.contains(FsActions::DELETE))
        };
        let only_writes = !self.files.iter().any(|(own, _)| alone(*own)) && self.entangled.is_empty();
        // Creation or deletion is rarely granted alone: then all three are one set.
        let alone = |action| if only_writes { write.clone() } else { scope(action) };
        Authority {
            read: scope(FsActions::READ),
            code: scope(FsActions::CODE),
            create: alone(FsActions::CREATE),
            delete: alone(FsActions::DELETE),
            write,
            net,
            listen: if self.listen_anywhere { ListenScope::Any } else { ListenScope::union(self.listen) },
            exec: FlagMap::union_of(self.exec),
            env,
            brokered,
            ipc: FlagMap::union_of(self.ipc),
            clock: self.clock,
            calls: CountBound::Unlimited,
            generations: FlagMap::uniform(ALLOWED),
            names: Names::Only(self.names),
            programs: self.programs,
        }
    }
}

fn grants<K: Ord + Clone>(map: &FlagMap<K>) -> impl Iterator<Item = (Option<K>, Flags)> {
    let rest = (!map.rest().is_empty()).then_some((None, map.rest()));
    rest.into_iter().chain(map.listed().map(|(key, flags)| (Some(key.clone()), flags)))
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
    #[must_use]
    pub fn with_top_where(self, axis: impl Fn(Axis) -> bool) -> Self {
        let top = Self::top();
        let (files, writes) = (axis(Axis::FsRead), axis(Axis::FsWrite));
        Self {
            read: if files { top.read } else { self.read },
            code: if files { top.code } else { self.code },
            write: if writes { top.write } else { self.write },
            create: if writes { top.create } else { self.create },
            delete: if writes { top.delete } else { self.delete },
            net: if axis(Axis::Net) { top.net } else { self.net },
            listen: if axis(Axis::Net) { top.listen } else { self.listen },
            exec: if axis(Axis::Exec) { top.exec } else { self.exec },
            env: if axis(Axis::Env) { top.env } else { self.env },
            brokered: if axis(Axis::Env) { top.brokered } else { self.brokered },
            ipc: if axis(Axis::Ipc) { top.ipc } else { self.ipc },
            clock: if axis(Axis::Clock) { top.clock } else { self.clock },
            calls: self.calls,
            generations: self.generations,
            names: if writes { Names::Any } else { self.names },
            programs: self.programs,
        }
    }

    /// The same authority, where whatever may be read may be mapped as code: of a bound that speaks of reading alone.
    #[must_use]
    pub fn with_code_as_read(self) -> Self {
        Self { code: self.read.clone(), ..self }
    }

    /// The same authority for so many calls, in these generations.
    #[must_use]
    pub fn with_bounds(self, calls: CountBound, generations: FlagMap<u64>) -> Self {
        Self { calls, generations, ..self }
    }
}
