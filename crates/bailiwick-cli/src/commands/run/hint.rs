//! What a command that failed may have missed, and the flag that grants it.
//!
//! Paths that the command was given or stands in, hosts that it was refused, and what the sandbox saw: programs, names
//! that run code later, ports, and files with `--tell`.

mod ports;
mod watched;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use bailiwick_launch::{NetworkEvent, Observation, Observations};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, BaseKind, MASKED, Plan};

pub(super) use self::watched::{unreached_ports, watched};

/// The most hints: more do not help.
const MOST: usize = 3;

/// What to say after a command has failed that was started in a directory that it does not see.
pub(super) fn unseen_directory(command: &[OsString], here: &Path, plan: &Plan) -> Option<String> {
    // A file that it was given there shows the directory too.
    let mut given = unseen_arguments(command, here, plan);
    // A command that was started in `/`, or nowhere, asks for nothing there.
    if here == Path::new("/") || is_visible(plan, here) || given.any(|path| path.starts_with(here)) {
        return None;
    }
    let shown = here.display();
    Some(format!(
        "the current directory `{shown}` is not visible inside; add --cap 'fs:read,write:{shown}/**'"
    ))
}

/// What to say of a command that was given paths that it does not see. Programs are another matter.
pub(super) fn unseen_paths(
    command: &[OsString],
    here: &Path,
    plan: &Plan,
    seen: &Observations,
) -> Vec<String> {
    let is_program = |path: &Path| {
        seen.iter().any(|one| matches!(one, Observation::ProgramRefused(refused) if refused == path))
    };
    let paths = unseen_arguments(command, here, plan).filter(|path| !is_program(path));
    let note = |path: PathBuf| {
        let shown = path.display();
        match socket(&path, command).and_then(|socket| socket.to_str().map(str::to_owned)) {
            Some(socket) => format!("`{socket}` is a socket; add --cap ipc:connect:unix:{socket}"),
            None => with_modules(&path)
                .unwrap_or_else(|| format!("`{shown}` is not visible inside; add --cap fs:read:{shown}")),
        }
    };
    paths.take(MOST).map(note).collect()
}

/// What to say of a file of a package of node: it loads others of the same `node_modules`, one after the other.
fn with_modules(path: &Path) -> Option<String> {
    let modules = path.ancestors().filter(|above| above.ends_with("node_modules")).last()?;
    let modules = modules.to_str().filter(|text| is_written_plainly(text))?;
    let grant = bailiwick_shell::quoted([format!("fs:read:{modules}?code=true").as_str()]);
    Some(format!("`{modules}` is not visible inside, and its packages load each other; add --cap {grant}"))
}

/// What to say after a command has failed that was to make something where it cannot.
pub(super) fn unmade_paths(command: &[OsString], here: &Path, plan: &Plan) -> Vec<String> {
    new_arguments(command, here, plan).filter_map(|path| unmade(&path)).take(1).collect()
}

/// Clients that are given a directory and find the socket in it.
const CLIENTS_BY_DIRECTORY: [&str; 5] = ["psql", "pg_dump", "pg_restore", "createdb", "dropdb"];

/// The socket that a path is, or the only one in the directory that such a client is given.
fn socket(path: &Path, command: &[OsString]) -> Option<PathBuf> {
    let is_socket =
        |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| is_socket_kind(found.file_type()));
    if !path.is_dir() {
        return Some(path.to_owned()).filter(is_socket);
    }
    let client = command.first().and_then(|program| Path::new(program).file_name()?.to_str())?;
    if !CLIENTS_BY_DIRECTORY.contains(&client) {
        return None;
    }
    let entries = path.read_dir().ok()?.flatten().map(|entry| entry.path());
    let mut sockets = entries.filter(|path| is_socket(path) && path.to_str().is_some_and(is_written_plainly));
    sockets.next().filter(|_| sockets.next().is_none())
}

#[cfg(unix)]
fn is_socket_kind(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&kind)
}

#[cfg(not(unix))]
fn is_socket_kind(_: std::fs::FileType) -> bool {
    false
}

