//! The differences, tool by tool and axis by axis.

use std::collections::BTreeMap;

use bailiwick_policy::authority::{Authority, Axis};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Code, Finding, Findings, Severity};
use bailiwick_policy::lattice::Containment;
use bailiwick_policy::limits::Limits;
use bailiwick_policy::net::NetScope;

use super::Difference;
use super::stances::{compare_hidden, compare_policies, newly_named};
use crate::manifest::{
    ArgumentAccess, ArgumentRule, Constraints, Declared, FeatureStance, FleetBudget, Manifest, Risk,
    RuleEffect, Tool, Variable, symbolic,
};

/// The most pairs of tools that are looked at for renames; past that a renamed tool is one gone and one new.
const MAX_RENAME_PAIRS: usize = 100_000;

/// A tool that is gone, and what it was allowed.
type Gone<'a> = (&'a Tool, Beside);

/// The two manifests whose server lines a tool's authority is made with.
struct Servers<'a> {
    base: &'a Manifest,
    new: &'a Manifest,
    /// Whether the lines of the two allow the same.
    same: bool,
    /// Whether the new server as a whole reaches anything on the network.
    reaches: bool,
}

impl<'a> Servers<'a> {
    fn for_manifests(base: &'a Manifest, new: &'a Manifest) -> Result<Self, Finding> {
        let same = base.server_lines(&symbolic)? == new.server_lines(&symbolic)?;
        let reaches = !matches!(new.server_authority(&symbolic)?.net(), NetScope::None);
        Ok(Self { base, new, same, reaches })
    }

    /// What a tool may touch beside the old lines of the server, and beside the new ones.
    fn beside(&self, tool: &Tool) -> Result<Beside, Finding> {
        let new = self.new.tool_authority(tool, &symbolic)?;
        let base = if self.same { new.clone() } else { self.base.tool_authority(tool, &symbolic)? };
        Ok(Beside { base, new })
    }
}

/// What one tool may touch, by whose server lines it stands beside.
#[derive(PartialEq)]
struct Beside {
    base: Authority,
    new: Authority,
}

impl Beside {
    /// How the tool became wider on an axis. What the server's lines alone widen is reported of the server.
    fn widened(&self, after: &Self, axis: Axis, tool: &Tool) -> Option<Difference> {
        let difference = widened(axis, code_for(axis), Some(tool.name()), &self.base, &after.new)?;
        let same_server = [(&self.base, &after.base), (&self.new, &after.new)];
        let by_server = same_server.iter().all(|(old, new)| new.within_on(axis, old).holds());
        (!by_server).then_some(difference)
    }
}

/// Everything that differs, the gravest first, then by tool.
pub(super) fn compare(base: &Manifest, new: &Manifest) -> Result<Vec<Difference>, Findings> {
    let mut found = Vec::new();
    compare_header(base, new, &mut found);
    compare_server(base, new, &mut found)?;
    let servers = Servers::for_manifests(base, new)?;
    let old: BTreeMap<&str, &Tool> = base.tools().iter().map(|tool| (tool.name(), tool)).collect();
    let fresh: BTreeMap<&str, &Tool> = new.tools().iter().map(|tool| (tool.name(), tool)).collect();
    for (name, tool) in &fresh {
        if let Some(before) = old.get(name) {
            compare_tool(&servers, before, tool, &mut found)?;
        }
    }
    let gone = old.values().filter(|tool| !fresh.contains_key(tool.name()));
    let mut gone: Vec<Gone<'_>> =
        gone.map(|tool| Ok((*tool, servers.beside(tool)?))).collect::<Result<_, Finding>>()?;
    let mut pairs = MAX_RENAME_PAIRS;
    for tool in fresh.values().filter(|tool| !old.contains_key(tool.name())) {
        let looked_at = gone.len().min(pairs);
        pairs -= looked_at;
        compare_added(&mut gone, looked_at, &servers, tool, &mut found)?;
    }
    for (tool, _) in gone {
        found.push(narrowed(Code::ToolRemoved, tool, "the tool is gone"));
    }
    compare_totals(base, new, &mut found)?;
    sort(&mut found);
    Ok(found)
}

/// The gravest first, then by tool and code.
pub(super) fn sort(found: &mut [Difference]) {
    found.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| (&a.tool, a.code).cmp(&(&b.tool, b.code))));
}

