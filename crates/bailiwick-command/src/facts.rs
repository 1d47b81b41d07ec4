//! What the host says of itself: the one place that looks at the environment, the working directory and the clock.
//!
//! A path variable has the value of `--set`, else that of the environment; `$WORKSPACE` is else the working
//! directory. Only variables that a manifest names are looked up. A value that is no clean absolute path is a
//! finding, never a guess.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use bailiwick_journal::OwnDirs;
use bailiwick_manifest::diff::Date;
use bailiwick_manifest::{Declared, Manifest};
use bailiwick_policy::capability::{Capability, Endpoint};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Span};
use bailiwick_policy::path::Root;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::companion::{BAILIWICK, COMPANIONS, beside};

/// The enrolment that holds for every user of this host.
const FLEET_OF_HOST: &str = "/etc/bailiwick/fleet";

/// One `--set NAME=PATH`.
#[derive(Debug, Clone)]
pub struct Setting {
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

impl Setting {
    /// Its name and its value.
    pub fn pair(&self) -> (String, String) {
        (self.name.clone(), self.path.clone())
    }
}

/// The host facts that `manifest` asks for.
pub fn for_manifest(manifest: &Manifest, settings: &[Setting]) -> Result<HostFacts, Vec<Finding>> {
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
pub fn of_settings(settings: &[Setting]) -> Result<HostFacts, Vec<Finding>> {
    let set = |facts: HostFacts, setting: &Setting| facts.with_variable(&setting.name, &setting.path);
    settings.iter().try_fold(HostFacts::unknown(), set).map_err(|finding| vec![finding])
}

/// The host facts that paths in source code ask for: relative ones are below `$WORKSPACE`, `~` is `$HOME`.
pub fn for_source(settings: &[Setting]) -> HostFacts {
    with_usual(HostFacts::unknown(), settings)
}

/// The same, added to what is known already.
pub fn with_usual(facts: HostFacts, settings: &[Setting]) -> HostFacts {
    ["HOME", "WORKSPACE"].iter().fold(facts, |facts, name| {
        let value = value(name, settings).filter(|_| facts.variable(name).is_none());
        // A value that is no clean path leaves the variable without one, so that nothing is covered by it.
        value.and_then(|value| facts.clone().with_variable(name, &value).ok()).unwrap_or(facts)
    })
}

/// Where a private directory may be made.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub fn scratch_dir() -> PathBuf {
    std::env::temp_dir()
}

/// Where facts are kept that can be gathered again.
pub fn cache_dir() -> Option<PathBuf> {
    own_dirs().cache
}

/// The files that may grant a session something, the first first: our own, and that of agent-bridle.
pub fn configurations() -> impl Iterator<Item = PathBuf> {
    let own = own_dirs();
    [own.config, bridle_dir(own.home)].into_iter().flatten().map(|dir| dir.join("config.toml"))
}

/// Where agent-bridle keeps its settings.
fn bridle_dir(home: Option<PathBuf>) -> Option<PathBuf> {
    home.map(|home| home.join(".agent-bridle"))
}

/// How many things can be done at the same time.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The journal's default directory.
pub fn journal_dir() -> Option<PathBuf> {
    own_dirs().journal()
}

/// Where Bailiwick keeps what is its own: keys, journal, trust, settings. Settings of agent-bridle grant too.
pub fn kept_dirs() -> impl Iterator<Item = PathBuf> {
    let own = own_dirs();
    let fleet = fleet_dir().filter(|dir| is_fleet_of_host(dir));
    [own.state, own.config, bridle_dir(own.home), fleet].into_iter().flatten()
}

#[cfg(target_os = "linux")]
/// The same host, where what is Bailiwick's own (keys, journal, trust, settings) is never visible in a sandbox.
pub fn with_own_paths(facts: HostFacts) -> HostFacts {
    kept_dirs()
        .filter_map(|dir| bailiwick_policy::path::AbsPath::new(dir.to_str()?).ok())
        .fold(facts, bailiwick_confine::host::with_own)
}

/// The directories that are Bailiwick's own.
fn own_dirs() -> OwnDirs {
    OwnDirs::new(variable_of_caller)
}

/// Where this host has the services that are granted by name.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub fn services() -> Vec<(Endpoint, PathBuf)> {
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
pub fn variable_of_caller(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// All of the caller's variables.
pub fn environment_of_caller() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// All of the caller's variables but these, of which no copy is made.
///
/// # Errors
/// If this process's own environment cannot be read.
#[cfg(target_os = "linux")]
pub fn environment_without(hidden: &[String]) -> std::io::Result<Vec<(OsString, OsString)>> {
    if hidden.is_empty() {
        Ok(environment_of_caller().collect())
    } else {
        bailiwick_broker::environment_without(hidden)
    }
}

/// Where trust, approvals, sessions and the journal are.
pub fn state_dir() -> Option<PathBuf> {
    own_dirs().state
}

/// Where ports are held on which Bailiwick itself listens: no sandbox reaches them.
pub fn ports_dir() -> Option<PathBuf> {
    Some(state_dir()?.join("ports"))
}

/// The directories that the caller's shell looks for programs in. A relative one counts for nothing.
pub fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The caller's variables by which version managers choose.
#[cfg(target_os = "linux")]
pub fn tool_variables() -> BTreeMap<OsString, OsString> {
    let named = bailiwick_launch::CHOOSING_VARIABLES.iter();
    named.filter_map(|name| Some(((*name).into(), variable_of_caller(name)?))).collect()
}

/// Where the user keeps the manifests of servers, each called after its server.
pub fn server_manifests() -> Option<PathBuf> {
    Some(own_dirs().config?.join("servers"))
}

/// The directories that this user has elsewhere than others, as variables: some clients pass none of them on.
pub fn unusual_directories() -> Vec<(String, String)> {
    let usual =
        [("XDG_CONFIG_HOME", ".config"), ("XDG_STATE_HOME", ".local/state"), ("XDG_CACHE_HOME", ".cache")];
    let home = home();
    let unusual = usual.into_iter().filter_map(|(name, below)| {
        let value = variable_of_caller(name).map(PathBuf::from).filter(|value| value.is_absolute())?;
        let is_usual = home.as_ref().is_some_and(|home| home.join(below) == value);
        Some((name.to_owned(), value.into_os_string().into_string().ok()?)).filter(|_| !is_usual)
    });
    unusual.collect()
}

/// The user's own settings.
pub fn settings_file() -> Option<PathBuf> {
    Some(own_dirs().config?.join("config.toml"))
}

/// Where the machine's enrolment in a fleet is: for all users of the host if that directory is there, else for this user.
pub fn fleet_dir() -> Option<PathBuf> {
    let of_host = PathBuf::from(FLEET_OF_HOST);
    // Whatever cannot be told about it (no right to look) counts as there: a reader then fails, and does not go without rules.
    let is_absent = matches!(of_host.symlink_metadata(), Err(fault) if fault.kind() == ErrorKind::NotFound);
    if !is_absent {
        return Some(of_host);
    }
    // A directory that this user may not look into is another user's, and so is what is enrolled there. Below a file nothing is.
    let own = own_dirs().config?.join("fleet");
    let is_foreign = matches!(
        own.join("fleet.toml").symlink_metadata(),
        Err(fault) if [ErrorKind::PermissionDenied, ErrorKind::NotADirectory].contains(&fault.kind())
    );
    (!is_foreign).then_some(own)
}

/// Whether this is the enrolment of all users: it is there, whatever is in it.
pub fn is_fleet_of_host(dir: &std::path::Path) -> bool {
    dir == std::path::Path::new(FLEET_OF_HOST)
}

/// Where a person's identity at the hub is: an approver's or an admin's. It narrows nothing.
pub fn fleet_person_dir() -> Option<PathBuf> {
    Some(own_dirs().config?.join("fleet").join("person"))
}

/// The user's home.
pub fn home() -> Option<PathBuf> {
    own_dirs().home
}

/// The working directory.
#[expect(clippy::disallowed_methods, reason = "this module is the edge where host facts are gathered")]
pub fn here() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// Where this program lies.
pub fn this_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// Where `bailiwick` lies: this program, or the one that started this companion.
pub fn own_program() -> Option<PathBuf> {
    let own = this_program()?;
    let is_companion =
        own.file_stem().is_some_and(|name| COMPANIONS.iter().any(|companion| name == *companion));
    Some(if is_companion { beside(&own, BAILIWICK) } else { own })
}

/// The cargo that runs this program in the source tree that it was built from.
pub fn cargo_run() -> Option<OsString> {
    let run_from = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let this_crate = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_this_tree = run_from.ends_with("bailiwick-cli") && run_from.parent() == this_crate.parent();
    std::env::var_os("CARGO").filter(|_| of_this_tree)
}

/// Now, in microseconds since 1970.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| u64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

/// Today, in UTC. A clock that is far off makes every accepted risk count as expired.
pub fn today() -> Date {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let part = |number: i8| u8::try_from(number).unwrap_or(0);
    Date {
        year: u16::try_from(today.year()).unwrap_or(u16::MAX),
        month: part(today.month()),
        day: part(today.day()),
    }
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
        | Capability::Listen(_)
        | Capability::Exec { .. }
        | Capability::Env { .. }
        | Capability::Broker { .. }
        | Capability::Ipc(_)
        | Capability::Clock(_)
        | Capability::Assert { .. } => None,
    }
}