/// What to say of something that cannot be made because its directory is closed; nothing if that is no directory to grant.
fn unmade(path: &Path) -> Option<String> {
    let directory = path.parent().filter(|directory| !is_systems(directory) && !is_masked(directory))?;
    let shown = directory.to_str().filter(|text| is_written_plainly(text) && *text != "/")?;
    let path = path.display();
    Some(format!("`{path}` cannot be made: its directory is not writable; add --cap fs:read,write:{shown}"))
}

/// The arguments that name nothing yet, in a directory that is there and not visible.
fn new_arguments<'a>(
    command: &'a [OsString],
    here: &'a Path,
    plan: &'a Plan,
) -> impl Iterator<Item = PathBuf> + 'a {
    let arguments = command.iter().skip(1).filter_map(|argument| plain_path(argument, here));
    arguments.filter(move |path| {
        let directory = path.parent().filter(|directory| directory.is_dir() && *directory != here);
        !path.exists() && directory.is_some_and(|directory| !is_visible(plan, directory))
    })
}

fn unseen_arguments<'a>(
    command: &'a [OsString],
    here: &'a Path,
    plan: &'a Plan,
) -> impl Iterator<Item = PathBuf> + 'a {
    let arguments = command.iter().skip(1).filter_map(|argument| named_path(argument, here));
    arguments.filter(move |path| path != here && !is_visible(plan, path))
}

/// What to say if nothing else is known.
pub(super) fn more_to_tell() -> String {
    "if it misses a file, run it again with `--tell`: that names each file that it was refused".to_owned()
}

/// What to say if the command ended as a shell does that could not start a program.
pub(super) fn unstarted(plan: &Plan) -> Option<String> {
    plan.exec().any.is_none().then(|| {
        "every program that the command starts has to be granted too; add --cap exec:spawn:NAME for each, \
         or --cap 'exec:spawn:*'"
            .to_owned()
    })
}

/// What the network was refused, each with the grant that would allow it.
pub(super) fn refused(events: &[NetworkEvent], command: &[OsString]) -> Vec<String> {
    let note = |event: &NetworkEvent| {
        let refusal = event.refusal()?;
        let port = event.port().map(|port| format!(":{port}")).unwrap_or_default();
        let grant = refusal.grant().map(|grant| match event.port() {
            Some(_) => grant.to_owned(),
            None => format!("{grant}:{}", ports::likely_port(event.host(), command)),
        });
        let grant = grant.map(|grant| format!("; add --cap '{grant}'")).unwrap_or_default();
        Some(format!("`{}{port}` was refused: {}{grant}", event.host(), refusal.code().meaning()))
    };
    events.iter().filter_map(note).take(MOST).collect()
}

/// The path that an argument names, if it is there on the host and can be granted.
fn named_path(argument: &OsString, here: &Path) -> Option<PathBuf> {
    plain_path(argument, here).filter(|path| path.exists())
}

/// The path that an argument would name, also behind `--option=` and `name=/`, if it can be granted.
fn plain_path(argument: &OsString, here: &Path) -> Option<PathBuf> {
    let text = argument.to_str()?;
    let value = text.split_once('=').map(|(_, value)| value);
    let text = value.filter(|value| text.starts_with("--") || value.starts_with('/')).unwrap_or(text);
    // A capability takes no slash at the end.
    let path: PathBuf = here.join(text).components().collect();
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let grantable = plain && is_written_plainly(text) && !is_masked(&path);
    (grantable && !text.is_empty()).then_some(path)
}

/// Whether no grant shows what a path leads to: the kernel's own file systems. A link may lead there, as `/etc/mtab` does.
fn is_masked(path: &Path) -> bool {
    let is_kernels = |path: &Path| MASKED.iter().any(|masked| path.starts_with(masked));
    is_kernels(path) || path.canonicalize().is_ok_and(|real| is_kernels(&real))
}

/// Whether a path in a capability is just itself.
fn is_written_plainly(text: &str) -> bool {
    !text.contains(['*', '?', '[', '{', ',', '\'', ' ', '$']) && !text.contains(char::is_control)
}

/// Whether the sandbox shows what the host has there.
pub(super) fn is_visible(plan: &Plan, path: &Path) -> bool {
    let Some(clean) = path.to_str().and_then(|text| AbsPath::new(text).ok()) else { return true };
    is_systems(path) || plan.files().iter().any(|grant| grant.pattern.value.covers(&clean))
}

