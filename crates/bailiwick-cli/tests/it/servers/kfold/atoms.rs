//! What a manifest or profile grants, atom by atom, and whether a trace needs it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::World;
use super::super::table::Server;

/// The most files that are counted below one directory.
const MOST_FILES: usize = 200_000;

/// What one line grants of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    /// A path, with everything below it, or its entries alone, or nothing below.
    Files {
        path: PathBuf,
        writes: bool,
        depth: usize,
    },
    Program(String),
    Host(String),
    Variable(String),
}

/// What was really done.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) files: BTreeSet<(PathBuf, bool)>,
    pub(super) programs: BTreeSet<PathBuf>,
    pub(super) hosts: BTreeSet<String>,
    /// The variables that the caller hands over: strace does not see who reads them.
    pub(super) variables: BTreeSet<String>,
}

impl Trace {
    pub(super) fn needs(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Files { path, writes, depth } => self.files.iter().any(|(touched, changed)| {
                let below = touched.strip_prefix(path).map(|rest| rest.components().count());
                changed == writes && below.is_ok_and(|below| below <= *depth)
            }),
            Atom::Program(name) => {
                self.programs.iter().any(|path| path.ends_with(name) || path == Path::new(name))
            }
            Atom::Host(name) => self.hosts.contains(name),
            Atom::Variable(name) => self.variables.contains(name),
        }
    }

    /// The lines that a script makes of it: each path that is neither the system's nor the server's own code or runtime.
    pub(super) fn draft(&self, code: &[PathBuf]) -> Vec<String> {
        let is_code = |path: &Path| code.iter().any(|own| path.starts_with(own));
        let is_own = |path: &Path| is_floor(path) || is_code(path);
        let files = self.files.iter().filter(|(path, _)| !is_own(path)).map(|(path, writes)| {
            format!("fs:{}:{}", if *writes { "read,write" } else { "read" }, path.display())
        });
        let programs = self.programs.iter().filter(|path| !is_code(path));
        let programs = programs.map(|path| match path.parent() {
            Some(dir) if is_floor(dir) => {
                format!("exec:spawn:{}", path.file_name().unwrap_or_default().to_string_lossy())
            }
            _ => format!("exec:spawn:{}", path.display()),
        });
        let hosts = self.hosts.iter().map(|host| format!("net:connect:{host}"));
        let variables = self.variables.iter().map(|name| format!("env:read:{name}"));
        files.chain(programs).chain(hosts).chain(variables).collect()
    }
}

/// What every sandbox of a program shows.
pub(super) fn is_floor(path: &Path) -> bool {
    ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/proc", "/sys", "/dev", "/etc"]
        .iter()
        .any(|floor| path.starts_with(floor))
        || path == Path::new("/")
}

/// The atoms of a manifest's lines.
pub(super) fn of_manifest(text: &str, world: &World, server: &Server) -> BTreeSet<Atom> {
    let variables: Vec<(&str, &str)> = text
        .lines()
        .skip_while(|line| *line != "[variables]")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(" = "))
        .collect();
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with('"') && line.ends_with(','));
    let lines = lines.map(|line| line.trim_matches(['"', ',']));
    lines.flat_map(|line| of_line(line, &variables, world, server)).collect()
}

fn of_line(line: &str, variables: &[(&str, &str)], world: &World, server: &Server) -> Vec<Atom> {
    let Some((axis, rest)) = line.split_once(':') else { return Vec::new() };
    let Some((action, target)) = rest.split_once(':') else { return Vec::new() };
    match axis {
        "fs" => {
            let (target, depth) = match target.strip_suffix("/*") {
                Some(dir) => (dir, 1),
                None => (target.trim_end_matches("/**"), usize::MAX),
            };
            let paths = paths_of(target, variables, world, server);
            let levels = action.split(',').map(|action| action != "read");
            let levels: BTreeSet<bool> = levels.collect();
            let atom = |path: &PathBuf, writes: bool| Atom::Files { path: path.clone(), writes, depth };
            paths.iter().flat_map(|path| levels.iter().map(move |writes| atom(path, *writes))).collect()
        }
        "exec" => vec![Atom::Program(target.to_owned())],
        "net" => vec![Atom::Host(host_of(target).to_owned())],
        "env" => vec![Atom::Variable(target.to_owned())],
        _ => Vec::new(),
    }
}

/// `a.test:80` of `GET@http://a.test:80/x`.
fn host_of(target: &str) -> &str {
    let url = target.split_once("://").map_or(target, |(_, rest)| rest);
    url.split('/').next().unwrap_or(url)
}

/// The paths that a target stands for in this world.
fn paths_of(target: &str, variables: &[(&str, &str)], world: &World, server: &Server) -> Vec<PathBuf> {
    let (first, rest) = target.split_at(target.find('/').unwrap_or(target.len()));
    let rest = rest.trim_start_matches('/');
    let base = match first.strip_prefix('$') {
        None if first == "~" => world.path("home"),
        None => return vec![PathBuf::from(target)],
        Some("WORKSPACE") => world.path("w"),
        Some(name) => {
            let binding = variables.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
            bound(binding, world, server)
        }
    };
    vec![if rest.is_empty() { base } else { base.join(rest) }]
}

/// The directory that a variable is bound to: an argument, the value of a flag, or a variable of the environment.
fn bound(binding: &str, world: &World, server: &Server) -> PathBuf {
    let named = binding.split('"').nth(1).unwrap_or_default();
    let word = if binding.contains("flag") {
        let at = server.args.iter().position(|word| *word == named);
        at.and_then(|at| server.args.get(at + 1)).map(|word| world.fill(word))
    } else if binding.contains("env") {
        server.variables.iter().find(|(name, _)| *name == named).map(|(_, value)| world.fill(value))
    } else {
        let at: usize = named.trim_end_matches("..").parse().unwrap_or(0);
        server.args.get(at).map(|word| world.fill(word))
    };
    let path = PathBuf::from(word.unwrap_or_default());
    if binding.contains("parent") { path.parent().unwrap_or(&path).to_owned() } else { path }
}

/// How many files of this host a program could open with it, beside what every sandbox shows.
pub(super) fn files_in_reach(atoms: &BTreeSet<Atom>) -> usize {
    let mut seen = BTreeSet::new();
    for atom in atoms {
        let Atom::Files { path, depth, .. } = atom else { continue };
        let mut open = vec![(path.clone(), 0)];
        while let Some((path, at)) = open.pop() {
            if seen.len() >= MOST_FILES {
                return seen.len();
            }
            let Ok(about) = path.symlink_metadata() else { continue };
            if about.is_file() {
                seen.insert(path);
            } else if about.is_dir() && at < *depth && !path.starts_with("/proc") && !path.starts_with("/sys")
            {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(entries.map(|entry| (entry.path(), at + 1)));
            }
        }
    }
    seen.len()
}
