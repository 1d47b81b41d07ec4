//! The differences, tool by tool and axis by axis.

use std::collections::BTreeMap;

use super::Difference;
use crate::authority::{Authority, Axis};
use crate::capability::Capability;
use crate::finding::{Code, Finding, Findings, Severity};
use crate::lattice::Containment;
use crate::manifest::{ArgumentAccess, Constraints, Declared, Limits, Manifest, Risk, Tool};

/// The most pairs of tools that are looked at for renames; past that a renamed tool is one gone and one new.
const MAX_RENAME_PAIRS: usize = 100_000;

/// A tool that is gone, and what it was allowed.
type Gone<'a> = (&'a Tool, Authority);

/// Everything that differs, the gravest first, then by tool.
pub(super) fn compare(base: &Manifest, new: &Manifest) -> Result<Vec<Difference>, Findings> {
    let mut found = Vec::new();
    compare_header(base, new, &mut found);
    compare_server(base, new, &mut found)?;
    let old: BTreeMap<&str, &Tool> = base.tools().iter().map(|tool| (tool.name(), tool)).collect();
    let fresh: BTreeMap<&str, &Tool> = new.tools().iter().map(|tool| (tool.name(), tool)).collect();
    for (name, tool) in &fresh {
        if let Some(before) = old.get(name) {
            compare_tool(base, before, new, tool, &mut found)?;
        }
    }
    let gone = old.values().filter(|tool| !fresh.contains_key(tool.name()));
    let mut gone: Vec<Gone<'_>> =
        gone.map(|tool| Ok((*tool, base.reviewed_tool(tool)?))).collect::<Result<_, Finding>>()?;
    let mut pairs = MAX_RENAME_PAIRS;
    for tool in fresh.values().filter(|tool| !old.contains_key(tool.name())) {
        let looked_at = gone.len().min(pairs);
        pairs -= looked_at;
        compare_added(&mut gone, looked_at, new, tool, &mut found)?;
    }
    for (tool, _) in gone {
        found.push(narrowed(Code::ToolRemoved, tool, "the tool is gone"));
    }
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
    compare_limits(base.limits(), new.limits(), found);
    compare_pins(base, new, found);
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
        whole.chain(tools).collect::<BTreeMap<_, _>>()
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
    let (before, after) = (base.reviewed_server()?, new.reviewed_server()?);
    for axis in Axis::ALL {
        found.extend(widened(axis, Code::ServerWidened, None, &before, &after));
    }
    let wider = found.iter().any(|difference| difference.code == Code::ServerWidened);
    if !wider && !before.within(&after).holds() {
        found.push(plain(Code::ServerNarrowed, "the server as a whole may touch less".to_owned(), false));
    }
    lost_promises(base.server_capabilities(), new.server_capabilities(), None, found);
    Ok(())
}

fn compare_tool(
    base: &Manifest,
    before: &Tool,
    new: &Manifest,
    after: &Tool,
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    let (old, fresh) = (base.reviewed_tool(before)?, new.reviewed_tool(after)?);
    let name = Some(after.name());
    let count = found.len();
    for axis in Axis::ALL {
        found.extend(widened(axis, code_for(axis), name, &old, &fresh));
    }
    if found.len() == count && !old.within(&fresh).holds() {
        found.push(narrowed(Code::ToolNarrowed, after, "the tool may touch less"));
    }
    if before.policy().is_some() && after.policy().is_none() {
        found.push(about(Code::PolicyRemoved, after, "its policy is gone"));
    }
    for (argument, access) in after.arguments() {
        let loosened = *access == ArgumentAccess::Text && before.arguments().get(argument) != Some(access);
        let widened = before.arguments().get(argument) == Some(&ArgumentAccess::Write)
            && *access != ArgumentAccess::Write;
        if loosened || widened {
            let message = format!("its argument `{argument}` is judged less strictly");
            found.push(about(Code::ConstraintsRelaxed, after, &message));
        }
    }
    for argument in before.arguments().keys().filter(|name| !after.arguments().contains_key(*name)) {
        let message = format!("its argument `{argument}` is no longer declared");
        found.push(about(Code::ConstraintsRelaxed, after, &message));
    }
    compare_risk(before.risk(), after, found);
    compare_constraints(before.constraints(), after, found);
    lost_promises(
        before.capabilities().unwrap_or_default(),
        after.capabilities().unwrap_or_default(),
        name,
        found,
    );
    Ok(())
}

fn compare_added(
    gone: &mut Vec<Gone<'_>>,
    looked_at: usize,
    new: &Manifest,
    tool: &Tool,
    found: &mut Vec<Difference>,
) -> Result<(), Findings> {
    let fresh = new.reviewed_tool(tool)?;
    for (index, (candidate, allowed)) in gone.iter().enumerate().take(looked_at) {
        let same_rules = candidate.constraints() == tool.constraints()
            && candidate.policy() == tool.policy()
            && candidate.arguments() == tool.arguments()
            && candidate.risk() == tool.risk();
        if same_rules && *allowed == fresh {
            let message = format!("it was called `{}`", candidate.name());
            found.push(narrowed(Code::ToolRenamed, tool, &message));
            gone.remove(index);
            return Ok(());
        }
    }
    let nothing = Authority::of(&[])?;
    let reach: Vec<Axis> =
        Axis::ALL.into_iter().filter(|axis| !fresh.within_on(*axis, &nothing).holds()).collect();
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

const fn code_for(axis: Axis) -> Code {
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
    for (relaxed, message) in [
        (before.forbidden && !after.forbidden, "it is no longer forbidden"),
        (more, "it may run more often"),
        (free, "it no longer waits for another tool"),
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

fn about(code: Code, tool: &Tool, message: &str) -> Difference {
    Difference { tool: Some(tool.name().to_owned()), ..plain(code, message.to_owned(), true) }
}

fn narrowed(code: Code, tool: &Tool, message: &str) -> Difference {
    Difference { widens: false, ..about(code, tool, message) }
}
