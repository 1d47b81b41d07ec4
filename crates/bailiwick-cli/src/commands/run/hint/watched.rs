//! What a command was refused, as the sandbox saw it: each with the grant for just that.
//!
//! A program that was refused is named by what it was called, a file by its path: never a directory where a file was
//! meant, never more than was asked for. What the host does not have either is not named.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bailiwick_launch::{Observation, Observations};
use bailiwick_policy::plan::{Network, PROGRAM_DIRECTORIES, Plan};

use super::{is_masked, is_visible, is_written_plainly, with_modules};

/// The most hints of one kind: more do not help.
const MOST: usize = 12;
/// How much of a script is read.
const LONGEST_SCRIPT: u64 = 128 * 1024;
/// Ports from here on are chosen by the kernel, for connections of a program with itself.
const CHOSEN: u16 = 32768;
/// Ports whose servers speak neither TLS nor HTTP at first: SSH, MySQL, PostgreSQL, Redis, memcached, MongoDB.
const SPEAKS_NEITHER: [u16; 6] = [22, 3306, 5432, 6379, 11211, 27017];

/// Programs that a shell has in itself.
const BUILTINS: [&str; 25] = [
    "alias", "bg", "cd", "command", "echo", "false", "fc", "fg", "getopts", "hash", "jobs", "kill", "printf",
    "pwd", "read", "set", "test", "times", "true", "type", "ulimit", "umask", "unalias", "wait", "[",
];
/// Programs that look for a shell and do not try to start one that is absent.
const MAKERS: [&str; 3] = ["make", "gmake", "ninja"];

/// What a command listened on that nothing outside reaches.
pub(in super::super) fn unreached_ports(seen: &Observations, plan: &Plan) -> Vec<String> {
    let is_open = |port: u16| plan.listens().iter().any(|listen| listen.value.port() == port);
    let ports = seen.iter().filter_map(|one| {
        let Observation::Listening(port) = one else { return None };
        ((1..CHOSEN).contains(port) && !is_open(*port)).then_some(*port)
    });
    let note = |port| {
        format!("it listened on port {port}, which nothing outside reaches; add --cap net:listen:{port}")
    };
    ports.take(MOST).map(note).collect()
}

/// Addresses that lead nowhere inside: loopback is the sandbox's own, and without a network there is nothing else.
fn unreached_addresses(seen: &Observations, plan: &Plan) -> Vec<String> {
    let listens_inside =
        |port| seen.iter().any(|one| matches!(one, Observation::Listening(own) if *own == port));
    let granted = plan.network().loopback_ports();
    let mut notes: Vec<String> = Vec::new();
    for one in seen.iter() {
        let Observation::Connecting(address) = one else { continue };
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let is_granted = granted.iter().any(|range| range.contains(port));
        let is_own = ip.is_loopback() && (is_granted || listens_inside(port) || !is_served_here(port));
        let is_judged = !ip.is_loopback() && !matches!(plan.network(), Network::None);
        // Resolvers ask their servers on port 53, and ask the kernel for a way to an address without a port.
        if is_own || is_judged || ip.is_unspecified() || [0, 53].contains(&port) {
            continue;
        }
        let place = SocketAddr::new(ip, port);
        let why = if ip.is_loopback() { "is the sandbox's own inside" } else { "cannot be reached" };
        let raw = if SPEAKS_NEITHER.contains(&port) { "?protocol=raw" } else { "" };
        let note = format!("`{place}` {why}; add --cap 'net:connect:{place}{raw}'");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.truncate(MOST);
    notes
}

/// Whether something listens on a port of the host, as the kernel's tables have it.
fn is_served_here(port: u16) -> bool {
    let listens = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (own, state) = (columns.next(), columns.nth(1));
        let own = own.and_then(|own| u16::from_str_radix(own.rsplit_once(':')?.1, 16).ok());
        own == Some(port) && state == Some("0A")
    };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    tables.into_iter().flatten().any(|table| table.lines().any(listens))
}

