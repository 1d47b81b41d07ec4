//! Docker and podman: a command line, and a `compose.yaml` where hosts are declared.
//!
//! The image gives the root file system, read-only unless the caller chooses otherwise; only what is granted is mounted from the host. Without hosts
//! the container has no network. With hosts it is on an internal network that leads nowhere but to the egress
//! proxy, which alone has a way out; there is no form in which it is on an open bridge.
//!
//! Fails closed when the image is not filled in: no registry takes a name in capitals. A mount whose source is
//! missing stops the container.
//! Residual: what the image holds is visible; a client that knows no proxy reaches no host.

mod compose;

use std::borrow::Cow;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::mechanism::{
    EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism, ProcessMechanism,
    ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::limits::{Limit, Limits};
use bailiwick_policy::plan::{Network, Plan};

use crate::view::{View, run_later};
use crate::{Refusal, Target, TargetOptions, script, why};

/// A placeholder for the image, to be filled in; no image's name has capitals.
const IMAGE: &str = "IMAGE";
/// The internal network that `compose.yaml` makes.
const INTERNAL: &str = "bailiwick-internal";
/// The user and group that the command runs as, until the owner of the granted directories is filled in.
const USER: &str = "65534:65534";
/// How many processes there may be if nothing is declared.
const DEFAULT_PIDS: u64 = 512;

pub(super) fn emit(plan: &Plan, options: TargetOptions) -> Result<Emitted, Refusal> {
    let mut view = View::for_target(plan, Target::Docker)?;
    if let Some(root) = &view.root {
        return Err(Refusal::Inexpressible {
            target: Target::Docker,
            aspect: Aspect::Files,
            rule: format!("fs:{}:/**", if root.writable { "write" } else { "read" }),
            why: "a container has the root of its image; write the directories out".to_owned(),
        });
    }
    let container = Container::for_plan(plan, &view, options);
    let files = match plan.network() {
        Network::None => Vec::new(),
        Network::Allow(_) | Network::Any => vec![
            ArtifactFile { name: "compose.yaml".to_owned(), text: compose::text(plan, &container) },
            compose::proxy(plan)?,
        ],
    };
    let mut notes = std::mem::take(&mut view.notes);
    add_notes(plan, &view, &mut notes);
    Ok(Emitted {
        argv: argv(plan, &container),
        files,
        notes,
        coverage: judge::coverage(plan, &mechanism(options)),
    })
}

/// What a container holds a plan with.
pub(super) const fn mechanism(options: TargetOptions) -> Mechanism {
    Mechanism {
        files: FileMechanism::Mounts(if options.read_only_rootfs {
            Words::superset(
                "a read-only image and mounts, no capability to remount",
                &["all of the image can be read"],
            )
        } else {
            Words::superset(
                "an image and mounts, no capability to remount",
                &["all of the image can be read, and changed in a layer that ends with the container"],
            )
        }),
        network: NetworkMechanism::Supervised {
            none: Words::exact("an own network namespace with nothing but a loopback of its own"),
            some: Words::superset(
                "an internal network whose only way out is the egress proxy of `compose.yaml`",
                &[
                    "the proxy sees whom a tunnel is for, not what is spoken in it",
                    "before Docker 28 the host itself answers there",
                ],
            ),
            unread: None,
        },
        programs: ProgramMechanism::Visible,
        environment: EnvironmentMechanism::Fresh {
            words: Words::superset(
                "the runtime starts it with these variables",
                &["HOSTNAME and those of the image are there too"],
            ),
            passes_all: false,
        },
        services: ServiceMechanism::Visible(Words::exact("")),
        processes: ProcessMechanism::Kernel {
            words: Words::exact("own pid and ipc namespaces, no capability to make further ones"),
            nested: Words::exact(
                "own pid and ipc namespaces; Docker's own filter still refuses a nested sandbox its own",
            ),
        },
        limits: LimitMechanism::Kernel(
            &[Limit::Memory, Limit::Pids, Limit::Cpu, Limit::FileSize],
            "cgroups, and a resource limit for the size of files",
        ),
    }
}

/// What the command line and `compose.yaml` both say.
struct Container {
    /// Whether the root file system is read-only.
    read_only: bool,
    /// What is mounted from the host, outer before inner.
    mounts: Vec<MountPoint>,
    /// Options of the `tmpfs` at `/tmp`, if the container has its own.
    tmp: Option<&'static str>,
    /// Directories that an empty one covers.
    covered: Vec<String>,
    /// Variables with their values.
    variables: Vec<(String, String)>,
    /// Names of variables that are passed on.
    passed: Vec<String>,
}

struct MountPoint {
    source: String,
    target: String,
    read_only: bool,
}

impl Container {
    fn for_plan(plan: &Plan, view: &View, options: TargetOptions) -> Self {
        let mount = |source: &str, target: &str, read_only| MountPoint {
            source: source.to_owned(),
            target: target.to_owned(),
            read_only,
        };
        let mut mounts: Vec<MountPoint> =
            view.trees.iter().map(|tree| mount(&tree.source, &tree.path, !tree.writable)).collect();
        let later = run_later(plan, view).into_iter().filter(|later| later.exists);
        mounts.extend(later.map(|later| mount(&later.source, &later.path, !later.writable)));
        mounts.extend(view.sockets.iter().map(|path| mount(path, path, true)));
        mounts.extend(view.socket_directories.iter().map(|path| mount(path, path, true)));
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let fixed = &plan.environment().fixed;
        let hosts = *plan.network() != Network::None;
        let proxy =
            compose::PROXY_VARIABLES.into_iter().filter(|(name, _)| hosts && !fixed.contains_key(*name));
        let tmp = match (view.own_tmp(), plan.from_writable()) {
            (false, _) => None,
            (true, true) => Some("rw,nosuid,nodev,exec,mode=1777"),
            (true, false) => Some("rw,nosuid,nodev,noexec,mode=1777"),
        };
        Self {
            read_only: options.read_only_rootfs,
            mounts,
            tmp,
            covered: view.covered.clone(),
            variables: script::variables(plan).chain(proxy).map(own).collect(),
            passed: script::passed(plan).map(str::to_owned).collect(),
        }
    }
}

fn argv(plan: &Plan, container: &Container) -> Vec<String> {
    let read_only = container.read_only.then_some("--read-only");
    let mut argv: Vec<String> = ["docker", "run", "--rm", "-i"]
        .into_iter()
        .chain(read_only)
        .chain(["--cap-drop", "ALL"])
        .chain(["--security-opt", "no-new-privileges", "--ipc", "private", "--pull", "never", "--network"])
        .map(str::to_owned)
        .collect();
    argv.push(if *plan.network() == Network::None { "none" } else { INTERNAL }.to_owned());
    if *plan.network() != Network::None {
        // Docker answers for the names of containers; names outside are not answered.
        argv.extend(["--dns", "127.0.0.1"].map(str::to_owned));
    }
    argv.extend(["--user", USER].map(str::to_owned));
    if let Some(options) = container.tmp {
        argv.extend(["--tmpfs".to_owned(), format!("/tmp:{options}")]);
    }
    for mount in &container.mounts {
        argv.extend(["--mount".to_owned(), mount_text(mount)]);
    }
    for path in &container.covered {
        argv.extend([
            "--mount".to_owned(),
            format!("type=tmpfs,{},readonly", field(&format!("target={path}"))),
        ]);
    }
    add_limits(plan.limits(), &mut argv);
    for (name, value) in &container.variables {
        argv.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    for name in &container.passed {
        argv.extend(["--env".to_owned(), name.clone()]);
    }
    argv.push(IMAGE.to_owned());
    argv.extend(script::command(plan));
    argv
}

fn add_limits(limits: &Limits, argv: &mut Vec<String>) {
    let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
    option("--pids-limit", limits.pids.unwrap_or(DEFAULT_PIDS).to_string());
    if let Some(memory) = limits.memory {
        option("--memory", format!("{memory}b"));
        option("--memory-swap", format!("{memory}b"));
    }
    if let Some(milli) = limits.cpu_milli {
        option("--cpus", cpus(milli));
    }
    if let Some(size) = limits.file_size {
        option("--ulimit", format!("fsize={size}:{size}"));
    }
}

/// Thousandths of a processor as Docker writes them.
fn cpus(milli: u64) -> String {
    format!("{}.{:03}", milli / 1000, milli % 1000)
}

/// One `--mount` value: a line of comma-separated values, a field with a comma or a quote in quotes.
fn mount_text(mount: &MountPoint) -> String {
    let source = format!("source={}", mount.source);
    let target = format!("target={}", mount.target);
    let mode = if mount.read_only { ",readonly" } else { "" };
    format!("type=bind,{},{}{mode}", field(&source), field(&target))
}

fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

fn add_notes(plan: &Plan, view: &View, notes: &mut Vec<String>) {
    notes.push(format!("put the name of an image for `{IMAGE}`; podman takes the same arguments"));
    notes.push("put the user and group that own the granted directories for `65534:65534`".to_owned());
    if *plan.network() != Network::None {
        notes.push(format!(
            "hosts are reached through the egress proxy alone: `docker compose up` \
             beside `compose.yaml` makes the proxy and `{INTERNAL}`, which leads nowhere else"
        ));
    }
    why::environment_notes(plan, "they are passed on by name from the environment of the client", notes);
    if view.writable().next().is_some() {
        notes.push(
            "files that run code later, such as `.git/hooks`, stay read-only where the host was seen to have them"
                .to_owned(),
        );
    }
    if plan.nested_sandbox() {
        notes.push(
            "`nestedSandbox` is not relaxed: Docker's own filter decides which namespaces can be made"
                .to_owned(),
        );
    }
    if !view.sockets.is_empty() {
        notes.push("a socket's path that is a directory on the host is shown as one".to_owned());
    }
}
