//! `[package]`: which server a manifest is for, by where it comes from.
//!
//! What a server is called in a registry, or where its program lies; never what it says of itself.

use bailiwick_policy::finding::{Code, Collector, Finding};
use bailiwick_policy::path::AbsPath;

use super::read::plain_text;
use crate::document::{Fields, Node};

/// Which server a manifest is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// `npm:NAME`, `pypi:NAME`, the real path of its program, or the `https:` URL of a server that runs elsewhere.
    pub identity: Option<String>,
    /// The versions that it was tried with.
    pub verified: Vec<String>,
    /// Whether the package's own scripts may run when it is installed.
    pub install_scripts: bool,
    /// Whether its tools keep nothing in the server's process, where they do not say it themselves.
    pub stateless: bool,
}

pub(super) fn read_package(node: &Node<'_>, found: &mut Collector) -> Package {
    let Some(mut fields) = found.keep(Fields::from_node(node, "a package", Code::ManifestShape)) else {
        return Package::default();
    };
    let identity = found.keep(fields.required("identity", Code::ManifestShape));
    let identity = identity.and_then(|node| found.keep(read_identity(node)));
    let verified =
        fields.optional("verified").map(|node| super::read::texts(node, found)).unwrap_or_default();
    let mut flag = |key| {
        fields.optional(key).and_then(|node| found.keep(node.flag(Code::ManifestShape))).unwrap_or(false)
    };
    let (install_scripts, stateless) = (flag("install_scripts"), flag("stateless"));
    fields.finish(Code::ManifestUnknownField, found);
    Package { identity, verified, install_scripts, stateless }
}

fn read_identity(node: &Node<'_>) -> Result<String, Finding> {
    let text = plain_text(node, "an identity")?;
    let plain = |name: &str| {
        let sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        (1..=214).contains(&name.len()) && name.chars().all(sign) && !name.starts_with(['.', '-'])
    };
    let is_npm = |name: &str| match name.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((scope, name)) => plain(scope) && plain(name),
        None => plain(name),
    };
    let known = match text.split_once(':') {
        Some(("npm", name)) => is_npm(name),
        Some(("pypi", name)) => plain(name) && !name.contains(['_', '.']),
        Some(("https", rest)) => {
            let host = rest.strip_prefix("//").and_then(|rest| rest.split('/').next()).unwrap_or_default();
            !host.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['#', '@'])
        }
        _ => AbsPath::new(text).is_ok(),
    };
    if known {
        return Ok(text.to_owned());
    }
    Err(Finding::new(
        Code::ManifestShape,
        format!("`{}` is not the identity of a server", text.escape_debug()),
    )
    .at(node.span)
    .help("write `npm:@scope/name`, `pypi:name` with `-` between words, the absolute path of its program, or an `https:` URL"))
}
