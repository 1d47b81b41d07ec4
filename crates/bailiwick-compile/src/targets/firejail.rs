//! firejail, as a profile: it takes no more than 128 arguments.
//!
//! Everything at the top of the file system is hidden by pattern but for what programs need and what is granted;
//! below `/etc`, `/tmp`, `/run` and the directories of grants only what is named is shown. No capability, no new
//! privilege, no network, a filter of system calls and of socket families, no further namespace.
//!
//! Fails closed when a path has a character that firejail refuses or takes for a pattern.
//! Residual: started as root, the host's `/run/firejail` is writable; started inside a pid namespace, or by a
//! user whom its list leaves out, it runs the command without a sandbox.

use std::collections::BTreeSet;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::capability::Endpoint;
use bailiwick_policy::enforcement::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism,
    ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::facts::PathKind;
use bailiwick_policy::limits::Limit;
use bailiwick_policy::plan::{BASE, Network, Plan};

use crate::view::{Tree, View, is_within, run_later};
use crate::{Refusal, Target, script, why};

const ALWAYS: &str = "\
deterministic-exit-code
deterministic-shutdown
caps.drop all
nonewprivs
noroot
nogroups
net none
ipc-namespace
machine-id
private-dev
nosound
no3d
nodvd
notv
nou2f
novideo
noinput
dbus-user none
seccomp
restrict-namespaces
noblacklist /dev
noblacklist /proc
whitelist /run/.bailiwick
";

