//! The argument gate: every path in a call's arguments, wherever it hides, must be within the tool's files.
//!
//! A string is a path if its key says so (`path`, `file`, `cwd`, …) or a mark of the manifest does; under other
//! keys if it is a `file:` URI, or starts with `/` and a directory that the host had at its top when the session
//! started. So free text that merely starts with `/` is left alone, answers are deterministic, and nothing tells
//! the caller what exists. A server's own annotations count for nothing.
//!
//! This looks at arguments, not at what the tool then does: the sandbox holds that.
//! Fails closed when a path cannot be judged or the arguments nest too deeply.

mod hosts;
mod keys;

pub(crate) use hosts::{HostRules, host_of};

pub use hosts::names_a_host;
pub use keys::names_a_path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bailiwick_manifest::ArgumentAccess;
use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::net::percent_decoded;
use bailiwick_policy::path::{AbsPath, PathPattern, PathScope};
use serde_json::Value;

use crate::resolve::{absolute, real};
use crate::surroundings::Surroundings;

/// How deep arguments may nest.
pub(crate) const MAX_DEPTH: usize = 64;

/// How one argument is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// A path that must be readable.
    Read,
    /// A path that must be writable.
    Write,
    /// A path that must be one of the two.
    Either,
    /// Not a path.
    Text,
}

impl Treatment {
    /// How an argument with this mark is treated; that it is a host says nothing about paths.
    pub(crate) const fn for_access(access: ArgumentAccess) -> Option<Self> {
        match access {
            ArgumentAccess::Read => Some(Self::Read),
            ArgumentAccess::Write => Some(Self::Write),
            ArgumentAccess::Path => Some(Self::Either),
            ArgumentAccess::Text => Some(Self::Text),
            ArgumentAccess::Host => None,
        }
    }
}

/// The files a tool declares, and what its arguments are.
#[derive(Debug, Clone)]
pub struct ArgumentRules {
    read: PathScope,
    write: PathScope,
    marks: BTreeMap<String, Treatment>,
}

impl ArgumentRules {
    /// Paths must be within `read` or `write`.
    #[must_use]
    pub const fn within(read: PathScope, write: PathScope) -> Self {
        Self { read, write, marks: BTreeMap::new() }
    }

    /// The same rules, with arguments marked by name; a mark wins over what the name suggests.
    #[must_use]
    pub fn with_marks(mut self, marks: BTreeMap<String, Treatment>) -> Self {
        self.marks = marks;
        self
    }

    /// Whether every path in the arguments is within the declared files.
    ///
    /// # Errors
    /// The denial of the first path that is not, or that cannot be judged.
    pub fn judge(&self, tool: &str, args: &Value, session: &Surroundings) -> Result<(), Denial> {
        self.walk(tool, args, None, session, 0)
    }