fn is_systems(path: &Path) -> bool {
    BASE.iter().any(|entry| entry.kind != BaseKind::Programs && path.starts_with(entry.path))
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::capability::CapabilitySet;
    use bailiwick_policy::facts::HostFacts;

    use super::*;

    fn notes_of(caps: &[&str], command: &[&str], here: &str) -> Vec<String> {
        let set = CapabilitySet::new(caps.iter().copied()).unwrap();
        let plan = Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap();
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let here = Path::new(here);
        let directory = unseen_directory(&command, here, &plan);
        let unseen = unseen_paths(&command, here, &plan, &Observations::default());
        directory.into_iter().chain(unseen).chain(unmade_paths(&command, here, &plan)).collect()
    }

    #[test]
    fn an_argument_that_is_not_visible_is_named_with_its_flag() {
        let said =
            notes_of(&["fs:read:/opt"], &["cat", "/etc/fstab", "--file=/etc/shadow", "/no/such"], "/opt");
        let flag = |path| format!("`{path}` is not visible inside; add --cap fs:read:{path}");
        assert_eq!(said, [flag("/etc/fstab"), flag("/etc/shadow")]);
    }

    #[test]
    fn what_is_granted_or_the_systems_needs_no_note() {
        assert_eq!(
            notes_of(&["fs:read:/etc/fstab", "fs:read:/opt"], &["cat", "/etc/fstab"], "/opt"),
            [""; 0]
        );
        assert_eq!(notes_of(&["fs:read:/opt"], &["ls", "/usr/lib", "/proc/1/maps"], "/opt"), [""; 0]);
    }

    #[test]
    fn a_link_into_the_kernels_own_is_no_file_that_a_grant_could_show() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        std::os::unix::fs::symlink("/proc/self/mounts", &link).unwrap();
        std::fs::write(&file, "").unwrap();
        let named = |path: &Path| notes_of(&["fs:read:/opt"], &["cat", path.to_str().unwrap()], "/opt").len();
        assert_eq!((named(&link), named(&file)), (0, 1));
    }

    #[test]
    #[cfg(unix)]
    fn a_socket_is_named_as_one_also_by_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let said = |path: &Path| notes_of(&["fs:read:/opt"], &["psql", "-h", path.to_str().unwrap()], "/opt");
        let shown = path.display();
        assert_eq!(said(&path), [format!("`{shown}` is a socket; add --cap ipc:connect:unix:{shown}")]);
        assert_eq!(said(directory.path()), said(&path));
        let _another = std::os::unix::net::UnixListener::bind(directory.path().join("t")).unwrap();
        let shown = directory.path().display();
        assert_eq!(
            said(directory.path()),
            [format!("`{shown}` is not visible inside; add --cap fs:read:{shown}")]
        );
    }

    #[test]
    fn what_does_not_exist_yet_needs_its_directory() {
        let said =
            notes_of(&["fs:read:/opt"], &["tar", "cf", "/var/lib/new.tar", "/no/such/x", "here"], "/opt");
        let note = "`/var/lib/new.tar` cannot be made: its directory is not writable; add --cap fs:read,write:/var/lib";
        assert_eq!(said, [note]);
        assert_eq!(
            notes_of(&["fs:read:/opt"], &["tar", "cf", "/usr/lib/x", "/x", "/proc/x"], "/opt"),
            [""; 0]
        );
    }

    #[test]
    fn a_package_of_node_comes_with_those_around_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node_modules/a/node_modules/b/cli.js");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        let said = notes_of(&["fs:read:/opt"], &["node", file.to_str().unwrap()], "/opt");
        let modules = directory.path().join("node_modules");
        let grant = format!("fs:read:{}?code=true", modules.display());
        assert_eq!(said.len(), 1);
        assert!(said[0].ends_with(&format!("add --cap '{grant}'")), "{said:?}");
        assert_eq!(notes_of(&["fs:read:/opt", &grant], &["node", file.to_str().unwrap()], "/opt"), [""; 0]);
    }

    #[test]
    fn the_current_directory_comes_first() {
        let said = notes_of(&[], &["ls", "."], "/var");
        assert_eq!(notes_of(&[], &["ls"], "/"), [""; 0]);
        assert_eq!(
            said,
            ["the current directory `/var` is not visible inside; add --cap 'fs:read,write:/var/**'"]
        );
    }
}
