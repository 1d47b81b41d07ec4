//! Running a compiled plan under its target, as root and as a plain user.

use std::collections::BTreeSet;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bailiwick_compile::{Target, compile};
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::plan::Plan;
use serde_json::Value;

use super::world::{World, open_to_everyone};
use bailiwick_testkit::skip;

/// A number that is no user's.
const USER: u32 = 64_242;

/// Who starts the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Starter {
    /// Whoever runs the tests, if that is root.
    Root,
    /// A plain user.
    User,
}

/// What the probe saw.
#[derive(Debug)]
pub(super) struct Seen {
    /// The lines that say yes or no.
    pub(super) checks: Vec<String>,
    /// The names of the variables.
    pub(super) environment: BTreeSet<String>,
}

/// Who can start a sandbox here: both if the tests run as root.
pub(super) fn starters() -> Vec<Starter> {
    if is_root() { vec![Starter::Root, Starter::User] } else { vec![Starter::User] }
}

pub(super) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// Whether a program is here; says so if it is not.
pub(super) fn has(program: &str) -> bool {
    let found = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"];
    let here = found.iter().any(|directory| Path::new(directory).join(program).exists());
    if !here {
        skip(&format!("{program} is not installed"));
    }
    here
}

/// The program that runs a target.
pub(super) fn program(target: Target) -> &'static str {
    if target == Target::Oci { "runc" } else { target.as_str() }
}

pub(super) fn artifact(target: Target, plan: &Plan) -> Artifact {
    let provenance = Provenance { manifest: None, compiler: "test".to_owned() };
    compile(target, plan, &Floor::none(), provenance).unwrap()
}

/// Runs the probe with these checks.
pub(super) fn probe(
    target: Target,
    plan: &Plan,
    starter: Starter,
    world: &World,
    checks: &[(&str, String)],
) -> Seen {
    let mut words = vec![world.path("bin/probe")];
    words.extend(checks.iter().flat_map(|(kind, argument)| [(*kind).to_owned(), argument.clone()]));
    let output = run(target, plan, starter, world, &words);
    assert!(output.status.success(), "{target} {starter:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (environment, checks): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("env "));
    Seen {
        checks: checks.into_iter().map(str::to_owned).collect(),
        environment: environment.into_iter().map(|line| line.trim_start_matches("env ").to_owned()).collect(),
    }
}

/// Runs a command; the caller's environment has a secret that nothing inside may see.
pub(super) fn run(target: Target, plan: &Plan, starter: Starter, world: &World, words: &[String]) -> Output {
    let bundle = written(&artifact(target, plan), world);
    let argv = if target == Target::Oci {
        runc(&bundle, starter, words)
    } else {
        artifact(target, plan).argv().iter().chain(words).cloned().collect()
    };
    if starter == Starter::User && is_root() {
        give_away(&bundle);
        for name in ["rw", "ro/inner"] {
            chown(world.path(name), Some(USER), Some(USER)).unwrap();
        }
    }
    started(target, starter, &argv, &bundle).env("HOST_SECRET", "1").current_dir(&bundle).output().unwrap()
}

/// The files of an artifact in a new directory.
pub(super) fn written(artifact: &Artifact, world: &World) -> PathBuf {
    let bundle = world.bundle();
    for file in artifact.files() {
        let path = bundle.join(&file.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.text).unwrap();
    }
    open_to_everyone(&bundle);
    bundle
}

/// The command as the starter gives it. firejail asks who a user is, so for it there is a list with the user.
pub(super) fn started(target: Target, starter: Starter, argv: &[String], bundle: &Path) -> Command {
    if starter == Starter::Root || !is_root() {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        return command;
    }
    let user = USER.to_string();
    let list = bundle.join("passwd");
    std::fs::write(
        &list,
        format!("root:x:0:0::/root:/bin/sh\nprobe:x:{user}:{user}::/nonexistent:/bin/sh\n"),
    )
    .unwrap();
    let script = "mount --bind \"$0\" /etc/passwd && exec \"$@\"";
    let mut command = Command::new(if target == Target::Firejail { "unshare" } else { "setpriv" });
    if target == Target::Firejail {
        command.args(["-m", "sh", "-c", script]).arg(&list).arg("setpriv");
    }
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).args(argv);
    command
}

fn runc(bundle: &Path, starter: Starter, words: &[String]) -> Vec<String> {
    let rootless = starter == Starter::User;
    let name = if rootless { "config.rootless.json" } else { "config.json" };
    let text = std::fs::read_to_string(bundle.join(name)).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["process"]["args"] = words.into();
    if rootless {
        let id = |flag| String::from_utf8(Command::new("id").arg(flag).output().unwrap().stdout).unwrap();
        let own = |flag| if is_root() { USER } else { id(flag).trim().parse().unwrap() };
        config["linux"]["uidMappings"][0]["hostID"] = own("-u").into();
        config["linux"]["gidMappings"][0]["hostID"] = own("-g").into();
    }
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let (state, directory) = (bundle.join("state"), bundle.to_str().unwrap());
    let name = bundle.file_name().unwrap().to_str().unwrap().replace('.', "-");
    ["runc", "--root", state.to_str().unwrap(), "run", "--bundle", directory, &name].map(str::to_owned).into()
}

fn give_away(directory: &Path) {
    chown(directory, Some(USER), Some(USER)).unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give_away(&path);
        } else {
            chown(&path, Some(USER), Some(USER)).unwrap();
        }
    }
}
