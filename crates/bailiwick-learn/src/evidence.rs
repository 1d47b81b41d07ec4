//! What was seen of a program, gathered access by access, and bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, PROGRAM_DIRECTORIES};

use crate::Provenance;
use crate::requests::{EVERY_PATH, MOST_PATHS as MOST_REQUESTED, RequestsSeen, form_of};

/// The most different paths that are remembered; more make the evidence incomplete.
const MOST_PATHS: usize = 100_000;
/// The same of programs, hosts and questions about them.
const MOST_OTHERS: usize = 2_000;
/// What a program that looks at its whole environment is said to read.
pub const EVERY_VARIABLE: &str = "*";
/// How many methods of requests to one host are remembered.
const MOST_METHODS: usize = 12;
/// How many variables of the environment are remembered, and how long their names may be.
const MOST_VARIABLES: usize = 64;
const LONGEST_NAME: usize = 100;

/// What was done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Touch {
    /// It was asked for.
    Look,
    /// It was read.
    Read,
    /// It was listed.
    List,
    /// It was there and was changed.
    Write,
    /// It was made.
    Make,
    /// It was removed or moved away.
    Remove,
}

impl Touch {
    pub(crate) const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Make | Self::Remove)
    }
}

/// A tool, and how often it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSeen {
    /// Its name.
    pub name: String,
    /// How many calls were made.
    pub calls: usize,
}

/// How it is known that a variable of the environment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The runtime said so while the program ran.
    Observed,
    /// The program's code names it.
    Assumed,
}

/// What was done with one path.
#[derive(Debug, Clone, Default)]
pub struct PathSeen {
    pub(crate) touches: BTreeSet<Touch>,
    /// What the sandbox did not show, though the host has it.
    pub(crate) refused: BTreeSet<Touch>,
    pub(crate) by: Provenance,
}

/// A host, and whether it was reached.
#[derive(Debug, Clone, Default)]
pub struct HostSeen {
    pub(crate) is_allowed: bool,
    /// Its unencrypted requests, by the form of their paths.
    pub(crate) requests: BTreeMap<String, RequestsSeen>,
    /// Whether it was reached with anything else than such requests.
    pub(crate) is_reached_otherwise: bool,
    pub(crate) by: Provenance,
}

/// A path variable of the manifest with the directories that it stood for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundVariable {
    /// Its name, without `$`.
    pub name: String,
    /// How the manifest binds it: the text behind `NAME =`.
    pub binding: String,
    /// The directories.
    pub values: Vec<AbsPath>,
}

/// What was seen of a program.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What the manifest is to be called.
    pub name: String,
    /// Which package it is for.
    pub identity: Option<String>,
    /// The version of that package.
    pub package_version: Option<String>,
    /// Whether the package's own scripts ran when it was fetched.
    pub install_scripts: bool,
    /// What starts it, for a program that is no server.
    pub command: Option<Vec<String>>,
    /// The caller's home.
    pub home: Option<AbsPath>,
    /// Where the program was started.
    pub here: Option<AbsPath>,
    /// What is never granted without a question.
    pub places: SensitivePlaces,
    /// What every sandbox of this command shows already, with everything below.
    pub shown: Vec<AbsPath>,
    /// Directories that the sandbox has of its own, empty at first: what the program does there needs no line.
    pub private: Vec<AbsPath>,
    /// Directories of the host that were opened although they lie in a private one.
    pub opened: Vec<AbsPath>,
    /// Variables bound to the command's own words.
    pub variables: Vec<BoundVariable>,
    /// The tools that were listed.
    pub tools: Vec<ToolSeen>,
    /// The environment variables that were handed over, by name.
    pub handed_over: Vec<String>,
    /// Hashes of programs and libraries outside of the system, by path.
    pub pinned_files: BTreeMap<String, String>,
    /// Ports that it listened on.
    pub ports: BTreeSet<u16>,
    pub(crate) paths: BTreeMap<String, PathSeen>,
    pub(crate) programs: BTreeMap<String, Provenance>,
    pub(crate) hosts: BTreeMap<(String, Option<u16>), HostSeen>,
    pub(crate) protected: BTreeMap<String, Provenance>,
    /// Who asked for Unix sockets, if anything did.
    pub(crate) sockets: Option<Provenance>,
    /// Environment variables that it reads, by name, and how that is known.
    pub(crate) variables_read: BTreeMap<String, Seen>,
    /// Those of them that the caller has.
    pub(crate) variables_of_caller: BTreeSet<String>,
    /// Why not everything is known, if it is not.
    pub incomplete: Option<String>,
    /// The number of the call in flight, from 1.
    call: usize,
    /// What that call was given.
    words: Vec<String>,
    /// The last call of a tool that touched something, and how many did.
    counted: BTreeMap<(String, usize), (usize, usize)>,
}

