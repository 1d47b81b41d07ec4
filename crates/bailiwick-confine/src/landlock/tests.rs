//! Rulesets on the running kernel, at every version it can play.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::sys::before_exec::before_exec;

/// Change what is there.
const MODIFY: Access = WRITE_FILE | TRUNCATE;
/// Make and fill what was not there. A file that was there can be opened for writing as well: mounts tell those
/// apart, Landlock cannot.
const CREATE: Access = WRITE_FILE | MAKE;
/// Remove what is there.
const DELETE: Access = REMOVE;
/// All changes, and moving between directories.
const WRITE: Access = MODIFY | CREATE | DELETE | REFER;

/// Runs a shell line under rules and says whether it succeeded. `/` may be read and executed except `/tmp`, which is
/// where the tests' own directories are.
fn succeeds(level: Level, own: &[(&Path, Access)], line: &str) -> bool {
    let base = ["/usr", "/lib", "/lib64", "/bin", "/etc"].map(Path::new);
    let base = base.iter().map(|path| (*path, READ | EXECUTE));
    let devices = [(Path::new("/dev/null"), DEVICE)];
    let rules: Vec<Rule> = base
        .chain(devices)
        .chain(own.iter().copied())
        .filter_map(|(path, access)| Some(Rule { fd: File::open(path).ok()?.into(), access }))
        .collect();
    let ruleset = Ruleset::at(level, &rules).unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir("/").env_clear().env("PATH", "/usr/bin:/bin");
    command.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    before_exec(&mut command, move || {
        rustix::thread::set_no_new_privs(true)?;
        ruleset.restrict_self()
    });
    command.status().unwrap().success()
}

fn kernel() -> Option<Level> {
    let level = Level::of_kernel();
    level.inspect_err(|fault| bailiwick_testkit::skip(&fault.to_string())).ok()
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("old"), "old").unwrap();
        std::fs::create_dir_all(directory.path().join("sub")).unwrap();
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn line(&self, line: &str) -> String {
        line.replace("DIR", self.path().to_str().unwrap())
    }
}

#[test]
fn each_right_allows_its_own_operations_and_no_others() {
    let Some(level) = kernel() else { return };
    for (access, line, allowed) in [
        (0, "cat DIR/old", false),
        (READ, "cat DIR/old && ls DIR", true),
        (READ, "echo x > DIR/new", false),
        (READ, "echo x >> DIR/old", false),
        (READ, "rm DIR/old", false),
        (READ | MODIFY, "echo x > DIR/old", true),
        (READ | MODIFY, "echo x > DIR/new", false),
        (READ | CREATE, "mkdir DIR/d && echo x > DIR/d/new && ln -s x DIR/l && mkfifo DIR/p", true),
        (READ | CREATE, "rm DIR/old", false),
        (READ | DELETE, "rm DIR/old && rmdir DIR/sub", true),
        (READ | DELETE, "echo x > DIR/new", false),
        (READ | WRITE, "echo x > DIR/new && mv DIR/new DIR/sub/new && rm -r DIR/sub DIR/old", true),
        (READ | WRITE, "python3 -Ic 'import socket; socket.socket(socket.AF_UNIX).bind(\"DIR/s\")'", false),
        (READ | WRITE, "mknod DIR/null c 1 3", false),
        (READ | WRITE, "cp /bin/true DIR/true && DIR/true", false),
        (READ | WRITE | EXECUTE, "cp /bin/true DIR/true && DIR/true", true),
    ] {
        let directory = Directory::new();
        let done = succeeds(level, &[(directory.path(), access)], &directory.line(line));
        assert_eq!(done, allowed, "{line} with {access:#x}");
    }
}

#[test]
fn a_rule_on_a_file_drops_what_only_directories_have() {
    let Some(level) = kernel() else { return };
    let directory = Directory::new();
    let file = directory.path().join("old");
    let all = READ | WRITE | EXECUTE;
    assert!(succeeds(level, &[(&file, all)], &directory.line("cat DIR/old && echo x > DIR/old")));
    assert!(!succeeds(level, &[(&file, all)], &directory.line("ls DIR")));
    assert!(succeeds(level, &[(&file, DELETE)], "true"), "a rule without rights is left out");
}

#[test]
fn an_older_kernel_is_played_and_says_what_it_leaves_open() {
    let Some(level) = kernel() else { return };
    let truncates = "python3 -Ic 'import os; os.truncate(\"DIR/old\", 0)'";
    for version in 1..=level.version() {
        let directory = Directory::new();
        let at = Level(version);
        assert!(!succeeds(at, &[(directory.path(), READ)], &directory.line("echo x > DIR/new")), "{at}");
        let truncated = succeeds(at, &[(directory.path(), READ)], &directory.line(truncates));
        assert_eq!(truncated, at.missing().any(|gap| gap.contains("truncating")), "{at}");
        let moved = "mv DIR/old DIR/sub/ 2>/dev/null; test ! -e DIR/old";
        let all = READ | WRITE;
        assert!(
            succeeds(at, &[(directory.path(), all)], &directory.line(moved)),
            "{at}: mv copies where it must"
        );
    }
    assert_eq!(Level(1).missing().count(), 4);
    assert_eq!(Level(Level::NEWEST).missing().count(), 0);
}

#[test]
fn signals_stay_inside() {
    let Some(level) = kernel() else { return };
    let mut outside = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let line = format!("kill -0 {}", outside.id());
    let within = "sleep 9 & kill $!";
    let (reached, own) = (succeeds(level, &[], &line), succeeds(level, &[], within));
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert_eq!(reached, level.missing().any(|gap| gap.contains("signals")));
    assert!(own, "own children can be signalled");
}