/// What firejail refuses in a path, or takes for a pattern.
const UNSPEAKABLE: &str = "\\&!?\"<>%^{};,*[]";

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let mut view = View::for_target(plan, Target::Firejail)?;
    check_paths(plan, &view)?;
    let mut profile = Profile(String::with_capacity(4096));
    profile.0.push_str(ALWAYS);
    for filter in filters(plan).into_iter().flatten() {
        profile.line(filter, "");
    }
    if let Some(size) = plan.limits().file_size {
        profile.line("rlimit-fsize ", &size.to_string());
    }
    profile.places(plan, &view);
    let mut argv = vec!["env".to_owned(), "-i".to_owned()];
    argv.extend(script::variables(plan).map(|(name, value)| format!("{name}={value}")));
    argv.extend(["firejail", "--quiet", "--profile=firejail.profile", "--"].map(str::to_owned));
    argv.extend(script::command(plan));
    let files = vec![ArtifactFile { name: "firejail.profile".to_owned(), text: profile.0 }];
    let mut notes = std::mem::take(&mut view.notes);
    add_notes(plan, &view, &mut notes);
    Ok(Emitted { argv, files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a profile holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Mounts(Words::superset(
        "everything not named is hidden or read-only, no capability to remount",
        &["started as root, the host's `/run/firejail` is writable"],
    )),
    network: NetworkMechanism::Empty {
        wider: &[],
        wider_with_services: &["no filter of families: sockets to a virtual machine's host can be opened"],
    },
    programs: ProgramMechanism::Visible,
    environment: EnvironmentMechanism::Fresh {
        words: Words::exact("cleared by `env -i`; then the declared variables and firejail's own"),
        passes_all: false,
    },
    services: ServiceMechanism::Filtered {
        none: Words::exact(
            "no Unix socket can be made but pairs; abstract ones end at the network namespace",
        ),
        wider_with_files: &["a pair of datagram sockets can send to a socket in a granted directory"],
        some: DeclaredServices::Visible(Words::superset(
            "",
            &["a socket's path that is a directory is shown as one"],
        )),
    },
    processes: ProcessMechanism::Kernel {
        words: Words::exact("own pid and ipc namespaces, further ones are refused"),
        nested: Words::exact("own pid and ipc namespaces, further ones are refused"),
    },
    limits: LimitMechanism::Kernel(&[Limit::FileSize], "a resource limit for the size of files"),
};

/// The filters of sockets.
fn filters(plan: &Plan) -> [Option<&'static str>; 2] {
    let system_bus = plan.ipc().endpoints.iter().any(|own| own.value == Endpoint::DbusSystem);
    [
        plan.ipc().endpoints.is_empty().then_some("protocol inet,inet6"),
        (!system_bus).then_some("dbus-system none"),
    ]
}

/// A profile in the making.
struct Profile(String);

impl Profile {
    fn line(&mut self, word: &str, path: &str) {
        self.0.push_str(word);
        self.0.push_str(path);
        self.0.push('\n');
    }

    /// What is shown, what is hidden, what is read-only and what is writable within that, in this order.
    fn places(&mut self, plan: &Plan, view: &View) {
        let tops = view.trees.iter().map(|tree| &*tree.path).filter(|path| top(path) == *path);
        let whole: BTreeSet<&str> = tops.collect();
        // A name that is not there: what it lies in becomes an empty directory.
        for directory in ["/tmp", "/etc"] {
            if !whole.contains(directory) && (view.root.is_none() || directory == "/tmp") {
                self.line("whitelist ", &format!("{directory}/.bailiwick"));
            }
        }
        let mut shown: BTreeSet<&str> = ["/run", "/tmp", "/etc"].into();
        for path in named(view) {
            if is_listed(path, &whole, view) {
                self.line("whitelist ", path);
            }
            shown.insert(top(path));
            shown.extend(is_within(path, "/usr").then_some(path));
            shown.extend(is_within(path, "/usr/local").then_some("/usr/local"));
        }
        if view.root.is_none() {
            shown.iter().for_each(|path| self.line("noblacklist ", path));
            ["/*", "/usr/*", "/usr/local/*"].iter().for_each(|path| self.line("blacklist ", path));
        } else {
            self.line("blacklist ", "/sys");
        }
        self.modes(plan, view);
    }

    fn modes(&mut self, plan: &Plan, view: &View) {
        ["/", "/usr", "/etc"].iter().for_each(|path| self.line("read-only ", path));
        if view.root.as_ref().is_some_and(|root| root.writable) {
            self.line("read-write ", "/");
        }
        for tree in &view.trees {
            self.line(if tree.writable { "read-write " } else { "read-only " }, &tree.path);
        }
        for later in run_later(plan, view).iter().filter(|later| !later.writable) {
            self.line("read-only ", &later.path);
        }
        view.covered.iter().for_each(|path| self.line("blacklist ", path));
    }
}

/// Everything that is shown by name.
fn named(view: &View) -> impl Iterator<Item = &str> {
    let trees = view.trees.iter().map(|tree| &*tree.path);
    let sockets = view.sockets.iter().map(|path| &**path).chain(view.socket_directories.iter().copied());
    view.base.iter().copied().chain(trees).chain(sockets)
}

/// Whether a path is shown by being named: not if all of its top is, and `/usr` firejail does not take apart.
fn is_listed(path: &str, whole: &BTreeSet<&str>, view: &View) -> bool {
    let top = top(path);
    let hidden = view.root.is_none() || ["/run", "/tmp"].contains(&top);
    top != path && top != "/usr" && !whole.contains(top) && hidden
}

/// The directory at the top that a path lies in.
fn top(path: &str) -> &str {
    let end = path.bytes().skip(1).position(|byte| byte == b'/').map_or(path.len(), |at| at + 1);
    path.get(..end).unwrap_or(path)
}

fn check_paths(plan: &Plan, view: &View) -> Result<(), Refusal> {
    let refusal = |path: &str, why: &str| Refusal::Inexpressible {
        target: Target::Firejail,
        aspect: Aspect::Files,
        rule: path.to_owned(),
        why: why.to_owned(),
    };
    let paths = view.trees.iter().map(|tree| &tree.path).chain(&view.sockets).chain(&view.covered);
    let unspeakable = |path: &&String| {
        path.contains(|c| UNSPEAKABLE.contains(c)) || path.contains("  ") || path.ends_with(' ')
    };
    if let Some(path) = paths.into_iter().find(unspeakable) {
        let why =
            "its paths can have none of \\ & ! ? \" < > % ^ { } ; , * [ ] and no space at the end or twice";
        return Err(refusal(path, why));
    }
    let odd = |tree: &&Tree| {
        is_within(&tree.path, "/usr") && !BASE.iter().any(|entry| is_within(&tree.path, entry.path))
    };
    if let Some(tree) = view.trees.iter().find(odd) {
        return Err(refusal(&tree.path, "it cannot show single directories of `/usr`"));
    }
    if let Some(own) = view.covered.iter().find(|own| plan.place(own) == Some(PathKind::Missing)) {
        return Err(refusal(
            own,
            "it is missing, and firejail cannot keep it from being made; make the directory",
        ));
    }
    let moved = view.trees.iter().find(|tree| tree.path != tree.source);
    moved.map_or(Ok(()), |tree| {
        Err(refusal(
            &tree.path,
            &format!("it is a link, and firejail shows no path elsewhere; grant `{}`", tree.source),
        ))
    })
}

fn add_notes(plan: &Plan, view: &View, notes: &mut Vec<String>) {
    notes.push(
        "inside a pid namespace, or for a user not in its list, firejail runs the command unconfined"
            .to_owned(),
    );
    if *plan.network() != Network::None {
        notes.push("no host can be reached: firejail alone lets none of the declared ones be".to_owned());
    }
    why::environment_notes(
        plan,
        "add `NAME=VALUE` after `env -i`, from a parent whose arguments are not visible to others",
        notes,
    );
    if view.writable().next().is_some() {
        notes.push("a plain user gets only directories of their own writable".to_owned());
        notes.push(
            "files that run code later, such as `.git/hooks`, stay read-only where they exist; missing ones can be made, a directory with them moved away, and those of submodules and nested repositories changed"
                .to_owned(),
        );
        notes.push(
            "started as root, it can leave setuid files in writable directories: start it as a plain user"
                .to_owned(),
        );
    }
    if view.root.is_some() {
        notes.push("of a granted `/` nothing is hidden, nor is bailiwick's own state".to_owned());
    }
    if plan.limits().declared().any(|limit| limit != Limit::FileSize) {
        notes.push("it limits only the size of files: start it under `systemd-run` for the rest".to_owned());
    }
    if plan.nested_sandbox() {
        notes.push(
            "`nestedSandbox` is not relaxed: under a read-only root no further namespace can be made"
                .to_owned(),
        );
    }
    script::command_notes(plan, view, notes);
}
