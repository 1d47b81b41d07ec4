//! From an authority to a plan.

use std::collections::HashMap;

use super::{
    Assertion, BrokeredSecret, Environment, Exec, Ipc, Network, Plan, PlanLine, PlanSource, ProgramGrant,
    Sourced, Spawning, Subject, files,
};
use crate::authority::{Authority, Request, env_flags, exec_flags};
use crate::capability::{BrokerHost, Capability, ClockActions, Endpoint, Program};
use crate::facts::HostFacts;
use crate::finding::{Code, Finding};
use crate::lattice::Flags;
use crate::limits::Limits;
use crate::net::{Listen, NetRule, NetScope};
use crate::path::AbsPath;
use crate::secret_use::SecretUse;

pub(super) fn of_source(source: PlanSource<'_>, facts: &HostFacts) -> Result<Plan, Finding> {
    let PlanSource { subject, authority, lines, command, limits, variables, secrets } = source;
    let mut plan = build(subject, authority, lines, facts)?;
    (plan.command, plan.limits) = (command, limits);
    let given = |name: &str| authority.allows(&Request::InjectEnv(name.into()));
    let fixed = variables.iter().filter(|(name, _)| given(name));
    plan.environment.fixed = fixed.map(|(name, value)| (name.clone(), value.clone())).collect();
    plan.environment.injected.retain(|name| !variables.contains_key(&*name.value));
    Ok(plan.with_secret_uses(secrets))
}

pub(super) fn of_authority(name: &str, authority: &Authority, facts: &HostFacts) -> Result<Plan, Finding> {
    let subject = Subject { name: name.to_owned(), version: None, tool: None };
    build(subject, authority, Vec::new(), facts)
}

fn build(
    subject: Subject,
    authority: &Authority,
    lines: Vec<PlanLine>,
    facts: &HostFacts,
) -> Result<Plan, Finding> {
    let origins = Origins::from_lines(&lines);
    let inexpressible = || {
        Finding::new(Code::PlanInexpressible, "no list of rules says just what is allowed here")
            .help("the grant and the need overlap in globs that neither contains; write one of them plainer")
    };
    let mut files = files::merge(authority, facts).ok_or_else(inexpressible)?;
    for grant in &mut files {
        grant.pattern.origins = origins.files(&grant.path());
    }
    let network = network(authority, &origins).ok_or_else(inexpressible)?;
    let (exec, environment, ipc) =
        (exec(authority, &origins), environment(authority, &origins), ipc(authority, &origins));
    let listens = listens(authority, &origins);
    let assertions = assertions(&lines);
    Ok(Plan {
        subject,
        command: None,
        files,
        network,
        listens,
        exec,
        environment,
        ipc,
        clock: clock(authority),
        limits: Limits::default(),
        assertions,
        protected: facts.protected().to_vec(),
        locked: facts.locked().to_vec(),
        places: facts.places().map(|(path, place)| (path.clone(), place)).collect(),
        lines,
        named: authority.named().cloned().collect(),
    })
}

/// The lines by what they are about.
#[derive(Default)]
struct Origins<'a> {
    files: HashMap<AbsPath, Vec<usize>>,
    net: HashMap<String, Vec<usize>>,
    listens: HashMap<Listen, Vec<usize>>,
    programs: HashMap<Option<&'a Program>, Vec<usize>>,
    variables: HashMap<Option<&'a str>, Vec<usize>>,
    endpoints: HashMap<&'a Endpoint, Vec<usize>>,
}

impl<'a> Origins<'a> {
    fn from_lines(lines: &'a [PlanLine]) -> Self {
        let mut origins = Self::default();
        for (index, line) in lines.iter().enumerate() {
            let entry = match &line.capability {
                Capability::Fs { path, .. } => origins.files.entry(path.base()).or_default(),
                Capability::Net(rule) => origins.net.entry(rule.to_string()).or_default(),
                Capability::Listen(listen) => origins.listens.entry(*listen).or_default(),
                Capability::Exec { program, .. } => origins.programs.entry(program.as_ref()).or_default(),
                Capability::Env { name, .. } => origins.variables.entry(name.as_deref()).or_default(),
                Capability::Broker { name, hosts } => {
                    for implied in hosts.iter().map(BrokerHost::implied) {
                        origins.net.entry(implied.to_string()).or_default().push(index);
                    }
                    origins.variables.entry(Some(name)).or_default()
                }
                Capability::Ipc(endpoint) => origins.endpoints.entry(endpoint).or_default(),
                Capability::Clock(_) | Capability::Assert { .. } => continue,
            };
            entry.push(index);
        }
        origins
    }

    fn files(&self, base: &AbsPath) -> Vec<usize> {
        self.files.get(base).cloned().unwrap_or_default()
    }
}