    /// `inherited` is the treatment of the nearest key above.
    fn walk(
        &self,
        tool: &str,
        value: &Value,
        inherited: Option<Treatment>,
        session: &Surroundings,
        depth: usize,
    ) -> Result<(), Denial> {
        if depth > MAX_DEPTH {
            return Err(too_deep(tool));
        }
        match value {
            Value::String(text) => self.judge_text(tool, text, inherited, session),
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.walk(tool, item, inherited, session, depth + 1))
            }
            Value::Object(fields) => fields.iter().try_for_each(|(key, item)| {
                // A key can carry a path as well as a value can.
                self.judge_text(tool, key, None, session)?;
                self.walk(tool, item, self.treatment(key, inherited), session, depth + 1)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// What the value under `key` is: by mark, by name, or as what it stands in.
    fn treatment(&self, key: &str, inherited: Option<Treatment>) -> Option<Treatment> {
        let named = || keys::names_a_path(key).then_some(Treatment::Either);
        self.marks.get(key).copied().or(inherited).or_else(named)
    }

    fn judge_text(
        &self,
        tool: &str,
        text: &str,
        treatment: Option<Treatment>,
        session: &Surroundings,
    ) -> Result<(), Denial> {
        let Some((path, treatment)) = path_in(text, treatment, session) else { return Ok(()) };
        let unreadable = |why: String| {
            let message = format!(
                "Tool '{tool}' denied by policy: path '{}' cannot be judged: {why}",
                text.escape_debug()
            );
            Denial::new(DenialCode::ArgumentUnreadable, message)
        };
        let path = path.map_err(|why| unreadable(why.to_owned()))?;
        let named = absolute(&path, session).map_err(|why| unreadable(why.to_string()))?;
        let leads_to = real(&named).map_err(|why| unreadable(why.to_string()))?;
        if self.covers(&leads_to, treatment) {
            Ok(())
        } else {
            Err(self.outside(tool, text, &leads_to, treatment))
        }
    }

    fn covers(&self, path: &AbsPath, treatment: Treatment) -> bool {
        match treatment {
            Treatment::Read => self.read.covers(path),
            Treatment::Write => self.write.covers(path),
            Treatment::Either => self.read.covers(path) || self.write.covers(path),
            Treatment::Text => true,
        }
    }

    fn outside(&self, tool: &str, text: &str, path: &AbsPath, treatment: Treatment) -> Denial {
        let declared = match treatment {
            Treatment::Read => shown(&[&self.read]),
            Treatment::Write => shown(&[&self.write]),
            Treatment::Either | Treatment::Text => shown(&[&self.read, &self.write]),
        };
        let leads = if path.to_string() == text { String::new() } else { format!(" (it leads to '{path}')") };
        let text = text.escape_debug();
        let message = format!(
            "Tool '{tool}' denied by policy: path '{text}'{leads} outside declared filesystem policy [{declared}]"
        );
        let actions = if treatment == Treatment::Write { FsActions::WRITE } else { FsActions::READ };
        let smallest = Capability::Fs { actions, path: PathPattern::below(path) };
        Denial::new(DenialCode::ArgumentOutsidePolicy, message).with_smallest([smallest])
    }
}

fn too_deep(tool: &str) -> Denial {
    let message = format!("Tool '{tool}' denied by policy: its arguments nest deeper than {MAX_DEPTH}");
    Denial::new(DenialCode::ArgumentTooDeep, message)
}

/// The path that a string names, which may be a `file:` URI.
pub(crate) fn local_path(text: &str) -> Result<String, &'static str> {
    strip_file_scheme(text).map_or_else(|| Ok(text.to_owned()), file_uri_path)
}

/// The path in a string, if it is one, and what must hold for it.
fn path_in(
    text: &str,
    treatment: Option<Treatment>,
    session: &Surroundings,
) -> Option<(Result<String, &'static str>, Treatment)> {
    let expected = treatment.unwrap_or(Treatment::Either);
    if expected == Treatment::Text {
        return None;
    }
    if let Some(uri) = strip_file_scheme(text) {
        return Some((file_uri_path(uri), expected));
    }
    if treatment.is_some() {
        return (!has_other_scheme(text)).then(|| (Ok(text.to_owned()), expected));
    }
    let first = text.strip_prefix('/')?.trim_start_matches('/').split('/').next().unwrap_or_default();
    (session.has_top_level(first) || text.starts_with("//")).then(|| (Ok(text.to_owned()), expected))
}

fn strip_file_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    // Parsers of URLs drop what is not printed.
    let printed = scheme.bytes().filter(|byte| *byte > b' ').map(|byte| byte.to_ascii_lowercase());
    printed.eq(*b"file").then_some(rest)
}

/// Whether the text is a URI of some other kind, which names nothing on this machine.
fn has_other_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    })
}

/// The decoded path of a `file:` URI, with or without an authority.
fn file_uri_path(rest: &str) -> Result<String, &'static str> {
    if rest.contains(['\t', '\n', '\r', '\\']) {
        return Err("its URI has a character that parsers of URLs drop, or read as `/`");
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let (host, _) = after.split_once('/').unwrap_or((after, ""));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err("its URI names another host");
            }
            after.get(host.len()..).unwrap_or_default()
        }
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_decoded(path).ok_or("its URI has a malformed escape")?;
    String::from_utf8(decoded).map_err(|_| "its URI is not UTF-8")
}

/// At most a handful of patterns, for a message.
fn shown(scopes: &[&PathScope]) -> String {
    let mut patterns = Vec::new();
    for scope in scopes {
        match scope {
            PathScope::None => {}
            PathScope::Any => patterns.push("/**".to_owned()),
            PathScope::Only(clauses) => {
                patterns.extend(
                    clauses.sets().flat_map(|set| set.patterns().map(|p| p.to_string()).collect::<Vec<_>>()),
                );
            }
        }
    }
    patterns.sort();
    patterns.dedup();
    let more = patterns.len().saturating_sub(8);
    patterns.truncate(8);
    if more > 0 {
        patterns.push(format!("and {more} more"));
    }
    patterns.join(", ")
}
