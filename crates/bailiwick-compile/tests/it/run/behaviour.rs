//! What the probe sees is what the plan says.

use std::collections::BTreeSet;

use bailiwick_compile::{Target, compile, coverage};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::capability::FsActions;
use bailiwick_policy::enforcement::{Aspect, Floor, Level, Precision};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use bailiwick_policy::run_later::fixed_names;

use super::sandbox::{Starter, has, probe, program, starters};
use super::world::World;

const RUN: [Target; 3] = [Target::Bwrap, Target::Oci, Target::Firejail];

/// What most tests grant: a read-only tree with a writable one in it, a writable tree, and the probe.
const LINES: [&str; 4] = ["fs:read:@/ro", "fs:read,write:@/ro/inner", "fs:read,write:@/rw", "fs:read:@/bin"];

/// Variables that firejail sets itself, whatever it is told.
const OF_FIREJAIL: [&str; 14] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "FIREJAIL_QUIET",
    "KDE_FORK_SLAVES",
    "LOGNAME",
    "OLDPWD",
    "PROMPT_COMMAND",
    "PWD",
    "QML_DISABLE_DISK_CACHE",
    "QT_X11_NO_MITSHM",
    "SHELL",
    "SHLVL",
    "_",
    "container",
];

/// Runs `test` under each target that is here, by each starter.
fn everywhere(test: impl Fn(Target, Starter)) {
    for target in RUN.into_iter().filter(|target| has(program(*target))) {
        starters().into_iter().for_each(|starter| test(target, starter));
    }
}

/// Whether the plan lets it be, by its grants alone.
fn granted(plan: &Plan, path: &str, action: FsActions) -> bool {
    let path = AbsPath::new(path).unwrap();
    let mut grants = plan.files().iter().filter(|grant| grant.pattern.value.covers(&path));
    grants.any(|grant| grant.actions.contains(action))
}

fn line(kind: &str, argument: &str, can: bool) -> String {
    format!("{kind} {argument} {}", if can { "yes" } else { "no" })
}

#[test]
fn files_are_as_granted() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let held = coverage(target, &plan);
        assert_eq!(held.held(Aspect::Files).level, Level::Kernel);
        let own = ["ro", "ro/file", "ro/inner", "ro/inner/file", "rw", "rw/file", "secret", "secret/file"];
        let hosts = ["/etc/shadow", "/etc/hostname", "/root", "/var/lib", "/sys/kernel", "/"];
        let paths = own.iter().map(|name| world.path(name)).chain(hosts.map(str::to_owned));
        let (mut checks, mut expected) = (Vec::new(), Vec::new());
        for path in paths {
            // the root of the sandbox is its own: it can be read, and holds only what is shown
            let (read, write) =
                (granted(&plan, &path, FsActions::READ), granted(&plan, &path, FsActions::WRITE));
            let parent = path == "/" || is_above(&plan, &path);
            expected.push(line("read", &path, read || parent || is_hollow(target, starter, &path)));
            expected.push(line("write", &path, write));
            checks.push(("read", path.clone()));
            checks.push(("write", path));
        }
        let seen = probe(target, &plan, starter, &world, &checks);
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

/// Whether something below is granted, so that the directory is there, empty but for that.
fn is_above(plan: &Plan, path: &str) -> bool {
    plan.files().iter().any(|grant| grant.path().to_string().starts_with(&format!("{path}/")))
}

/// firejail leaves what it hides in place as something empty, which root can open.
fn is_hollow(target: Target, starter: Starter, path: &str) -> bool {
    target == Target::Firejail && starter == Starter::Root && ["/root"].contains(&path)
}

