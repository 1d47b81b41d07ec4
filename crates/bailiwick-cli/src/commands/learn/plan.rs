//! What a program may do while it is watched: read what is not sensitive, write on a layer, start any program, reach no host
//! but the hosts that the caller names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_command::args::learn::Watched;
use bailiwick_command::facts;
use bailiwick_command::pinned_files::hash_of;
use bailiwick_launch::HostPlanner;
use bailiwick_learn::{
    ArgumentPath, BoundVariable, Evidence, MOST_PINNED, SECRETS_OF_SYSTEM, guess_variables, is_secret_name,
};
use bailiwick_manifest::Manifest;
use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use bailiwick_store::{StoreHost, with_host_values};

use super::asked::hosts;
use super::names::manifest_lines;
use super::subject::Subject;

/// What is not read while a program is watched, also where its user may read it: homes, other programs' data, what the sandbox has of its
/// own or shows anyway.
const UNREAD: [&str; 26] = [
    "/home",
    "/root",
    "/Users",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/tmp",
    "/boot",
    "/lost+found",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/var/tmp",
    "/var/log",
    "/var/spool",
    "/var/lib",
    "/var/run",
    "/etc/ssl",
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
];
/// How many entries are looked at for files of secrets, and how many are hidden.
const MOST_LOOKED_AT: usize = 20_000;
const MOST_HIDDEN: usize = 64;
/// Directories that hold other people's code, and no secrets of the caller.
const CODE: [&str; 4] = ["node_modules", "site-packages", ".git", "target"];

/// How a program is watched.
pub(super) struct Setup {
    pub(super) subject: Subject,
    places: SensitivePlaces,
    variables: Vec<BoundVariable>,
    /// Directories that are opened for writing on the layer.
    written: BTreeSet<PathBuf>,
    /// Directories that are opened for reading.
    reads: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    hosts: Vec<String>,
    handed_over: Vec<String>,
    /// Whether runtimes say which variables are read.
    names_variables: bool,
    /// What is worth knowing.
    pub(super) notes: Vec<String>,
}

impl Setup {
    /// # Errors
    /// What of the command line cannot be used.
    pub(super) fn new(args: &Watched, subject: Subject) -> anyhow::Result<Self> {
        let places = places(&subject.host);
        let mut notes = Vec::new();
        let mut written = BTreeSet::new();
        let here = subject.host.cwd.clone();
        match judged(&places, &here) {
            None => drop(written.insert(here)),
            Some(why) => notes.push(format!(
                "the current directory `{}` is not opened: {why}; start it in a directory of its own",
                here.display()
            )),
        }
        let environment: Vec<(String, String)> = args
            .variables
            .iter()
            .filter_map(|name| Some((name.clone(), facts::variable_of_caller(name)?.into_string().ok()?)))
            .collect();
        if let Some(unset) =
            args.variables.iter().find(|name| !environment.iter().any(|(known, _)| known == *name))
        {
            anyhow::bail!("`--env {unset}`: you have no variable of that name");
        }
        let words: Vec<String> =
            subject.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let guessed = guess_variables(&words, &environment, |word| what_is_at(&subject.host, word));
        let mut variables = Vec::new();
        for guess in guessed {
            match values(&subject, &guess.name, &guess.binding) {
                Ok(values) => {
                    written.extend(values.iter().map(|value| PathBuf::from(value.to_string())));
                    // `run` binds none: what a program that is no server was given stays what it is.
                    if subject.is_server {
                        variables.push(BoundVariable { name: guess.name, binding: guess.binding, values });
                    }
                }
                Err(why) => notes.push(format!("{why:#}")),
            }
        }
        written.retain(|dir| dir.is_dir());
        let is_variable = |name: &str| {
            variables.iter().any(|variable| variable.binding.contains(&format!("env = {name:?}")))
        };
        let handed_over = args.variables.iter().filter(|name| !is_variable(name)).cloned().collect();
        let reads: Vec<PathBuf> = args
            .reads
            .iter()
            .map(|dir| dir.canonicalize().with_context(|| format!("cannot use `--read {}`", dir.display())))
            .collect::<Result<_, _>>()?;
        if let Some(odd) = written.iter().chain(&reads).find(|dir| !is_literal(dir)) {
            anyhow::bail!("`{}` has characters that no line can name; learn it elsewhere", odd.display());
        }
        let mut setup = Self {
            subject,
            places,
            variables,
            written,
            reads,
            hidden: Vec::new(),
            hosts: hosts(args),
            handed_over,
            names_variables: false,
            notes,
        };
        setup.hide_secrets()?;
        Ok(setup)
    }

    /// The same, with runtimes that say which variables are read.
    #[must_use]
    pub(super) const fn naming_variables(mut self) -> Self {
        self.names_variables = true;
        self
    }

    /// The hosts that it may reach.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Lets it reach these hosts too.
    pub(super) fn reach(&mut self, hosts: Vec<String>) {
        self.hosts.extend(hosts);
    }

