//! Every hint is true: applied as it is written, the refusal that it names is gone.
//!
//! Each command is run with no more than it starts with, its hints are added mechanically, and after at most two rounds
//! it must succeed. As root and as a plain user.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bailiwick_testkit::skip;

use super::err;
use crate::escape::{User, as_user};

/// How often hints are added.
const ROUNDS: usize = 2;

/// A command, what it is granted at first, and what is granted in the end. `$W` is a directory of its own.
struct Case {
    options: &'static [&'static str],
    caps: &'static [&'static str],
    command: &'static [&'static str],
    /// What the hints must come to, no more and no less.
    hinted: &'static [&'static str],
}

const WRITABLE: &str = "fs:read,write:$W/**";
const READ: &str = "import sys; print(open(sys.argv[1] + '/secret').read())";
const APPEND: &str = "import sys; open(sys.argv[1] + '/secret', 'a').write('x')";
const UPDATE: &str = "import sys; open(sys.argv[1] + '/secret', 'r+').write('x')";
const LIST: &str = "import os, sys; print(os.listdir(sys.argv[1]))";
const START: &str = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)";

const CASES: &[Case] = &[
    // A shell looks for programs by `stat` and never tries to start what is absent.
    Case {
        options: &[],
        caps: &[],
        command: &["sh", "-c", "date | tr a b"],
        hinted: &["exec:spawn:date", "exec:spawn:tr"],
    },
    Case {
        options: &[],
        caps: &[],
        command: &["bash", "-c", "if true; then sort /dev/null; fi"],
        hinted: &["exec:spawn:sort"],
    },
    Case { options: &[], caps: &[WRITABLE], command: &["sh", "$W/steps.sh"], hinted: &["exec:spawn:uniq"] },
    Case { options: &[], caps: &[WRITABLE], command: &["$W/steps.sh"], hinted: &["exec:spawn:uniq"] },
    Case {
        options: &["--tell"],
        caps: &[],
        command: &["sh", "-c", "x=da; ${x}te"],
        hinted: &["exec:spawn:date"],
    },
    // Others do.
    Case { options: &[], caps: &[], command: &["env", "date"], hinted: &["exec:spawn:date"] },
    Case { options: &[], caps: &[], command: &["env", "/usr/bin/date"], hinted: &["exec:spawn:date"] },
    Case { options: &[], caps: &[WRITABLE], command: &["env", "$W/tool"], hinted: &["exec:spawn:$W/tool"] },
    Case {
        options: &[],
        caps: &["fs:read:$W"],
        command: &["env", "$W/tool"],
        hinted: &["exec:spawn:$W/tool"],
    },
    Case {
        options: &[],
        caps: &[],
        command: &["python3", "-c", START, "/usr/bin/id"],
        hinted: &["exec:spawn:id"],
    },
    Case {
        options: &[],
        caps: &[WRITABLE],
        command: &["make", "-s", "-C", "$W"],
        hinted: &["exec:spawn:sh", "exec:spawn:sort", "exec:spawn:tr"],
    },
    Case {
        options: &[],
        caps: &[WRITABLE],
        command: &["tar", "-czf", "$W/all.tgz", "-C", "$W", "secret"],
        hinted: &["exec:spawn:gzip"],
    },
    // Names that run code later.
    Case {
        options: &[],
        caps: &[WRITABLE],
        command: &["git", "-C", "$W/repository", "config", "--local", "user.name", "x"],
        hinted: &["fs:write:$W/repository/.git/config"],
    },
    Case {
        options: &[],
        caps: &[WRITABLE],
        command: &["git", "init", "-q", "--template=", "$W/repository"],
        hinted: &["fs:write:$W/repository/.git/config"],
    },
    // Files, where they are watched.
    Case {
        options: &["--tell"],
        caps: &[],
        command: &["python3", "-c", READ, "$W"],
        hinted: &["fs:read:$W/secret"],
    },
    Case {
        options: &["--tell"],
        caps: &["fs:read:$W"],
        command: &["python3", "-c", APPEND, "$W"],
        hinted: &["fs:write:$W/secret"],
    },
    Case {
        options: &["--tell"],
        caps: &[],
        command: &["python3", "-c", UPDATE, "$W"],
        hinted: &["fs:read,write:$W/secret"],
    },
    Case {
        options: &["--tell"],
        caps: &[],
        command: &["python3", "-c", LIST, "$W/repository"],
        hinted: &["fs:read:$W/repository"],
    },
    // What it was given.
    Case { options: &[], caps: &[], command: &["cat", "$W/secret"], hinted: &["fs:read:$W/secret"] },
];

