//! What is claimed as held names a mechanism that the artifact has, and adding a capability never raises a level.

use bailiwick_compile::{Target, compile, coverage};
use bailiwick_manifest::Manifest;
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::enforcement::{Aspect, Floor, Level};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

const CLOCK: &str = "'clock:system,tzdata'";
const ANY: &str = "'exec:spawn:*'";
const HOST: &str = "'net:connect:a.test:443'";
const SOCKET: &str = "'ipc:connect:unix:/run/app.sock'";
const MEMORY: &str = "memory = '64M'";
const FILES: &str = "file_size = '64M'";
const TIME: &str = "timeout = '1s'";

/// A target, an aspect, the lines and limits of a plan, the level that is claimed, and the words of the artifact
/// that hold it. Where nothing is claimed there are none.
type Row = (Target, Aspect, &'static str, &'static str, Level, &'static str);

use Aspect::{Clock, Environment, Exec, Files, Ipc, Limits, Network, Processes};
use Level::{Advisory, Kernel, Mediated, Unsupported};
use Target::{Bwrap, Docker, Firejail, Kubernetes, Landlock, Oci, Seatbelt, Systemd, Worker};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Bwrap, Files, "", "", Kernel, "--remount-ro /"),
    (Bwrap, Network, "", "", Kernel, "--unshare-net"),
    (Bwrap, Network, HOST, "", Kernel, "--unshare-net"),
    (Bwrap, Exec, "", "", Unsupported, ""),
    (Bwrap, Exec, ANY, "", Unsupported, ""),
    (Bwrap, Environment, "", "", Kernel, "--clearenv"),
    (Bwrap, Ipc, "", "", Kernel, "--unshare-net"),
    (Bwrap, Processes, "", "", Kernel, "--unshare-pid"),
    (Bwrap, Limits, "", MEMORY, Unsupported, ""),
    (Docker, Files, "", "", Kernel, "--read-only"),
    (Docker, Network, "", "", Kernel, "--network none"),
    (Docker, Network, HOST, "", Mediated, "bailiwick-internal"),
    (Docker, Exec, "", "", Unsupported, ""),
    (Docker, Exec, ANY, "", Unsupported, ""),
    (Docker, Environment, "", "", Kernel, "--env"),
    (Docker, Ipc, "", "", Kernel, "--ipc private"),
    (Docker, Processes, "", "", Kernel, "--cap-drop ALL"),
    (Docker, Limits, "", MEMORY, Kernel, "--memory 67108864b"),
    (Docker, Limits, "", TIME, Unsupported, ""),
    (Oci, Files, "", "", Kernel, "\"readonly\": true"),
    (Oci, Network, "", "", Kernel, "\"network\""),
    (Oci, Exec, "", "", Unsupported, ""),
    (Oci, Exec, ANY, "", Unsupported, ""),
    (Oci, Environment, "", "", Kernel, "\"env\""),
    (Oci, Ipc, "", "", Kernel, "\"seccomp\""),
    (Oci, Ipc, SOCKET, "", Kernel, "/run/app.sock"),
    (Oci, Processes, "", "", Kernel, "\"pid\""),
    (Oci, Limits, "", MEMORY, Kernel, "67108864"),
    (Oci, Limits, "", TIME, Unsupported, ""),
    (Kubernetes, Files, "", "", Kernel, "readOnlyRootFilesystem: true"),
    (Kubernetes, Network, "", "", Mediated, "kind: 'NetworkPolicy'"),
    (Kubernetes, Exec, "", "", Unsupported, ""),
    (Kubernetes, Exec, ANY, "", Unsupported, ""),
    (Kubernetes, Environment, "", "", Kernel, "env:"),
    (Kubernetes, Ipc, "", "", Kernel, "hostIPC: false"),
    (Kubernetes, Processes, "", "", Kernel, "hostPID: false"),
    (Kubernetes, Limits, "", MEMORY, Kernel, "memory: '67108864'"),
    (Kubernetes, Limits, "", FILES, Unsupported, ""),
    (Systemd, Files, "", "", Kernel, "TemporaryFileSystem=/:ro"),
    (Systemd, Network, "", "", Kernel, "PrivateNetwork=yes"),
    (Systemd, Network, HOST, "", Mediated, "NetworkNamespacePath="),
    (Systemd, Exec, "", "", Kernel, "NoExecPaths=/"),
    (Systemd, Exec, ANY, "", Unsupported, ""),
    (Systemd, Environment, "", "", Kernel, "Environment="),
    (Systemd, Ipc, "", "", Kernel, "RestrictAddressFamilies=none"),
    (Systemd, Processes, "", "", Kernel, "ProtectProc=invisible"),
    (Systemd, Limits, "", MEMORY, Kernel, "MemoryMax=67108864"),
    (Systemd, Limits, "", TIME, Unsupported, ""),
    (Firejail, Files, "", "", Kernel, "read-only /"),
    (Firejail, Network, "", "", Kernel, "net none"),
    (Firejail, Exec, "", "", Unsupported, ""),
    (Firejail, Exec, ANY, "", Unsupported, ""),
    (Firejail, Environment, "", "", Kernel, "env -i"),
    (Firejail, Ipc, "", "", Kernel, "protocol inet,inet6"),
    (Firejail, Processes, "", "", Kernel, "restrict-namespaces"),
    (Firejail, Limits, "", FILES, Kernel, "rlimit-fsize 67108864"),
    (Firejail, Limits, "", MEMORY, Unsupported, ""),
    (Seatbelt, Files, "", "", Kernel, "(deny default)"),
    (Seatbelt, Network, "", "", Kernel, "(deny default)"),
    (Seatbelt, Network, HOST, "", Mediated, "(remote tcp \"localhost:"),
    (Seatbelt, Exec, "", "", Kernel, "(deny default)"),
    (Seatbelt, Exec, ANY, "", Unsupported, ""),
    (Seatbelt, Environment, "", "", Unsupported, ""),
    (Seatbelt, Ipc, "", "", Kernel, "(deny default)"),
    (Seatbelt, Processes, "", "", Kernel, "(allow signal (target same-sandbox))"),
    (Seatbelt, Limits, "", MEMORY, Unsupported, ""),
    (Landlock, Files, "", "", Kernel, "\"read_file\""),
    (Landlock, Network, "", "", Unsupported, ""),
    (Landlock, Exec, "", "", Kernel, "\"execute\""),
    (Landlock, Exec, ANY, "", Unsupported, ""),
    (Landlock, Environment, "", "", Unsupported, ""),
    (Landlock, Ipc, "", "", Unsupported, ""),
    (Landlock, Processes, "", "", Kernel, "\"signal\""),
    (Landlock, Limits, "", MEMORY, Unsupported, ""),
    (Worker, Files, "", "", Unsupported, ""),
    (Worker, Network, "", "", Unsupported, ""),
    (Worker, Exec, ANY, "", Unsupported, ""),
    (Worker, Environment, "", "", Advisory, "\"env\""),
    (Worker, Ipc, "", "", Unsupported, ""),
    (Worker, Processes, "", "", Unsupported, ""),
    (Worker, Limits, "", MEMORY, Advisory, "maxOldGenerationSizeMb"),
    (Worker, Limits, "", FILES, Unsupported, ""),
];

