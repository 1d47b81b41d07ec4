//! A systemd service: an empty root with the plan's trees bound into it, its own user, no capability, a filter.
//!
//! Every value that comes from a manifest is escaped by the rules of its setting: `%` is doubled everywhere,
//! path lists take backslashes, commands and variables C escapes in quotes, and `:` before a command keeps `$`.
//!
//! Residual: systemd ignores a setting that it does not know, with a warning; `systemd-analyze verify` tells.

use std::fmt::Write as _;

use bailiwick_policy::artifact::{ArtifactFile, Emitted};
use bailiwick_policy::enforcement::mechanism::{
    DeclaredServices, EnvironmentMechanism, FileMechanism, LimitMechanism, Mechanism, NetworkMechanism,
    ProcessMechanism, ProgramMechanism, ServiceMechanism, Words,
};
use bailiwick_policy::enforcement::{Aspect, judge};
use bailiwick_policy::limits::Limit;
use bailiwick_policy::net::HostPattern;
use bailiwick_policy::plan::{BASE, BaseKind, Network, Plan};
use bailiwick_policy::run_later::fixed_names;

use super::aspects::{self, Shown, UNREAD};
use crate::{Refusal, Target, script};

/// What holds whatever is granted.
const ALWAYS: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateUsers=yes
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
PrivateIPC=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectHostname=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
KeyringMode=private
RemoveIPC=yes
UMask=0077
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @keyring @mount @debug io_uring_setup io_uring_enter io_uring_register memfd_secret
KillMode=control-group
";

pub(super) fn emit(plan: &Plan) -> Result<Emitted, Refusal> {
    let shown = aspects::shown(plan);
    let name = service_name(plan);
    let mut text = format!(
        "[Unit]\nDescription={} under Bailiwick\n\n[Service]\nType=exec\n",
        plain(&plan.subject().name)
    );
    let _ = writeln!(text, "ExecStart={}", command(plan)?);
    let _ = writeln!(text, "DynamicUser=yes\nUser=bw-{name}");
    text.push_str(ALWAYS);
    let mut notes = vec![format!(
        "create the user `bw-{name}` and let it reach the granted paths; without it the service gets a user of its own"
    )];
    namespaces(plan, &mut text, &mut notes);
    network(plan, &name, &mut text, &mut notes);
    files(plan, &shown, &mut text)?;
    programs(plan, &shown, &mut text, &mut notes);
    environment(plan, &name, &mut text, &mut notes);
    limits(plan, &mut text);
    notes.extend(shown.notes);
    notes.extend(aspects::common_notes(plan));
    let files = vec![ArtifactFile { name: "unit.service".to_owned(), text }];
    Ok(Emitted { argv: Vec::new(), files, notes, coverage: judge::coverage(plan, &MECHANISM) })
}

/// What a unit holds a plan with.
pub(super) const MECHANISM: Mechanism = Mechanism {
    files: FileMechanism::Mounts(Words::exact("a mount namespace with an empty root")),
    network: NetworkMechanism::Supervised {
        none: Words::exact("a network namespace without a way out, and no socket of any family"),
        some: Words::exact(
            "a network namespace that the host makes, whose only way out has to be the egress gateway",
        ),
        unread: Some(UNREAD),
    },
    programs: ProgramMechanism::Listed(Words::superset(
        "everything but the granted programs is mounted noexec",
        &["library directories hold programs too"],
    )),
    environment: EnvironmentMechanism::Fresh {
        words: Words::exact("the manager starts it with these variables and a few of its own"),
        passes_all: false,
    },
    services: ServiceMechanism::Filtered {
        none: Words::exact("sockets of the Unix family are refused"),
        wider_with_files: &[],
        some: DeclaredServices::Visible(Words::exact("")),
    },
    processes: ProcessMechanism::Kernel {
        words: Words::exact("its own user, and other users' processes are invisible"),
        nested: Words::superset(
            "its own user, and other users' processes are invisible",
            &["namespaces can be made, for the sandbox within"],
        ),
    },
    limits: LimitMechanism::Kernel(
        &[Limit::Memory, Limit::Pids, Limit::Cpu, Limit::FileSize],
        "cgroup and rlimits",
    ),
};

