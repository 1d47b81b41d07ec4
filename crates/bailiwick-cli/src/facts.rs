//! What the host says of itself: the one place that looks at the environment, the working folder and the clock.
//!
//! A path variable has the value of `--set`, else that of the environment; `$WORKSPACE` is else the working
//! folder. Only variables that a manifest names are looked up. A value that is no clean absolute path is a
//! finding, never a guess.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use bailiwick_policy::capability::Capability;
use bailiwick_policy::diff::Date;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Span};
use bailiwick_policy::manifest::{Declared, Manifest, Stance};
use bailiwick_policy::path::Root;

/// One `--set NAME=PATH`.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    name: String,
    path: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').ok_or("write NAME=/absolute/path")?;
        let letter = |c: char| c.is_ascii_uppercase() || c == '_';
        let named = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
        if !named {
            return Err("the name has capital letters, digits and `_`, and no `$`".to_owned());
        }
        match HostFacts::unknown().with_variable(name, path) {
            Ok(_) => Ok(Self { name: name.to_owned(), path: path.to_owned() }),
            Err(finding) => Err(finding.message().to_owned()),
        }
    }
}

/// The host facts that `manifest` asks for.
pub(crate) fn for_manifest(manifest: &Manifest, settings: &[Setting]) -> Result<HostFacts, Vec<Finding>> {
    let mut facts = HostFacts::unknown();
    let mut found = Vec::new();
    for (name, span) in variables(manifest) {
        let Some(value) = value(name, settings) else { continue };
        match facts.clone().with_variable(name, &value) {
            Ok(more) => facts = more,
            Err(finding) => found.push(finding.at(span)),
        }
    }
    if found.is_empty() { Ok(facts) } else { Err(found) }
}

/// Where the journal is unless someone says otherwise. A relative `$XDG_STATE_HOME` counts for nothing.
pub(crate) fn journal_dir() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("bailiwick/journal"))
}

/// Now, in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| u64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

/// Today, in UTC.
pub(crate) fn today() -> Date {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::from_unix(since.map_or(0, |since| since.as_secs()))
}

#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
fn value(name: &str, settings: &[Setting]) -> Option<String> {
    if let Some(setting) = settings.iter().rev().find(|setting| setting.name == name) {
        return Some(setting.path.clone());
    }
    let here = || std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
    let named = std::env::var(name).ok();
    if name == "WORKSPACE" { named.or_else(here) } else { named }
}

/// The path variables of a manifest, each with the first line that uses it.
fn variables(manifest: &Manifest) -> BTreeMap<&str, Span> {
    let mut names = BTreeMap::new();
    let policies = manifest.tools().iter().filter_map(|tool| tool.policy());
    let stances = policies.flat_map(|policy| [policy.read(), policy.write()]);
    let of_policies = stances.flat_map(|stance| match stance {
        Stance::Only(lines) => &**lines,
        Stance::Unspecified | Stance::None | Stance::All => &[],
    });
    let of_tools = manifest.tools().iter().flat_map(|tool| tool.capabilities().unwrap_or_default());
    for line in manifest.server_capabilities().iter().chain(of_tools).chain(of_policies) {
        if let Some(name) = variable(line) {
            names.entry(name).or_insert(line.span);
        }
    }
    names
}

fn variable(line: &Declared<Capability>) -> Option<&str> {
    match &line.value {
        Capability::Fs { path, .. } => match path.root() {
            Root::Variable(name) => Some(name),
            Root::Slash => None,
        },
        Capability::Net(_)
        | Capability::Exec { .. }
        | Capability::Env { .. }
        | Capability::Ipc(_)
        | Capability::Clock(_)
        | Capability::Assert { .. } => None,
    }
}
