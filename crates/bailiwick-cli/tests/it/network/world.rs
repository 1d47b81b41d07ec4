//! A network of the test's own: every address is local, so that servers of the test stand for any host.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::inside::{self, ANSWER};
use crate::escape::{User, as_user};
use crate::run::unrecorded;
use bailiwick_testkit::{World, is_in_world, world_mark};

/// What a world is marked with that root made: in a user namespace of their own, everyone looks like root.
const ROOT: &str = "root";

pub(super) use bailiwick_testkit::test_name;

/// Whether the test is in a world of its own; if not, runs it in one and waits.
pub(crate) fn in_world(test: &str) -> bool {
    // A plain user gets the right to a network only in a user namespace.
    let (flags, mark) = if rustix::process::getuid().is_root() { ("-n", ROOT) } else { ("-Urn", "user") };
    let inside = is_in_world(test, World { flags, mark });
    if inside {
        every_address_is_local();
    }
    inside
}

fn every_address_is_local() {
    for line in [
        "link set lo up",
        "route replace local 0.0.0.0/0 dev lo table local",
        "-6 route replace local ::/0 dev lo table local",
    ] {
        assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
    }
}

/// Everyone who can start a sandbox here.
pub(super) fn users() -> &'static [User] {
    let made_by_root = world_mark().map(|who| who == ROOT);
    let root = made_by_root.unwrap_or_else(|| rustix::process::getuid().is_root());
    if root { &[User::Root, User::Plain] } else { &[User::Caller] }
}

/// Where sandboxes are started by one user: a directory that is open to everyone, with the programs in it.
pub(super) struct Stage {
    dir: tempfile::TempDir,
    pub(super) user: User,
}

/// What a run said.
pub(super) struct Heard {
    pub(super) answers: Vec<String>,
    pub(super) log: String,
}

impl Stage {
    pub(super) fn new(user: User) -> Self {
        let dir = tempfile::Builder::new().prefix("bailiwick-network").tempdir_in("/var/tmp").unwrap();
        let stage = Self { dir, user };
        bailiwick_testkit::copy_program(Path::new(env!("CARGO_BIN_EXE_bailiwick")), &stage.path("bailiwick"));
        std::fs::copy(std::env::current_exe().unwrap(), stage.path("client")).unwrap();
        for name in ["", "bailiwick", "bailiwick-admin", "bailiwick-serve", "client"] {
            open(&stage.path(name));
        }
        stage
    }

    /// A place in the directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new directory in which everyone may write.
    pub(super) fn directory(&self, name: &str) -> PathBuf {
        std::fs::create_dir(self.path(name)).unwrap();
        open(&self.path(name));
        self.path(name)
    }

    /// `bailiwick run` with these arguments. The rest of the command line is the caller's.
    pub(super) fn run(&self, caps: &[&str], options: &[&str]) -> Command {
        let mut command = as_user(self.user, self.path("bailiwick"));
        command.arg("run").args(unrecorded(options));
        for cap in caps {
            command.args(["--cap", cap]);
        }
        command.args(options).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path(""));
        command.current_dir(self.path("")).stdin(Stdio::null());
        command
    }

    /// The same, of the client of `inside`.
    pub(super) fn client(&self, caps: &[&str], options: &[&str]) -> Command {
        let marked = format!("env:read:{}", inside::MARK);
        let caps: Vec<&str> = caps.iter().copied().chain([marked.as_str()]).collect();
        let mut command = self.run(&caps, options);
        command.arg("--").arg(self.path("client")).args(inside::ARGUMENTS).env(inside::MARK, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What becomes of these attempts inside.
    pub(super) fn attempts(&self, caps: &[&str], options: &[&str], attempts: &[&str]) -> Heard {
        let mut child = self.client(caps, options).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        for attempt in attempts {
            // One that ended early is seen in its answers.
            drop(writeln!(input, "{attempt}"));
        }
        drop(input);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let answers: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix(ANSWER)).map(str::to_owned).collect();
        assert_eq!(answers.len(), attempts.len(), "{:?} {caps:?} {attempts:?}\n{text}\n{log}", output.status);
        Heard { answers, log }
    }
}

fn open(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}
