//! Lines that a tool's own policy hides: they grant nothing, so the author meant something else.
//!
//! A policy may narrow a line. A line is hidden if nothing of it is left, or nothing of one of its actions or
//! refinements.

use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::{Capability, EnvActions, FsActions};
use bailiwick_policy::finding::{Code, Finding};
use bailiwick_policy::net::{NetRule, Speech};

use super::Tool;
use super::authority::Resolve;

/// A part of a line: what it is called, the line with it, and the line without it where something is left then.
struct LinePart {
    name: String,
    with: Capability,
    without: Option<Capability>,
}

/// A finding for every line of the tool that its policy hides.
pub(super) fn hidden_lines(
    tool: &Tool,
    bound: &Authority,
    resolve: Resolve<'_>,
) -> Result<Vec<Finding>, Finding> {
    if tool.declared(resolve)?.within(bound).holds() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for line in tool.capabilities.iter().flatten() {
        let resolved = resolve(&line.value)?;
        let whole = Authority::from_capabilities(std::slice::from_ref(&resolved))?;
        let what = if whole.within(bound).holds() {
            continue;
        } else if adds_nothing(&whole, None, bound)? {
            format!("the policy of `{}` allows nothing of `{}`", tool.name(), line.value)
        } else if let Some(part) = hidden_part(&resolved, bound)? {
            format!("the policy of `{}` does not allow `{part}` in `{}`", tool.name(), line.value)
        } else {
            continue;
        };
        let help = "remove it, or let the policy allow it: until then it is granted nowhere";
        found.push(Finding::new(Code::CapabilityBeyondPolicy, what).at(line.span).help(help));
    }
    Ok(found)
}

fn hidden_part(line: &Capability, bound: &Authority) -> Result<Option<String>, Finding> {
    for part in parts(line) {
        let with = Authority::from_capabilities(std::slice::from_ref(&part.with))?;
        if adds_nothing(&with, part.without.as_ref(), bound)? {
            return Ok(Some(part.name));
        }
    }
    Ok(None)
}

/// Whether `with` allows no more than `without` once both are narrowed.
fn adds_nothing(with: &Authority, without: Option<&Capability>, bound: &Authority) -> Result<bool, Finding> {
    let without = Authority::from_capabilities(without.map(std::slice::from_ref).unwrap_or_default())?;
    Ok(with.meet(bound).within(&without.meet(bound)).holds())
}

/// The actions of a line that has several, or its refinements.
fn parts(line: &Capability) -> Vec<LinePart> {
    match line {
        Capability::Fs { actions, path } => {
            if actions.contains(FsActions::CODE) {
                let plain = Capability::Fs { actions: actions.without_code(), path: path.clone() };
                return refinements(line, [(true, "code=true", plain)]);
            }
            let said = FsActions::NAMES.iter().filter(|(_, action)| actions.contains(*action));
            let covered = |action: FsActions| {
                action != FsActions::WRITE
                    && FsActions::WRITE.contains(action)
                    && actions.contains(FsActions::WRITE)
            };
            let alone = |action| Capability::Fs { actions: action, path: path.clone() };
            said.filter(|(_, action)| !covered(*action))
                .map(|(name, action)| action_part(name, alone(*action)))
                .collect()
        }
        Capability::Env { actions, name } => {
            let said = EnvActions::NAMES.iter().filter(|(_, action)| actions.contains(*action));
            let alone = |action| Capability::Env { actions: action, name: name.clone() };
            said.map(|(name, action)| action_part(name, alone(*action))).collect()
        }
        Capability::Exec { program, nested_sandbox, from_writable } => {
            let (nested, writable) = (*nested_sandbox, *from_writable);
            let other = |nested_sandbox, from_writable| Capability::Exec {
                program: program.clone(),
                nested_sandbox,
                from_writable,
            };
            let refined = [
                (nested, "nestedSandbox=true", other(false, writable)),
                (writable, "fromWritable=true", other(nested, false)),
            ];
            refinements(line, refined)
        }
        Capability::Net(rule) => net_parts(line, rule),
        Capability::Broker { .. }
        | Capability::Listen(_)
        | Capability::Ipc(_)
        | Capability::Clock(_)
        | Capability::Assert { .. } => Vec::new(),
    }
}

fn net_parts(line: &Capability, rule: &NetRule) -> Vec<LinePart> {
    let other =
        |private, speech| Capability::Net(NetRule::new(rule.host().clone(), rule.ports(), private, speech));
    let private = rule.opens_private();
    let plain = other(false, rule.speech().clone());
    let opens = private && plain != *line;
    let mut refined = vec![(opens, "blockPrivate=false", plain)];
    if let Speech::Connect { raw, ech } = rule.speech() {
        refined.push((*raw, "protocol=raw", other(private, Speech::Connect { raw: false, ech: *ech })));
        refined.push((*ech, "ech=allow", other(private, Speech::Connect { raw: *raw, ech: false })));
    }
    refinements(line, refined)
}

fn action_part(name: &str, with: Capability) -> LinePart {
    LinePart { name: name.to_owned(), with, without: None }
}

fn refinements(
    line: &Capability,
    refined: impl IntoIterator<Item = (bool, &'static str, Capability)>,
) -> Vec<LinePart> {
    let said = refined.into_iter().filter(|(said, _, _)| *said);
    said.map(|(_, name, without)| LinePart {
        name: name.to_owned(),
        with: line.clone(),
        without: Some(without),
    })
    .collect()
}