#[test]
fn each_hint_lifts_the_refusal_that_it_names() {
    for user in users() {
        for case in CASES {
            let program = case.command[0];
            let found = program.contains('/') || Path::new("/usr/bin").join(program).exists();
            if !found {
                skip(&format!("no {program} here"));
                continue;
            }
            follow(&Stage::new(*user), case);
        }
    }
}

fn follow(stage: &Stage, case: &Case) {
    let mut caps: Vec<String> = case.caps.iter().map(|cap| stage.text(cap)).collect();
    let mut gone: Vec<String> = Vec::new();
    let mut hinted: Vec<String> = Vec::new();
    for _ in 0..ROUNDS {
        let output = stage.run(case, &caps);
        let told = err(&output);
        let again = gone.iter().find(|note| told.contains(note.as_str()));
        assert_eq!(again, None, "{:?} {caps:?}\n{told}", case.command);
        if output.status.success() {
            break;
        }
        let notes: Vec<(&str, &str)> =
            told.lines().filter_map(|line| line.split_once("; add --cap ")).collect();
        let grants = notes
            .iter()
            .chain(
                // A hint may go on after a condition.
                &told.lines().filter_map(|line| line.split_once(", add --cap ")).collect::<Vec<_>>(),
            )
            .map(|(note, grant)| ((*note).to_owned(), grant.trim_matches('\'').to_owned()))
            .collect::<Vec<_>>();
        assert!(!grants.is_empty(), "{:?} {caps:?}: no hint\n{told}", case.command);
        for (note, grant) in grants {
            gone.push(note);
            hinted.push(grant.clone());
            caps.push(grant);
        }
    }
    let output = stage.run(case, &caps);
    assert!(output.status.success(), "{:?} {caps:?}\n{}", case.command, err(&output));
    let mut wanted: Vec<String> = case.hinted.iter().map(|cap| stage.text(cap)).collect();
    wanted.sort();
    hinted.sort();
    assert_eq!(hinted, wanted, "{:?}", case.command);
}

#[test]
fn a_run_that_fails_without_a_reason_says_that_files_can_be_watched() {
    let told = |options: &[&str], text: &str| {
        err(&super::script(&[], options, text).current_dir("/usr/lib").output().expect("it starts"))
    };
    assert!(told(&[], "exit 3").contains("run it again with `--tell`"), "{}", told(&[], "exit 3"));
    assert_eq!(told(&["--tell"], "exit 3"), "");
    assert_eq!(told(&[], "exit 0"), "");
}

#[test]
fn a_server_without_clients_is_told_its_port() {
    if !Path::new("/usr/bin/python3").exists() {
        return skip("no python3 here");
    }
    const SERVE: &str = "import socket; socket.create_server(('127.0.0.1', 8077)); raise SystemExit(1)";
    for user in users() {
        let stage = Stage::new(*user);
        let case = Case { options: &[], caps: &[], command: &["python3", "-c", SERVE], hinted: &[] };
        let told = err(&stage.run(&case, &[]));
        assert!(told.contains("nothing outside reaches; add --cap net:listen:8077\n"), "{told}");
    }
}

#[test]
fn what_the_host_does_not_have_either_is_not_named() {
    for words in ["no-such-program-anywhere", "/no/such/program", "cd /no/such/directory"] {
        let run = super::script(&[], &["--tell"], words).current_dir("/usr/lib").output();
        let told = err(&run.expect("it starts"));
        assert!(!told.contains("add --cap"), "{words}: {told}");
    }
}

/// A slice of what this host has.
fn sample(directory: &str, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    const COUNT: usize = 10;
    let entries = std::fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = entries.filter(|path| is_wanted(path) && is_plain(path)).collect();
    all.sort();
    let step = all.len() / COUNT + 1;
    all.into_iter().step_by(step).collect()
}

