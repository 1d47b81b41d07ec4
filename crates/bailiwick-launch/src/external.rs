//! Other backends: a compiled [`Artifact`] run by bubblewrap, an OCI runtime or firejail.
//!
//! The backend is tried before it is used ([`Backend::probe`]): one that is installed and does not confine is no
//! backend. Values of variables never appear in a command line. What the artifact needs as files lies in a private
//! directory that is removed with the sandbox. Limits are ours, not the backend's: it is started within them.
//!
//! Fails closed when: the backend is missing or does not confine, the artifact is not one of these three, a file
//! cannot be written, a file system of the kernel's own is mounted in a granted tree.
//! Residual: what the artifact's own coverage says.

mod backends;
mod bwrap;
mod directory;
mod firejail;
mod oci;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use bailiwick_confine::{Command, HostProcess, Options, Refusal, Status, refuse_odd_mounts};
use bailiwick_policy::artifact::Artifact;
use bailiwick_policy::plan::Plan;

pub use backends::Backend;
use directory::Directory;

/// Makes everything ready for a command that another backend holds to a plan, and starts nothing. `scratch` is where a
/// private directory may be made.
///
/// # Errors
/// What is missing.
pub(crate) fn prepare(
    plan: &Plan,
    artifact: &Artifact,
    command: Command,
    options: &Options,
    scratch: &Path,
) -> Result<HostProcess, Refusal> {
    let backend = backend(artifact)?;
    backend.probe().map_err(|lack| unusable(backend.as_str(), &lack.why, &lack.fix))?;
    refuse_odd_mounts(plan, backend.as_str())?;
    let (coverage, details) = (artifact.coverage().clone(), artifact.notes().to_vec());
    let held = Status { coverage, backend: backend.as_str(), details, unheld_limits: Vec::new() };
    let Command { program, args, cwd, env, stdio } = command;
    HostProcess::prepare(plan, held, (stdio, options), || {
        let command = Program { program, args, cwd, env };
        let directory = Directory::write(scratch, artifact.files())?;
        match backend {
            Backend::Bwrap => bwrap::command_line(plan, artifact, &command, directory),
            Backend::Runc | Backend::Crun => oci::command_line(backend, plan, &command, directory),
            Backend::Firejail => firejail::command_line(plan, artifact, &command, directory),
        }
    })
}

/// What another backend is told of a command: all but its descriptors.
struct Program {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: BTreeMap<OsString, OsString>,
}

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
fn values<'a>(plan: &'a Plan, command: &'a Program) -> impl Iterator<Item = (&'a OsString, &'a OsString)> {
    let environment = plan.environment();
    let named = environment.injected.iter().chain(&environment.read);
    let named: Vec<&str> = named.map(|name| &*name.value).collect();
    command.env.iter().filter(move |(name, _)| {
        environment.read_all || name.to_str().is_some_and(|name| named.contains(&name))
    })
}

/// A backend with an environment of its own that says nothing of the caller's.
fn plain_command(program: &Path, command: &Program) -> process::Command {
    let mut plain = process::Command::new(program);
    plain.env_clear().env("PATH", bailiwick_policy::plan::PROGRAM_DIRECTORIES.join(":"));
    plain.current_dir(command.cwd.as_deref().unwrap_or(Path::new("/")));
    plain
}
