//! An authority as the capabilities that grant it.

use std::collections::BTreeMap;

use super::{Authority, env_flags, exec_flags};
use crate::capability::{Capability, ClockActions, EnvActions, FsActions};
use crate::lattice::Flags;
use crate::net::{NetRule, NetScope};
use crate::path::{PathPattern, PathScope};

impl Authority {
    /// The capabilities that grant exactly this, sorted and without repetition; `None` where no list of them
    /// does (a conjunction of patterns, or permissions that only a whole axis has).
    #[must_use]
    pub fn capabilities(&self) -> Option<Vec<Capability>> {
        let mut lines = Vec::new();
        let mut files: BTreeMap<PathPattern, FsActions> = BTreeMap::new();
        let scopes = [
            (&self.read, FsActions::READ),
            (&self.write, FsActions::WRITE),
            (&self.create, FsActions::CREATE),
            (&self.delete, FsActions::DELETE),
        ];
        for (scope, action) in scopes {
            for pattern in patterns(scope)? {
                files.entry(pattern).and_modify(|actions| *actions = actions.union(action)).or_insert(action);
            }
        }
        lines.extend(files.into_iter().map(|(path, actions)| Capability::Fs { actions, path }));
        lines.extend(rules(&self.net)?.into_iter().map(Capability::Net));
        let any_program = (!self.exec.rest().is_empty()).then_some((None, self.exec.rest()));
        let programs = self.exec.listed().map(|(program, flags)| (Some(program.clone()), flags));
        lines.extend(any_program.into_iter().chain(programs).map(|(program, flags)| Capability::Exec {
            program,
            nested_sandbox: flags.contains(exec_flags::NESTED),
            from_writable: flags.contains(exec_flags::FROM_WRITABLE),
        }));
        lines.extend(self.variables()?);
        if !self.ipc.rest().is_empty() {
            return None;
        }
        lines.extend(self.ipc.listed().map(|(endpoint, _)| Capability::Ipc(endpoint.clone())));
        lines.extend(clock(self.clock));
        Some(lines)
    }

    fn variables(&self) -> Option<Vec<Capability>> {
        let rest = self.env.rest();
        if !env_flags::READ.contains(rest) {
            return None;
        }
        let all = (!rest.is_empty()).then_some(Capability::Env { actions: EnvActions::READ, name: None });
        let listed = self.env.listed().map(|(name, flags)| {
            let injects = !flags.minus(env_flags::READ).is_empty();
            let reads = flags.contains(env_flags::READ);
            let actions = match (reads, injects) {
                (true, true) => EnvActions::READ.union(EnvActions::INJECT),
                (true, false) => EnvActions::READ,
                (false, _) => EnvActions::INJECT,
            };
            Capability::Env { actions, name: Some(name.clone()) }
        });
        Some(all.into_iter().chain(listed).collect())
    }
}

fn patterns(scope: &PathScope) -> Option<Vec<PathPattern>> {
    match scope {
        PathScope::None => Some(Vec::new()),
        PathScope::Any => Some(vec![PathPattern::everything()]),
        PathScope::Only(clauses) => {
            let mut sets = clauses.sets();
            let set = sets.next()?;
            sets.next().is_none().then(|| set.patterns().collect())
        }
    }
}

fn rules(scope: &NetScope) -> Option<Vec<NetRule>> {
    match scope {
        NetScope::None => Some(Vec::new()),
        NetScope::Any => None,
        NetScope::Only(clauses) => {
            let mut sets = clauses.sets();
            let set = sets.next()?;
            sets.next().is_none().then(|| set.rules().to_vec())
        }
    }
}

fn clock(flags: Flags) -> Option<Capability> {
    let all = [ClockActions::SYSTEM, ClockActions::TZDATA];
    let held = all.into_iter().filter(|action| flags.contains(super::clock_flags(*action)));
    held.reduce(ClockActions::union).map(Capability::Clock)
}
