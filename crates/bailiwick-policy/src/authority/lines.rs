//! An authority as the capabilities that grant it.

use std::collections::BTreeMap;

use super::{Authority, Axis, env_flags, exec_flags};
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
            (&self.code, FsActions::CODE),
            (&self.write, FsActions::WRITE),
            (&self.create, FsActions::CREATE),
            (&self.delete, FsActions::DELETE),
        ];
        for (scope, action) in scopes {
            for pattern in patterns(scope)? {
                files.entry(pattern).and_modify(|actions| *actions = actions.union(action)).or_insert(action);
            }
        }
        for (path, actions) in files {
            // `?code=true` belongs to reading alone: what may be changed besides is a line of its own.
            let is_mixed = actions.contains(FsActions::CODE) && actions != FsActions::CODE;
            let plain = if is_mixed { actions.without_code() } else { actions };
            lines.push(Capability::Fs { actions: plain, path: path.clone() });
            lines.extend(is_mixed.then_some(Capability::Fs { actions: FsActions::CODE, path }));
        }
        lines.extend(rules(&self.net)?.into_iter().map(Capability::Net));
        lines.extend(self.listen.listens()?.into_iter().map(Capability::Listen));
        let any_program = (!self.exec.rest().is_empty()).then_some((None, self.exec.rest()));
        let programs = self.exec.listed().map(|(program, flags)| (Some(program.clone()), flags));
        lines.extend(any_program.into_iter().chain(programs).map(|(program, flags)| Capability::Exec {
            program,
            nested_sandbox: flags.contains(exec_flags::NESTED),
            from_writable: flags.contains(exec_flags::FROM_WRITABLE),
        }));
        lines.extend(self.variables()?);
        let brokered = self.brokered.iter();
        lines.extend(
            brokered.map(|(name, hosts)| Capability::Broker { name: name.into(), hosts: hosts.clone() }),
        );
        if !self.ipc.rest().is_empty() {
            return None;
        }
        lines.extend(self.ipc.listed().map(|(endpoint, _)| Capability::Ipc(endpoint.clone())));
        lines.extend(clock(self.clock));
        Some(lines)
    }

    /// The same for one axis alone, whatever the others hold. Calls and generations are no capabilities.
    #[must_use]
    pub fn capabilities_on(&self, axis: Axis) -> Option<Vec<Capability>> {
        let mut only = Self::bottom();
        match axis {
            Axis::FsRead => {
                only.read = self.read.clone();
                only.code = self.code.clone();
            }
            Axis::FsWrite => {
                only.write = self.write.clone();
                only.create = self.create.clone();
                only.delete = self.delete.clone();
            }
            Axis::Exec => only.exec = self.exec.clone(),
            Axis::Net => {
                only.net = self.net.clone();
                only.listen = self.listen.clone();
            }
            Axis::Env => {
                only.env = self.env.clone();
                only.brokered = self.brokered.clone();
            }
            Axis::Ipc => only.ipc = self.ipc.clone(),
            Axis::Clock => only.clock = self.clock,
            Axis::MaxCalls | Axis::Generation => {}
        }
        only.capabilities()
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

/// The patterns of a scope; `None` if it is no plain union of them.
pub(crate) fn patterns(scope: &PathScope) -> Option<Vec<PathPattern>> {
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

/// The rules of a scope; `None` if it is no plain union of them.
pub(super) fn rules(scope: &NetScope) -> Option<Vec<NetRule>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::CapabilitySet;

    #[test]
    fn an_axis_has_the_lines_that_grant_it_and_no_others() {
        let set = CapabilitySet::new(["fs:read,write:/a/**", "exec:spawn:git", "clock:system"]).unwrap();
        let on = |axis| -> Vec<String> {
            let lines = set.authority().capabilities_on(axis).unwrap();
            lines.iter().map(ToString::to_string).collect()
        };
        assert_eq!(on(Axis::FsRead), ["fs:read:/a/**"]);
        assert_eq!(on(Axis::FsWrite), ["fs:write:/a/**"]);
        assert_eq!(on(Axis::Exec), ["exec:spawn:git"]);
        assert_eq!(on(Axis::Clock), ["clock:system"]);
        assert!(on(Axis::Net).is_empty() && on(Axis::MaxCalls).is_empty());
        assert_eq!(Authority::top().capabilities_on(Axis::Net), None, "no list of lines says that");
    }
}