fn compare_header(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    for (code, what, before, after) in [
        (Code::ManifestNameChanged, "name", base.name(), new.name()),
        (Code::ManifestVersionChanged, "version", base.version(), new.version()),
    ] {
        if before != after {
            found.push(plain(code, format!("the {what} was `{before}` and is `{after}`"), false));
        }
    }
    let line = |manifest: &Manifest| (manifest.command.clone(), manifest.args.clone());
    if line(base) != line(new) {
        let shown = |manifest: &Manifest| match manifest.command() {
            Some((command, args)) => format!("`{command} {}`", args.join(" ")).replace(" `", "`"),
            None => "nothing".to_owned(),
        };
        let message = format!("the command was {} and is {}", shown(base), shown(new));
        found.push(plain(Code::ServerCommandChanged, message, true));
    } else if base.env() != new.env() {
        found.push(plain(
            Code::ServerCommandChanged,
            "a fixed environment value is another".to_owned(),
            true,
        ));
    }
    compare_origins(base, new, found);
    compare_client(base, new, found);
    compare_secrets(base, new, found);
    compare_states(base, new, found);
    compare_limits(base.limits(), new.limits(), found);
    compare_pins(base, new, found);
}

/// Which server it is, and where its paths come from.
fn compare_origins(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    let names =
        base.variables.keys().chain(new.variables.keys().filter(|name| !base.variables.contains_key(*name)));
    let source = |manifest: &Manifest, name: &str| manifest.variables.get(name).map(Variable::canonical);
    for name in names.filter(|name| source(base, name) != source(new, name)) {
        let message = format!("`${name}` takes its value from elsewhere");
        found.push(plain(Code::ServerCommandChanged, message, true));
    }
    let identity = |manifest: &Manifest| manifest.package().and_then(|package| package.identity.clone());
    if identity(base) != identity(new) {
        found.push(plain(Code::ServerCommandChanged, "it is for another server".to_owned(), true));
    }
    let scripts = |manifest: &Manifest| manifest.package().is_some_and(|package| package.install_scripts);
    if scripts(new) && !scripts(base) {
        let message = "the package's scripts may run when it is installed";
        found.push(plain(Code::ServerCommandChanged, message.to_owned(), true));
    }
}

fn compare_limits(base: &Limits, new: &Limits, found: &mut Vec<Difference>) {
    for (what, before, after) in [
        ("timeout", base.timeout_ms, new.timeout_ms),
        ("memory", base.memory, new.memory),
        ("pids", base.pids, new.pids),
        ("cpu", base.cpu_milli, new.cpu_milli),
        ("file_size", base.file_size, new.file_size),
    ] {
        let relaxed = before.is_some_and(|before| after.is_none_or(|after| after > before));
        if relaxed {
            found.push(plain(
                Code::LimitsRelaxed,
                format!("the limit on {what} was raised or removed"),
                true,
            ));
        }
    }
}

fn compare_pins(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    let all = |manifest: &Manifest| {
        let pins = manifest.pins();
        let whole = [("the instructions", &pins.instructions), ("the set of tools", &pins.set)];
        let whole =
            whole.into_iter().filter_map(|(what, hash)| hash.clone().map(|hash| (what.to_owned(), hash)));
        let tools = pins.tools.iter().map(|(name, hash)| (format!("`{name}`"), hash.clone()));
        let files = pins.files.iter().map(|(path, hash)| (format!("`{path}`"), hash.clone()));
        whole.chain(tools).chain(files).collect::<BTreeMap<_, _>>()
    };
    let after = all(new);
    for (what, hash) in all(base) {
        match after.get(&what) {
            None => found.push(plain(Code::EnforcementDisabled, format!("{what} is no longer pinned"), true)),
            Some(other) if *other != hash => {
                found.push(plain(Code::PinChanged, format!("{what} is pinned to another hash"), true));
            }
            Some(_) => {}
        }
    }
}

fn compare_server(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) -> Result<(), Findings> {
    let (before, after) = (base.server_lines(&symbolic)?, new.server_lines(&symbolic)?);
    for axis in Axis::ALL {
        found.extend(widened(axis, Code::ServerWidened, None, &before, &after));
    }
    if let Some(message) = newly_named(base.server.iter(), new.server.iter()) {
        found.push(plain(Code::ServerWidened, message, true));
    }
    let wider = found.iter().any(|difference| difference.code == Code::ServerWidened);
    if !wider && !before.within(&after).holds() {
        found.push(plain(Code::ServerNarrowed, "the server as a whole may touch less".to_owned(), false));
    }
    lost_promises(base.server_capabilities(), new.server_capabilities(), None, found);
    Ok(())
}

