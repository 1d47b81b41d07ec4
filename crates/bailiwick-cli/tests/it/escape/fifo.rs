//! What a read-only mount does not hold: FIFOs. The kernel adds up the rights of every directory above a file, mounts
//! included, so a tree that is granted for reading must not lie below a directory that the sandbox may write.

use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use super::world::{compiled, sandbox};
use super::{User, as_user};

/// How each path is granted, the way to a FIFO in it, and whether it may be written. `{}` is a directory of the host.
const GRANTS: [(&[&str], &str, bool); 12] = [
    (&["fs:read:{}"], "fifo", false),
    (&["fs:read:{}"], "deep/er/fifo", false),
    (&["fs:read:{}/fifo"], "fifo", false),
    (&["fs:read:{}/deep/**"], "deep/er/fifo", false),
    (&["fs:read:{}/*"], "fifo", false),
    (&["fs:read:{}/**/fifo"], "deep/er/fifo", false),
    (&["fs:read:{}", "fs:read,write:{}/deep/er"], "fifo", false),
    (&["fs:read:{}", "fs:read,write:{}/deep/er"], "deep/fifo", false),
    (&["fs:read:{}", "exec:spawn:*?fromWritable=true"], "fifo", false),
    (&["fs:read:{}", "fs:read,write:{}/deep/er"], "deep/er/fifo", true),
    (&["fs:read,write:{}"], "deep/er/fifo", true),
    (&["fs:read,write:{}/fifo"], "fifo", true),
];

/// Where a granted directory may lie: below each directory that is private inside, and elsewhere.
const PLACES: [&str; 3] = ["/tmp", "/home", "/var/tmp"];

/// Opens a FIFO without waiting for the other end.
const NONBLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

struct World {
    dir: tempfile::TempDir,
    user: User,
    made: Option<PathBuf>,
}

impl World {
    fn new(user: User, place: &str) -> Self {
        let made = (!Path::new(place).exists()).then(|| PathBuf::from(place));
        std::fs::create_dir_all(place).expect("a directory");
        let dir = tempfile::Builder::new().prefix("bailiwick-fifo").tempdir_in(place).expect("a directory");
        std::fs::create_dir_all(dir.path().join("tree/deep/er")).expect("a directory");
        for (from, to) in
            [(sandbox(), "bailiwick"), (compiled("escape-probe", include_str!("probe.c")), "probe")]
        {
            std::fs::copy(from, dir.path().join(to)).expect("a program is copied");
        }
        for name in ["tree/fifo", "tree/deep/fifo", "tree/deep/er/fifo"] {
            let mode = rustix::fs::Mode::from_raw_mode(0o666);
            rustix::fs::mknodat(rustix::fs::CWD, dir.path().join(name), rustix::fs::FileType::Fifo, mode, 0)
                .expect("a FIFO");
        }
        let owner = if user == User::Plain { "65534" } else { "0" };
        let given = std::process::Command::new("chown").args(["-R", owner]).arg(dir.path()).status();
        assert!(given.expect("chown starts").success() || user == User::Caller);
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
        Self { dir, user, made }
    }

    fn run(&self, caps: &[&str], attempt: &[&str]) -> Output {
        let mut command = as_user(self.user, self.dir.path().join("bailiwick"));
        command.args(["run", "--no-journal"]);
        for cap in caps {
            command.args(["--cap", &cap.replace("{}", &self.tree("").display().to_string())]);
        }
        command.arg("--").arg(self.dir.path().join("probe")).args(attempt);
        command.stdin(Stdio::null()).env("HOME", "/home").current_dir("/").output().expect("it starts")
    }

    fn tree(&self, name: &str) -> PathBuf {
        let tree = self.dir.path().join("tree");
        if name.is_empty() { tree } else { tree.join(name) }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // Another world may use it still.
            let _ = std::fs::remove_dir(made);
        }
    }
}

fn users() -> &'static [User] {
    if rustix::process::getuid().is_root() { &[User::Root, User::Plain] } else { &[User::Caller] }
}

#[test]
fn a_fifo_is_written_only_where_writing_is_granted() {
    let mut wrong = Vec::new();
    for (user, place) in users().iter().flat_map(|user| PLACES.map(|place| (*user, place))) {
        let world = World::new(user, place);
        for (caps, name, may) in GRANTS {
            // With a reader the attempt does not wait.
            let mut reader = std::fs::OpenOptions::new()
                .read(true)
                .custom_flags(NONBLOCKING)
                .open(world.tree(name))
                .expect("ours");
            let path = world.tree(name).display().to_string();
            let ran = world.run(caps, &["write", &path]);
            let mut bytes = Vec::new();
            let _ = reader.read_to_end(&mut bytes);
            if bytes.is_empty() == may {
                let said = String::from_utf8_lossy(&ran.stdout);
                wrong.push(format!("{caps:?} {name} in {place} as {user:?}: {}", said.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_tree_that_is_moved_aside_is_still_found_under_its_path() {
    for user in users() {
        let world = World::new(*user, "/tmp");
        std::fs::write(world.tree("deep/file"), "text").expect("a file");
        let caps = ["fs:read:{}", "fs:read,write:{}/deep/er"];
        let file = world.tree("deep/file").display().to_string();
        let new = world.tree("deep/er/new").display().to_string();
        let own = world.tree("").parent().expect("a directory").join("own").display().to_string();
        for (attempt, answer) in [
            (&["read", &file][..], "ok text"),
            (&["list", &world.tree("").display().to_string()], "ok"),
            (&["create", &new], "ok"),
            (&["create", "/tmp/mine"], "ok"),
            (&["append", &file], "no"),
            (&["chmod", &file, "600"], "no"),
            (&["truncate", &file], "no"),
            (&["unlink", &file], "no"),
            (&["mkdir", &world.tree("deep/dir").display().to_string()], "no"),
            (&["mapexec", &file], "no"),
            (&["create", &own], "ok"),
        ] {
            let ran = world.run(&caps, attempt);
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            let said = said.split_once('\t').map_or("", |(_, answer)| answer);
            assert!(said.starts_with(answer), "{attempt:?} as {user:?}: {said}");
        }
        assert!(world.tree("deep/er/new").exists(), "what is granted for writing is the host's");
        assert!(!Path::new(&own).exists(), "what lies beside it is the sandbox's own");
    }
}
