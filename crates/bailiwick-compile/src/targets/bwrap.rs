//! bubblewrap, as a command line that runs as root and as a plain user alike.
//!
//! A new root with the base and the plan's trees; own user, pid, ipc, uts, network and cgroup namespaces; no
//! capability; no further user namespace unless a granted program brings its own sandbox. `/proc/sys` is mounted
//! read-only: started as root, bubblewrap alone leaves `core_pattern` writable.
//!
//! The command line needs no descriptor. Stub files and variables of the caller can only be passed by descriptor:
//! the script `bwrap.sh`, in one directory with the other files, does that.
//!
//! Fails closed when the path of a socket, or one that was taken for a file by its name, turns out to be a directory, and
//! when one that was taken for a directory is a file: bubblewrap then does not start.
//! Residual: no socket filter, so a Unix socket in a granted directory can be connected to; files that run code
//! later are protected only if they exist when it starts.

use std::collections::HashSet;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::plan::{Network, Plan};

use crate::view::{View, run_later};
use crate::{Refusal, Target, script, why};

/// bubblewrap takes no more than 9000 arguments, those of `--args` among them; some are left to the caller.
const MAX_ARGUMENTS: usize = 8900;
/// Longer arguments go through a file: every system takes this much on a command line.
const MAX_BYTES: usize = 96 * 1024;

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let mut view = View::for_target(plan, Target::Bwrap)?;
    let arguments = arguments(plan, &view);
    let mut notes = std::mem::take(&mut view.notes);
    add_notes(plan, &view, &mut notes);
    let command = script::command(plan);
    let mut files = script::stub_files(&view);
    let count = arguments.len() + command.len() + 2 * script::passed(plan).count() + 3 * view.stubs.len();
    if count > MAX_ARGUMENTS {
        return Err(too_many(&view));
    }
    let long = arguments.iter().map(|argument| argument.len() + 1).sum::<usize>() > MAX_BYTES;
    let mut argv = vec!["bwrap".to_owned()];
    if long {
        let text = arguments.iter().flat_map(|argument| [argument, "\0"]).collect();
        files.push(ArtifactFile { name: "bwrap.args".to_owned(), text });
        notes.push(
            "too long for a command line: open `bwrap.args` as descriptor 3, as in `3<bwrap.args`".to_owned(),
        );
        argv.extend(["--args", "3"].map(str::to_owned));
    } else {
        argv.extend(arguments);
    }
    argv.push("--".to_owned());
    files.insert(
        0,
        ArtifactFile { name: "bwrap.sh".to_owned(), text: script::bwrap(plan, &view, &argv, long) },
    );
    argv.extend(command);
    Ok(Emitted { argv, files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

fn too_many(view: &View) -> Refusal {
    Refusal::Inexpressible {
        target: Target::Bwrap,
        aspect: Aspect::Files,
        rule: format!("{} directories", view.trees.len()),
        why: "it takes 9000 arguments, three for each directory and ninety more for each writable one; \
              grant directories around them"
            .to_owned(),
    }
}

/// What a bubblewrap command line holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Mounts(Words::exact(
        "a new root with read-only and writable binds, no capability to remount",
    )),
    network: NetworkMechanism::Empty {
        wider: &["no filter: sockets to a virtual machine's host can be opened"],
        wider_with_services: &[],
    },
    programs: ProgramMechanism::Visible,
    environment: EnvironmentMechanism::Fresh {
        words: Words::exact("cleared; then PATH, HOME, LANG and the declared variables"),
        passes_all: false,
    },
    services: ServiceMechanism::Visible(Words::exact("")),
    processes: ProcessMechanism::Kernel {
        words: Words::exact("own pid, ipc and user namespaces, further ones are refused"),
        nested: Words::exact("own pid and ipc namespaces; user namespaces stay open for a nested sandbox"),
    },
    limits: LimitMechanism::Kernel(&[], ""),
};

