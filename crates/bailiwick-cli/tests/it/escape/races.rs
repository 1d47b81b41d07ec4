//! Races against the judge of names: a program changes what a call names while the call waits for its answer. The host
//! watches the directory, so a name that is there for a moment only is seen too. As root and as a plain user.

use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::world::compiled;
use super::{User, as_user};
use bailiwick_testkit::skip;

const CONFIG: &str = "[core]\n";
/// How long all races of one program take together, in seconds.
const SECONDS: &str = "6";

/// What must never be there.
const PROTECTED: [&str; 3] = [".mcp.json", "tasks.json", "commondir"];

#[test]
fn no_race_makes_a_protected_name_as_root() {
    if !rustix::process::getuid().is_root() {
        return skip("not root");
    }
    race(User::Root, 1, None);
}

#[test]
fn no_race_makes_a_protected_name_as_a_plain_user() {
    race(if rustix::process::getuid().is_root() { User::Nobody } else { User::Caller }, 1, None);
}

/// Two sandboxes on one directory: each judges for itself. A name that one of them takes away again may be there for a
/// moment; in the end it is not.
#[test]
fn two_sandboxes_leave_no_protected_name() {
    race(User::Caller, 2, None);
    // Each looks at what the other may have done in between; these two kinds depend on it.
    race(User::Caller, 2, Some("on-the-way"));
    race(User::Caller, 2, Some("moved-on-the-way"));
}

/// What is inside a directory that sandboxes race in, watched.
fn race(user: User, sandboxes: usize, only: Option<&str>) {
    let own = tempfile::Builder::new().prefix("bailiwick-races").tempdir_in("/var/tmp").unwrap();
    let w = own.path().join("w");
    for name in [".git/objects", ".git/refs", ".git/hooks"] {
        std::fs::create_dir_all(w.join(name)).unwrap();
    }
    std::fs::write(w.join(".git/config"), CONFIG).unwrap();
    std::fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let program = own.path().join("races");
    std::fs::copy(compiled("races", include_str!("races.c")), &program).unwrap();
    let command = own.path().join("bailiwick");
    std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &command).unwrap();
    super::world::open_to_all(own.path(), user);
    let seen = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    let made = WatchFlags::CREATE | WatchFlags::MOVED_TO;
    inotify::add_watch(&seen, &w, made).unwrap();
    inotify::add_watch(&seen, w.join(".git"), made).unwrap();
    let started: Vec<_> = (0..sandboxes)
        .map(|_| {
            let mut line = as_user(user, &command);
            line.args(["run", "--cap", &format!("fs:read,write:{}", w.display()), "--"]);
            line.arg(&program).arg(&w).arg(SECONDS).args(only).stdout(std::process::Stdio::piped());
            line.spawn().unwrap()
        })
        .collect();
    for running in started {
        let ended = running.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{:?}: {said}", ended.status);
        assert!(said.lines().count() == only.map_or(21, |_| 1) && !said.contains("hardly"), "{said}");
    }
    for name in [".mcp.json", ".vscode/tasks.json", ".git/commondir"] {
        assert!(!w.join(name).exists(), "{name} is there");
    }
    assert_eq!(std::fs::read_to_string(w.join(".git/config")).unwrap(), CONFIG);
    if sandboxes == 1 {
        assert_eq!(appeared(&seen), [""; 0], "was there for a moment");
    }
}

/// The protected names that appeared meanwhile. Events that were lost in between do not matter: races are many.
fn appeared(seen: &std::os::fd::OwnedFd) -> Vec<String> {
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(seen, &mut room);
    let mut names = Vec::new();
    while let Ok(event) = events.next() {
        let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if PROTECTED.contains(&&*name) || Path::new(&name) == Path::new("config") {
            names.push(name);
        }
    }
    names
}