/// The server as a whole: what it may touch beyond before is reported unless a tool or its own lines explain it.
fn compare_totals(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) -> Result<(), Findings> {
    let (before, after) = (base.server_authority(&symbolic)?, new.server_authority(&symbolic)?);
    for axis in Axis::ALL {
        let always = [Code::ServerWidened, Code::ToolAdded, Code::ToolAddedHighRisk, Code::DiffUndecided];
        let explains = |one: &Difference| always.contains(&one.code) || one.code == code_for(axis);
        if !found.iter().any(explains) {
            found.extend(widened(axis, Code::ServerWidened, None, &before, &after));
        }
    }
    Ok(())
}

fn compare_tool(
    servers: &Servers<'_>,
    before: &Tool,
    after: &Tool,
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    let (old, fresh) = (servers.beside(before)?, servers.beside(after)?);
    let mut wider = Vec::new();
    for axis in Axis::ALL {
        if let Some(one) = old.widened(&fresh, axis, after) {
            found.push(one);
            wider.push(axis);
        }
    }
    let count = found.len();
    if !wider.contains(&Axis::FsWrite)
        && let Some(message) = newly_named(before.lines(), after.lines())
    {
        found.push(about(Code::ToolFilesystemWriteWidened, after, &message));
    }
    compare_hidden(before, after, &wider, found)?;
    compare_policies(before, after, &wider, found)?;
    let less = |old: &Authority, new: &Authority| !old.within(new).holds();
    let less = less(&old.base, &fresh.base) && less(&old.base, &fresh.new);
    if wider.is_empty() && found.len() == count && less {
        found.push(narrowed(Code::ToolNarrowed, after, "the tool may touch less"));
    }
    compare_arguments(before, after, servers.reaches, found);
    compare_rules(before, after, found);
    compare_risk(before.risk(), after, found);
    compare_constraints(before.constraints(), after, found);
    lost_promises(
        before.capabilities().unwrap_or_default(),
        after.capabilities().unwrap_or_default(),
        Some(after.name()),
        found,
    );
    Ok(())
}

/// The argument gate: marks that judge less strictly, and whether it judges paths and hosts at all. `reaches` says whether
/// the server reaches anything on the network.
fn compare_arguments(before: &Tool, after: &Tool, reaches: bool, found: &mut Vec<Difference>) {
    for (argument, access) in after.arguments() {
        let stricter = match (before.arguments().get(argument), access) {
            (None, access) => *access != ArgumentAccess::Text,
            (Some(old), new) if old == new => true,
            (Some(ArgumentAccess::Text), _) => true,
            (Some(ArgumentAccess::Path), new) => !matches!(new, ArgumentAccess::Text | ArgumentAccess::Host),
            (Some(ArgumentAccess::Read | ArgumentAccess::Write | ArgumentAccess::Host), _) => false,
        };
        if !stricter {
            let message = format!("its argument `{argument}` is judged less strictly");
            found.push(about(Code::ConstraintsRelaxed, after, &message));
        }
    }
    for argument in before.arguments().keys().filter(|name| !after.arguments().contains_key(*name)) {
        let message = format!("its argument `{argument}` is no longer declared");
        found.push(about(Code::ConstraintsRelaxed, after, &message));
    }
    if before.has_file_stance() && !after.has_file_stance() {
        let message = "it says nothing about files any more: paths in its arguments are no longer judged";
        found.push(about(Code::ConstraintsRelaxed, after, message));
    }
    if reaches && before.has_network_stance() && !after.has_network_stance() {
        let message =
            "it says nothing about the network any more: hosts in its arguments are no longer judged";
        found.push(about(Code::ConstraintsRelaxed, after, message));
    }
}

/// Rules on arguments: each must still be there, or one that refuses all that it refused.
fn compare_rules(before: &Tool, after: &Tool, found: &mut Vec<Difference>) {
    for old in before.rules().iter().filter(|old| !after.rules().iter().any(|new| new.covers(old))) {
        let (code, lost) = match old.effect() {
            RuleEffect::Deny => (Code::ConstraintsRelaxed, "no longer refuses what its rule refused"),
            RuleEffect::Ask => (Code::ApprovalRemoved, "no longer asks a person where its rule did"),
        };
        found.push(about(code, after, &format!("it {lost}: {}", old.message())));
    }
}

