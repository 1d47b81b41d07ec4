//! Other backends: a compiled [`Artifact`] run by bubblewrap, an OCI runtime or firejail.
//!
//! The backend is tried before it is used ([`Backend::probe`]): one that is installed and does not confine is no
//! backend. Values of variables never appear in a command line. What the artifact needs as files lies in a private
//! folder that is removed with the sandbox. Limits are ours, not the backend's: it is started within them.
//!
//! Fails closed when: the backend is missing or does not confine, the artifact is not one of these three, a file
//! cannot be written, a file system of the kernel's own is mounted in a granted tree.
//! Residual: what the artifact's own coverage says. The thread that starts it must outlive it: the kernel tells the
//! backend of that thread's end, not of the process'.

mod bwrap;
mod firejail;
mod folder;
mod launched;
mod oci;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::process;

use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::enforcement::{Aspect, Coverage};
use bailiwick_policy::plan::{MASKED, Plan};
use rustix::fd::OwnedFd;

use crate::cgroup::Places;
use crate::command::{Command, Options};
use crate::host::Backend;
use crate::limits::{Applied, Situation};
use crate::native::grants::to_path;
use crate::native::submounts::Mounts;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::weakened;

use folder::Folder;
pub use launched::Launched;
pub(crate) use launched::{Launch, Steps};

/// A backend's command line, ready to run.
pub(crate) struct Invocation {
    command: process::Command,
    /// Descriptors that it inherits under the numbers they have.
    inherited: Vec<OwnedFd>,
    /// Its files.
    folder: Option<Folder>,
    /// What ends it besides killing its processes.
    teardown: Option<process::Command>,
}

impl Invocation {
    /// A command that needs nothing else.
    pub(crate) const fn plain(command: process::Command) -> Self {
        Self { command, inherited: Vec::new(), folder: None, teardown: None }
    }
}

/// Starts a command held to a plan by another backend. `scratch` is where a private folder may be made.
///
/// # Errors
/// What is missing. Nothing was started.
pub fn start(
    plan: &Plan,
    artifact: &Artifact,
    command: Command,
    options: &Options,
    scratch: &Path,
) -> Result<Launched, Refusal> {
    prepare(plan, artifact, command, options, scratch)?.launch()
}

/// Makes everything ready that [`start`] needs, and starts nothing.
pub(crate) fn prepare(
    plan: &Plan,
    artifact: &Artifact,
    command: Command,
    options: &Options,
    scratch: &Path,
) -> Result<Launch, Refusal> {
    let backend = backend(artifact)?;
    backend.probe().map_err(|lack| unusable(backend.as_str(), &lack.why, &lack.fix))?;
    refuse_odd_mounts(plan, backend.as_str())?;
    let limits = Applied::prepare(plan.limits(), &Places::find(), SITUATION);
    let coverage = Coverage::of(|aspect| match aspect {
        Aspect::Limits => limits.held(),
        Aspect::Files
        | Aspect::Network
        | Aspect::Exec
        | Aspect::Environment
        | Aspect::Ipc
        | Aspect::Processes
        | Aspect::Clock => artifact.coverage().held(aspect).clone(),
    });
    let shortfalls = coverage.below(options.floor.as_ref().unwrap_or(&plan.floor()));
    if !shortfalls.is_empty() {
        return Err(Refusal::BelowFloor { shortfalls });
    }
    let folder = Folder::write(scratch, artifact.files())?;
    let invocation = match backend {
        Backend::Bwrap => bwrap::invocation(plan, artifact, &command, folder)?,
        Backend::Runc | Backend::Crun => oci::invocation(backend, plan, &command, folder)?,
        Backend::Firejail => firejail::invocation(plan, artifact, &command, folder)?,
    };
    let status = Status { coverage, backend: backend.as_str(), details: artifact.notes().to_vec() };
    Ok(Launch { invocation, stdio: command.stdio, limits, status, steps: Steps::default() })
}

/// Refuses a granted tree with a file system of the kernel's own in it: other backends mount a tree with everything below
/// it, and Landlock's rules reach through mounts. As root, a proc there can name a program that the host runs.
pub(crate) fn refuse_odd_mounts(plan: &Plan, backend: &str) -> Result<(), Refusal> {
    if plan.files().is_empty() || weakened::SUBMOUNTS {
        return Ok(());
    }
    let mounts = Mounts::read()
        .map_err(|fault| unusable(backend, &format!("cannot see mounts: {fault}"), "mount /proc"))?;
    for grant in plan.files() {
        let source = to_path(&grant.source);
        let around = mounts.odd_around(&source).map(|kind| (source.as_path(), kind));
        let mut all = around.into_iter().chain(mounts.odd_below(&source));
        // What is masked is never shown, whatever is granted.
        let odd = all.find(|(at, _)| !MASKED.iter().any(|masked| at.starts_with(masked)));
        if let Some((at, kind)) = odd {
            let why = format!("`{}` is a mount of {kind} and lies in `{}`", at.display(), grant.path());
            return Err(unusable(backend, &why, "grant a narrower directory, or use the native sandbox"));
        }
    }
    Ok(())
}

/// Resource limits are set before the backend makes its user namespace, so they count for the whole user.
const SITUATION: Situation =
    Situation { own_user_namespace: false, host_root: false, counts_by_namespace: false };

/// Which backend runs an artifact; of the OCI runtimes, the first that confines.
fn backend(artifact: &Artifact) -> Result<Backend, Refusal> {
    match artifact.target() {
        "bwrap" => Ok(Backend::Bwrap),
        "firejail" => Ok(Backend::Firejail),
        "oci" if Backend::Runc.probe().is_err() && Backend::Crun.probe().is_ok() => Ok(Backend::Crun),
        "oci" => Ok(Backend::Runc),
        other => Err(unusable(other, "it is not run by a program here", "use bwrap, oci or firejail")),
    }
}

fn unusable(backend: &str, why: &str, fix: &str) -> Refusal {
    Refusal::Unusable { backend: backend.to_owned(), why: why.to_owned(), fix: fix.to_owned() }
}

/// The artifact's command line without the plan's own command, which the caller's takes the place of.
fn options_of<'a>(plan: &Plan, artifact: &'a Artifact) -> &'a [String] {
    let command = plan.command().map_or(0, |(_, arguments)| 1 + arguments.len());
    let argv = artifact.argv();
    argv.get(..argv.len().saturating_sub(command)).unwrap_or_default()
}

/// The values that the caller gives to the variables that the plan lets through.
fn values<'a>(plan: &'a Plan, command: &'a Command) -> impl Iterator<Item = (&'a OsString, &'a OsString)> {
    let environment = plan.environment();
    let named = environment.injected.iter().chain(&environment.read);
    let named: Vec<&str> = named.map(|name| &*name.value).collect();
    command.env.iter().filter(move |(name, _)| {
        environment.read_all || name.to_str().is_some_and(|name| named.contains(&name))
    })
}

/// A backend with an environment of its own that says nothing of the caller's.
fn plain_command(program: &Path, command: &Command) -> process::Command {
    let mut plain = process::Command::new(program);
    plain.env_clear().env("PATH", bailiwick_policy::plan::PROGRAM_FOLDERS.join(":"));
    plain.current_dir(command.cwd.as_deref().unwrap_or(Path::new("/")));
    plain
}
