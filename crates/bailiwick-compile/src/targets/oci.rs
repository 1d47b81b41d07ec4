//! An OCI bundle: `config.json` for a runtime started as root, `config.rootless.json` for one started by a user.
//!
//! The root file system is an empty directory on which the base and the plan's trees are bound; own user, pid, ipc,
//! uts, network, cgroup and mount namespaces; no capability; a list of refused system calls.
//!
//! Fails closed when a bound place is missing: runtimes have no optional mounts, so the container does not start.
//! Residual: files that run code later stay read-only only where the host was asked and has them.

mod config;
mod seccomp;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism,
    ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::limits::Limit;
use bailiwick_policy::plan::{Network, Plan};

use crate::view::{View, run_later};
use crate::{Refusal, Target, script, why};

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let mut view = View::for_target(plan, Target::Oci)?;
    if let Some(root) = &view.root {
        return Err(Refusal::Inexpressible {
            target: Target::Oci,
            aspect: Aspect::Files,
            rule: format!("fs:{}:/**", if root.writable { "write" } else { "read" }),
            why: "a container has a root of its own; write the directories out".to_owned(),
        });
    }
    let mut notes = std::mem::take(&mut view.notes);
    add_notes(plan, &view, &mut notes);
    let [root, user] = config::texts(plan, &view, &run_later(plan, &view));
    let mut files = vec![
        ArtifactFile { name: "config.json".to_owned(), text: root },
        ArtifactFile { name: "config.rootless.json".to_owned(), text: user },
        ArtifactFile { name: "rootfs/.empty".to_owned(), text: String::new() },
    ];
    files.extend(script::stub_files(&view));
    let argv = ["runc", "run", "--bundle", ".", "bailiwick"].map(str::to_owned).into();
    Ok(Emitted { argv, files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a bundle holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Mounts(Words::exact(
        "a read-only root with binds, no capability and no call to mount",
    )),
    network: NetworkMechanism::Empty { wider: &[], wider_with_services: &[] },
    programs: ProgramMechanism::Visible,
    environment: EnvironmentMechanism::Fresh {
        words: Words::exact("nothing but PATH, HOME, LANG and the declared variables"),
        passes_all: false,
    },
    services: ServiceMechanism::Filtered {
        none: Words::exact(
            "no Unix socket can be made but pairs; abstract ones end at the network namespace",
        ),
        wider_with_files: &[],
        some: DeclaredServices::Visible(Words::exact("")),
    },
    processes: ProcessMechanism::Kernel {
        words: Words::exact("own pid, ipc and user namespaces, further ones are refused"),
        nested: Words::exact("own pid and ipc namespaces; user namespaces stay open for a nested sandbox"),
    },
    limits: LimitMechanism::KernelAsRoot(
        &[Limit::Memory, Limit::Pids, Limit::Cpu, Limit::FileSize],
        "cgroups, and a resource limit for the size of files",
        "started by a user only the size of files is limited",
    ),
};

fn add_notes(plan: &Plan, view: &View, notes: &mut Vec<String>) {
    notes.push(
        "`config.rootless.json` is for a runtime started by a plain user: name it `config.json` and put your uid and \
         gid (`id -u`, `id -g`) for the 1000 in its mappings"
            .to_owned(),
    );
    if *plan.network() != Network::None {
        notes.push(
            "no host can be reached: `bailiwick run` adds the supervisor that lets declared ones be"
                .to_owned(),
        );
    }
    why::environment_notes(plan, "add `NAME=VALUE` to `process.env` of a copy that only you can read", notes);
    if view.writable().next().is_some() {
        notes.push(
            "files that run code later, such as `.git/hooks`, stay read-only where the host was seen to have them \
             at the top of a writable directory; those of submodules and nested repositories can be changed"
                .to_owned(),
        );
    }
    if plan.nested_sandbox() {
        notes.push("`nestedSandbox` lets `clone` and `unshare` make namespaces, and nothing else".to_owned());
    }
    if plan.command().is_none() {
        notes.push("the command is missing: set `process.args`".to_owned());
    }
    script::command_notes(plan, view, notes);
}