/// What a command was refused.
pub(in super::super) fn watched(
    seen: &Observations,
    command: &[OsString],
    here: &Path,
    plan: &Plan,
) -> Vec<String> {
    let mut notes = programs(seen, command, here);
    notes.extend(closed_names(seen));
    notes.extend(files(seen, plan));
    notes.extend(unmade(seen));
    notes.extend(unreached_addresses(seen, plan));
    notes.extend(namespaces(seen));
    // The C library asks a local service for names, and goes on without: a socket explains what nothing else does.
    let unmade = seen.iter().any(|one| *one == Observation::SocketUnmade);
    if unmade || notes.is_empty() && seen.iter().any(|one| matches!(one, Observation::SocketRefused(None))) {
        notes.push(SOCKETS.to_owned());
    }
    notes
}

/// What to say of Unix sockets that were refused.
const SOCKETS: &str = "it could not make a Unix socket; for sockets of its own in private directories \
                       add --cap ipc:connect:private";

/// Programs that bring a sandbox of their own, which needs namespaces.
fn namespaces(seen: &Observations) -> Vec<String> {
    let note = |one: &Observation| {
        let Observation::NamespaceRefused(path) = one else { return None };
        let grant = program_grant(path)?;
        Some(format!(
            "`{}` could not make a sandbox of its own; add --cap {}",
            path.display(),
            quoted(&format!("exec:spawn:{grant}?nestedSandbox=true"))
        ))
    };
    seen.iter().filter_map(note).take(MOST).collect()
}

/// Programs that could not be started, and those that a shell was told to start and cannot have found.
fn programs(seen: &Observations, command: &[OsString], here: &Path) -> Vec<String> {
    let mut named: Vec<(String, &str)> = Vec::new();
    let mut add = |grant: Option<String>, how: &'static str| {
        if let Some(grant) = grant.filter(|grant| named.iter().all(|(old, _)| old != grant)) {
            named.push((grant, how));
        }
    };
    for one in seen.iter() {
        if let Observation::ProgramRefused(path) = one {
            add(program_grant(path), "could not be started");
        }
        if let Observation::LookRefused(path) = one
            && is_program(path)
        {
            add(program_grant(path), "was looked for and not found");
        }
    }
    let texts = seen.iter().filter_map(|one| {
        if let Observation::ShellText(text) = one {
            return Some(text.clone());
        }
        let Observation::ShellScript(path) = one else { return None };
        script_text(path)
    });
    for text in own_text(command, here).into_iter().chain(texts) {
        let names = bailiwick_shell::read(&text).commands.into_iter().map(|simple| simple.path);
        for name in names.filter(|name| !BUILTINS.contains(&name.as_str())) {
            add(
                seen.refused_name(&name).and_then(|path| program_grant(&path)),
                "is in what a shell was told to do, and is not granted",
            );
        }
    }
    let maker = command.first().and_then(|program| Path::new(program).file_name()?.to_str());
    if maker.is_some_and(|maker| MAKERS.contains(&maker)) {
        add(
            seen.refused_name("sh").and_then(|path| program_grant(&path)),
            "is what its commands are started by",
        );
    }
    let note = |(grant, how): (String, &str)| {
        format!("`{grant}` {how}; add --cap {}", quoted(&format!("exec:spawn:{grant}")))
    };
    named.into_iter().take(MOST).map(note).collect()
}

/// Whether a path is that of a program in a directory for programs.
fn is_program(path: &Path) -> bool {
    let directory = path.parent().and_then(Path::to_str);
    directory.is_some_and(|directory| PROGRAM_DIRECTORIES.contains(&directory)) && path.is_file()
}

/// A program as a grant names it: by its name where that leads to the same file.
fn program_grant(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let by_name = PROGRAM_DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file());
    let is_same = by_name.is_some_and(|found| found.canonicalize().ok() == path.canonicalize().ok());
    let text = if is_same { name } else { path.to_str()? };
    is_written_plainly(text).then(|| text.to_owned())
}

/// The text that the command itself is given to a shell to do.
fn own_text(command: &[OsString], here: &Path) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let name = Path::new(program).file_name()?;
    if !["sh", "bash", "dash"].map(OsStr::new).contains(&name) {
        let in_directory = |directory: &&str| Path::new(*directory).join(program);
        let by_name = || PROGRAM_DIRECTORIES.iter().map(in_directory).find(|path| path.is_file());
        let has_slash = Path::new(program).components().count() > 1;
        let path = if has_slash { here.join(program) } else { by_name()? };
        return script_text(&path).filter(|text| text.starts_with("#!") && is_for_shell(text));
    }
    let mut is_text = false;
    for argument in arguments.iter().filter_map(|argument| argument.to_str()) {
        match argument.strip_prefix('-') {
            Some(options) => is_text |= !options.starts_with('-') && options.contains('c'),
            None if is_text => return Some(argument.to_owned()),
            None => return script_text(&here.join(argument)),
        }
    }
    None
}

