//! What several targets say of an aspect in the same words, and the trees that a mounting target shows.

use bailiwick_policy::capability::{Endpoint, Program};
use bailiwick_policy::enforcement::Aspect;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{MASKED, Mount, PROGRAM_DIRECTORIES, Plan};

use crate::{Refusal, Target};

/// The trees that a target may show, and what a person should know of those that it does not.
pub(super) struct Shown {
    pub(super) mounts: Vec<Mount>,
    pub(super) notes: Vec<String>,
}

/// The plan's trees without what no grant shows and what the host does not have.
pub(super) fn shown(plan: &Plan) -> Shown {
    let masked = masked();
    let hidden = |path: &AbsPath| masked.iter().chain(plan.protected()).any(|tree| path.is_within(tree));
    let mut notes = Vec::new();
    let mut mounts = plan.mounts();
    mounts.retain(|mount| {
        let (path, source) = (&mount.path, &mount.source);
        if hidden(path) || hidden(source) {
            notes.push(format!("`{path}` is left out: no grant shows it, the sandbox has its own or none"));
            return false;
        }
        if mount.place == Some(bailiwick_policy::facts::PathKind::Missing) {
            notes.push(format!("`{path}` is left out: this host does not have it"));
            return false;
        }
        if path != source {
            notes.push(format!("`{path}` lies at `{source}` on this host"));
        }
        true
    });
    Shown { mounts, notes }
}

/// The trees that no grant shows.
pub(super) fn masked() -> Vec<AbsPath> {
    MASKED.iter().filter_map(|tree| AbsPath::new(tree).ok()).collect()
}

/// What a gateway that reads host and port may leave unread.
pub(super) const UNREAD: &str = "not every gateway checks what is spoken inside a connection";

/// The files that a program may be, in the order in which a name is looked up.
pub(super) fn files_of(program: &Program) -> Vec<String> {
    match program {
        Program::Path(path) => vec![path.to_string()],
        Program::Name(name) => {
            PROGRAM_DIRECTORIES.iter().map(|directory| format!("{directory}/{name}")).collect()
        }
    }
}

/// Programs that start others to do their work: without those the command itself cannot start.
const HELPERS: [(&[&str], &[&str]); 4] = [
    (&["npx", "npm", "pnpm", "yarn"], &["env", "node", "sh"]),
    (&["uvx", "uv", "pipx"], &["env", "python3", "sh", "uv"]),
    (&["python", "pip", "pip3"], &["env", "python3"]),
    (&["git"], &["env", "sh"]),
];

/// Every program that has to be startable: the command, what is granted, and what these start to work at all.
pub(super) fn programs(plan: &Plan) -> Vec<Program> {
    let command = plan.command().map(|(command, _)| match AbsPath::new(command) {
        Ok(path) => Program::Path(path),
        Err(_) => Program::Name(command.into()),
    });
    let granted = plan.exec().programs.iter().map(|program| program.value.program.clone());
    let mut programs: Vec<Program> = command.into_iter().chain(granted).collect();
    let names: Vec<String> = programs.iter().map(base_name).collect();
    for (starters, helpers) in HELPERS {
        if names.iter().any(|name| starters.contains(&&**name)) {
            programs.extend(helpers.iter().map(|name| Program::Name((*name).into())));
        }
    }
    programs.sort();
    programs.dedup();
    programs
}

fn base_name(program: &Program) -> String {
    match program {
        Program::Name(name) => name.to_string(),
        Program::Path(path) => path.components().last().unwrap_or_default().to_owned(),
    }
}

/// The file or directory of the host that a local service is reached by; `None` where the host has to be asked, or there is none.
pub(super) fn socket(endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::X11 => Some("/tmp/.X11-unix".to_owned()),
        Endpoint::DbusSystem => Some("/run/dbus/system_bus_socket".to_owned()),
        Endpoint::Unix(path) => Some(path.to_string()),
        Endpoint::Wayland | Endpoint::DbusSession | Endpoint::Private => None,
    }
}

/// The sockets of all endpoints, or a refusal that names the one which only the host knows.
pub(super) fn sockets(target: Target, plan: &Plan) -> Result<Vec<String>, Refusal> {
    let unknown = |rule: String| Refusal::Inexpressible {
        target,
        aspect: Aspect::Ipc,
        rule,
        why: "only the session knows its socket; grant `ipc:connect:unix:` with its path".to_owned(),
    };
    if plan.ipc().any {
        return Err(unknown("ipc:connect:*".to_owned()));
    }
    let endpoints = plan.ipc().endpoints.iter().map(|endpoint| &endpoint.value);
    let endpoints = endpoints.filter(|endpoint| **endpoint != Endpoint::Private);
    endpoints.map(|one| socket(one).ok_or_else(|| unknown(format!("ipc:connect:{one}")))).collect()
}

/// A note for each thing that all targets leave to the host.
pub(super) fn common_notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(timeout) = plan.limits().timeout_ms {
        notes.push(format!("the limit of {timeout} ms is for one call: whoever makes the calls holds it"));
    }
    if plan.environment().read_all {
        notes.push("`env:read:*` is narrowed to nothing: name the variables".to_owned());
    }
    notes
}

/// A note for each port on which connections should come in from outside: no target opens it.
pub(super) fn unopened(plan: &Plan) -> impl Iterator<Item = String> + '_ {
    plan.listens().iter().map(|listen| {
        let listen = listen.value;
        format!("unsupported: `net:listen:{listen}` opens no port here; `bailiwick run` opens it")
    })
}
