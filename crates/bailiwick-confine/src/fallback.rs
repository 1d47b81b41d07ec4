//! For hosts without user namespaces: Landlock and the filter alone, in an ordinary child.
//!
//! There is no root, network, pid or ipc namespace of its own, and the [`Status`] says so: names, sizes and times of
//! all files can be seen, the caller's own files can be given other modes and times wherever they lie, a process that
//! leaves its session can outlive the sandbox. Files outside the plan can be neither read, changed nor started, and
//! there is no socket of any kind.
//!
//! Fails closed when: there is no Landlock, the plan names hosts or local services (nothing here could hold them), or
//! a path that must never be visible or writable lies in a granted tree, from which Landlock cannot take it out.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process;

use bailiwick_layout::fault::{Fault, Step};
use bailiwick_layout::layout::Layout;
use bailiwick_layout::programs::{Lookup, Programs};
use bailiwick_layout::refusal::Refusal;
use bailiwick_layout::submounts::refuse_odd_mounts;
use bailiwick_layout::{base, environment, grants};
use bailiwick_policy::enforcement::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism,
    ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Coverage, judge};
use bailiwick_policy::plan::{BASE, BaseKind, FileGrant, Plan};
use rustix::fs::{Mode, OFlags};

use crate::cgroup::Places;
use crate::command::{Command, Options, Stdio};
use crate::landlock::{self, Level, Rule, Ruleset};
use crate::limits::{Applied, Situation};
use crate::prepared::tool_choice;
use crate::process::{HostCommand, HostProcess, Steps};
use crate::seccomp::{Needs, program_offline};
use crate::status::{Status, counted};

#[cfg(test)]
mod tests;

/// Makes everything ready for a command held to a plan by Landlock and the filter alone, and starts nothing.
///
/// # Errors
/// What is missing, or cannot be held so.
pub fn prepare(plan: &Plan, command: Command, options: &Options) -> Result<HostProcess, Refusal> {
    let level = Level::of_kernel().map_err(|fault| unusable(&fault.to_string()))?;
    refuse_hidden(plan)?;
    refuse_odd_mounts(plan, "landlock")?;
    let situation = Situation { own_user_namespace: false, ..Situation::of_sandbox() };
    let limits = Applied::prepare(plan.limits(), &Places::find(), situation);
    let coverage = judge::coverage(plan, &mechanism(level, limits.mechanism()));
    crate::coverage::ensure_floor(&coverage, plan, options.floor.as_ref())?;
    let mut found = Found::for_plan(plan, &command, options)?;
    let ruleset = Ruleset::build(&std::mem::take(&mut found.rules))
        .map_err(|fault| Fault::new(Step::Rules, fault.errno()))?;
    let needs = Needs {
        any_exec: plan.exec().any.is_some(),
        nested_sandbox: plan.nested_sandbox(),
        ..Needs::default()
    };
    let steps = Steps { rules: Some(ruleset), filter: Some(program_offline(needs)) };
    let (details, unheld_limits) = (counted(found.notes), limits.unheld());
    let status = Status { coverage, backend: "landlock", details, unheld_limits };
    let line = HostCommand::plain(run(plan, &command, &found.program, options.home.as_deref())?);
    Ok(HostProcess { command: line, stdio: command.stdio, limits, status, steps })
}

/// What is held without namespaces.
#[must_use]
pub fn coverage_here(plan: &Plan) -> Option<Coverage> {
    let situation = Situation { own_user_namespace: false, ..Situation::of_sandbox() };
    let limits = Applied::prepare(plan.limits(), &Places::find(), situation);
    Some(judge::coverage(plan, &mechanism(Level::of_kernel().ok()?, limits.mechanism())))
}

/// What Landlock never holds of files.
const UNHELD: &str = "names, sizes, owners, attributes, modes and times are not held, nor files that run code later in \
                      writable directories";

/// What holds a plan here: Landlock of this kernel's level, and the filter.
fn mechanism(level: Level, limits: LimitMechanism) -> Mechanism {
    let signals = Words::superset(
        "Landlock holds signals, the filter tracing",
        &[
            "priorities and limits of the user's processes can be changed; one that leaves its session can stay",
        ],
    );
    Mechanism {
        files: FileMechanism::FoundRules {
            how: level.to_string(),
            wider: [UNHELD].into_iter().chain(level.missing()).collect(),
        },
        network: NetworkMechanism::Closed(Words::exact("no socket of any network family can be made")),
        programs: ProgramMechanism::Listed(Words::superset(
            "Landlock lets nothing else be started",
            &["helper programs in library directories can be, and every readable file can be mapped as code"],
        )),
        environment: EnvironmentMechanism::Fresh {
            words: Words::exact("a new process with only these variables"),
            passes_all: true,
        },
        services: ServiceMechanism::Filtered {
            none: Words::superset(
                "no Unix socket can be made but pairs",
                &["shared memory and queues of the same user can be reached"],
            ),
            wider_with_files: &[],
            some: DeclaredServices::Nothing("no local service can be let through"),
        },
        processes: if level.holds_signals() {
            ProcessMechanism::Kernel { words: signals, nested: signals }
        } else {
            ProcessMechanism::Nothing("processes of the same user can be signalled")
        },
        limits,
    }
}