/// How brokered secrets are used.
fn compare_secrets(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    let names =
        base.secrets().keys().chain(new.secrets().keys().filter(|name| !base.secrets().contains_key(*name)));
    let usage = |manifest: &Manifest, name: &str| manifest.secrets().get(name).cloned().unwrap_or_default();
    for name in names {
        for wider in usage(new, name).wider_than(&usage(base, name)) {
            found.push(plain(Code::ConstraintsRelaxed, format!("the secret `{name}` {wider}"), true));
        }
    }
}

/// What the server may ask its client for.
fn compare_client(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    for ((name, before), (_, after)) in base.client().all().into_iter().zip(new.client().all()) {
        let code =
            if before == FeatureStance::Ask { Code::ApprovalRemoved } else { Code::ConstraintsRelaxed };
        if after > before {
            let message =
                format!("`{name}` of the client was `{}` and is `{}`", before.as_str(), after.as_str());
            found.push(plain(code, message, true));
        }
    }
}

/// With whom tools share a process, where each capability set has a process of its own.
fn compare_states(base: &Manifest, new: &Manifest, found: &mut Vec<Difference>) {
    // A state that is not given is the widest: such a tool runs with the server as a whole.
    let rank = |manifest: &Manifest, tool| manifest.state_of(tool).map_or(2, |state| state as u8);
    for after in new.tools() {
        let before = base.tools().iter().find(|tool| tool.name() == after.name());
        if before.is_some_and(|before| rank(new, after) > rank(base, before)) {
            found.push(about(Code::ConstraintsRelaxed, after, "it may share a process with more tools"));
        }
    }
}

fn same_rules_on_arguments(one: &Tool, other: &Tool) -> bool {
    let written = |tool: &Tool| tool.rules().iter().map(ArgumentRule::canonical).collect::<Vec<_>>();
    written(one) == written(other)
}

fn same_policy(one: &Tool, other: &Tool) -> bool {
    let stances = |tool: &Tool| tool.policy().map(crate::manifest::ToolPolicy::canonical);
    stances(one) == stances(other)
}

fn compare_added(
    gone: &mut Vec<Gone<'_>>,
    looked_at: usize,
    servers: &Servers<'_>,
    tool: &Tool,
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    let fresh = servers.beside(tool)?;
    for (index, (candidate, allowed)) in gone.iter().enumerate().take(looked_at) {
        let same_rules = candidate.constraints() == tool.constraints()
            && same_policy(candidate, tool)
            && candidate.arguments() == tool.arguments()
            && same_rules_on_arguments(candidate, tool)
            && candidate.risk() == tool.risk()
            && candidate.has_file_stance() == tool.has_file_stance()
            && candidate.has_network_stance() == tool.has_network_stance();
        if same_rules && *allowed == fresh && candidate.declared(&symbolic)? == tool.declared(&symbolic)? {
            let message = format!("it was called `{}`", candidate.name());
            found.push(narrowed(Code::ToolRenamed, tool, &message));
            gone.remove(index);
            return Ok(());
        }
    }
    let nothing = Authority::from_capabilities(&[])?;
    let touched = |axis: &Axis| !fresh.new.within_on(*axis, &nothing).holds();
    let reach: Vec<Axis> = Axis::ALL.into_iter().filter(touched).collect();
    let grave = |axis: &Axis| matches!(axis, Axis::Exec | Axis::Net | Axis::FsWrite | Axis::Ipc);
    let severity = match () {
        () if reach.iter().any(grave) => Severity::High,
        () if reach.iter().any(|axis| *axis != Axis::Clock) => Severity::Medium,
        () => Severity::Info,
    };
    let axes: Vec<_> = reach.iter().map(|axis| axis.as_str()).collect();
    let touches = if axes.is_empty() { "nothing".to_owned() } else { axes.join(", ") };
    let mut difference = about(Code::ToolAdded, tool, &format!("a new tool that touches {touches}"));
    difference.severity = severity;
    if tool.risk() >= Some(Risk::High) {
        difference = about(
            Code::ToolAddedHighRisk,
            tool,
            &format!("a new tool of declared high risk that touches {touches}"),
        );
    }
    found.push(difference);
    Ok(())
}

