//! For hosts without user namespaces: Landlock and the filter alone, in an ordinary child.
//!
//! There is no root, network, pid or ipc namespace of its own, and the [`Status`] says so: names, sizes and times of
//! all files can be seen, the caller's own files can be given other modes and times wherever they lie, a process that
//! leaves its session can outlive the sandbox. Files outside the plan can be neither read, changed nor started, and
//! there is no socket of any kind.
//!
//! Fails closed when: there is no Landlock, the plan names hosts or local services (nothing here could hold them), or
//! a path that must never be visible or writable lies in a granted tree, from which Landlock cannot take it out.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process;

use bailiwick_policy::enforcement::{Aspect, Coverage, Held, judge};
use bailiwick_policy::plan::{BASE, BaseKind, FileGrant, Network, Plan};
use rustix::fs::{Mode, OFlags};

use crate::cgroup::Places;
use crate::command::{Command, Options, Stdio};
use crate::external::{Invocation, Launch, Launched, Steps, refuse_odd_mounts};
use crate::fault::{Fault, Step};
use crate::landlock::{self, Level, Rule, Ruleset};
use crate::limits::{Applied, Situation};
use crate::native::layout::Layout;
use crate::native::programs::Programs;
use crate::native::{base, environment, grants};
use crate::refusal::Refusal;
use crate::seccomp::{Needs, program_offline};
use crate::status::{Status, counted};

#[cfg(test)]
mod tests;

/// Starts a command held to a plan by Landlock and the filter alone.
///
/// # Errors
/// What is missing, or cannot be held so. Nothing was started.
pub fn start(plan: &Plan, command: Command, options: &Options) -> Result<Launched, Refusal> {
    prepare(plan, command, options)?.launch()
}

/// Makes everything ready that [`start`] needs, and starts nothing.
pub(crate) fn prepare(plan: &Plan, command: Command, options: &Options) -> Result<Launch, Refusal> {
    let level = Level::of_kernel().map_err(|fault| unusable(&fault.to_string()))?;
    refuse_hidden(plan)?;
    refuse_odd_mounts(plan, "landlock")?;
    let situation = Situation { own_user_namespace: false, ..Situation::of_sandbox() };
    let limits = Applied::prepare(plan.limits(), &Places::find(), situation);
    let coverage = coverage(plan, level, limits.held());
    let shortfalls = coverage.below(options.floor.as_ref().unwrap_or(&plan.floor()));
    if !shortfalls.is_empty() {
        return Err(Refusal::BelowFloor { shortfalls });
    }
    let mut found = Found::of(plan, &command)?;
    let ruleset = Ruleset::build(&std::mem::take(&mut found.rules))
        .map_err(|fault| Fault::new(Step::Rules, fault.errno()))?;
    let needs = Needs {
        any_exec: plan.exec().any.is_some(),
        nested_sandbox: plan.nested_sandbox(),
        ..Needs::default()
    };
    let steps = Steps { rules: Some(ruleset), filter: Some(program_offline(needs)) };
    let status = Status { coverage, backend: "landlock", details: counted(found.notes) };
    let invocation = Invocation::plain(run(plan, &command, &found.program)?);
    Ok(Launch { invocation, stdio: command.stdio, limits, status, steps })
}

/// What is held without namespaces.
#[must_use]
pub fn coverage_here(plan: &Plan) -> Option<Coverage> {
    let situation = Situation { own_user_namespace: false, ..Situation::of_sandbox() };
    let limits = Applied::prepare(plan.limits(), &Places::find(), situation);
    Some(coverage(plan, Level::of_kernel().ok()?, limits.held()))
}

fn coverage(plan: &Plan, level: Level, limits: Held) -> Coverage {
    Coverage::of(|aspect| {
        match aspect {
        Aspect::Files => files(level),
        Aspect::Network if *plan.network() == Network::None => {
            Held::kernel("no socket of any network family can be made")
        }
        Aspect::Network => Held::unsupported("without a network namespace no host can be let through"),
        Aspect::Exec if plan.exec().any.is_some() => Held::kernel("every program of the system is granted"),
        Aspect::Exec => Held::kernel("Landlock lets nothing else be started")
            .superset("helper programs in library folders can be, and every readable file can be mapped as code"),
        Aspect::Environment => Held::kernel("a new process with only these variables"),
        Aspect::Ipc if plan.ipc().any || !plan.ipc().endpoints.is_empty() => {
            Held::unsupported("no local service can be let through")
        }
        Aspect::Ipc => Held::kernel("no Unix socket can be made but pairs")
            .superset("shared memory and queues of the same user can be reached"),
        Aspect::Processes if level.holds_signals() => Held::kernel("Landlock holds signals, the filter tracing")
            .superset("priorities and limits of the user's processes can be changed; one that leaves its session can stay"),
        Aspect::Processes => Held::unsupported("processes of the same user can be signalled"),
        Aspect::Clock => judge::clock(plan),
        Aspect::Limits => limits.clone(),
    }
    })
}

fn files(level: Level) -> Held {
    let held = Held::kernel(level.to_string()).superset(
        "names, sizes, owners, attributes, modes and times are not held, nor files that run code later in writable \
         folders",
    );
    level.missing().fold(held, Held::superset)
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
    fn of(plan: &Plan, command: &Command) -> Result<Self, Refusal> {
        let granted = grants::put(&mut Layout::default(), plan, None)?;
        let (mut rules, mut notes) = (granted.rules, granted.notes);
        let mut programs = Programs::default();
        let from = command.cwd.as_deref().unwrap_or(Path::new("/"));
        let program = programs.add(&command.program, from)?;
        for grant in &plan.exec().programs {
            let name = grant.value.program.to_string();
            if let Err(refusal) = programs.add(OsStr::new(&name), Path::new("/")) {
                notes.push(format!("`exec:spawn:{name}` starts nothing: {refusal}"));
            }
        }
        let any = plan.exec().any.is_some();
        rules.extend(BASE.iter().filter_map(|entry| base_rule(entry.path, entry.kind, any)));
        let run = landlock::READ | landlock::EXECUTE;
        let programs = programs.files.into_iter().chain(programs.folders).chain(base::loaders());
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

fn run(plan: &Plan, command: &Command, program: &Path) -> Result<process::Command, Refusal> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::process::CommandExt as _;
    let terminal = matches!(command.stdio, Stdio::Terminal);
    let mut plain = process::Command::new(program);
    plain.arg0(&command.program).args(&command.args).env_clear();
    for assignment in
        environment::of(plan.environment(), &command.env, Path::new("/nonexistent"), None, terminal)?
    {
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