/// Landlock only adds: what lies in a granted tree can be neither hidden nor kept from being changed.
fn refuse_hidden(plan: &Plan) -> Result<(), Refusal> {
    let hidden = plan.protected().iter().map(|path| (path, "visible"));
    let locked = plan.locked().iter().map(|path| (path, "writable"));
    for (own, what) in hidden.chain(locked) {
        let own = grants::to_path(own);
        let tree = |grant: &&FileGrant| {
            let source = grants::to_path(&grant.source);
            let around = own.starts_with(&source) || own.starts_with(grants::to_path(&grant.path()));
            around && (what == "visible" || grant.writable())
        };
        if let Some(grant) = plan.files().iter().find(tree) {
            let (inner, outer) = (own.display(), grant.path());
            return Err(unusable(&format!("`{inner}` must not be {what} and lies in `{outer}`")));
        }
    }
    Ok(())
}

fn unusable(why: &str) -> Refusal {
    let fix = "allow user namespaces; `bailiwick doctor` says how".to_owned();
    Refusal::Unusable { backend: "landlock".to_owned(), why: why.to_owned(), fix }
}

/// What a plan comes to as rules.
struct Found {
    rules: Vec<Rule>,
    notes: Vec<String>,
    program: PathBuf,
}

impl Found {
    fn for_plan(plan: &Plan, command: &Command, options: &Options) -> Result<Self, Refusal> {
        let granted = grants::put(&mut Layout::default(), plan, None, false)?;
        let (mut rules, mut notes) = (granted.rules, granted.notes);
        let mut programs = Programs::default();
        let from = command.cwd.as_deref().unwrap_or(Path::new("/"));
        let choice = tool_choice(command, options);
        let callers = Lookup { first: &options.search.callers, choice: &choice };
        let named = Lookup { first: &options.search.named, ..callers };
        let program = programs.add(&command.program, from, callers)?;
        for grant in &plan.exec().programs {
            let name = grant.value.program.to_string();
            if let Err(refusal) = programs.add(OsStr::new(&name), Path::new("/"), named) {
                notes.push(format!("`exec:spawn:{name}` starts nothing: {refusal}"));
            }
        }
        let any = plan.exec().any.is_some();
        rules.extend(BASE.iter().filter_map(|entry| base_rule(entry.path, entry.kind, any)));
        let run = landlock::READ | landlock::EXECUTE;
        let read =
            programs.code.iter().chain(&programs.data).chain(&options.code).chain(&options.data).filter_map(
                |path| {
                    let access = if path.is_dir() { landlock::READ } else { landlock::READ_FILE };
                    Some(Rule { fd: open(path)?, access })
                },
            );
        rules.extend(read);
        let programs = programs.files.into_iter().chain(programs.directories).chain(base::loaders());
        rules.extend(programs.filter_map(|path| Some(Rule { fd: open(&path)?, access: run })));
        for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
            rules.extend(open(Path::new(device)).map(|fd| Rule { fd, access: landlock::DEVICE }));
        }
        Ok(Self { rules, notes, program })
    }
}

fn base_rule(path: &str, kind: BaseKind, any: bool) -> Option<Rule> {
    let access = match kind {
        BaseKind::Libraries => landlock::READ | landlock::EXECUTE,
        BaseKind::Data => landlock::READ,
        BaseKind::Programs if any => landlock::READ | landlock::EXECUTE,
        BaseKind::Programs => return None,
    };
    Some(Rule { fd: open(Path::new(path))?, access })
}

/// Follows links: these are the system's own paths, and a rule holds for what they lead to.
fn open(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn run(
    plan: &Plan,
    command: &Command,
    program: &Path,
    home: Option<&Path>,
) -> Result<process::Command, Refusal> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::process::CommandExt as _;
    let terminal = matches!(command.stdio, Stdio::Terminal);
    let mut plain = process::Command::new(program);
    plain.arg0(&command.program).args(&command.args).env_clear();
    // Nothing is private here: the home is what is granted of the caller's own, and nothing temporary can be kept.
    let nowhere = Path::new("/nonexistent");
    let home = home.unwrap_or(nowhere);
    let own = environment::Own { home, temporary: nowhere, user: None, program_directories: &[], terminal };
    for assignment in environment::assignments(plan.environment(), (&command.env, &BTreeMap::new()), &own)? {
        let bytes = assignment.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
        let (name, value) = (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default());
        plain.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    let cwd = command.cwd.as_deref().unwrap_or(Path::new("/"));
    if cwd.is_dir() {
        plain.current_dir(cwd)
    } else {
        plain.current_dir("/")
    };
    Ok(plain)
}