fn plan(lines: &str, limits: &str) -> Plan {
    let text = format!(
        "name = 's'\nversion = '1'\ncommand = 'node'\nserverCapabilities = [{lines}]\n[limits]\n{limits}\n"
    );
    let facts = HostFacts::unknown();
    Manifest::parse(&text).unwrap().check(&facts).unwrap().server_plan(&facts).unwrap()
}

fn text(artifact: &Artifact) -> String {
    let files: String = artifact.files().iter().map(|file| file.text.clone()).collect();
    format!("{}\n{files}", artifact.argv().join(" "))
}

#[test]
fn what_is_claimed_has_its_mechanism_in_the_artifact() {
    let mut wrong = Vec::new();
    for (target, aspect, lines, limits, level, mechanism) in ROWS {
        let plan = plan(lines, limits);
        let held = coverage(*target, &plan).held(*aspect).clone();
        let name = format!("{target:?} {aspect} [{lines}] {limits}");
        if held.level != *level {
            wrong.push(format!("{name}: claims {}, because {}", held.level, held.why));
        }
        let provenance = Provenance { manifest: None, compiler: String::new() };
        let artifact = compile(*target, &plan, &Floor::none(), provenance).unwrap();
        if !text(&artifact).contains(mechanism) {
            wrong.push(format!("{name}: `{mechanism}` is not in the artifact"));
        }
        assert_eq!(
            mechanism.is_empty(),
            *level == Unsupported,
            "{name}: a row names what holds it, or nothing"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_aspect_of_every_target_has_a_row() {
    for target in Target::ALL {
        for aspect in Aspect::ALL.into_iter().filter(|aspect| *aspect != Clock) {
            assert!(ROWS.iter().any(|row| row.0 == target && row.1 == aspect), "{target:?} {aspect}");
        }
    }
}

#[test]
fn no_target_claims_to_keep_a_secret_outside() {
    assert_eq!(Target::ALL.len(), 9);
    for target in Target::ALL {
        let brokered = plan("'env:inject:TOKEN?broker=api.test'", "");
        let held = coverage(target, &brokered);
        let held = held.held(Environment);
        assert_eq!(held.level, Unsupported, "{target:?}: {}", held.why);
        assert!(
            held.why.contains("nothing here puts a brokered secret into requests"),
            "{target:?}: {}",
            held.why
        );
        // By default that is refused, and without the secret it is not for that reason.
        let compiled = |plan: &Plan| {
            let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
            compile(target, plan, &plan.floor(), provenance).map_err(|refusal| refusal.to_string())
        };
        assert!(compiled(&brokered).is_err_and(|why| why.contains("`env` must be `mediated`")), "{target:?}");
    }
}

#[test]
fn no_target_claims_the_clock_or_limits_that_are_not_declared() {
    for target in Target::ALL {
        for lines in ["", "'clock:system'", "'clock:tzdata'", CLOCK] {
            let coverage = coverage(target, &plan(lines, ""));
            for aspect in [Clock, Limits] {
                let held = coverage.held(aspect);
                assert_eq!(held.level, Unsupported, "{target:?} {aspect} [{lines}]: {}", held.why);
            }
        }
    }
}

/// One line of every kind and shape that targets tell apart.
const LINES: [&str; 22] = [
    "'fs:read:/a'",
    "'fs:read:/a/*.txt'",
    "'fs:write:/b'",
    "'fs:create:/b'",
    "'fs:read,write:/c'",
    "'fs:read:/**'",
    HOST,
    "'net:connect:*'",
    "'net:connect:10.0.0.1:80?protocol=raw'",
    "'net:connect:a.test:443?blockPrivate=false'",
    "'net:https:GET@https://a.test/x'",
    "'exec:spawn:git'",
    "'exec:spawn:git?nestedSandbox=true'",
    "'exec:spawn:git?fromWritable=true'",
    ANY,
    "'env:read:A'",
    "'env:inject:B'",
    SOCKET,
    "'ipc:connect:x11'",
    "'clock:system'",
    "'clock:tzdata'",
    "'assert:x'",
];

#[test]
fn adding_a_capability_never_raises_a_level() {
    for limits in ["", MEMORY, "memory = '64M'\ntimeout = '1s'"] {
        for first in LINES.iter().chain([&""]) {
            for second in LINES.iter().filter(|line| *line != first) {
                let without = plan(first, limits);
                let both = if first.is_empty() { (*second).to_owned() } else { format!("{first}, {second}") };
                let with = plan(&both, limits);
                for target in Target::ALL {
                    let (before, after) = (coverage(target, &without), coverage(target, &with));
                    for (aspect, held) in after.iter() {
                        let old = before.held(aspect);
                        assert!(
                            held.level <= old.level,
                            "{target:?} {aspect}: [{first}] is {} and with {second} {}",
                            old.level,
                            held.level
                        );
                    }
                }
            }
        }
    }
}

/// Targets that hold an aspect by the same mechanism.
const SAME_MECHANISM: [(Aspect, &[Target]); 4] = [
    (Files, &[Bwrap, Docker, Oci, Kubernetes, Systemd, Firejail]),
    (Network, &[Bwrap, Oci, Firejail]),
    (Ipc, &[Bwrap, Docker, Kubernetes, Firejail]),
    (Exec, &[Bwrap, Docker, Oci, Firejail]),
];

#[test]
fn targets_with_the_same_mechanism_report_the_same_level() {
    for first in LINES {
        for second in LINES {
            let plan =
                if first == second { plan(first, "") } else { plan(&format!("{first}, {second}"), "") };
            for (aspect, targets) in SAME_MECHANISM {
                let levels: Vec<Level> =
                    targets.iter().map(|target| coverage(*target, &plan).held(aspect).level).collect();
                assert!(
                    levels.iter().all(|level| *level == levels[0]),
                    "{aspect} of [{first}, {second}]: {targets:?} are {levels:?}"
                );
            }
        }
    }
}

#[test]
fn a_port_that_no_target_opens_is_named_by_each() {
    let provenance = || Provenance { manifest: None, compiler: String::new() };
    for target in Target::ALL {
        let artifact = compile(target, &plan("'net:listen:8080'", ""), &Floor::none(), provenance()).unwrap();
        let named = |artifact: &Artifact| {
            artifact.notes().iter().filter(|note| note.contains("`net:listen:8080` opens no port")).count()
        };
        assert_eq!(named(&artifact), 1, "{target:?}");
        let without = compile(target, &plan("", ""), &Floor::none(), provenance()).unwrap();
        assert_eq!((named(&without), without.argv()), (0, artifact.argv()), "{target:?}");
    }
}
