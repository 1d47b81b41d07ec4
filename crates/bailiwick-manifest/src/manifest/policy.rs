//! A tool's policy: its stance on files, network, environment and programs, and the risk it declares.
//!
//! Absent means *unspecified*: no stance was declared. It neither grants nor narrows, and the argument gate does
//! nothing for it. Unknown keys and modes are findings.

use bailiwick_policy::authority::{Authority, Axis, Parts};
use bailiwick_policy::capability::{Capability, EnvActions, FsActions, check_env_name, parse_program};
use bailiwick_policy::finding::{Code, Collector, Finding, Span};
use bailiwick_policy::net::{HostPattern, NetRule, PortRange, Speech};
use bailiwick_policy::path::{PathPattern, parse_pattern};

use crate::document::{Fields, Node, Value};

use super::Declared;
use super::authority::Resolve;

/// How risky a tool says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Reads public data.
    Low,
    /// Changes what can be put back.
    Medium,
    /// Changes what is hard to put back, or sees what is private.
    High,
    /// Can do lasting harm.
    Critical,
}

impl Risk {
    const ALL: [(&'static str, Self); 4] =
        [("low", Self::Low), ("medium", Self::Medium), ("high", Self::High), ("critical", Self::Critical)];

    /// The lower-case name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, risk)| *risk == self).map_or("", |(name, _)| name)
    }
}

/// A stance on one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stance<T> {
    /// Nothing was said.
    Unspecified,
    /// Nothing may be touched.
    None,
    /// Just these; never empty.
    Only(Vec<Declared<T>>),
    /// Everything may be touched.
    All,
}

/// A tool's stances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPolicy {
    pub(super) risk: Option<Risk>,
    pub(super) read: Stance<Capability>,
    pub(super) write: Stance<Capability>,
    pub(super) network: Stance<Capability>,
    pub(super) environment: Stance<Capability>,
    pub(super) exec: Stance<Capability>,
    pub(super) enforced: bool,
}

impl ToolPolicy {
    pub(super) const fn unspecified() -> Self {
        Self {
            risk: None,
            read: Stance::Unspecified,
            write: Stance::Unspecified,
            network: Stance::Unspecified,
            environment: Stance::Unspecified,
            exec: Stance::Unspecified,
            enforced: true,
        }
    }

    /// Whether the policy is held. One that is not is for people to read: it narrows nothing.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// The risk it declares.
    #[must_use]
    pub const fn risk(&self) -> Option<Risk> {
        self.risk
    }

    /// Files that may be read.
    #[must_use]
    pub const fn read(&self) -> &Stance<Capability> {
        &self.read
    }

    /// Files that may be changed.
    #[must_use]
    pub const fn write(&self) -> &Stance<Capability> {
        &self.write
    }

    pub(super) const fn stances(&self) -> [(&'static str, &Stance<Capability>); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("network", &self.network),
            ("environment", &self.environment),
            ("exec", &self.exec),
        ]
    }

    /// The lines that the stances stand for, where they are specified.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Declared<Capability>> {
        self.stances().into_iter().flat_map(|(_, stance)| match stance {
            Stance::Only(lines) => &**lines,
            Stance::Unspecified | Stance::None | Stance::All => &[],
        })
    }

    /// Adds what the policy names or allows wholesale; what it leaves open adds nothing.
    pub(super) fn add_named(&self, parts: &mut Parts, resolve: Resolve<'_>) -> Result<(), Finding> {
        for (subject, stance) in self.stances() {
            match stance {
                Stance::Only(lines) => lines.iter().try_for_each(|line| parts.add(&resolve(&line.value)?))?,
                Stance::All => add_everything(parts, subject)?,
                Stance::None | Stance::Unspecified => {}
            }
        }
        Ok(())
    }

    /// What the policy lets through: on subjects that it leaves open, everything. A variable that it names may be
    /// injected too.
    pub(crate) fn bound(&self, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = Parts::default();
        if !self.enforced {
            return Ok(parts.authority().with_top_where(|_| true));
        }
        self.add_named(&mut parts, resolve)?;
        if let Stance::Only(lines) = &self.environment {
            lines.iter().filter_map(|line| injection(&line.value)).try_for_each(|line| parts.add(&line))?;
        }
        let named = parts.authority().with_code_as_read();
        Ok(named.with_top_where(|axis| self.stance(axis).is_none_or(Stance::is_unspecified)))
    }

    /// The stance on an axis; `None` where a policy has no such subject.
    pub(crate) const fn stance(&self, axis: Axis) -> Option<&Stance<Capability>> {
        Some(match axis {
            Axis::FsRead => &self.read,
            Axis::FsWrite => &self.write,
            Axis::Net => &self.network,
            Axis::Env => &self.environment,
            Axis::Exec => &self.exec,
            Axis::Ipc | Axis::Clock | Axis::MaxCalls | Axis::Generation => return None,
        })
    }
}

impl<T> Stance<T> {
    /// Whether nothing was said.
    #[must_use]
    pub const fn is_unspecified(&self) -> bool {
        matches!(self, Self::Unspecified)
    }

    /// The stance in a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::None => "deny",
            Self::Only(_) => "a list",
            Self::All => "allow",
        }
    }
}

fn injection(line: &Capability) -> Option<Capability> {
    let Capability::Env { name, .. } = line else { return None };
    Some(Capability::Env { actions: EnvActions::INJECT, name: name.clone() })
}