fn service_name(plan: &Plan) -> String {
    let kept = plan
        .subject()
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    kept.take(24).collect()
}

/// Text after `=`: no line break, no specifier.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control()).collect::<String>();
    kept.replace('%', "%%").replace('\\', "\\\\")
}

/// A path in a list of paths.
fn path(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => escaped.push('%'),
            ' ' | ':' | '"' | '\'' | '\\' => escaped.push('\\'),
            _ => {}
        }
        escaped.push(c);
    }
    escaped
}

/// A word of a command or a variable.
fn word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '%' => quoted.push_str("%%"),
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\x{byte:02x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn command(plan: &Plan) -> Result<String, Refusal> {
    let refused = |rule: &str, why: &str| Refusal::Inexpressible {
        target: Target::Systemd,
        aspect: Aspect::Exec,
        rule: rule.to_owned(),
        why: why.to_owned(),
    };
    let Some((program, args)) = plan.command() else {
        return Err(refused(
            &plan.subject().name,
            "a service needs a command; add `command` to the manifest",
        ));
    };
    let named = !program.contains('/') && program.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !(named || program.starts_with('/')) {
        return Err(refused(program, "a service starts a plain name or an absolute path"));
    }
    // `:` keeps `$` what it is
    let words = std::iter::once(format!(":{}", word(program))).chain(args.iter().map(|arg| word(arg)));
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn namespaces(plan: &Plan, text: &mut String, notes: &mut Vec<String>) {
    if plan.nested_sandbox() {
        text.push_str("RestrictNamespaces=user pid net\nSystemCallFilter=chroot\n");
        notes.push(
            "user, pid and network namespaces and chroot are open for the sandbox that a granted program brings"
                .to_owned(),
        );
    } else {
        text.push_str("RestrictNamespaces=yes\n");
    }
}

fn network(plan: &Plan, name: &str, text: &mut String, notes: &mut Vec<String>) {
    let unix = !plan.ipc().endpoints.is_empty();
    let families = match (plan.network(), unix) {
        (Network::None, false) => "none",
        (Network::None, true) => "AF_UNIX",
        (Network::Allow(_) | Network::Any, false) => "AF_INET AF_INET6",
        (Network::Allow(_) | Network::Any, true) => "AF_INET AF_INET6 AF_UNIX",
    };
    let _ = writeln!(text, "RestrictAddressFamilies={families}");
    if *plan.network() == Network::None {
        text.push_str("PrivateNetwork=yes\nIPAddressDeny=any\n");
        return;
    }
    let _ = writeln!(text, "NetworkNamespacePath=/run/netns/bailiwick-{name}");
    notes.push(format!(
        "make the network namespace `bailiwick-{name}` so that its only way out is the egress gateway; \
         the service does not start without it"
    ));
    let addresses: Option<Vec<String>> = plan
        .network()
        .rules()
        .iter()
        .map(|rule| match rule.value.host() {
            HostPattern::Net(net) => Some(net.to_string()),
            HostPattern::Any | HostPattern::Name(_) | HostPattern::Below(_) => None,
        })
        .collect();
    if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
        let _ = writeln!(text, "IPAddressDeny=any\nIPAddressAllow={}", addresses.join(" "));
    }
}

fn files(plan: &Plan, shown: &Shown, text: &mut String) -> Result<(), Refusal> {
    let whole = shown.mounts.iter().any(|mount| mount.path.components().next().is_none());
    if whole {
        // the host's root is shown, so what no grant shows is covered
        text.push_str("TemporaryFileSystem=/run:ro\n");
    } else {
        text.push_str("TemporaryFileSystem=/:ro\n");
        for entry in BASE.iter() {
            let _ = writeln!(text, "BindReadOnlyPaths=-{}", path(entry.path));
        }
        if *plan.network() != Network::None {
            text.push_str("BindReadOnlyPaths=-/etc/resolv.conf -/etc/nsswitch.conf -/etc/hosts\n");
        }
    }
    for mount in &shown.mounts {
        let (own_source, own_path) = (mount.source.to_string(), mount.path.to_string());
        let (source, to) = (path(&own_source), path(&own_path));
        let (setting, access) =
            if mount.writable { ("BindPaths", "ReadWritePaths") } else { ("BindReadOnlyPaths", "") };
        if whole && !mount.writable {
            continue;
        }
        let _ = writeln!(text, "{setting}={source}:{to}");
        if !access.is_empty() {
            let _ = writeln!(text, "{access}={to}");
            let later = fixed_names([&own_path, &own_source]);
            let later: Vec<String> = later.map(|name| format!("-{to}/{}", path(name))).collect();
            let _ = writeln!(text, "ReadOnlyPaths={}", later.join(" "));
        }
    }
    for socket in aspects::sockets(Target::Systemd, plan)? {
        let _ = writeln!(text, "BindReadOnlyPaths={}", path(&socket));
    }
    for own in plan.protected() {
        let _ = writeln!(text, "InaccessiblePaths=-{}", path(&own.to_string()));
    }
    Ok(())
}

fn programs(plan: &Plan, shown: &Shown, text: &mut String, notes: &mut Vec<String>) {
    if plan.exec().any.is_some() {
        return;
    }
    text.push_str("NoExecPaths=/\n");
    let libraries =
        BASE.iter().filter(|entry| entry.kind == BaseKind::Libraries).map(|entry| entry.path.to_owned());
    let granted = aspects::programs(plan).into_iter().flat_map(|program| aspects::files_of(&program));
    let writable = shown.mounts.iter().filter(|mount| plan.from_writable() && mount.writable);
    let mut code = plan.files().iter().filter(|grant| grant.maps_code()).peekable();
    if code.peek().is_some() {
        notes.push("programs in a directory granted as code can be started too".to_owned());
    }
    let code = code.map(|grant| grant.path().to_string());
    let all = libraries.chain(granted).chain(writable.map(|mount| mount.path.to_string())).chain(code);
    let all: Vec<String> = all.map(|file| format!("-{}", path(&file))).collect();
    let _ = writeln!(text, "ExecPaths={}", all.join(" "));
    notes.push(
        "programs in a directory that is not on the usual path need `exec:spawn:` with their path".to_owned(),
    );
}

fn environment(plan: &Plan, name: &str, text: &mut String, notes: &mut Vec<String>) {
    let environment = plan.environment();
    let _ = writeln!(text, "Environment={}", word(&format!("PATH={}", script::PATH)));
    for (key, value) in &environment.fixed {
        let _ = writeln!(text, "Environment={}", word(&format!("{key}={value}")));
    }
    for own in &environment.read {
        let _ = writeln!(text, "PassEnvironment={}", own.value);
    }
    if !environment.injected.is_empty() {
        let names: Vec<&str> = environment.injected.iter().map(|own| &*own.value).collect();
        let _ = writeln!(text, "EnvironmentFile=/etc/bailiwick/{name}.env");
        notes.push(format!(
            "put {} into `/etc/bailiwick/{name}.env`, readable for root alone",
            names.join(", ")
        ));
    }
}

fn limits(plan: &Plan, text: &mut String) {
    let limits = plan.limits();
    let settings = [
        ("MemoryMax", limits.memory.map(|bytes| bytes.to_string())),
        ("TasksMax", limits.pids.map(|count| count.to_string())),
        ("CPUQuota", limits.cpu_milli.map(|milli| format!("{}.{}%", milli / 10, milli % 10))),
        ("LimitFSIZE", limits.file_size.map(|bytes| bytes.to_string())),
    ];
    for (setting, value) in settings {
        if let Some(value) = value {
            let _ = writeln!(text, "{setting}={value}");
        }
    }
}