fn network(authority: &Authority, origins: &Origins<'_>) -> Option<Network> {
    let sourced = |rule: &NetRule| {
        let at = if origins.net.is_empty() { None } else { origins.net.get(&rule.to_string()) };
        Sourced { value: rule.clone(), origins: at.cloned().unwrap_or_default() }
    };
    match authority.net() {
        NetScope::None => Some(Network::None),
        NetScope::Any => Some(Network::Any),
        NetScope::Only(clauses) => {
            let mut sets = clauses.sets();
            let set = sets.next()?;
            sets.next().is_none().then(|| Network::Allow(set.rules().iter().map(sourced).collect()))
        }
    }
}

fn listens(authority: &Authority, origins: &Origins<'_>) -> Vec<Sourced<Listen>> {
    let sourced = |listen: Listen| Sourced {
        value: listen,
        origins: origins.listens.get(&listen).cloned().unwrap_or_default(),
    };
    authority.listen().listens().unwrap_or_default().into_iter().map(sourced).collect()
}

fn exec(authority: &Authority, origins: &Origins<'_>) -> Exec {
    let map = authority.exec();
    let spawning = |flags: Flags| Spawning {
        nested_sandbox: flags.contains(exec_flags::NESTED),
        from_writable: flags.contains(exec_flags::FROM_WRITABLE),
    };
    // What is listed may do more than the rest; what is named besides has to be shown wherever it lies.
    let wanted: std::collections::BTreeMap<&Program, Flags> = map
        .listed()
        .filter(|(_, flags)| flags.contains(exec_flags::SPAWN))
        .chain(authority.named_programs())
        .collect();
    let programs = wanted.into_iter().map(|(program, flags)| {
        let at = origins.programs.get(&Some(program)).cloned().unwrap_or_default();
        let value = ProgramGrant { program: program.clone(), spawning: spawning(flags) };
        Sourced { value, origins: at }
    });
    let any = map.rest().contains(exec_flags::SPAWN).then(|| spawning(map.rest()));
    Exec { any, programs: programs.collect() }
}

fn environment(authority: &Authority, origins: &Origins<'_>) -> Environment {
    let map = authority.env();
    let sourced = |name: &str| {
        let at = origins.variables.get(&Some(name)).cloned().unwrap_or_default();
        Sourced { value: name.into(), origins: at }
    };
    let injects =
        |flags: Flags| flags.contains(env_flags::INJECT) || flags.contains(env_flags::INJECT_LOADER);
    let brokered: Vec<Sourced<BrokeredSecret>> = authority
        .brokered()
        .iter()
        .map(|(name, hosts)| {
            let at = origins.variables.get(&Some(name)).cloned().unwrap_or_default();
            let (name, hosts) = (Box::from(name), hosts.iter().cloned().collect());
            Sourced { value: BrokeredSecret { name, hosts, usage: SecretUse::default() }, origins: at }
        })
        .collect();
    let is_brokered = |name: &str| brokered.iter().any(|secret| &*secret.value.name == name);
    Environment {
        fixed: std::collections::BTreeMap::new(),
        injected: map.listed().filter(|(_, f)| injects(*f)).map(|(name, _)| sourced(name)).collect(),
        read: map
            .listed()
            // The caller's own variable would be the secret itself.
            .filter(|(name, f)| f.contains(env_flags::READ) && !is_brokered(name))
            .map(|(name, _)| sourced(name))
            .collect(),
        read_all: map.rest().contains(env_flags::READ),
        brokered,
    }
}

fn ipc(authority: &Authority, origins: &Origins<'_>) -> Ipc {
    let map = authority.ipc();
    let endpoints = map.listed().filter(|(_, flags)| !flags.is_empty()).map(|(endpoint, _)| {
        let at = origins.endpoints.get(endpoint).cloned().unwrap_or_default();
        Sourced { value: endpoint.clone(), origins: at }
    });
    Ipc { any: !map.rest().is_empty(), endpoints: endpoints.collect() }
}

fn clock(authority: &Authority) -> Option<ClockActions> {
    let all = [ClockActions::SYSTEM, ClockActions::TZDATA];
    let held = all.into_iter().filter(|action| authority.allows(&Request::Clock(*action)));
    held.reduce(ClockActions::union)
}

fn assertions(lines: &[PlanLine]) -> Vec<Sourced<Assertion>> {
    let mut kept: Vec<Sourced<Assertion>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        let Capability::Assert { id, description } = &line.capability else { continue };
        match known.get(&**id).and_then(|at| kept.get_mut(*at)) {
            Some(assertion) => assertion.origins.push(index),
            None => {
                known.insert(id, kept.len());
                let value = Assertion { id: id.clone(), description: description.clone() };
                kept.push(Sourced { value, origins: vec![index] });
            }
        }
    }
    kept
}