fn is_for_shell(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    line.split(['/', ' ']).any(|word| ["sh", "bash", "dash"].contains(&word))
}

fn script_text(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).ok().filter(|_| path.is_file())?;
    file.take(LONGEST_SCRIPT).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Names that run code later, which stay closed although their directory is writable.
fn closed_names(seen: &Observations) -> Vec<String> {
    let names = seen.iter().filter_map(|one| {
        let Observation::NameRefused(path) = one else { return None };
        path.to_str().filter(|text| is_written_plainly(text))
    });
    let note = |path| {
        format!(
            "`{path}` can make other programs run code later, so it stays as it is although its directory is \
             writable; if the command has to change it, add --cap fs:write:{path}"
        )
    };
    names.take(MOST).map(note).collect()
}

/// Files that were refused, where they were watched.
fn files(seen: &Observations, plan: &Plan) -> Vec<String> {
    let mut wanted: BTreeMap<&PathBuf, [bool; 2]> = BTreeMap::new();
    let mut order: Vec<&PathBuf> = Vec::new();
    for one in seen.iter() {
        let Some((path, writes)) = wanted_file(one) else { continue };
        if !wanted.contains_key(path) {
            order.push(path);
        }
        let [reads_too, writes_too] = wanted.entry(path).or_default();
        *(if writes { writes_too } else { reads_too }) = true;
    }
    let note = |path: &PathBuf| {
        let text = path.to_str().filter(|text| is_written_plainly(text))?;
        let [reads, writes] = wanted.get(path).copied()?;
        if is_masked(path) || (!writes && is_visible(plan, path)) {
            return None;
        }
        if let Some(whole) = with_modules(path).filter(|_| !writes) {
            return Some(whole);
        }
        let (actions, refused) = match (reads, writes) {
            (true, true) => ("read,write", "read and changed"),
            (false, true) => ("write", "changed"),
            _ if path.is_dir() => ("read", "listed"),
            _ => ("read", "read"),
        };
        Some(format!(
            "`{text}` could not be {refused}; add --cap {}",
            quoted(&format!("fs:{actions}:{text}"))
        ))
    };
    let mut notes: Vec<String> = Vec::new();
    for note in order.into_iter().filter_map(note) {
        if notes.len() < MOST && !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// A file that was refused, and whether it was to be changed.
fn wanted_file(one: &Observation) -> Option<(&PathBuf, bool)> {
    match one {
        Observation::ReadRefused(path) | Observation::ListRefused(path) => Some((path, false)),
        Observation::LookRefused(path) => (!path.is_dir() && !is_program(path)).then_some((path, false)),
        Observation::WriteRefused(path) => (!path.is_dir()).then_some((path, true)),
        Observation::ProgramRefused(_)
        | Observation::ShellText(_)
        | Observation::ShellScript(_)
        | Observation::Listening(_)
        | Observation::Connecting(_)
        | Observation::MakeRefused(_)
        | Observation::SocketRefused(_)
        | Observation::SocketUnmade
        | Observation::NamespaceRefused(_)
        | Observation::NameRefused(_) => None,
    }
}

/// What could not be made: the directory has to be writable for that.
fn unmade(seen: &Observations) -> Vec<String> {
    let mut directories: Vec<&Path> = Vec::new();
    let mut notes = Vec::new();
    for one in seen.iter() {
        let Observation::MakeRefused(path) = one else { continue };
        let Some(directory) = path.parent().filter(|directory| !directories.contains(directory)) else {
            continue;
        };
        directories.push(directory);
        notes.extend(super::unmade(path));
    }
    notes.truncate(MOST);
    notes
}

/// A capability as a shell takes it.
fn quoted(capability: &str) -> String {
    bailiwick_shell::quoted([capability])
}