impl Evidence {
    /// Nothing yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: None,
            package_version: None,
            install_scripts: false,
            command: None,
            home: None,
            here: None,
            places: SensitivePlaces::new(None, []),
            shown: Vec::new(),
            private: Vec::new(),
            opened: Vec::new(),
            variables: Vec::new(),
            tools: Vec::new(),
            handed_over: Vec::new(),
            pinned_files: BTreeMap::new(),
            ports: BTreeSet::new(),
            paths: BTreeMap::new(),
            programs: BTreeMap::new(),
            hosts: BTreeMap::new(),
            protected: BTreeMap::new(),
            sockets: None,
            variables_read: BTreeMap::new(),
            variables_of_caller: BTreeSet::new(),
            incomplete: None,
            call: 0,
            words: Vec::new(),
            counted: BTreeMap::new(),
        }
    }

    /// How many different paths were touched.
    #[must_use]
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// The next call begins, with these words in its arguments.
    pub fn begin_call(&mut self, tool: usize, words: Vec<String>) {
        self.call += 1;
        self.words = words;
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.calls += 1;
        }
    }

    /// A path was touched; `is_shown` says whether the sandbox had it there.
    pub fn touch(&mut self, tool: Option<usize>, path: &str, touch: Touch, is_shown: bool) {
        if !self.paths.contains_key(path) && self.paths.len() >= MOST_PATHS {
            self.lost(&format!("more than {MOST_PATHS} paths were touched"));
            return;
        }
        let by = self.provenance(tool, path);
        let seen = self.paths.entry(path.to_owned()).or_default();
        if is_shown {
            seen.touches.insert(touch)
        } else {
            seen.refused.insert(touch)
        };
        seen.by.add(&by);
    }

    /// A program was started, by this path.
    pub fn started(&mut self, tool: Option<usize>, path: &str) {
        if !self.programs.contains_key(path) && self.programs.len() >= MOST_OTHERS {
            self.lost(&format!("more than {MOST_OTHERS} programs were started"));
            return;
        }
        let by = self.provenance(tool, path);
        self.programs.entry(path.to_owned()).or_default().add(&by);
    }

    /// A name that runs code later was to be changed, and stayed closed.
    pub fn protected(&mut self, tool: Option<usize>, path: &str) {
        if !self.protected.contains_key(path) && self.protected.len() >= MOST_OTHERS {
            return; // its questions are bounded anyway
        }
        let by = self.provenance(tool, path);
        self.protected.entry(path.to_owned()).or_default().add(&by);
    }

    /// A Unix socket was asked for, and refused.
    pub fn asked_for_socket(&mut self, tool: Option<usize>) {
        let by = self.provenance(tool, "");
        self.sockets.get_or_insert_default().add(&by);
    }

    /// A variable of the environment is read: the name alone is kept, and what was observed outweighs what is assumed.
    /// `is_had` says whether the caller has one of that name.
    pub fn reads_variable(&mut self, name: &str, how: Seen, is_had: bool) {
        let is_name = name.len() <= LONGEST_NAME
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let most = if is_had { 2 * MOST_VARIABLES } else { MOST_VARIABLES };
        if !(is_name || name == EVERY_VARIABLE)
            || (!self.variables_read.contains_key(name) && self.variables_read.len() >= most)
        {
            return; // nothing is granted by it
        }
        let known = self.variables_read.entry(name.to_owned()).or_insert(how);
        *known = (*known).min(how);
        if is_had {
            self.variables_of_caller.insert(name.to_owned());
        }
    }

    /// A host was asked for.
    pub fn reached(&mut self, tool: Option<usize>, host: &str, port: Option<u16>, is_allowed: bool) {
        if let Some(seen) = self.host(tool, host, port, is_allowed) {
            seen.is_reached_otherwise |= is_allowed;
        }
    }

    fn host(
        &mut self,
        tool: Option<usize>,
        host: &str,
        port: Option<u16>,
        is_allowed: bool,
    ) -> Option<&mut HostSeen> {
        let key = (host.to_owned(), port);
        if !self.hosts.contains_key(&key) && self.hosts.len() >= MOST_OTHERS {
            self.lost(&format!("more than {MOST_OTHERS} hosts were asked for"));
            return None;
        }
        let by = self.provenance(tool, host);
        let seen = self.hosts.entry(key).or_default();
        seen.is_allowed |= is_allowed;
        seen.by.add(&by);
        Some(seen)
    }

    /// An unencrypted request that was let through: its method and path.
    pub fn requested(&mut self, tool: Option<usize>, host: &str, port: u16, request: &str) {
        let (method, target) = request.split_once(' ').unwrap_or((request, "/"));
        let is_method =
            (1..=20).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let words = if tool.is_some() { self.words.as_slice() } else { &[] };
        let form = form_of(host, target, words);
        let first = format!("{host} {request}");
        let by = self.provenance(tool, &first);
        let Some(seen) = self.host(tool, host, Some(port), true) else { return };
        if !is_method {
            seen.is_reached_otherwise = true;
            return;
        }
        let is_known = seen.requests.contains_key(&form) || seen.requests.len() < MOST_REQUESTED;
        let form = if is_known { form } else { EVERY_PATH.to_owned() };
        let kept = seen.requests.entry(form).or_default();
        kept.by.add(&by);
        if kept.methods.len() < MOST_METHODS || kept.methods.contains(method) {
            kept.methods.insert(method.to_owned());
        } else {
            seen.is_reached_otherwise = true;
        }
    }

    /// Hosts that it asked for and was refused, with their ports where they are known.
    pub fn refused_hosts(&self) -> impl Iterator<Item = (&str, Option<u16>)> {
        let refused = self.hosts.iter().filter(|(_, seen)| !seen.is_allowed);
        refused.map(|((host, port), _)| (host.as_str(), *port))
    }

    /// Programs and libraries that come with the command and lie outside of the system: what is pinned.
    pub fn own_code(&self) -> impl Iterator<Item = &str> {
        let is_own = |path: &&String| {
            AbsPath::new(path).is_ok_and(|path| self.shown.iter().any(|shown| path.is_within(shown)))
                && !PROGRAM_DIRECTORIES.iter().any(|directory| Path::new(path).starts_with(directory))
                && !BASE.iter().any(|entry| Path::new(path).starts_with(entry.path))
        };
        let read =
            self.paths.iter().filter(|(path, seen)| seen.touches.contains(&Touch::Read) && is_library(path));
        let all = self.programs.keys().chain(read.map(|(path, _)| path));
        all.filter(is_own).map(String::as_str)
    }

    /// Not everything is known; the first reason counts.
    pub fn lost(&mut self, why: &str) {
        self.incomplete.get_or_insert_with(|| why.to_owned());
    }

    /// Who touches something now: a call counts once, however often it does.
    fn provenance(&mut self, tool: Option<usize>, first: &str) -> Provenance {
        let mut by =
            Provenance { background: tool.is_none(), first: first.to_owned(), ..Provenance::default() };
        if let Some(tool) = tool {
            let (last, count) = self.counted.entry((first.to_owned(), tool)).or_default();
            *count += usize::from(*last != self.call);
            *last = self.call;
            by.tools.insert(tool, *count);
        }
        by
    }
}

/// `libc.so.6`, `_ssl.cpython-311.so`, `addon.node`.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with(".so") || name.ends_with(".node") || name.contains(".so.")
}
