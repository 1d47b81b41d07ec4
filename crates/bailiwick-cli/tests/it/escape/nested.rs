//! What `?nestedSandbox=true` and `?fromWritable=true` give beyond what they say: nothing. As root and as a plain user,
//! and outside, where the attempts must work if they are to prove anything.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::world::{compiled, sandbox};
use super::{User, as_user};
use bailiwick_testkit::skip;

/// A grant, the attempts that go beyond it, and how many of them there are at least.
const SCENES: [(&str, &str, usize); 2] = [
    ("nested", "exec:spawn:env?nestedSandbox=true", 82),
    ("written", "exec:spawn:env?fromWritable=true", 47),
];

/// What must work without a sandbox, as a plain user in namespaces of its own.
const WORK_OUTSIDE: [&str; 70] = [
    "read_outside",
    "write_read_only",
    "bind_mount",
    "open_tree_copy",
    "new_tmpfs",
    "mount_proc",
    "mount_sysfs",
    "mount_devpts",
    "mount_mqueue",
    "mount_cgroup",
    "chroot_out",
    "set_user_bit",
    "keys_of_caller",
    "raw_socket",
    "packet_socket",
    "filter_socket",
    "unix_socket",
    "host_network",
    "written_program",
    "other_program",
    "read_only_program",
    "read_only_root",
    "read_only_link",
    "read_only_hard_link",
    "read_only_descriptor",
    "read_only_by_fexecve",
    "read_only_chmod",
    "read_only_mapped",
    "read_only_mapped_later",
    "read_only_moved",
    "loader_read_only",
    "loader_other",
    "absent_program",
    "absent_shell",
    "script_of_absent",
    "script_of_read_only",
    "script_of_loader",
    "in_memory",
    "set_user_program",
    "set_group_program",
    "set_user_when_made",
    "hook_written",
    "program_of_outside",
    "namespaces",
    "control_written",
    "control_map",
    "mapped_read_outside",
    "mapped_write_read_only",
    "mapped_tmpfs",
    "mapped_limit",
    "mapped_forwarding",
    "mapped_set_user",
    "mapped_hook",
    "mapped_other_program",
    "mapped_other_network",
    "by_current_directory",
    "by_directory_descriptor",
    "script_of_script",
    "script_of_link",
    "loaded_by_read_only",
    "loaded_by_absent",
    "mapped_by_key",
    "mapped_shared",
    "implied_execution",
    "copied_absent",
    "moved_over_program",
    "written_connects",
    "written_to_socket",
    "written_reads_outside",
    "written_changes_granted",
];

struct World {
    dir: tempfile::TempDir,
    user: User,
    service: TcpListener,
    _socket: UnixListener,
}

impl World {
    fn new(user: User) -> Self {
        let dir =
            tempfile::Builder::new().prefix("bailiwick-nested").tempdir_in("/var/tmp").expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["r", "w/.git/hooks", "out"] {
            std::fs::create_dir_all(at(name)).expect("a directory");
        }
        for (name, text) in [("r/file", "granted"), ("w/mine", "mine"), ("out/secret", "secret")] {
            std::fs::write(at(name), text).expect("a file");
        }
        let probe = compiled("nested", include_str!("nested.c"));
        let programs = ["probe", "r/program", "w/.git/hooks/post-commit", "w/setuid", "out/program"];
        let copies = programs.map(|name| (probe.as_path(), name));
        let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
        let (dynamic, bailiwick) = (Path::new("/usr/bin/id"), sandbox());
        let others =
            [(dynamic, "r/dynamic"), (loader, "r/loader"), (loader, "out/loader"), (&bailiwick, "bailiwick")];
        for (from, to) in copies.into_iter().chain(others) {
            std::fs::copy(from, at(to)).expect("a program is copied");
        }
        let socket = UnixListener::bind(at("r/socket")).expect("a socket");
        open_to_all(dir.path(), user);
        std::fs::set_permissions(at("w/setuid"), std::fs::Permissions::from_mode(0o4755)).expect("ours");
        let service = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { dir, user, service, _socket: socket }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn answers(&self, mut command: Command, scene: &str) -> Vec<(String, String)> {
        let port = self.service.local_addr().expect("bound").port().to_string();
        command.arg(self.dir.path()).args([scene, &port]).env_clear().current_dir("/");
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        pairs.map(|(name, answer)| (name.to_owned(), answer.to_owned())).collect()
    }

    fn sandboxed(&self, grant: &str) -> Command {
        let mut command = as_user(self.user, self.at("bailiwick"));
        command.args(["run", "--no-journal", "--cap", &format!("fs:read:{}", self.at("r").display())]);
        command.args(["--cap", &format!("fs:read,write:{}", self.at("w").display()), "--cap", grant]);
        command.arg("--").arg(self.at("probe"));
        command
    }
}

fn open_to_all(path: &Path, user: User) {
    if user == User::Plain {
        std::os::unix::fs::lchown(path, Some(65534), Some(65534)).expect("root may");
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("the owner may");
    if path.is_dir() {
        path.read_dir()
            .expect("readable")
            .for_each(|entry| open_to_all(&entry.expect("an entry").path(), user));
    }
}

fn only_what_is_granted(user: User) {
    for (scene, grant, enough) in SCENES {
        let world = World::new(user);
        let answers = world.answers(world.sandboxed(grant), scene);
        let (controls, attempts): (Vec<_>, Vec<_>) =
            answers.iter().partition(|(name, _)| name.starts_with("control_"));
        assert!(attempts.len() >= enough, "{scene}: {} attempts", attempts.len());
        let got: Vec<_> = attempts.iter().filter(|(_, answer)| !answer.starts_with("no ")).collect();
        assert!(got.is_empty(), "{scene} as {user:?}: {got:?}");
        let missed: Vec<_> = controls.iter().filter(|(_, answer)| answer != "ok").collect();
        assert!(!controls.is_empty() && missed.is_empty(), "{scene} as {user:?}: {missed:?}");
        for (name, text) in [("r/file", "granted"), ("out/secret", "secret")] {
            assert_eq!(
                std::fs::read_to_string(world.at(name)).ok().as_deref(),
                Some(text),
                "{scene}: {name}"
            );
        }
    }
}

#[test]
fn nested_sandboxes_and_written_programs_get_no_further_as_root() {
    if !rustix::process::getuid().is_root() {
        return skip("not root");
    }
    only_what_is_granted(User::Root);
}

#[test]
fn nested_sandboxes_and_written_programs_get_no_further_as_a_plain_user() {
    only_what_is_granted(if rustix::process::getuid().is_root() { User::Plain } else { User::Caller });
}

#[test]
fn the_attempts_of_nested_sandboxes_work_outside() {
    let user = if rustix::process::getuid().is_root() { User::Plain } else { User::Caller };
    let world = World::new(user);
    let tried = SCENES.map(|(scene, ..)| world.answers(as_user(user, world.at("probe")), scene)).concat();
    let works = |name: &&str| tried.iter().any(|(own, answer)| own == name && answer == "ok");
    let broken: Vec<_> = WORK_OUTSIDE.iter().filter(|name| !works(name)).collect();
    assert!(broken.is_empty(), "without a sandbox: {broken:?}");
}
