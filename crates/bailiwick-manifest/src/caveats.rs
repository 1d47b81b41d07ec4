//! Caveats: the session grant as other agent tools write it, in JSON or TOML.
//!
//! Each string axis is `"all"` or `{"only": [...]}`, `max_calls` is `"unlimited"` or `{"at_most": N}`. Unlike
//! elsewhere a misspelt axis is a finding. `"all"` never includes what a refinement must say out loud: private
//! addresses, raw protocols, variables that load code, programs from writable directories.

use std::collections::BTreeSet;

use bailiwick_policy::authority::{ALLOWED, Authority, Parts};
use bailiwick_policy::capability::{
    Capability, ClockActions, FsActions, parse_endpoint, read_behind, read_network_entry,
};
use bailiwick_policy::finding::{Code, Collector, Finding, Findings, Span};
use bailiwick_policy::lattice::{CountBound, FlagMap};
use bailiwick_policy::net::{HostPattern, NetRule, PortRange, Speech};
use bailiwick_policy::path::{PathPattern, parse_pattern};
use serde::{Deserialize, Serialize};

use crate::document::{self, Fields, Node, Value};

#[cfg(test)]
mod tests;

/// One axis of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope<T: Ord> {
    /// Everything on this axis.
    All,
    /// Exactly these; none if empty.
    Only(BTreeSet<T>),
}

impl<T: Ord> Scope<T> {
    /// Nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Exactly these.
    pub fn only(items: impl IntoIterator<Item = T>) -> Self {
        Self::Only(items.into_iter().collect())
    }
}

/// A session grant, as written. Turn it into an [`Authority`] to ask it anything.
///
/// # Examples
/// ```
/// use bailiwick_manifest::caveats::{Caveats, Scope};
/// use bailiwick_policy::lattice::CountBound;
///
/// let git = Caveats {
///     exec: Scope::only(["git".to_owned()]),
///     max_calls: CountBound::AtMost(20),
///     valid_for_generation: Scope::All,
///     ..Caveats::bottom()
/// };
/// let allowed = git.authority()?.capabilities().unwrap();
/// assert!(allowed.iter().any(|line| line.to_string() == "exec:spawn:git"));
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Caveats {
    /// Paths that may be read, each with everything below it.
    pub fs_read: Scope<String>,
    /// Paths that may be changed, each with everything below it.
    pub fs_write: Scope<String>,
    /// Programs that may be started, by name or absolute path.
    pub exec: Scope<String>,
    /// Hosts that may be reached.
    pub net: Scope<String>,
    /// How many calls.
    pub max_calls: CountBound,
    /// In which generations.
    pub valid_for_generation: Scope<u64>,
    /// Environment variables that may be seen and given; none if absent.
    pub env: Scope<String>,
    /// Local services that may be talked to; none if absent.
    pub ipc: Scope<String>,
}

impl Caveats {
    /// Everything on every axis.
    #[must_use]
    pub const fn top() -> Self {
        Self {
            fs_read: Scope::All,
            fs_write: Scope::All,
            exec: Scope::All,
            net: Scope::All,
            max_calls: CountBound::Unlimited,
            valid_for_generation: Scope::All,
            env: Scope::All,
            ipc: Scope::All,
        }
    }

    /// Nothing on any axis.
    #[must_use]
    pub const fn bottom() -> Self {
        Self {
            fs_read: Scope::none(),
            fs_write: Scope::none(),
            exec: Scope::none(),
            net: Scope::none(),
            max_calls: CountBound::AtMost(0),
            valid_for_generation: Scope::none(),
            env: Scope::none(),
            ipc: Scope::none(),
        }
    }