    /// Hashes of the code that comes with the command and lies outside of the system. Packages that were fetched are sealed
    /// already.
    pub(super) fn pinned_files(&self, evidence: &Evidence) -> BTreeMap<String, String> {
        let own = evidence.own_code().map(PathBuf::from).chain(self.subject.program());
        let real = own.filter_map(|path| path.canonicalize().ok());
        let is_foreign = |path: &PathBuf| {
            !path.starts_with(&self.subject.host.packages)
                && !["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|system| path.starts_with(system))
        };
        let all: BTreeSet<PathBuf> = real.filter(is_foreign).collect();
        let pinned = all.into_iter().take(MOST_PINNED);
        pinned.filter_map(|path| Some((path.to_str()?.to_owned(), hash_of(&path).ok()?))).collect()
    }

    /// Nothing seen yet.
    pub(super) fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::new(&self.subject.name);
        let path = |path: &Path| path.to_str().and_then(|text| AbsPath::new(text).ok());
        evidence.identity.clone_from(&self.subject.identity);
        evidence.package_version.clone_from(&self.subject.version);
        evidence.home = self.subject.host.home.as_deref().and_then(path);
        let here = &self.subject.host.cwd;
        evidence.here = self.written.contains(here).then(|| path(here)).flatten();
        evidence.places = self.places.clone();
        evidence.variables.clone_from(&self.variables);
        let private = [Path::new("/tmp"), Path::new("/var/tmp")].into_iter().filter_map(path);
        evidence.private = private.chain(evidence.home.clone()).collect();
        evidence.opened = self.written.iter().chain(&self.reads).filter_map(|dir| path(dir)).collect();
        evidence.handed_over.clone_from(&self.handed_over);
        if !self.subject.is_server {
            let words = self.subject.command.iter().map(|word| word.to_string_lossy().into_owned());
            evidence.command = Some(words.collect());
        }
        evidence
    }

    /// The plan of the sandbox; without hosts and variables of the caller's unless `is_trusted` says that a person chose the
    /// calls.
    pub(super) fn plan(&self, is_trusted: bool) -> anyhow::Result<Plan> {
        let mut lines = vec!["exec:spawn:*".to_owned()];
        lines.extend(self.readable().iter().map(|dir| format!("fs:read:{}", dir.display())));
        lines.extend(self.reads.iter().map(|dir| format!("fs:read:{}", dir.display())));
        lines.extend(self.written.iter().map(|dir| format!("fs:read,write:{}", dir.display())));
        if is_trusted {
            // Where requests are not encrypted, their methods and paths are seen.
            lines.extend(self.hosts.iter().map(|host| match host.strip_suffix(":80") {
                Some(host) => format!("net:http:*@http://{host}/**"),
                None => format!("net:connect:{host}"),
            }));
            lines.extend(self.handed_over.iter().map(|name| format!("env:read:{name}")));
        }
        let capabilities = lines.iter().map(|line| {
            Capability::new(line).map_err(|finding| anyhow::anyhow!("`{line}`: {}", finding.message()))
        });
        let capabilities = capabilities.collect::<anyhow::Result<Vec<_>>>()?;
        let names = if self.names_variables { manifest_lines(&self.handed_over) } else { String::new() };
        let empty = format!("name = \"learn\"\nversion = \"0\"\n{names}{}", self.bindings());
        let manifest = Manifest::parse(&empty).map_err(|findings| anyhow::anyhow!("{findings}"))?;
        let host = &self.subject.host;
        let manifest = with_host_values(manifest, &self.subject.arguments, &[], host)?;
        plan_of(manifest.with_capabilities(capabilities), host, &self.hidden)
    }

    /// The variables as a manifest binds them, so that those of the environment have their values.
    fn bindings(&self) -> String {
        let lines = self.variables.iter().map(|one| format!("{} = {}\n", one.name, one.binding));
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { format!("[variables]\n{lines}") }
    }

    /// What of the host may be read: directory by directory, around what may not.
    fn readable(&self) -> Vec<PathBuf> {
        let mut unread: Vec<PathBuf> = UNREAD.iter().chain(&SECRETS_OF_SYSTEM).map(PathBuf::from).collect();
        unread.extend(self.subject.host.home.iter().cloned());
        let (mut found, mut looked) = (Vec::new(), vec![PathBuf::from("/")]);
        while let Some(dir) = looked.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_unread = unread.iter().any(|other| path.starts_with(other));
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_unread || is_link {
                    continue;
                }
                if path == Path::new("/etc") || unread.iter().any(|other| other.starts_with(&path)) {
                    looked.push(path);
                } else if is_readable(&path, dir != Path::new("/")) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Finds files of secrets in what is opened, so that the program does not see them.
    fn hide_secrets(&mut self) -> anyhow::Result<()> {
        let mut left = MOST_LOOKED_AT;
        let mut looked: Vec<PathBuf> = self.written.iter().chain(&self.reads).cloned().collect();
        while let Some(dir) = looked.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let Some(less) = left.checked_sub(1) else {
                    let note =
                        format!("files of secrets are hidden among the first {MOST_LOOKED_AT} entries only");
                    self.notes.push(note);
                    return Ok(());
                };
                left = less;
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if kind.is_dir() && !CODE.contains(&&*name) {
                    looked.push(entry.path());
                } else if kind.is_file() && is_secret_name(&name) {
                    self.hidden.push(entry.path());
                }
            }
        }
        let count = self.hidden.len();
        anyhow::ensure!(
            count <= MOST_HIDDEN,
            "{count} files of secrets lie in what the program would see, the first is `{}`; learn it in another directory",
            self.hidden.first().map_or(Path::new(""), PathBuf::as_path).display()
        );
        Ok(())
    }
}