#[test]
fn what_governs_the_sandbox_is_hidden_in_a_granted_directory() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let journal = world.path("ro/own/journal");
        let asked =
            [("read", journal.clone()), ("write", world.path("ro/own")), ("read", world.path("ro/file"))];
        let seen = probe(target, &plan, starter, &world, &asked);
        let expected = [
            line("read", &journal, false),
            line("write", &world.path("ro/own"), false),
            line("read", &world.path("ro/file"), true),
        ];
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn what_runs_code_later_stays_as_it_is() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let late: Vec<String> =
            fixed_names(["/w", "/w"]).map(|name| world.path(&format!("rw/{name}"))).collect();
        let there: Vec<String> =
            late.into_iter().filter(|path| std::path::Path::new(path).exists()).collect();
        assert_eq!(there.len(), 3, "{there:?}");
        let mut checks: Vec<(&str, String)> = there.iter().map(|path| ("write", path.clone())).collect();
        checks.push(("write", world.path("rw/.git/hooks/pre-commit")));
        checks.push(("write", world.path("rw/.git")));
        checks.push(("move", world.path("rw/.git")));
        let seen = probe(target, &plan, starter, &world, &checks);
        let mut expected: Vec<String> = there.iter().map(|path| line("write", path, false)).collect();
        expected.push(line("write", &world.path("rw/.git/hooks/pre-commit"), false));
        // the directory belongs to whoever made the world: without capabilities root too is just an owner
        expected.push(line("write", &world.path("rw/.git"), true));
        expected.push(line("move", &world.path("rw/.git"), target == Target::Firejail));
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn what_runs_code_later_stays_as_it_is_in_a_writable_directory_on_the_way_to_it() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&["fs:read:@/bin", "fs:read,write:@/rw/.git"]);
        let late = ["rw/.git/hooks", "rw/.git/hooks/pre-commit", "rw/.git/config"];
        let mut checks: Vec<(&str, String)> = late.map(|name| ("write", world.path(name))).to_vec();
        checks.push(("move", world.path("rw/.git/hooks")));
        let mut expected: Vec<String> = checks.iter().map(|(kind, path)| line(kind, path, false)).collect();
        if target != Target::Firejail {
            // firejail gives a plain user only directories of their own
            checks.push(("write", world.path("rw/.git")));
            expected.push(line("write", &world.path("rw/.git"), true));
        }
        let seen = probe(target, &plan, starter, &world, &checks);
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn what_governs_the_sandbox_may_be_missing() {
    everywhere(|target, starter| {
        let world = World::new();
        let own = world.path("ro/none/own");
        let plan = world.plan_with(&LINES, &own);
        let asked = [("read", world.path("ro/file")), ("read", own.clone()), ("write", own)];
        let seen = probe(target, &plan, starter, &world, &asked);
        let expected: Vec<String> =
            asked.iter().map(|(kind, path)| line(kind, path, path.ends_with("file"))).collect();
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
    let world = World::new();
    for starter in starters().into_iter().filter(|_| has("bwrap")) {
        let plan = world.plan_with(&["fs:read:/**", "fs:read,write:@/rw"], "/usr/share/bailiwick-none/own");
        let words = ["/bin/sh", "-c", "echo started"].map(str::to_owned);
        let output = super::sandbox::run(Target::Bwrap, &plan, starter, &world, &words);
        assert_eq!(output.stdout, b"started\n", "{starter:?}: {output:?}");
    }
}

#[test]
fn what_governs_the_sandbox_cannot_be_made_in_a_writable_directory() {
    for target in [Target::Bwrap, Target::Oci].into_iter().filter(|target| has(program(*target))) {
        for starter in starters() {
            let world = World::new();
            let own = world.path("rw/own");
            let plan = world.plan_with(&LINES, &own);
            let asked = [("read", own.clone()), ("write", own.clone())];
            let seen = probe(target, &plan, starter, &world, &asked);
            // something empty is in its place
            let expected = [line("read", &own, true), line("write", &own, false)];
            assert_eq!(seen.checks, expected, "{target} {starter:?}");
        }
    }
    let world = World::new();
    let plan = world.plan_with(&LINES, &world.path("rw/own"));
    let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
    let refusal = compile(Target::Firejail, &plan, &Floor::none(), provenance).unwrap_err();
    assert!(refusal.to_string().contains("it is missing"), "{refusal}");
}

#[test]
fn nothing_outside_is_reached_seen_or_signalled() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let held = coverage(target, &plan);
        let unfiltered = target == Target::Bwrap;
        let precision = |wider: bool| if wider { Precision::Superset } else { Precision::Exact };
        // firejail lets a pair of datagram sockets be made, which can send to others.
        let claims = [
            (Aspect::Network, precision(unfiltered)),
            (Aspect::Ipc, precision(unfiltered || target == Target::Firejail)),
            (Aspect::Processes, Precision::Exact),
        ];
        for (aspect, precision) in claims {
            let one = held.held(aspect);
            assert_eq!((one.level, one.precision), (Level::Kernel, precision), "{target} {aspect}");
        }
        let checks = [
            ("tcp", world.port().to_string(), false),
            ("abstract", world.abstract_name.clone(), false),
            ("unix", world.path("sockets/host"), false),
            ("unix", world.path("ro/host"), unfiltered),
            ("family", "vsock".to_owned(), unfiltered),
            ("family", "audit".to_owned(), unfiltered),
            ("signal", std::process::id().to_string(), false),
        ];
        let asked: Vec<(&str, String)> =
            checks.iter().map(|(kind, argument, _)| (*kind, argument.clone())).collect();
        let seen = probe(target, &plan, starter, &world, &asked);
        let expected: Vec<String> =
            checks.iter().map(|(kind, argument, can)| line(kind, argument, *can)).collect();
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn peer_14_nothing_can_be_regained() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let asked = [
            ("capabilities", "-".to_owned()),
            ("remount", "/".to_owned()),
            ("remount", world.path("ro")),
            ("namespace", "-".to_owned()),
            ("write", "/proc/sys/kernel/core_pattern".to_owned()),
            ("write", "/proc/sys/kernel".to_owned()),
        ];
        let seen = probe(target, &plan, starter, &world, &asked);
        let expected: Vec<String> =
            asked.iter().map(|(kind, argument)| line(kind, argument, false)).collect();
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn a_setuid_file_is_refused_where_a_filter_can() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let seen = probe(target, &plan, starter, &world, &[("setuid", world.path("rw"))]);
        assert_eq!(
            seen.checks,
            [line("setuid", &world.path("rw"), target != Target::Oci)],
            "{target} {starter:?}"
        );
    });
}

