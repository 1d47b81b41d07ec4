//! What the host says of itself: the one place that looks at the environment, the working folder and the clock.
//!
//! A path variable has the value of `--set`, else that of the environment; `$WORKSPACE` is else the working
//! folder. Only variables that a manifest names are looked up. A value that is no clean absolute path is a
//! finding, never a guess.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use bailiwick_confine::host;
use bailiwick_policy::capability::{Capability, Endpoint};
use bailiwick_policy::diff::Date;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Span};
use bailiwick_policy::manifest::{Declared, Manifest};
use bailiwick_policy::path::{AbsPath, Root};

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

/// The host facts that settings alone give: the same on every host.
pub(crate) fn of_settings(settings: &[Setting]) -> Result<HostFacts, Vec<Finding>> {
    let set = |facts: HostFacts, setting: &Setting| facts.with_variable(&setting.name, &setting.path);
    settings.iter().try_fold(HostFacts::unknown(), set).map_err(|finding| vec![finding])
}

/// The host facts that paths in source code ask for: relative ones are below `$WORKSPACE`, `~` is `$HOME`.
pub(crate) fn for_source(settings: &[Setting]) -> HostFacts {
    with_usual(HostFacts::unknown(), settings)
}

/// The same, added to what is known already.
pub(crate) fn with_usual(facts: HostFacts, settings: &[Setting]) -> HostFacts {
    ["HOME", "WORKSPACE"].iter().fold(facts, |facts, name| {
        let value = value(name, settings).filter(|_| facts.variable(name).is_none());
        // A value that is no clean path leaves the variable without one, so that nothing is covered by it.
        value.and_then(|value| facts.clone().with_variable(name, &value).ok()).unwrap_or(facts)
    })
}

/// Where a private folder may be made.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub(crate) fn scratch_dir() -> PathBuf {
    std::env::temp_dir()
}

/// Where facts are kept that can be gathered again.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    own_dir("XDG_CACHE_HOME", ".cache")
}

/// The files that may grant a session something, the first first: our own, and that of agent-bridle.
pub(crate) fn configurations() -> impl Iterator<Item = PathBuf> {
    [own_dir("XDG_CONFIG_HOME", ".config"), bridle_dir()]
        .into_iter()
        .flatten()
        .map(|dir| dir.join("config.toml"))
}

/// Where agent-bridle keeps its settings.
fn bridle_dir() -> Option<PathBuf> {
    Some(home()?.join(".agent-bridle"))
}

/// How many things can be done at the same time.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Where the journal is unless someone says otherwise.
pub(crate) fn journal_dir() -> Option<PathBuf> {
    Some(state_dir()?.join("journal"))
}

/// Where Bailiwick keeps what is its own: keys, journal, trust, settings. Settings of agent-bridle grant too.
pub(crate) fn own_dirs() -> impl Iterator<Item = PathBuf> {
    [state_dir(), own_dir("XDG_CONFIG_HOME", ".config"), bridle_dir()].into_iter().flatten()
}

/// The same host, where what is Bailiwick's own (keys, journal, trust, settings) is never visible in a sandbox.
pub(crate) fn with_own_paths(facts: HostFacts) -> HostFacts {
    own_dirs().filter_map(|dir| AbsPath::new(dir.to_str()?).ok()).fold(facts, host::with_own)
}

/// A folder of Bailiwick's own below a base folder. A relative base counts for nothing.
fn own_dir(variable: &str, below_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| Some(home()?.join(below_home)));
    Some(base?.join("bailiwick"))
}

/// Where this host has the services that are granted by name.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub(crate) fn services() -> Vec<(Endpoint, PathBuf)> {
    let variable = |name| std::env::var(name).ok();
    let display = variable("DISPLAY").and_then(|display| {
        let number = display.strip_prefix(':')?.split('.').next()?.to_owned();
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| PathBuf::from(format!("/tmp/.X11-unix/X{number}")))
    });
    let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let wayland =
        runtime.as_ref().map(|dir| dir.join(variable("WAYLAND_DISPLAY").unwrap_or("wayland-0".to_owned())));
    let session = variable("DBUS_SESSION_BUS_ADDRESS")
        .and_then(|address| Some(PathBuf::from(address.strip_prefix("unix:path=")?.split(',').next()?)))
        .or_else(|| runtime.map(|dir| dir.join("bus")));
    let known = [
        (Endpoint::X11, display),
        (Endpoint::Wayland, wayland),
        (Endpoint::DbusSession, session),
        (Endpoint::DbusSystem, Some(PathBuf::from("/run/dbus/system_bus_socket"))),
    ];
    known
        .into_iter()
        .filter_map(|(endpoint, path)| Some((endpoint, path.filter(|path| path.is_absolute())?)))
        .collect()
}

/// The caller's value of a variable.
pub(crate) fn variable_of_caller(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// All of the caller's variables.
pub(crate) fn environment_of_caller() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Where trust, approvals, sessions and the journal are.
pub(crate) fn state_dir() -> Option<PathBuf> {
    own_dir("XDG_STATE_HOME", ".local/state")
}

/// The user's home.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// The working folder.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub(crate) fn here() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// Where this program lies.
pub(crate) fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
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
    for line in manifest.lines() {
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
