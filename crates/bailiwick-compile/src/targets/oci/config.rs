//! The `config.json` of an OCI bundle.

use bailiwick_policy::limits::Limits;
use bailiwick_policy::plan::Plan;
use serde::Serialize;

use super::seccomp;
use crate::script;
use crate::view::{RunLater, View};

/// Who starts the runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Root, who is mapped to itself and may use cgroups.
    Root,
    /// A user, whose number the user fills in.
    User,
}

/// What does not depend on the user that starts the runtime.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Common<'a> {
    oci_version: &'static str,
    process: Process<'a>,
    root: Root,
    hostname: &'static str,
}

/// What is not.
#[derive(Serialize)]
struct Own {
    linux: Linux,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    terminal: bool,
    user: User,
    args: Vec<&'a str>,
    env: Vec<String>,
    cwd: &'static str,
    capabilities: Capabilities,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rlimits: Vec<Rlimit>,
    no_new_privileges: bool,
}

#[derive(Serialize)]
struct User {
    uid: u32,
    gid: u32,
}

/// All sets, all empty.
#[derive(Default, Serialize)]
struct Capabilities {
    bounding: [&'static str; 0],
    effective: [&'static str; 0],
    inheritable: [&'static str; 0],
    permitted: [&'static str; 0],
    ambient: [&'static str; 0],
}

#[derive(Serialize)]
struct Rlimit {
    r#type: &'static str,
    hard: u64,
    soft: u64,
}

#[derive(Serialize)]
struct Root {
    path: &'static str,
    readonly: bool,
}

struct Mount<'a> {
    destination: &'a str,
    kind: &'static str,
    source: &'a str,
    options: &'static [&'static str],
}

impl Mount<'_> {
    /// Its text in the list of mounts, written out because there may be tens of thousands.
    fn write(&self, text: &mut String) {
        let quoted = |path: &str| serde_json::to_string(path).unwrap_or_default();
        text.extend(["\n    {\n      \"destination\": ", &quoted(self.destination)]);
        text.extend([",\n      \"type\": \"", self.kind, "\",\n      \"source\": ", &quoted(self.source)]);
        text.push_str(",\n      \"options\": [");
        for (index, option) in self.options.iter().enumerate() {
            text.extend([if index == 0 { "" } else { "," }, "\n        \"", option, "\""]);
        }
        text.push_str("\n      ]\n    }");
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Linux {
    namespaces: [Namespace; 7],
    uid_mappings: [Mapping; 1],
    gid_mappings: [Mapping; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    /// Written once for all plans: see [`HOLE`].
    seccomp: (),
    masked_paths: [&'static str; 13],
    readonly_paths: [&'static str; 11],
}

#[derive(Serialize)]
struct Namespace {
    r#type: &'static str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mapping {
    #[serde(rename = "containerID")]
    container: u32,
    #[serde(rename = "hostID")]
    host: u32,
    size: u32,
}

#[derive(Serialize)]
struct Resources {
    devices: [Device; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pids: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Cpu>,
}

#[derive(Serialize)]
struct Device {
    allow: bool,
    access: &'static str,
}

#[derive(Serialize)]
struct Limit {
    limit: u64,
}

#[derive(Serialize)]
struct Cpu {
    quota: u64,
    period: u64,
}

const READ_ONLY: [&str; 8] = ["rbind", "rprivate", "ro", "rro", "nosuid", "rnosuid", "nodev", "rnodev"];
const WRITABLE: [&str; 6] = ["rbind", "rprivate", "nosuid", "rnosuid", "nodev", "rnodev"];
const WRITABLE_NOEXEC: [&str; 8] =
    ["rbind", "rprivate", "nosuid", "rnosuid", "nodev", "rnodev", "noexec", "rnoexec"];

/// Where the section of system calls goes. No text of a plan has it: JSON escapes its line break and quotes.
const HOLE: &str = "\n    \"seccomp\": null";

/// The texts of `config.json` for root and for a user. Without its section of system calls there would be none,
/// which no runtime starts.
pub(super) fn texts(plan: &Plan, view: &View, later: &[RunLater]) -> [String; 2] {
    let mut common = members(&Common {
        oci_version: "1.0.2",
        process: process(plan),
        root: Root { path: "rootfs", readonly: true },
        hostname: "bailiwick",
    });
    for (index, mount) in mounts(plan, view, later).iter().enumerate() {
        common.push_str(if index == 0 { ",\n  \"mounts\": [" } else { "," });
        mount.write(&mut common);
    }
    common.push_str("\n  ]");
    [Start::Root, Start::User].map(|start| {
        let own = members(&Own { linux: linux(plan, start) });
        let Some((before, after)) = own.split_once(HOLE) else { return String::new() };
        ["{", &common, ",", before, "\n    \"seccomp\": ", seccomp::section(plan), after, "\n}\n"].concat()
    })
}

/// The members of an object, without its braces.
fn members(object: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(object).unwrap_or_default();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix("\n}"));
    inner.map(str::to_owned).unwrap_or_default()
}

fn process(plan: &Plan) -> Process<'_> {
    let (command, arguments) = plan.command().unwrap_or(("/bin/false", &[]));
    let file_size =
        plan.limits().file_size.map(|size| Rlimit { r#type: "RLIMIT_FSIZE", hard: size, soft: size });
    Process {
        terminal: false,
        user: User { uid: 0, gid: 0 },
        args: std::iter::once(command).chain(arguments.iter().map(|word| &**word)).collect(),
        env: script::variables(plan).map(|(name, value)| format!("{name}={value}")).collect(),
        cwd: "/",
        capabilities: Capabilities::default(),
        rlimits: file_size.into_iter().collect(),
        no_new_privileges: true,
    }
}

fn mounts<'a>(plan: &Plan, view: &'a View, later: &'a [RunLater]) -> Vec<Mount<'a>> {
    let bind = |source, destination, options| Mount { destination, kind: "bind", source, options };
    let mut mounts = Vec::with_capacity(64 + view.trees.len());
    mounts.extend(view.base.iter().map(|path| bind(path, path, &READ_ONLY)));
    mounts.extend(view.stubs.iter().map(|(path, _)| bind(script::stub_name(path), path, &READ_ONLY)));
    mounts.extend(own(plan, view));
    let writable: &[&str] = if plan.from_writable() { &WRITABLE } else { &WRITABLE_NOEXEC };
    for tree in &view.trees {
        let options = if tree.writable { writable } else { &READ_ONLY };
        mounts.push(bind(&*tree.source, &*tree.path, options));
    }
    for later in later.iter().filter(|later| later.exists) {
        mounts.push(bind(&*later.source, &*later.path, if later.writable { writable } else { &READ_ONLY }));
    }
    for socket in &view.sockets {
        // A directory cannot be mounted on a file: what is not a socket's name stops the runtime here.
        mounts.push(bind("/dev/null", socket, &READ_ONLY));
        mounts.push(bind(socket, socket, &READ_ONLY));
    }
    mounts.extend(view.socket_directories.iter().map(|directory| bind(directory, directory, &READ_ONLY)));
    mounts.extend(view.covered.iter().map(|path| Mount {
        destination: path,
        kind: "tmpfs",
        source: "tmpfs",
        options: &["nosuid", "nodev", "noexec", "ro", "mode=755", "size=4k"],
    }));
    mounts
}

/// What the container has of its own.
fn own<'a>(plan: &Plan, view: &'a View) -> impl Iterator<Item = Mount<'a>> + use<'a> {
    let mount = |destination, kind, options| Mount { destination, kind, source: kind, options };
    let tmp: &[&str] = if plan.from_writable() {
        &["nosuid", "nodev", "mode=1777"]
    } else {
        &["nosuid", "nodev", "noexec", "mode=1777"]
    };
    let all = [
        Some(mount("/proc", "proc", &["nosuid", "nodev", "noexec"][..])),
        Some(mount("/dev", "tmpfs", &["nosuid", "noexec", "strictatime", "mode=755", "size=64k"][..])),
        Some(mount(
            "/dev/pts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"][..],
        )),
        Some(mount("/dev/shm", "tmpfs", &["nosuid", "nodev", "noexec", "mode=1777"][..])),
        view.own_tmp().then(|| mount("/tmp", "tmpfs", tmp)),
    ];
    all.into_iter().flatten()
}

fn linux(plan: &Plan, start: Start) -> Linux {
    let names = ["user", "mount", "pid", "ipc", "uts", "network", "cgroup"];
    let host = if start == Start::Root { 0 } else { 1000 };
    let mapping = Mapping { container: 0, host, size: 1 };
    Linux {
        namespaces: names.map(|r#type| Namespace { r#type }),
        uid_mappings: [mapping],
        gid_mappings: [mapping],
        resources: (start == Start::Root).then(|| resources(plan.limits())),
        seccomp: (),
        masked_paths: [
            "/proc/acpi",
            "/proc/asound",
            "/proc/kallsyms",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/sched_debug",
            "/proc/scsi",
            "/proc/sysrq-trigger",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/sys/firmware",
            "/sys/fs/selinux",
        ],
        // Device nodes can be written to all the same; as root their modes would be the host's.
        readonly_paths: [
            "/proc/bus",
            "/proc/fs",
            "/proc/irq",
            "/proc/sys",
            "/proc/mtrr",
            "/dev/null",
            "/dev/zero",
            "/dev/full",
            "/dev/random",
            "/dev/urandom",
            "/dev/tty",
        ],
    }
}

fn resources(limits: &Limits) -> Resources {
    const PERIOD: u64 = 100_000;
    let limit = |limit| Limit { limit };
    Resources {
        devices: [Device { allow: false, access: "rwm" }],
        memory: limits.memory.map(limit),
        pids: limits.pids.map(limit),
        cpu: limits.cpu_milli.map(|milli| Cpu { quota: milli.saturating_mul(PERIOD / 1000), period: PERIOD }),
    }
}