    /// Reads caveats from JSON (a text that starts with `{`) or TOML.
    ///
    /// # Errors
    /// Every finding: unknown or missing axes, wrong shapes, entries that cannot be read.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        let node = document::parse(text)?;
        read(&node)
    }

    /// Reads the `[caveats]` table of a configuration file; `None` if it has none.
    ///
    /// # Errors
    /// As [`Caveats::parse`].
    pub fn parse_config(text: &str) -> Result<Option<Self>, Findings> {
        let node = document::parse(text)?;
        let entries = node.table(Code::CaveatsShape)?;
        let table = entries.iter().find(|entry| entry.key == "caveats");
        table.map(|entry| read(&entry.node)).transpose()
    }

    /// What the caveats allow.
    ///
    /// # Errors
    /// A finding for every entry that cannot be read.
    pub fn authority(&self) -> Result<Authority, Findings> {
        let mut found = Collector::default();
        let mut parts = Parts::default();
        for (scope, axis) in self.axes() {
            match scope {
                Scope::All => add_all(&mut parts, axis, &mut found),
                Scope::Only(entries) => {
                    for entry in entries {
                        add_entry(&mut parts, axis, entry, &mut found);
                    }
                }
            }
        }
        parts.add_clock(ClockActions::SYSTEM.union(ClockActions::TZDATA));
        let generations = match &self.valid_for_generation {
            Scope::All => FlagMap::uniform(ALLOWED),
            Scope::Only(numbers) => FlagMap::union_of(numbers.iter().map(|number| (Some(*number), ALLOWED))),
        };
        let authority = parts.authority().with_bounds(self.max_calls, generations);
        found.finish(authority)
    }

    const fn axes(&self) -> [(&Scope<String>, TextAxis); 6] {
        [
            (&self.fs_read, TextAxis::Read),
            (&self.fs_write, TextAxis::Write),
            (&self.exec, TextAxis::Exec),
            (&self.net, TextAxis::Net),
            (&self.env, TextAxis::Env),
            (&self.ipc, TextAxis::Ipc),
        ]
    }
}

/// The axes whose entries are strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextAxis {
    Read,
    Write,
    Exec,
    Net,
    Env,
    Ipc,
}

fn add_all(parts: &mut Parts, axis: TextAxis, found: &mut Collector) {
    let all = match axis {
        TextAxis::Read => Capability::Fs { actions: FsActions::READ, path: PathPattern::everything() },
        TextAxis::Write => Capability::Fs { actions: FsActions::WRITE, path: PathPattern::everything() },
        TextAxis::Exec => Capability::Exec { program: None, nested_sandbox: false, from_writable: false },
        TextAxis::Net => {
            let speech = Speech::Connect { raw: false, ech: false };
            Capability::Net(NetRule::new(HostPattern::Any, PortRange::ANY, false, speech))
        }
        TextAxis::Env => return parts.add_every_variable(),
        TextAxis::Ipc => return parts.add_every_endpoint(),
    };
    found.keep(parts.add(&all));
}

fn add_entry(parts: &mut Parts, axis: TextAxis, entry: &str, found: &mut Collector) {
    let capability = found.keep(read_entry(axis, entry));
    capability.and_then(|capability| found.keep(parts.add(&capability)));
}

/// One entry as the capability it stands for.
fn read_entry(axis: TextAxis, entry: &str) -> Result<Capability, Finding> {
    if let Some((at, c)) = entry.char_indices().find(|(_, c)| c.is_control()) {
        let message = format!("an entry contains the control character U+{:04X}", u32::from(c));
        let span = Span::new(at, at + c.len_utf8());
        return Err(Finding::new(Code::CapControl, message).at(span).help("remove it"));
    }
    match axis {
        TextAxis::Read | TextAxis::Write => {
            let actions = if axis == TextAxis::Read { FsActions::READ } else { FsActions::WRITE };
            Ok(Capability::Fs { actions, path: parse_pattern(entry, false)? })
        }
        TextAxis::Exec | TextAxis::Env if entry == "*" => {
            Err(Finding::new(Code::CaveatsShape, "`*` is not an entry")
                .at(Span::new(0, 1))
                .help("write `\"all\"`"))
        }
        TextAxis::Exec => read_behind("exec:spawn:", entry),
        TextAxis::Net => read_network_entry(entry),
        TextAxis::Env => read_behind("env:read,inject:", entry),
        TextAxis::Ipc => Ok(Capability::Ipc(parse_endpoint(entry)?)),
    }
}