/// The plan of a manifest on this host, with these paths hidden.
pub(super) fn plan_of(manifest: Manifest, host: &StoreHost, hidden: &[PathBuf]) -> anyhow::Result<Plan> {
    let known = facts::for_manifest(&manifest, &[]).map_err(|findings| first_of(&findings))?;
    let checked = manifest.check(&known).map_err(|findings| anyhow::anyhow!("{findings}"))?;
    let planner = HostPlanner::new(facts::with_own_paths(known)).with_home(host.home.as_deref());
    let planner = hidden.iter().try_fold(planner, |planner, path| planner.hiding(path))?;
    Ok(planner.plan(|facts| checked.server_plan(facts))?)
}

fn first_of(findings: &[bailiwick_policy::finding::Finding]) -> anyhow::Error {
    anyhow::anyhow!("{}", findings.first().map_or("", |finding| finding.message()))
}

/// The directories that a variable stands for here.
fn values(subject: &Subject, name: &str, binding: &str) -> anyhow::Result<Vec<AbsPath>> {
    let text = format!(
        "name = \"v\"\nversion = \"0\"\nserver_capabilities = [\"fs:read:${name}\"]\n[variables]\n{name} = {binding}\n"
    );
    let manifest = Manifest::parse(&text).map_err(|findings| anyhow::anyhow!("{findings}"))?;
    let manifest = with_host_values(manifest, &subject.arguments, &[], &subject.host)?;
    let paths = manifest.lines().filter_map(|line| {
        let text = line.value.to_string();
        AbsPath::new(text.strip_prefix("fs:read:")?).ok()
    });
    // Links are followed: what is seen has the real path.
    let real = paths.map(|path| {
        let real = PathBuf::from(path.to_string()).canonicalize().ok();
        real.and_then(|real| AbsPath::new(real.to_str()?).ok()).unwrap_or(path)
    });
    Ok(real.collect())
}

/// What the host has at a word of the command.
fn what_is_at(host: &StoreHost, word: &str) -> ArgumentPath {
    let below_home = word.strip_prefix("~/").zip(host.home.as_ref()).map(|(rest, home)| home.join(rest));
    let path = below_home.unwrap_or_else(|| host.cwd.join(word));
    let is_written_as_path = word.contains('/') || word == "." || word == "..";
    if path.is_dir() && !word.is_empty() {
        return ArgumentPath::Directory;
    }
    let is_in_directory = path.parent().is_some_and(Path::is_dir);
    if (path.exists() || is_written_as_path) && is_in_directory && !word.contains("://") && !word.is_empty() {
        ArgumentPath::Entry
    } else {
        ArgumentPath::No
    }
}

fn is_readable(path: &Path, files_too: bool) -> bool {
    let is_wanted = path.is_dir() || (files_too && path.is_file());
    is_wanted && is_literal(path) && rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

/// Whether a line that ends with this path means the path and nothing else.
fn is_literal(path: &Path) -> bool {
    let is_special = |c: char| c.is_control() || "*?[]{}$~\\".contains(c);
    path.to_str().is_some_and(|text| !text.contains(is_special))
}

/// The sensitive places of this host.
fn places(host: &StoreHost) -> SensitivePlaces {
    let path = |path: &Path| path.to_str().and_then(|text| AbsPath::new(text).ok());
    let own = host.facts.protected().iter().cloned().chain(path(&host.packages));
    let places = SensitivePlaces::new(host.home.as_deref().and_then(path), own);
    places.following(|place| path(&PathBuf::from(place.to_string()).canonicalize().ok()?))
}

fn judged(places: &SensitivePlaces, dir: &Path) -> Option<String> {
    let Some(path) = dir.to_str().and_then(|text| AbsPath::new(text).ok()) else {
        return Some("its path is not UTF-8".to_owned());
    };
    places.judge(&path).map(|why| why.to_string())
}

/// The caller's values of what a plan lets be read.
pub(super) fn environment(plan: &Plan) -> BTreeMap<OsString, OsString> {
    let wanted = plan.environment();
    let names = wanted.injected.iter().chain(&wanted.read).map(|name| &*name.value);
    let names = names.filter(|name| !wanted.fixed.contains_key(*name));
    names.filter_map(|name| Some((name.into(), facts::variable_of_caller(name)?))).collect()
}