/// Everything on a subject, refinements excepted.
fn add_everything(parts: &mut Parts, subject: &str) -> Result<(), Finding> {
    parts.add(&match subject {
        "read" => Capability::Fs { actions: FsActions::READ, path: PathPattern::everything() },
        "write" => Capability::Fs { actions: FsActions::WRITE, path: PathPattern::everything() },
        "network" => {
            let speech = Speech::Connect { raw: false, ech: false };
            Capability::Net(NetRule::new(HostPattern::Any, PortRange::ANY, false, speech))
        }
        "exec" => Capability::Exec { program: None, nested_sandbox: false, from_writable: false },
        _ => {
            parts.add_every_variable();
            return Ok(());
        }
    })
}

/// Reads a `policy` table.
pub(super) fn read_policy(node: &Node<'_>, found: &mut Collector) -> Option<ToolPolicy> {
    let mut fields = found.keep(Fields::from_node(node, "a policy", Code::ManifestShape))?;
    let risk = fields.optional("risk").and_then(|node| found.keep(read_risk(node)));
    let (mut read, mut write) = (Stance::Unspecified, Stance::Unspecified);
    if let Some(node) = fields.optional("filesystem")
        && let Some(mut files) = found.keep(Fields::from_node(node, "filesystem", Code::PolicyMode))
    {
        read = files
            .optional("read")
            .map_or(Stance::Unspecified, |node| read_stance(node, false, read_path, found));
        write = files
            .optional("write")
            .map_or(Stance::Unspecified, |node| read_stance(node, false, write_path, found));
        files.finish(Code::ManifestUnknownField, found);
    }
    let mut stance = |key, modes, read: fn(&str) -> Result<Capability, Finding>| {
        fields.optional(key).map_or(Stance::Unspecified, |node| read_stance(node, modes, read, found))
    };
    let network = stance("network", true, host);
    let environment = stance("environment", false, variable);
    let exec = stance("exec", true, program);
    let enforced = fields
        .optional("enforced")
        .is_none_or(|node| found.keep(node.flag(Code::ManifestShape)) != Some(false));
    fields.finish(Code::ManifestUnknownField, found);
    Some(ToolPolicy { risk, read, write, network, environment, exec, enforced })
}

/// Reads `low`, `medium`, `high` or `critical`.
pub(super) fn read_risk(node: &Node<'_>) -> Result<Risk, Finding> {
    let text = node.text(Code::PolicyRisk)?;
    Risk::ALL.iter().find(|(name, _)| *name == text).map(|(_, risk)| *risk).ok_or_else(|| {
        Finding::new(Code::PolicyRisk, format!("`{text}` is not a risk"))
            .at(node.span)
            .help("write `low`, `medium`, `high` or `critical`")
    })
}

/// A list, or where `modes` allows it `"deny"` or `"allow"`. A stance that cannot be read is `None`.
fn read_stance(
    node: &Node<'_>,
    modes: bool,
    read: fn(&str) -> Result<Capability, Finding>,
    found: &mut Collector,
) -> Stance<Capability> {
    let what = if modes { "`\"deny\"`, `\"allow\"` or a list" } else { "a list" };
    match &node.value {
        Value::Text { text, .. } if modes && text == "deny" => Stance::None,
        Value::Text { text, .. } if modes && text == "allow" => Stance::All,
        Value::List(items) => {
            let lines: Vec<_> = items.iter().filter_map(|item| found.keep(read_line(item, read))).collect();
            if lines.is_empty() { Stance::None } else { Stance::Only(lines) }
        }
        Value::Text { text, .. } => {
            let message = format!("`{text}` is not a stance");
            found.push(Finding::new(Code::PolicyMode, message).at(node.span).help(format!("write {what}")));
            Stance::None
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Table(_) => {
            found.push(node.expected(Code::PolicyMode, what).help(format!("write {what}")));
            Stance::None
        }
    }
}

fn read_line(
    item: &Node<'_>,
    read: fn(&str) -> Result<Capability, Finding>,
) -> Result<Declared<Capability>, Finding> {
    let text = item.text(Code::ManifestShape)?;
    if text.chars().any(char::is_control) {
        return Err(Finding::new(Code::CapControl, "an entry contains a control character")
            .at(item.span)
            .help("remove it"));
    }
    Ok(Declared { value: item.place(read(text))?, span: item.span })
}

pub(super) fn read_path(text: &str) -> Result<Capability, Finding> {
    Ok(Capability::Fs { actions: FsActions::READ, path: parse_pattern(text, true)? })
}

pub(super) fn write_path(text: &str) -> Result<Capability, Finding> {
    Ok(Capability::Fs { actions: FsActions::WRITE, path: parse_pattern(text, true)? })
}

pub(super) fn host(text: &str) -> Result<Capability, Finding> {
    bailiwick_policy::capability::read_network_entry(text)
}

pub(super) fn variable(text: &str) -> Result<Capability, Finding> {
    check_env_name(text)?;
    Ok(Capability::Env { actions: EnvActions::READ, name: Some(text.into()) })
}

pub(super) fn program(text: &str) -> Result<Capability, Finding> {
    if text == "*" {
        return Err(Finding::new(Code::PolicyMode, "`*` is not a program")
            .at(Span::new(0, text.len()))
            .help("write `exec = \"allow\"` for every program"));
    }
    Ok(Capability::Exec { program: Some(parse_program(text)?), nested_sandbox: false, from_writable: false })
}