#[test]
fn the_environment_is_what_is_declared() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&LINES);
        let seen = probe(target, &plan, starter, &world, &[]);
        let mut names: BTreeSet<String> = seen.environment;
        if target == Target::Firejail {
            names.retain(|name| !OF_FIREJAIL.contains(&&**name));
        }
        names.remove("PWD");
        let expected: BTreeSet<String> = ["HOME", "LANG", "PATH"].map(str::to_owned).into();
        assert_eq!(names, expected, "{target} {starter:?}");
    });
}

#[test]
fn a_granted_socket_is_reached_and_no_other() {
    everywhere(|target, starter| {
        let world = World::new();
        let plan = world.plan(&["fs:read:@/bin", "ipc:connect:unix:@/sockets/host"]);
        let asked = [
            ("unix", world.path("sockets/host")),
            ("unix", world.path("ro/host")),
            ("abstract", world.abstract_name.clone()),
            ("read", world.path("secret/file")),
        ];
        let seen = probe(target, &plan, starter, &world, &asked);
        let expected: Vec<String> = asked
            .iter()
            .map(|(kind, argument)| line(kind, argument, *argument == world.path("sockets/host")))
            .collect();
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn a_directory_that_poses_as_a_socket_is_not_shown() {
    for target in [Target::Bwrap, Target::Oci].into_iter().filter(|target| has(program(*target))) {
        for starter in starters() {
            let world = World::new();
            let plan = world.plan(&["fs:read:@/bin", "ipc:connect:unix:@/secret"]);
            let words = [world.path("bin/probe"), "read".to_owned(), world.path("secret/file")];
            let output = super::sandbox::run(target, &plan, starter, &world, &words);
            assert!(!output.status.success(), "{target} {starter:?}: {output:?}");
            assert!(!String::from_utf8_lossy(&output.stdout).contains("yes"), "{target} {starter:?}");
        }
    }
}

#[test]
fn a_nested_sandbox_gets_namespaces_and_nothing_else() {
    everywhere(|target, starter| {
        let world = World::new();
        let lines: Vec<&str> = LINES.into_iter().chain(["exec:spawn:chromium?nestedSandbox=true"]).collect();
        let plan = world.plan(&lines);
        let asked = [
            ("namespace", "-".to_owned()),
            ("capabilities", "-".to_owned()),
            ("remount", "/".to_owned()),
            ("read", world.path("secret/file")),
            ("tcp", world.port().to_string()),
        ];
        let seen = probe(target, &plan, starter, &world, &asked);
        // under firejail's read-only root the kernel lets nobody make one, and its note says so
        let can = |kind: &str| kind == "namespace" && target != Target::Firejail;
        let expected: Vec<String> =
            asked.iter().map(|(kind, argument)| line(kind, argument, can(kind))).collect();
        assert_eq!(seen.checks, expected, "{target} {starter:?}");
    });
}

#[test]
fn everything_is_not_the_kernels_nor_the_products_own() {
    for target in [Target::Bwrap, Target::Firejail].into_iter().filter(|target| has(program(*target))) {
        for starter in starters() {
            let world = World::new();
            let plan = world.plan(&["fs:read:/**", "fs:read,write:@/rw"]);
            let asked = [
                ("read", "/etc/hostname".to_owned(), true),
                ("read", world.path("ro/own/journal"), false),
                ("write", world.path("rw/file"), true),
                ("write", "/var".to_owned(), false),
                ("write", "/".to_owned(), false),
                ("read", format!("/proc/{}/status", std::process::id()), false),
                ("read", "/sys/kernel".to_owned(), false),
                ("read", "/run/lock".to_owned(), false),
                ("write", "/proc/sys/kernel/core_pattern".to_owned(), false),
            ];
            std::fs::write(world.path("rw/probe"), "").unwrap();
            std::fs::copy(world.path("bin/probe"), world.path("rw/probe")).unwrap();
            let mut words = vec![world.path("rw/probe")];
            words.extend(asked.iter().flat_map(|(kind, argument, _)| [(*kind).to_owned(), argument.clone()]));
            let output = super::sandbox::run(target, &plan, starter, &world, &words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let seen: Vec<&str> = text.lines().filter(|line| !line.starts_with("env ")).collect();
            let expected: Vec<String> =
                asked.iter().map(|(kind, argument, can)| line(kind, argument, *can)).collect();
            assert_eq!(seen, expected, "{target} {starter:?}: {output:?}");
        }
    }
}
