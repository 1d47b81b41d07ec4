//! The same made by others: what strace saw, and what `sandlock learn` writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::World;
use super::super::client::Era;
use super::super::table::Server;
use super::atoms::{Atom, Trace, is_floor};

/// What is traced.
const CALLS: &str = "trace=%file,connect";
/// Calls that change what they name.
const CHANGES: [&str; 12] = [
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "symlink",
    "symlinkat",
    "truncate",
    "linkat",
];

/// Puts a program in front of a server with its arguments.
fn in_front(world: &World, server: &Server, entry: &Path, words: &[&str]) -> Command {
    let mut command = world.command(Path::new(words.first().unwrap()));
    command.args(words.get(1..).unwrap()).arg("--").arg(entry);
    command.args(server.args.iter().map(|word| world.fill(word)));
    command
}

/// The server held to a manifest.
pub(super) fn wrapped(world: &World, server: &Server, entry: &Path, manifest: &Path) -> Command {
    let program = env!("CARGO_BIN_EXE_bailiwick");
    let manifest = manifest.display().to_string();
    in_front(world, server, entry, &[program, "wrap", "--no-journal", "--manifest", &manifest])
}

/// What a bare server does while these calls are made.
pub(super) fn traced(world: &World, server: &Server, entry: &Path, calls: &[(&str, &str)]) -> Trace {
    world.prepare();
    let log = world.path("strace.log");
    let _ = std::fs::remove_file(&log);
    let words = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", CALLS, "-o", &log.display().to_string()];
    let command = in_front(world, server, entry, &words);
    world.answers_to(calls, server, Era::Legacy, command, true);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let mut trace = Trace::default();
    trace.variables.extend(server.variables.iter().map(|(name, _)| (*name).to_owned()));
    text.lines().for_each(|line| note(&mut trace, line));
    trace
}

/// `123 openat(AT_FDCWD</w>, "a.txt", O_RDONLY) = 3</w/a.txt>`
fn note(trace: &mut Trace, line: &str) {
    let Some((_, call)) = line.split_once(' ') else { return };
    let Some((name, rest)) = call.trim_start().split_once('(') else { return };
    let Some((arguments, result)) = rest.rsplit_once(") = ") else { return };
    if result.starts_with('-') && !result.contains("EINPROGRESS") {
        return;
    }
    if name == "connect" {
        let port = arguments.split("htons(").nth(1).and_then(|text| text.split(')').next());
        let host = arguments.split("inet_addr(\"").nth(1).and_then(|text| text.split('"').next());
        trace.hosts.extend(host.zip(port).map(|(host, port)| format!("{host}:{port}")));
        return;
    }
    let base = arguments
        .split(['<', '>'])
        .nth(1)
        .filter(|_| arguments.starts_with("AT_FDCWD") || name.ends_with("at"));
    let quoted: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
    let full = |text: &str| Path::new(base.unwrap_or("/")).join(text);
    let Some(first) = quoted.first() else { return };
    let writes = CHANGES.contains(&name)
        || arguments.contains("O_WRONLY")
        || arguments.contains("O_RDWR")
        || arguments.contains("O_CREAT");
    match name {
        "execve" | "execveat" => drop(trace.programs.insert(full(first))),
        _ if CHANGES.contains(&name) => trace.files.extend(quoted.iter().map(|text| (full(text), true))),
        "open" | "openat" | "creat" => {
            let path = full(first);
            if arguments.contains("O_RDWR") {
                trace.files.insert((path.clone(), false));
            }
            trace.files.insert((path, writes));
        }
        // Looking at a path is not reading it: a script that took these too would draft `/`.
        _ => {}
    }
}

/// A manifest with these lines for the whole server, that names its tools.
pub(super) fn manifest_of(server: &Server, lines: &[String]) -> String {
    let mut text = format!("name = \"{}\"\nversion = \"0\"\nserver_capabilities = [\n", server.name);
    for line in lines {
        text += &format!("  {},\n", serde_json::Value::from(line.as_str()));
    }
    text += "]\n";
    let tools: BTreeSet<&str> = server.calls.iter().map(|(tool, _)| *tool).collect();
    for tool in tools.iter().chain(server.uncalled) {
        text += &format!("[[tools]]\nname = \"{tool}\"\ncapabilities = []\n");
    }
    text
}

/// Where `scripts/bench learn` installs it.
fn sandlock() -> Option<String> {
    let cache = super::super::directory()?.parent()?.join("sandlock/bin/sandlock");
    cache.is_file().then(|| cache.display().to_string())
}

/// The profile that it writes.
pub(super) fn sandlock_profile(
    world: &World,
    server: &Server,
    entry: &Path,
    calls: &[(&str, &str)],
) -> Result<PathBuf, String> {
    let Some(program) = sandlock() else { return Err("not installed".to_owned()) };
    world.prepare();
    let profile = world.path("sandlock.toml");
    let _ = std::fs::remove_file(&profile);
    let shown = profile.display().to_string();
    let command = in_front(world, server, entry, &[&program, "learn", "-o", &shown]);
    let said = world.answers_to(calls, server, Era::Legacy, command, true);
    if profile.is_file() {
        return Ok(profile);
    }
    let last = said.complaint.lines().last().unwrap_or("no profile").to_owned();
    Err(format!("fails: {}", last.chars().take(31).collect::<String>()))
}

/// The server held to its profile.
pub(super) fn sandlocked(world: &World, server: &Server, entry: &Path, profile: &Path) -> Command {
    let program = sandlock().unwrap();
    in_front(world, server, entry, &[&program, "run", "--profile-file", &profile.display().to_string()])
}

/// What a profile grants beside the system and the server's own code.
pub(super) fn atoms_of_profile(profile: &Path, code: &[PathBuf]) -> BTreeSet<Atom> {
    let text = std::fs::read_to_string(profile).unwrap();
    let file: toml::Value = toml::from_str(&text).unwrap();
    let files = file.get("filesystem");
    let list = |key: &str| {
        let all = files.and_then(|files| files.get(key)).and_then(toml::Value::as_array);
        all.into_iter().flatten().filter_map(toml::Value::as_str).map(PathBuf::from).collect::<Vec<_>>()
    };
    let mut atoms = BTreeSet::new();
    for (key, writes) in [("read", false), ("write", true)] {
        let wanted = list(key).into_iter().filter(|path| {
            path == Path::new("/") || !(is_floor(path) || code.iter().any(|own| path.starts_with(own)))
        });
        atoms.extend(wanted.map(|path| Atom::Files { path, writes, depth: usize::MAX }));
    }
    atoms
}