fn is_plain(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

/// The grants of the notes about this thing.
fn grants_for(told: &str, thing: &str) -> Vec<String> {
    let about = format!("note: `{thing}` ");
    let lines = told.lines().filter(|line| line.starts_with(&about));
    lines.filter_map(|line| Some(line.split_once("add --cap ")?.1.trim_matches('\'').to_owned())).collect()
}

#[test]
fn any_program_of_this_host_is_named_by_the_grant_that_starts_it() {
    let is_program = |path: &Path| {
        let found = path.metadata().ok().filter(std::fs::Metadata::is_file);
        found.is_some_and(|found| found.permissions().mode() & 0o111 == 0o111) && !path.ends_with("env")
    };
    let stage = Stage::new(users()[users().len() - 1]);
    for path in sample("/usr/bin", is_program) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("plain").to_owned();
        let run = |caps: &[String]| {
            err(&stage
                .command(&["--timeout", "10s"], caps)
                .args(["env", &name, "--version"])
                .output()
                .expect("it starts"))
        };
        let grants = grants_for(&run(&[]), &name);
        assert_eq!(grants, [format!("exec:spawn:{name}")], "{}", run(&[]));
        assert_eq!(grants_for(&run(&grants), &name), [""; 0], "{name}");
    }
}

#[test]
fn any_file_of_this_host_is_named_by_the_grant_that_shows_it() {
    let stage = Stage::new(users()[users().len() - 1]);
    // A link into the kernel's own file systems is no file that a grant could show.
    let is_kernels = |path: &Path| path.canonicalize().is_ok_and(|real| !real.starts_with("/etc"));
    let is_readable = |path: &Path| {
        !is_kernels(path)
            && path
                .metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o444 == 0o444)
    };
    let mut named = 0;
    for path in sample("/etc", is_readable) {
        let shown = path.display().to_string();
        let run = |caps: &[String]| {
            stage.command(&["--tell"], caps).args(["cat", &shown]).output().expect("it starts")
        };
        let bare = run(&[]);
        if bare.status.success() {
            continue; // the sandbox has one of its own
        }
        let grants = grants_for(&err(&bare), &shown);
        assert_eq!(grants, [format!("fs:read:{shown}")], "{}", err(&bare));
        let granted = run(&grants);
        assert!(granted.status.success(), "{shown}: {}", err(&granted));
        named += 1;
    }
    assert!(named > 0, "no file of `/etc` was tried");
}

fn users() -> &'static [User] {
    let root = rustix::process::getuid().is_root();
    if root { &[User::Root, User::Plain] } else { &[User::Caller] }
}

/// A directory that is open to everyone.
struct Stage {
    dir: tempfile::TempDir,
    user: User,
}

impl Stage {
    fn new(user: User) -> Self {
        let stage = Self { dir: super::directory(), user };
        let copy = |from: &str, to: &str| std::fs::copy(from, stage.path(to)).expect("copied");
        copy(env!("CARGO_BIN_EXE_bailiwick"), "bailiwick");
        copy("/usr/bin/true", "tool");
        let write = |name: &str, text: &str| std::fs::write(stage.path(name), text).expect("written");
        write("secret", "secret");
        write("steps.sh", "#!/bin/sh\nset -e\nuniq /dev/null\n");
        write("Makefile", "all:\n\t@sort /dev/null | tr a b\n");
        for directory in ["repository", "repository/.git", "repository/.git/objects", "repository/.git/refs"]
        {
            std::fs::create_dir(stage.path(directory)).expect("made");
        }
        write("repository/.git/HEAD", "ref: refs/heads/main\n");
        write("repository/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
        open(stage.dir.path(), user);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, text: &str) -> String {
        text.replace("$W", &self.dir.path().display().to_string())
    }

    fn run(&self, case: &Case, caps: &[String]) -> Output {
        let words = case.command.iter().map(|word| self.text(word));
        self.command(case.options, caps).args(words).output().expect("it starts")
    }

    fn command(&self, options: &[&str], caps: &[String]) -> Command {
        let mut command = as_user(self.user, self.path("bailiwick"));
        command.args(["run", "--no-journal"]).args(options);
        for cap in caps {
            command.args(["--cap", cap]);
        }
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
        command.current_dir("/usr/lib").stdin(Stdio::null()).arg("--");
        command
    }
}

/// Gives everything to the user.
fn open(path: &Path, user: User) {
    if user == User::Plain {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    }
    let is_program =
        path.is_dir() || ["bailiwick", "tool", "steps.sh"].iter().any(|name| path.ends_with(name));
    let mode = if is_program { 0o777 } else { 0o666 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the owner may");
    if path.is_dir() {
        for entry in path.read_dir().expect("readable") {
            open(&entry.expect("an entry").path(), user);
        }
    }
}
