//! Refinements: `?name=value&name=value` behind the scope of the kinds that have them.

use super::{list, span_in};
use crate::capability::nearest;
use crate::finding::{Code, Finding, Span};

/// A refinement that some kind has. Each takes one value only: its absence says the opposite. `broker` takes a host, and may
/// be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refinement {
    NestedSandbox,
    FromWritable,
    OpenPrivate,
    RawProtocol,
    AllowEch,
    Loader,
    Code,
    Broker,
}

/// Name, value, and where it belongs.
const KNOWN: [(&str, &str, Refinement, &str); 8] = [
    ("nestedSandbox", "true", Refinement::NestedSandbox, "exec:spawn"),
    ("fromWritable", "true", Refinement::FromWritable, "exec:spawn"),
    ("blockPrivate", "false", Refinement::OpenPrivate, "net"),
    ("protocol", "raw", Refinement::RawProtocol, "net:connect"),
    ("ech", "allow", Refinement::AllowEch, "net:connect"),
    ("loader", "true", Refinement::Loader, "env:inject"),
    ("code", "true", Refinement::Code, "fs:read"),
    ("broker", "HOST", Refinement::Broker, "env:inject"),
];

/// The refinements of one capability that were not read yet.
pub(super) struct Refinements<'a> {
    read: Vec<(Refinement, Span)>,
    hosts: Vec<(&'a str, Span)>,
}

impl<'a> Refinements<'a> {
    /// Splits a scope at its first `?` and reads what follows.
    pub(super) fn split(text: &str, scope: &'a str) -> Result<(&'a str, Self), Finding> {
        let Some((scope, tail)) = scope.split_once('?') else { return Ok((scope, Self::none())) };
        let (mut read, mut hosts) = (Vec::new(), Vec::new());
        for item in tail.split('&') {
            if let Some(host) = item.strip_prefix("broker=") {
                hosts.push((host, span_in(text, item)));
                continue;
            }
            let (refinement, span) = read_one(text, item)?;
            if read.iter().any(|(other, _)| *other == refinement) {
                return Err(Finding::new(Code::RefinementDuplicate, format!("`{item}` is given twice"))
                    .at(span)
                    .help("give each refinement once"));
            }
            read.push((refinement, span));
        }
        Ok((scope, Self { read, hosts }))
    }

    const fn none() -> Self {
        Self { read: Vec::new(), hosts: Vec::new() }
    }

    /// The hosts of `broker`, which then count as understood.
    pub(super) fn take_hosts(&mut self) -> Vec<(&'a str, Span)> {
        std::mem::take(&mut self.hosts)
    }

    pub(super) fn find(&self, refinement: Refinement) -> Option<Span> {
        self.read.iter().find(|(own, _)| *own == refinement).map(|(_, span)| *span)
    }

    /// Whether the refinement is there; it then counts as understood.
    pub(super) fn take(&mut self, refinement: Refinement) -> bool {
        let before = self.read.len();
        self.read.retain(|(own, _)| *own != refinement);
        self.read.len() < before
    }

    /// Refuses what was not taken.
    pub(super) fn finish(&self, home: &str) -> Result<(), Finding> {
        if let Some((_, span)) = self.hosts.first() {
            return Err(wrong_kind("broker", "env:inject", home, *span));
        }
        let Some((refinement, span)) = self.read.first() else { return Ok(()) };
        let known = KNOWN.iter().find(|(_, _, own, _)| own == refinement);
        let (name, _, _, belongs) = known.copied().unwrap_or(("", "", Refinement::Loader, ""));
        Err(wrong_kind(name, belongs, home, *span))
    }
}

fn wrong_kind(name: &str, belongs: &str, home: &str, span: Span) -> Finding {
    Finding::new(Code::RefinementWrongKind, format!("`{name}` means nothing on `{home}`"))
        .at(span)
        .help(format!("it belongs to `{belongs}`; remove it here"))
}

fn read_one(text: &str, item: &str) -> Result<(Refinement, Span), Finding> {
    let span = span_in(text, item);
    let Some((name, value)) = item.split_once('=') else {
        return Err(Finding::new(Code::RefinementMalformed, format!("`{item}` is not a refinement"))
            .at(span)
            .help("write `?name=value`, with `&` between several"));
    };
    let Some((_, expected, refinement, _)) = KNOWN.iter().find(|(known, ..)| *known == name) else {
        let names = KNOWN.map(|(known, ..)| known);
        let help = match nearest(name, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                format!("the refinements are {}; a URL's query cannot be part of a capability", list(names))
            }
        };
        return Err(Finding::new(Code::RefinementUnknown, format!("there is no refinement `{name}`"))
            .at(span)
            .help(help));
    };
    if value == *expected {
        return Ok((*refinement, span));
    }
    Err(Finding::new(Code::RefinementValue, format!("`{name}` does not take `{value}`"))
        .at(span)
        .help(format!("write `{name}={expected}`, or leave it out")))
}

/// Splits `?code=…` off the end of a path; any other `?` there is a glob, or refused.
pub(super) fn split_code<'a>(text: &str, scope: &'a str) -> Result<(&'a str, Refinements<'a>), Finding> {
    let Some(at) = scope.find("?code=") else {
        refuse_in_path(text, scope)?;
        return Ok((scope, Refinements::none()));
    };
    let (path, tail) = scope.split_at_checked(at).unwrap_or((scope, ""));
    refuse_in_path(text, path)?;
    let (_, refinements) = Refinements::split(text, tail)?;
    Ok((path, refinements))
}

/// Refuses a refinement behind a scope that takes none; `?` alone is a glob.
pub(super) fn refuse_in_path(text: &str, scope: &str) -> Result<(), Finding> {
    for (at, _) in scope.match_indices('?') {
        let tail = scope.get(at + 1..).unwrap_or_default();
        let Some((name, _)) = tail.split_once('=') else { continue };
        let word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        if word {
            let kind = text.split(':').next().unwrap_or_default();
            let span = span_in(text, tail);
            return Err(Finding::new(
                Code::RefinementWrongKind,
                match kind {
                    "fs" => format!("`fs` has no refinement `{name}`"),
                    _ => format!("`{kind}` has no refinements, and `{name}=` looks like one"),
                },
            )
            .at(span)
            .help(match kind {
                "fs" => "remove it; to match a `=` behind a `?`, write `[=]`",
                _ => "remove it",
            }));
        }
    }
    Ok(())
}