/// Everything between `bwrap` and `--`.
fn arguments(plan: &Plan, view: &View) -> Vec<String> {
    let mut line = Line(Vec::with_capacity(256 + 3 * view.trees.len()));
    line.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]);
    line.words(&["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    if !plan.nested_sandbox() {
        line.words(&["--disable-userns"]);
    }
    line.words(&["--clearenv"]);
    for (name, value) in script::variables(plan) {
        line.words(&["--setenv", name, value]);
    }
    line.places(view);
    for socket in &view.sockets {
        // A directory cannot be mounted on a file, so what is not a socket's name stops bubblewrap here.
        line.words(&["--ro-bind", "/dev/null", socket, "--ro-bind-try", socket, socket]);
    }
    for directory in &view.socket_directories {
        line.words(&["--ro-bind-try", directory, directory]);
    }
    let files: HashSet<&str> =
        view.trees.iter().filter(|tree| tree.is_file_by_name()).map(|tree| &*tree.path).collect();
    let in_file = |path: &str| {
        path.match_indices('/').filter_map(|(at, _)| path.get(..at)).any(|outer| files.contains(outer))
    };
    for later in run_later(plan, view).into_iter().filter(|later| !in_file(&later.path)) {
        line.bind(later.writable, &later.source, &later.path);
    }
    for path in &view.covered {
        line.words(&["--tmpfs", path, "--remount-ro", path]);
    }
    if view.root.is_none() {
        line.words(&["--remount-ro", "/"]);
    }
    line.0
}

/// Arguments in the making.
struct Line(Vec<String>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn bind(&mut self, writable: bool, source: &str, path: &str) {
        self.words(&[if writable { "--bind-try" } else { "--ro-bind-try" }, source, path]);
    }

    /// The host's root if it is granted, the base, what the sandbox has of its own, and the granted trees.
    fn places(&mut self, view: &View) {
        if let Some(root) = &view.root {
            self.bind(root.writable, &root.source, "/");
            self.words(&["--tmpfs", "/sys", "--remount-ro", "/sys", "--tmpfs", "/run"]);
        }
        for path in &view.base {
            self.bind(false, path, path);
        }
        self.words(&["--dev", "/dev", "--proc", "/proc"]);
        for path in ["/proc/sys", "/proc/fs", "/proc/sysrq-trigger"] {
            self.bind(false, path, path);
        }
        if view.own_tmp() {
            self.words(&["--perms", "1777", "--tmpfs", "/tmp"]);
        }
        for tree in &view.trees {
            if tree.is_file_by_name() {
                // A directory cannot be mounted on a file: if it is one, bubblewrap stops here.
                self.words(&["--ro-bind", "/dev/null", &tree.path]);
            }
            self.bind(tree.writable, &tree.source, &tree.path);
        }
    }
}

fn add_notes(plan: &Plan, view: &View, notes: &mut Vec<String>) {
    if *plan.network() != Network::None {
        notes.push(
            "no host can be reached: `bailiwick run` adds the supervisor that lets declared ones be"
                .to_owned(),
        );
    }
    if view.root.is_some() && view.own_tmp() {
        notes.push("`/tmp` is the sandbox's own; name it to show the host's".to_owned());
    }
    why::environment_notes(
        plan,
        "`bwrap.sh` passes them on; else `--setenv` through `--args`, not in sight",
        notes,
    );
    // A node that bubblewrap mounts read-only is one that it also makes unusable.
    notes.push(
        "started as root, it can change the modes of the host's device nodes, such as `/dev/null`: start it as a plain user"
            .to_owned(),
    );
    if view.writable().next().is_some() {
        notes.push(
            "files that run code later, such as `.git/hooks`, stay read-only where they exist at the top of a writable \
             directory; missing ones can be made, and those of submodules and nested repositories changed"
                .to_owned(),
        );
        notes.push(
            "started as root, it can leave setuid files in writable directories: start it as a plain user"
                .to_owned(),
        );
    }
    kind_notes(view, notes);
    if plan.limits().declared().next().is_some() {
        notes.push("it sets no limits: start it under `systemd-run` or `prlimit`".to_owned());
    }
    if plan.nested_sandbox() {
        notes.push("`nestedSandbox` leaves user namespaces open, and nothing else".to_owned());
    }
    script::command_notes(plan, view, notes);
}

/// What is assumed of writable paths that the host was not asked for; a wrong assumption stops bubblewrap.
fn kind_notes(view: &View, notes: &mut Vec<String>) {
    let unknown = || view.writable().filter(|tree| tree.place.is_none());
    for tree in unknown().filter(|tree| tree.is_file_by_name()) {
        notes.push(format!(
            "`{}` is taken for a file and does not start as a directory: `compile --here` looks what it is",
            tree.path
        ));
    }
    if unknown().any(|tree| tree.path != "/" && !tree.is_file_by_name()) {
        notes.push(
            "writable paths that do not end as files do are taken for directories: for a file, `compile --here`"
                .to_owned(),
        );
    }
}
