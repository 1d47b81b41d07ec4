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

/// What must never be there: at the top, and in the repository's own directory, where the first two are free.
const PROTECTED: [&[&str]; 2] = [&[".mcp.json", ".envrc"], &["commondir", "config"]];

#[test]
fn no_race_makes_a_protected_name_as_root() {
    if !rustix::process::getuid().is_root() {
        return skip("not root");
    }
    race(User::Root, 1, None);
}

#[test]
fn no_race_makes_a_protected_name_as_a_plain_user() {
    race(if rustix::process::getuid().is_root() { User::Plain } else { User::Caller }, 1, None);
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

/// How many rounds two processes play with names, in the ordinary run and in the long one.
const ROUNDS: [&str; 2] = ["4000", "100000"];

#[test]
fn no_game_with_names_makes_a_protected_one() {
    let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    let rounds = ROUNDS[usize::from(is_full)];
    let root = rustix::process::getuid().is_root();
    for user in if root { &[User::Root, User::Plain][..] } else { &[User::Caller] } {
        let (held, said) = play(*user, rounds, true);
        assert_eq!(held, [""; 0], "{said}");
        eprintln!("{rounds} rounds as {user:?}: {said}");
    }
    // Without a sandbox the same games make them, so they are games worth holding.
    let (made, said) = play(User::Caller, "4000", false);
    assert!(made.len() > 3, "{made:?}: {said}");
}

/// The names that games in a directory have made or changed, and what the players say.
fn play(user: User, rounds: &str, inside: bool) -> (Vec<String>, String) {
    let own = tempfile::Builder::new().prefix("bailiwick-games").tempdir_in("/var/tmp").unwrap();
    let w = own.path().join("w");
    for name in [".git/objects", ".git/refs", ".git/hooks", "sub"] {
        std::fs::create_dir_all(w.join(name)).unwrap();
    }
    std::fs::write(w.join(".git/config"), CONFIG).unwrap();
    std::fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let program = own.path().join("races"); // a name that stays executable
    std::fs::copy(compiled("games", include_str!("games.c")), &program).unwrap();
    let command = own.path().join("bailiwick");
    std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &command).unwrap();
    super::world::open_to_all(own.path(), user);
    let seen = Watched::new(&w);
    let mut line = if inside { as_user(user, &command) } else { as_user(user, &program) };
    if inside {
        line.args(["run", "--no-journal", "--cap", &format!("fs:read,write:{}", w.display()), "--"]);
        line.arg(&program);
    }
    let ended = line.arg(&w).args([rounds, "7"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{:?}: {said}", ended.status);
    let mut made = seen.appeared();
    made.sort();
    made.dedup();
    const NEVER: [&str; 7] = [
        ".mcp.json",
        ".envrc",
        ".vscode/tasks.json",
        ".git/commondir",
        ".git/hooks/pre-commit",
        ".git/modules/n/config",
        "sub/.git",
    ];
    let is_there = |name: &&str| w.join(name).symlink_metadata().is_ok();
    made.extend(NEVER.iter().filter(|name| is_there(name)).map(|name| (*name).to_owned()));
    if std::fs::read_to_string(w.join(".git/config")).ok().as_deref() != Some(CONFIG) {
        made.push(".git/config has changed".to_owned());
    }
    let parts = ["HEAD", "objects", "refs"].map(|part| w.join("sub").join(part));
    if parts.iter().all(|part| part.symlink_metadata().is_ok()) {
        made.push("sub is a repository".to_owned());
    }
    (made, said)
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
    let seen = Watched::new(&w);
    let started: Vec<_> = (0..sandboxes)
        .map(|_| {
            let mut line = as_user(user, &command);
            line.args(["run", "--no-journal", "--cap", &format!("fs:read,write:{}", w.display()), "--"]);
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
        assert_eq!(seen.appeared(), [""; 0], "was there for a moment");
    }
}

/// A directory and the repository in it, watched.
struct Watched {
    events: std::os::fd::OwnedFd,
    /// Which watch is which directory's, in the order of [`PROTECTED`].
    watches: [i32; 2],
}

impl Watched {
    fn new(w: &Path) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let watch =
            |path| inotify::add_watch(&events, path, WatchFlags::CREATE | WatchFlags::MOVED_TO).unwrap();
        let watches = [watch(w.to_path_buf()), watch(w.join(".git"))];
        Self { events, watches }
    }

    /// The protected names that appeared meanwhile. Events that were lost in between do not matter: races are many.
    fn appeared(&self) -> Vec<String> {
        let mut room = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut room);
        let mut names = Vec::new();
        while let Ok(event) = events.next() {
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let mut protected = self.watches.iter().zip(PROTECTED).filter(|(watch, _)| **watch == event.wd());
            if protected.any(|(_, names)| names.contains(&&*name)) {
                names.push(name);
            }
        }
        names
    }
}