/// The code of a widening on an axis.
pub(super) const fn code_for(axis: Axis) -> Code {
    match axis {
        Axis::FsRead => Code::ToolFilesystemReadWidened,
        Axis::FsWrite => Code::ToolFilesystemWriteWidened,
        Axis::Exec => Code::ToolExecWidened,
        Axis::Net => Code::ToolNetworkWidened,
        Axis::Env => Code::ToolEnvironmentWidened,
        Axis::Ipc => Code::ToolIpcWidened,
        Axis::Clock => Code::ToolClockWidened,
        Axis::MaxCalls | Axis::Generation => Code::ConstraintsRelaxed,
    }
}

fn widened(
    axis: Axis,
    code: Code,
    tool: Option<&str>,
    old: &Authority,
    new: &Authority,
) -> Option<Difference> {
    let (code, example) = match new.within_on(axis, old) {
        Containment::Contained => return None,
        Containment::Exceeds(excess) => (code, Some(excess.to_string())),
        Containment::Undecided => (Code::DiffUndecided, None),
    };
    let message = match (&example, tool) {
        (None, _) => format!("{axis} may be wider: the patterns are too entangled to decide"),
        (Some(example), Some(_)) => format!("it may now {example}"),
        (Some(example), None) => format!("the server may now {example}"),
    };
    Some(Difference { tool: tool.map(str::to_owned), example, ..plain(code, message, true) })
}

fn compare_risk(before: Option<Risk>, after: &Tool, found: &mut Vec<Difference>) {
    let shown = |risk: Option<Risk>| risk.map_or("unstated", Risk::as_str);
    let message = format!("its risk was {} and is {}", shown(before), shown(after.risk()));
    if after.risk() > before && before.is_some() || (before.is_none() && after.risk() >= Some(Risk::High)) {
        found.push(about(Code::ToolRiskIncreased, after, &message));
    } else if after.risk() < before {
        found.push(about(Code::ToolRiskDecreased, after, &message));
    }
}

fn compare_constraints(before: &Constraints, tool: &Tool, found: &mut Vec<Difference>) {
    let after = tool.constraints();
    let more = before.max_invocations.is_some_and(|old| after.max_invocations.is_none_or(|new| new > old));
    let free = before.only_after.iter().any(|name| !after.only_after.contains(name));
    let unspent = before.fleet_budget.as_ref().is_some_and(|old| {
        let is_kept =
            |new: &FleetBudget| (&new.name, new.unit) == (&old.name, old.unit) && new.each >= old.each;
        !after.fleet_budget.as_ref().is_some_and(is_kept)
    });
    for (relaxed, message) in [
        (before.forbidden && !after.forbidden, "it is no longer forbidden"),
        (more, "it may run more often"),
        (free, "it no longer waits for another tool"),
        (unspent, "it spends less of the fleet's budget, or of another"),
    ] {
        if relaxed {
            found.push(about(Code::ConstraintsRelaxed, tool, message));
        }
    }
    if before.confirm && !after.confirm {
        found.push(about(Code::ApprovalRemoved, tool, "it no longer asks a person"));
    }
}

fn lost_promises(
    before: &[Declared<Capability>],
    after: &[Declared<Capability>],
    tool: Option<&str>,
    found: &mut Vec<Difference>,
) {
    let kept: Vec<&str> = after.iter().filter_map(|line| line.value.promise()).collect();
    for lost in before.iter().filter_map(|line| line.value.promise()).filter(|id| !kept.contains(id)) {
        let message = format!("the assertion `{lost}` is gone");
        found.push(Difference {
            tool: tool.map(str::to_owned),
            ..plain(Code::EnforcementDisabled, message, true)
        });
    }
}

fn plain(code: Code, message: String, widens: bool) -> Difference {
    Difference { code, severity: code.severity(), tool: None, message, example: None, widens, accepted: None }
}

/// A difference of one tool that widens.
pub(super) fn about(code: Code, tool: &Tool, message: &str) -> Difference {
    Difference { tool: Some(tool.name().to_owned()), ..plain(code, message.to_owned(), true) }
}

fn narrowed(code: Code, tool: &Tool, message: &str) -> Difference {
    Difference { widens: false, ..about(code, tool, message) }
}
