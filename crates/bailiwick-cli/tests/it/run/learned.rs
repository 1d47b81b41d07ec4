//! `learn` of programs that are no servers: hostile ones change nothing, reach no host, and widen nothing.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bailiwick_testkit::{reachable_program, skip};

use super::{directory, err, out, tree_of};

/// A home with a secret, and a project in it.
struct Place {
    held: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let held = directory();
        for (name, text) in [
            ("home/.ssh/id_rsa", "hush"),
            ("home/w/.env", "hush"),
            ("home/w/a.txt", "a"),
            ("home/notes", "confidential"),
        ] {
            let path = held.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { held }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.held.path().canonicalize().unwrap().join(name)
    }

    fn learn(&self, options: &[&str], words: &[&str]) -> Output {
        let mut command = Command::new(reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        command.args(["learn", "--no-journal"]).args(options).arg("--").args(words);
        command.current_dir(self.path("home/w")).env("HOME", self.path("home")).stdin(Stdio::null());
        command.output().unwrap()
    }
}

fn has(program: &str) -> bool {
    Path::new("/usr/bin").join(program).exists()
}

#[test]
fn a_hostile_program_changes_nothing_and_is_granted_nothing() {
    if !has("python3") {
        return skip("no python3 here");
    }
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let home = place.path("home").display().to_string();
    let text = format!(
        "import os, socket, glob\n\
         def attempt(act):\n\
         \x20   try: return act()\n\
         \x20   except Exception as why: return why\n\
         for path in ['{home}/.ssh/id_rsa', '{home}/w/.env', '{home}/notes', '/etc/shadow', '/root/.bashrc']:\n\
         \x20   print(path, attempt(lambda: open(path).read()))\n\
         for path in ['{home}/w/a.txt', '{home}/w/new', '{home}/.bashrc', '{home}/w/../evil', '/usr/lib/evil', '/opt/evil']:\n\
         \x20   attempt(lambda: open(path, 'w').write('evil'))\n\
         attempt(lambda: os.symlink('{home}', '{home}/w/link'))\n\
         attempt(lambda: open('{home}/w/link/through', 'w').write('evil'))\n\
         attempt(lambda: os.chmod('{home}/w/a.txt', 0o777))\n\
         attempt(lambda: os.rename('{home}/w/a.txt', '{home}/w/b.txt'))\n\
         attempt(lambda: os.rmdir('{home}/.ssh'))\n\
         print(attempt(lambda: socket.create_connection(('127.0.0.1', {port}), 2)))\n\
         print(attempt(lambda: socket.create_connection(('evil.example', 443), 2)))\n"
    );
    let before = tree_of(place.held.path());
    let done = place.learn(&[], &["python3", "-c", &text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert_eq!(tree_of(place.held.path()), before, "nothing on the host changes");
    assert!(!out(&done).contains("hush") && !out(&done).contains("confidential"), "{}", out(&done));
    assert!(listener.accept().is_err(), "no host was reached");
    assert!(!Path::new("/opt/evil").exists() && !Path::new("/usr/lib/evil").exists());
    let manifest: Vec<String> = out(&done).lines().map(str::to_owned).collect();
    let granted: Vec<&String> = manifest.iter().filter(|line| line.trim_start().starts_with('"')).collect();
    let secrets = ["id_rsa", ".env", "shadow", ".bashrc", "notes", "evil.example", "~\""];
    for secret in secrets {
        assert!(!granted.iter().any(|line| line.contains(secret)), "{secret}: {granted:?}");
    }
    for asked in ["~/.ssh/id_rsa", "$WORKSPACE/.env", "~/notes", "evil.example"] {
        assert!(
            manifest.iter().any(|line| line.starts_with('#') && line.contains(asked)),
            "{asked}: {}",
            out(&done)
        );
    }
}

#[test]
fn learning_changes_nothing_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user("run::learned::", &[env!("CARGO_BIN_EXE_bailiwick")]);
}

#[test]
fn names_that_mean_something_in_a_manifest_become_no_lines() {
    if !has("python3") {
        return skip("no python3 here");
    }
    let place = Place::new();
    let text = "import os\n\
        for name in ['*', '**', '[a-z]', '{a,b}', '$HOME', '$WORKSPACE', '~', 'x\",\\n\"fs:read:/', 'y\\n# ? z', '\\u202e.env', ' a', 'a\\\\b', '..x']:\n\
        \x20   os.mkdir('d-' + name) if '/' not in name else None\n\
        \x20   open(('d-' + name if '/' not in name else '.') + '/' + name.replace('/', '_'), 'w').close()\n\
        \x20   os.makedirs(name.replace('/', '_'), exist_ok=True)\n";
    let done = place.learn(&["--net", "deny", "--out", "../m.toml"], &["python3", "-c", text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let text = std::fs::read_to_string(place.path("home/m.toml")).unwrap();
    let granted: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with('"')).collect();
    // Everything was made in the current directory, so that is the one line there can be.
    let odd = |line: &&&str| {
        line.contains(['*', '{', '~', '\\', '\u{202e}']) || line.contains("$HOME") || line.contains(":/\"")
    };
    assert_eq!(granted.iter().filter(odd).count(), 0, "{text}");
    let checked = Command::new(reachable_program(env!("CARGO_BIN_EXE_bailiwick")))
        .args(["check", "--set", "WORKSPACE=/w"])
        .arg(place.path("home/m.toml"))
        .output()
        .unwrap();
    assert!(
        matches!(checked.status.code(), Some(0 | 1)),
        "it is a manifest: {}{}",
        out(&checked),
        err(&checked)
    );
}

#[test]
fn nothing_that_it_left_behind_lives_on_and_its_sockets_are_recorded() {
    if !has("python3") {
        return skip("no python3 here");
    }
    let place = Place::new();
    let mark = format!("86{}", std::process::id());
    let text = format!(
        "import os, socket, subprocess\n\
         subprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" TERM HUP INT; (sleep {mark} &) ; sleep {mark}'])\n\
         try: socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')\n\
         except OSError as why: print('refused', why)\n"
    );
    let done = place.learn(&["--net", "deny"], &["python3", "-c", &text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(super::eventually(|| super::processes(&mark).is_empty()), "{:?}", super::processes(&mark));
    assert!(out(&done).contains("refused [Errno 1]"), "{}", out(&done));
    assert!(out(&done).contains("# ? it asked for a Unix socket"), "{}", out(&done));
}

#[test]
fn a_program_that_touches_much_stays_bounded_and_asks() {
    if !has("python3") {
        return skip("no python3 here");
    }
    let place = Place::new();
    let text = "import os\nfor d in range(5000):\n  os.mkdir(f'd{d}')\n  for f in range(2): open(f'd{d}/f{f}', 'w').close()\n";
    let done = place.learn(&["--timeout", "300s"], &["python3", "-c", text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let granted = out(&done).lines().filter(|line| line.trim_start().starts_with("\"fs:")).count();
    assert!(granted <= 24, "{}", out(&done));
    assert_eq!(std::fs::read_dir(place.path("home/w")).unwrap().count(), 2, "nothing was made on the host");
}

#[test]
fn every_one_of_a_thousand_short_processes_is_seen() {
    let place = Place::new();
    for at in 0..1000 {
        std::fs::create_dir(place.path("home/w").join(format!("d{at}"))).unwrap();
    }
    // Each makes a file in a directory of its own: the question about them says how many were seen.
    let text = "i=0; while [ $i -lt 1000 ]; do { : > d$i/f; } & i=$((i+1)); done; wait";
    let done = place.learn(&["--timeout", "300s", "--out", "m.toml"], &["sh", "-c", text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let manifest = std::fs::read_to_string(place.path("home/w/m.toml")).unwrap();
    assert!(!manifest.contains("INCOMPLETE"), "{manifest}");
    assert!(manifest.contains("1000 places in one directory below it were touched"), "{manifest}");
    let listed = err(&done).lines().filter(|line| line.starts_with("A ")).count();
    assert_eq!(listed, 1000, "{}", err(&done));
}

#[test]
fn variables_that_a_native_program_reads_are_named_and_never_with_values() {
    let place = Place::new();
    let learn = |options: &[&str]| {
        let mut command = Command::new(reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        command.args(["learn", "--no-journal", "--net", "deny"]).args(options).args(["--", "ls"]);
        command.current_dir(place.path("home/w")).env("HOME", place.path("home")).stdin(Stdio::null());
        command.env("QUOTING_STYLE", "literal").env("UNREAD_ONE", "hush-too").output().unwrap()
    };
    let asked = learn(&[]);
    assert_eq!(asked.status.code(), Some(0), "{}", err(&asked));
    let question = "# ? it reads this variable (observed); `--env QUOTING_STYLE` hands yours over";
    assert!(out(&asked).contains(question) && !out(&asked).contains("UNREAD_ONE"), "{}", out(&asked));
    let given = learn(&["--env", "QUOTING_STYLE", "--env", "UNREAD_ONE"]);
    assert!(out(&given).contains("observed to be read: by itself; first QUOTING_STYLE"), "{}", out(&given));
    assert!(out(&given).contains("assumed to be read: by itself; first UNREAD_ONE"), "{}", out(&given));
    for done in [&asked, &given] {
        let all = out(done) + &err(done);
        assert!(
            !all.contains("literal") && !all.contains("hush-too") && !all.contains("bailiwick-getenv"),
            "{all}"
        );
    }
}

#[test]
fn making_what_is_there_grants_nothing_around_it() {
    let place = Place::new();
    std::fs::create_dir(place.path("home/w/one")).unwrap();
    let text = "mkdir -p one; mkdir one; ln -s x a.txt; : > one/x; set -C; : > a.txt; true";
    let done = place.learn(&["--net", "deny"], &["sh", "-c", text]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let granted: Vec<String> = out(&done)
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| line.starts_with("\"fs:read,write"))
        .collect();
    assert_eq!(granted, ["\"fs:read,write:$WORKSPACE/one\","], "{}", out(&done));
}

#[test]
fn an_update_adds_what_is_new_and_nothing_else() {
    let place = Place::new();
    let made = |names: &[&str]| names.iter().map(|name| format!(": > {name}; ")).collect::<String>();
    for dir in ["one", "two"] {
        std::fs::create_dir(place.path("home/w").join(dir)).unwrap();
    }
    let first = made(&["one/x"]);
    let done = place.learn(&["--out", "../m.toml"], &["sh", "-c", &first]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let done = place.learn(&["--update", "../m.toml"], &["sh", "-c", &made(&["one/x"])]);
    assert!(err(&done).contains("0 new lines"), "{}", err(&done));
    let done = place.learn(&["--update", "../m.toml"], &["sh", "-c", &made(&["one/x", "two/y"])]);
    let new: Vec<String> =
        err(&done).lines().filter(|line| line.starts_with("+ ")).map(str::to_owned).collect();
    assert_eq!(new, ["+ fs:read,write:$WORKSPACE/two"], "{}", err(&done));
    let text = std::fs::read_to_string(place.path("home/m.toml")).unwrap();
    assert!(text.contains("$WORKSPACE/one") && text.contains("$WORKSPACE/two"), "{text}");
}

#[test]
fn an_audit_says_what_is_not_declared_and_what_is_not_used() {
    let place = Place::new();
    let done = place.learn(&["--out", "../m.toml"], &["sh", "-c", "cat a.txt > b.txt"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let audit = |text: &str| {
        let mut command = Command::new(reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        command.arg("audit").arg(place.path("home/m.toml")).args(["--", "sh", "-c", text]);
        command.current_dir(place.path("home/w")).env("HOME", place.path("home")).stdin(Stdio::null());
        command.output().unwrap()
    };
    let same = audit("cat a.txt > b.txt");
    assert_eq!(same.status.code(), Some(0), "{}{}", out(&same), err(&same));
    std::fs::create_dir(place.path("home/w/more")).unwrap();
    let other = audit("head -n 1 a.txt > /dev/null");
    assert_eq!(other.status.code(), Some(1), "{}{}", out(&other), err(&other));
    let lines: Vec<String> =
        out(&other).lines().filter(|line| !line.contains("a.txt")).map(str::to_owned).collect();
    assert_eq!(
        lines[..2],
        ["+ exec:spawn:head  used and not declared", "- exec:spawn:cat  declared and not used"]
    );
}