fn read(node: &Node<'_>) -> Result<Caveats, Findings> {
    let mut found = Collector::default();
    let mut fields = Fields::from_node(node, "a grant", Code::CaveatsShape)?.closed();
    let mut caveats = Caveats::bottom();
    for (key, axis) in [
        ("fs_read", TextAxis::Read),
        ("fs_write", TextAxis::Write),
        ("exec", TextAxis::Exec),
        ("net", TextAxis::Net),
    ] {
        let scope = required(&mut fields, key).and_then(|node| Ok((node, texts(node)?)));
        if let Some((node, scope)) = found.keep(scope) {
            check_entries(node, axis, &mut found);
            *axis_mut(&mut caveats, axis) = scope;
        }
    }
    for (key, axis) in [("env", TextAxis::Env), ("ipc", TextAxis::Ipc)] {
        if let Some(node) = fields.optional(key)
            && let Some(scope) = found.keep(texts(node))
        {
            check_entries(node, axis, &mut found);
            *axis_mut(&mut caveats, axis) = scope;
        }
    }
    let calls = required(&mut fields, "max_calls").and_then(read_calls);
    caveats.max_calls = found.keep(calls).unwrap_or(CountBound::AtMost(0));
    let generations = required(&mut fields, "valid_for_generation").and_then(numbers);
    caveats.valid_for_generation = found.keep(generations).unwrap_or_else(Scope::none);
    fields.finish(Code::CaveatsUnknownAxis, &mut found);
    found.finish(caveats)
}

/// Every axis must be there: one that is forgotten is neither all nor nothing.
fn required<'n, 't>(fields: &mut Fields<'n, 't>, key: &'static str) -> Result<&'n Node<'t>, Finding> {
    fields.required(key, Code::CaveatsShape).map_err(|finding| {
        finding.help(match key {
            "max_calls" => "add `max_calls` as `\"unlimited\"` or `{\"at_most\": 20}`".to_owned(),
            _ => format!("add `{key}` as `\"all\"` or `{{\"only\": [...]}}`"),
        })
    })
}

const fn axis_mut(caveats: &mut Caveats, axis: TextAxis) -> &mut Scope<String> {
    match axis {
        TextAxis::Read => &mut caveats.fs_read,
        TextAxis::Write => &mut caveats.fs_write,
        TextAxis::Exec => &mut caveats.exec,
        TextAxis::Net => &mut caveats.net,
        TextAxis::Env => &mut caveats.env,
        TextAxis::Ipc => &mut caveats.ipc,
    }
}

fn check_entries(node: &Node<'_>, axis: TextAxis, found: &mut Collector) {
    for item in only(node).unwrap_or_default().unwrap_or_default() {
        if let Ok(text) = item.text(Code::CaveatsShape) {
            found.keep(item.place(read_entry(axis, text)));
        }
    }
}

/// `Ok(None)` for `"all"`, the items of `{"only": [...]}` otherwise.
fn only<'n, 't>(node: &'n Node<'t>) -> Result<Option<&'n [Node<'t>]>, Finding> {
    let shape = || {
        node.expected(Code::CaveatsShape, "`\"all\"` or `{ only = [...] }`")
            .help("write `\"all\"` or `{\"only\": [...]}`")
    };
    match &node.value {
        Value::Text { text, .. } if text == "all" => Ok(None),
        Value::Table(entries) => match &**entries {
            [entry] if entry.key == "only" => entry.node.list(Code::CaveatsShape).map(Some),
            _ => Err(shape()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text { .. } | Value::List(_) => Err(shape()),
    }
}

fn texts(node: &Node<'_>) -> Result<Scope<String>, Finding> {
    let Some(items) = only(node)? else { return Ok(Scope::All) };
    let read: Result<_, _> =
        items.iter().map(|item| item.text(Code::CaveatsShape).map(str::to_owned)).collect();
    read.map(Scope::Only)
}

fn numbers(node: &Node<'_>) -> Result<Scope<u64>, Finding> {
    let Some(items) = only(node)? else { return Ok(Scope::All) };
    let read: Result<_, _> = items.iter().map(|item| item.whole(Code::CaveatsShape)).collect();
    read.map(Scope::Only)
}

fn read_calls(node: &Node<'_>) -> Result<CountBound, Finding> {
    let shape = || {
        node.expected(Code::CaveatsShape, "`\"unlimited\"` or `{ at_most = N }`")
            .help("write `\"unlimited\"` or `{\"at_most\": 20}`")
    };
    match &node.value {
        Value::Text { text, .. } if text == "unlimited" => Ok(CountBound::Unlimited),
        Value::Table(entries) => match &**entries {
            [entry] if entry.key == "at_most" => entry.node.whole(Code::CaveatsShape).map(CountBound::AtMost),
            _ => Err(shape()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text { .. } | Value::List(_) => Err(shape()),
    }
}
