//! What governs a run stays out of the command's hands: its journal, its manifest, its report. As root and as a plain
//! user, each with a control that shows the same act to work where nothing governs.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{err, out};
use crate::escape::{User, as_user};

/// A directory that the command may write, and one beside it that it may not.
pub(super) struct World {
    dir: tempfile::TempDir,
    pub(super) user: User,
}

impl World {
    fn new(user: User) -> Self {
        let dir = super::directory();
        for name in ["w/sub", "out"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("a directory");
        }
        bailiwick_testkit::copy_program(&program(), &dir.path().join("bailiwick"));
        std::fs::write(dir.path().join("out/victim"), "mine").expect("a file");
        let world = Self { dir, user };
        world.give("");
        world
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Gives everything below a path to the user.
    pub(super) fn give(&self, name: &str) {
        if self.user == User::Plain {
            let all = Command::new("chown").args(["-Rh", "65534:65534"]).arg(self.at(name)).status();
            assert!(all.expect("chown starts").success());
        }
        let _ = std::fs::set_permissions(self.at(""), std::fs::Permissions::from_mode(0o755));
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).expect("a file");
        self.give(name);
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// Runs a script with these options; `{}` is the world's directory.
    pub(super) fn sh(&self, options: &[&str], script: &str) -> Output {
        let fill = |text: &str| text.replace("{}", &self.dir.path().display().to_string());
        let mut command = as_user(self.user, self.at("bailiwick"));
        command.arg("run").args(options.iter().map(|option| fill(option)));
        for tool in ["cat", "chmod", "cp", "ln", "ls", "mkdir", "mv", "rm", "touch", "truncate"] {
            command.args(["--cap", &format!("exec:spawn:{tool}")]);
        }
        command.args(["--", "/bin/sh", "-c", &fill(script)]).stdin(Stdio::null());
        command.env("HOME", self.at("home")).current_dir(self.at("w"));
        command.output().expect("the command starts")
    }
}

/// What makes the sandbox: the command, or an older one that these tests have to find wanting.
fn program() -> PathBuf {
    let named = std::env::var_os("BAILIWICK_ESCAPE_PROGRAM");
    named.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_bailiwick")), PathBuf::from)
}

pub(super) fn by_everyone(test: impl Fn(&World)) {
    if rustix::process::getuid().is_root() {
        test(&World::new(User::Root));
        test(&World::new(User::Plain));
    } else {
        test(&World::new(User::Caller));
    }
}

/// Ways to get at a directory from inside. `J` is its name.
const WAYS: &str = "
    cat J/key J/*.jsonl; ls J; ls -R {}/w
    echo forged >>J/index.jsonl; echo forged >J/new; echo >J/key
    rm -rf J; mv J J.away; ln -f J/key {}/w/key; cp -r J {}/w/copy; cat {}/w/copy/key
    chmod 777 J; touch J/key; mkdir -p J; ln -s {}/w J/link; truncate -s 0 J/key
    D=J; mv ${D%/*} {}/w/aside; cat {}/w/aside/*/key; exit 0";

/// How a journal below a grant can be named: the option, and where it really is.
const NAMED: [(&str, &str); 6] = [
    ("--journal={}/w/j", "w/j"),
    ("--journal=j", "w/j"),
    ("--journal=sub/../j", "w/j"),
    ("--journal=sub/deep/j", "w/sub/deep/j"),
    ("--journal={}/way/j", "w/j"),
    ("--journal={}/w/./sub//j", "w/sub/j"),
];

#[test]
fn the_journal_of_a_run_is_not_visible_inside() {
    let grants: [&[&str]; 4] = [
        &["--cap", "fs:read,write:{}/w"],
        &["--cap", "fs:read:{}/w"],
        &["--cap", "fs:read,write:{}/w", "--cap", "fs:read,write:{}/w/sub"],
        &["--cap", "fs:read,write:{}/**"],
    ];
    by_everyone(|world| {
        symlink(world.at("w"), world.at("way")).expect("a link");
        for (option, real) in NAMED {
            for grant in grants {
                let whole = world.at(real);
                let script = WAYS.replace('J', &whole.display().to_string());
                let ran = world.sh(&[&[option], grant].concat(), &script);
                let shown = format!("{option} {grant:?}: {} {}", out(&ran), err(&ran));
                if option.contains("way") && grant[1].contains("**") {
                    assert_eq!(ran.status.code(), Some(125), "the command could turn the link: {shown}");
                    continue;
                }
                assert_eq!(ran.status.code(), Some(0), "{shown}");
                assert!(!out(&ran).contains("sandbox-started") && !out(&ran).contains("ed25519"), "{shown}");
                let key = std::fs::read_to_string(whole.join("key")).expect("the key is in its place");
                assert!(!key.is_empty() && !out(&ran).contains(key.trim()), "{shown}");
                assert!(!whole.join("new").exists() && !whole.join("link").exists(), "{shown}");
                let copies =
                    ["w/key", "w/copy/key", "w/aside/j/key", "w/aside/sub/j/key", "w/aside/deep/j/key"];
                assert!(!copies.iter().any(|copy| world.at(copy).exists()), "{shown}");
                let mut verify = as_user(world.user, world.at("bailiwick"));
                let verified =
                    verify.args(["log", "verify", "--dir"]).arg(&whole).output().expect("it starts");
                assert!(verified.status.success(), "{shown}\n{}", out(&verified));
                assert!(std::fs::metadata(&whole).expect("there").permissions().mode() & 0o777 == 0o700);
                std::fs::remove_dir_all(&whole).expect("removable");
                for copy in ["w/copy", "w/aside"] {
                    let _ = std::fs::remove_dir_all(world.at(copy));
                }
                std::fs::create_dir_all(world.at("w/sub")).expect("a directory");
                world.give("w");
            }
        }
    });
}

#[test]
fn the_same_ways_reach_a_directory_that_is_no_journal() {
    by_everyone(|world| {
        std::fs::create_dir(world.at("w/j")).expect("a directory");
        world.file("w/j/key", "ed25519 of nothing");
        world.give("w");
        let script = WAYS.replace('J', &world.at("w/j").display().to_string());
        let ran = world.sh(&["--cap", "fs:read,write:{}/w"], &script);
        assert!(out(&ran).contains("ed25519 of nothing"), "{} {}", out(&ran), err(&ran));
        assert_ne!(world.text("w/j/key"), "ed25519 of nothing");
    });
}

/// What stops a journal from being opened or written: a shell line that spoils `$J`.
const SPOILT: [(&str, &str); 8] = [
    ("a file in its place", "rm -rf $J; : >$J"),
    ("writable for others", "mkdir -p $J; chmod 777 $J"),
    ("a key for all to read", "mkdir -pm 700 $J; echo x >$J/key; chmod 644 $J/key"),
    ("a key that is none", "mkdir -pm 700 $J; echo x >$J/key; chmod 600 $J/key"),
    ("a key that is a link", "mkdir -pm 700 $J; ln -s /etc/hostname $J/key"),
    ("an index that is a link", "mkdir -pm 700 $J; ln -s /nowhere/x $J/index.jsonl"),
    ("an index that is a FIFO", "mkdir -pm 700 $J; mkfifo $J/index.jsonl"),
    ("a parent that is a file", "J=${J%/*}; rm -rf $J; : >$J"),
];

#[test]
fn nothing_runs_without_its_journal() {
    by_everyone(|world| {
        for backend in ["native", "landlock", "bwrap", "oci"] {
            for (what, spoil) in SPOILT {
                let journal = world.at("out/deep/j");
                std::fs::create_dir_all(&journal).expect("a directory");
                world.give("out");
                let mut spoiler = as_user(world.user, "/bin/sh");
                spoiler.args(["-c", &format!("J={}; {spoil}", journal.display())]);
                assert!(spoiler.status().expect("it starts").success(), "{what}");
                let options =
                    ["--backend", backend, "--journal={}/out/deep/j", "--cap", "fs:read,write:{}/w"];
                let ran = world.sh(&options, "echo ran >{}/w/marker; echo ran");
                let said = err(&ran);
                assert_eq!(ran.status.code(), Some(125), "{backend}, {what}: {said}");
                assert!(
                    said.contains("journal") && said.contains("nothing was started"),
                    "{backend}, {what}: {said}"
                );
                assert!(!world.at("w/marker").exists() && out(&ran).is_empty(), "{backend}, {what}: it ran");
                let _ = std::fs::remove_dir_all(world.at("out/deep"));
                let _ = std::fs::remove_file(world.at("out/deep"));
            }
        }
        let options = ["--journal={}/out/deep/j", "--cap", "fs:read,write:{}/w"];
        let ran = world.sh(&options, "echo ran >{}/w/marker");
        assert!(ran.status.success() && world.at("w/marker").exists(), "(control) {}", err(&ran));
        let ran = world.sh(&["--journal={}/w/sub", "--unconfined-i-accept-the-risk"], "echo ran >{}/w/other");
        let spoilt = world.at("w/sub");
        std::fs::set_permissions(&spoilt, std::fs::Permissions::from_mode(0o777)).expect("the owner may");
        let refused =
            world.sh(&["--journal={}/w/sub", "--unconfined-i-accept-the-risk"], "echo ran >{}/w/third");
        assert!(ran.status.success() && world.at("w/other").exists(), "(control) {}", err(&ran));
        assert_eq!(refused.status.code(), Some(125), "{}", err(&refused));
        assert!(!world.at("w/third").exists(), "nor without a sandbox");
    });
}

#[test]
fn the_start_is_on_disk_before_the_command_runs() {
    by_everyone(|world| {
        for _ in 0..3 {
            let (journal, marker) = (world.at("out/j"), world.at("w/marker"));
            let mut command = as_user(world.user, world.at("bailiwick"));
            command.arg("run").arg(format!("--journal={}", journal.display()));
            command.args([
                "--cap",
                &format!("fs:read,write:{}", world.at("w").display()),
                "--",
                "/bin/sh",
                "-c",
            ]);
            command.arg(format!("echo >{}; read line", marker.display())).stdin(Stdio::piped());
            let mut running = command.env("HOME", world.at("home")).spawn().expect("it starts");
            while !marker.exists() {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            let segments =
                journal.read_dir().map(|all| all.flatten().map(|one| one.path()).collect::<Vec<_>>());
            let written: String = segments
                .unwrap_or_default()
                .iter()
                .filter_map(|path| std::fs::read_to_string(path).ok())
                .collect();
            drop(running.stdin.take());
            running.wait().expect("it ends");
            assert!(written.contains("sandbox-started"), "as {:?}: {written}", world.user);
            std::fs::remove_dir_all(journal).and_then(|()| std::fs::remove_file(marker)).expect("removable");
        }
    });
}

/// What an earlier run could leave in the place of a report: a shell line in `w`.
const PLANTED: [(&str, &str); 6] = [
    ("a link to a file", "ln -s {}/out/victim report"),
    ("a link to nothing", "ln -s {}/out/new report"),
    ("a relative link", "ln -s ../out/victim report"),
    ("a FIFO", "mkfifo report"),
    ("a directory", "mkdir report"),
    ("a link in the place of its directory", "rm -rf sub; ln -s {}/out sub"),
];

#[test]
fn the_report_is_written_to_no_file_that_the_command_chose() {
    by_everyone(|world| {
        for (what, plant) in PLANTED {
            let path = if plant.contains("sub") { "sub/victim" } else { "report" };
            let fill = |text: &str| text.replace("{}", &world.dir.path().display().to_string());
            let mut planter = as_user(world.user, "/bin/sh");
            planter.args(["-c", &fill(plant)]).current_dir(world.at("w"));
            assert!(planter.status().expect("it starts").success(), "{what}");
            let ran = world.sh(
                &["--report", path, "--cap", "fs:read,write:{}/w", "--timeout", "20s"],
                "echo ran >{}/w/marker",
            );
            assert_eq!(ran.status.code(), Some(125), "{what}: {}", err(&ran));
            assert!(!world.at("w/marker").exists(), "{what}: it ran without a report");
            assert_eq!(world.text("out/victim"), "mine", "{what}");
            assert!(!world.at("out/new").exists(), "{what}");
            std::fs::remove_dir_all(world.at("w")).expect("removable");
            std::fs::create_dir_all(world.at("w/sub")).expect("a directory");
            world.give("w");
        }
        std::fs::hard_link(world.at("out/victim"), world.at("w/report")).expect("a link");
        let ran = world.sh(&["--report", "report", "--cap", "fs:read,write:{}/w"], "exit 0");
        assert!(ran.status.success(), "{}", err(&ran));
        assert!(world.text("w/report").contains("coverage"), "the name has the report");
        assert_eq!(world.text("out/victim"), "mine", "and its other name what it had");
    });
}

/// Ways to change a file from inside. `F` is its name, `D` its directory.
const CHANGES: [&str; 12] = [
    "echo '{\"backend\":\"forged\"}' >F",
    "echo forged >>F",
    "rm -f F",
    "mv F F.away",
    "echo forged >{}/w/mine; mv -f {}/w/mine F",
    "ln -sf {}/w/mine F",
    "ln F {}/w/second && echo forged >{}/w/second",
    "truncate -s 0 F",
    "chmod 666 F",
    "mv D D.away; mkdir -p D; echo forged >F",
    "rm -rf D; mkdir -p D; echo forged >F",
    "cp /dev/null F",
];

fn changes(world: &World, options: &[&str], name: &str) -> Vec<String> {
    let file = world.at(name);
    let directory = file.parent().expect("a directory");
    CHANGES
        .iter()
        .filter(|change| {
            let script = change.replace('F', "$F").replace('D', "$D");
            let script = format!("F={}; D={}; {script}; exit 0", file.display(), directory.display());
            std::fs::create_dir_all(directory).expect("a directory");
            world.give("w");
            let before =
                (world.text(name), std::fs::metadata(&file).map(|about| about.permissions().mode()).ok());
            let ran = world.sh(options, &script);
            assert_eq!(ran.status.code(), Some(0), "{change}: {}", err(&ran));
            let after =
                (world.text(name), std::fs::metadata(&file).map(|about| about.permissions().mode()).ok());
            let is_report = name.ends_with("report");
            if is_report { !after.0.contains("\"coverage\"") } else { before != after }
        })
        .map(|change| (*change).to_owned())
        .collect()
}

#[test]
fn the_report_cannot_be_changed_by_what_it_is_about() {
    by_everyone(|world| {
        for name in ["w/report", "w/sub/report"] {
            let path = world.at(name).display().to_string();
            let got = changes(world, &["--report", &path, "--cap", "fs:read,write:{}/w"], name);
            assert!(got.is_empty(), "{name} as {:?}: {got:?}", world.user);
        }
        let path = world.at("w/sub/report").display().to_string();
        let ran = world.sh(&["--report", &path, "--cap", "fs:read,write:{}/w"], "cat {}/w/sub/report");
        assert!(out(&ran).contains("coverage"), "(control) it can be read: {}", err(&ran));
        std::fs::remove_file(world.at("w/sub/report")).expect("there");
        let refused = world.sh(&["--report", &path, "--cap", "fs:write:{}/w/nothing"], "exit 0");
        assert_eq!((refused.status.code(), world.at("w/sub/report").exists()), (Some(125), false));
    });
}

fn manifest(world: &World, name: &str) {
    let directory = world.at("w");
    let text = format!(
        "name = \"probe\"\nversion = \"1.0.0\"\nserver_capabilities = [\"fs:read,write:{}\"]\n",
        directory.display()
    );
    std::fs::create_dir_all(world.at(name).parent().expect("a directory")).expect("a directory");
    world.file(name, &text);
    world.give("w");
}

#[test]
fn the_manifest_of_a_run_cannot_be_changed_inside() {
    by_everyone(|world| {
        for name in ["w/server.toml", "w/sub/server.toml", "w/sub/a/b/server.toml"] {
            manifest(world, name);
            let path = world.at(name).display().to_string();
            let options = ["--manifest", &path];
            let got = changes(world, &options, name);
            assert!(got.is_empty(), "{name} as {:?}: {got:?}", world.user);
            let by_name = format!("fs:read,write:{path}");
            let got = changes(world, &["--manifest", &path, "--cap", &by_name], name);
            assert!(got.is_empty(), "{name} by name as {:?}: {got:?}", world.user);
            let ran = world.sh(&options, &format!("cat {path}; echo x >{{}}/w/beside"));
            assert!(out(&ran).contains("capabilities"), "(control) it can be read: {}", err(&ran));
            assert_eq!(world.text("w/beside"), "x\n", "(control) what lies beside it can be written");
        }
        // In a directory that is closed as a whole, the way to the manifest opens nothing.
        manifest(world, "w/.agents/sub/server.toml");
        let ran = world.sh(
            &["--manifest", "{}/w/.agents/sub/server.toml"],
            "echo >{}/w/.agents/sub/new; echo >{}/w/.agents/new; mkdir {}/w/.agents/sub/dir; exit 0",
        );
        assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
        for name in [".agents/sub/new", ".agents/new", ".agents/sub/dir"] {
            assert!(!world.at("w").join(name).exists(), "{name} as {:?}", world.user);
        }
        symlink("sub/server.toml", world.at("w/link.toml")).expect("a link");
        let ran = world.sh(&["--manifest", "link.toml"], "echo ran");
        assert_eq!(ran.status.code(), Some(125), "{}", err(&ran));
        assert!(err(&ran).contains("is a link in a directory that the command can write"), "{}", err(&ran));
    });
}

#[test]
fn the_same_changes_work_on_a_file_that_governs_nothing() {
    by_everyone(|world| {
        for change in CHANGES {
            let _ = std::fs::remove_dir_all(world.at("w/conf"));
            std::fs::create_dir_all(world.at("w/conf")).expect("a directory");
            world.file("w/conf/server.toml", "plain");
            std::fs::set_permissions(world.at("w/conf/server.toml"), std::fs::Permissions::from_mode(0o600))
                .expect("ours");
            world.give("w");
            let (file, directory) = (world.at("w/conf/server.toml"), world.at("w/conf"));
            let script = change.replace('F', "$F").replace('D', "$D");
            let script = format!("F={}; D={}; {script}; exit 0", file.display(), directory.display());
            let before = mode_and_text(&file);
            let ran = world.sh(&["--cap", "fs:read,write:{}/w"], &script);
            assert_ne!(before, mode_and_text(&file), "{change}: {}", err(&ran));
        }
    });
}

fn mode_and_text(path: &Path) -> (Option<u32>, bool, Option<String>) {
    let about = path.symlink_metadata().ok();
    let mode = about.as_ref().map(|about| about.permissions().mode());
    let special = about.is_some_and(|about| about.is_symlink() || about.file_type().is_fifo());
    (mode, special, std::fs::read_to_string(path).ok())
}
