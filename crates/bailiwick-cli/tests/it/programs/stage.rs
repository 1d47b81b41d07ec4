//! A project, a home and a server for one user; every run starts from the same files.

use std::cell::OnceCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::rows::{Expected, Row};
use super::services::{self, Service};
use super::tools;
use crate::escape::{User, as_user};

/// What a project and a home hold at first.
const FILES: &[(&str, &str)] = &[
    ("w/a.txt", "alpha\n"),
    ("w/b.txt", "beta\n"),
    ("w/names", "a.txt b.txt\n"),
    ("w/a.c", "#include <stdio.h>\nint main(void) { return puts(\"hi\") < 0; }\n"),
    ("w/a.rs", "fn main() { println!(\"hi\"); }\n"),
    ("w/Makefile", "all:\n\tcc -o made a.c\n"),
    ("w/CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(demo C)\nadd_executable(demo a.c)\n"),
    ("w/Main.java", "class Main { public static void main(String[] a) { System.out.println(6 * 7); } }\n"),
    ("w/test.js", "console.log('pass')\n"),
    ("w/package.json", "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node test.js\"}}\n"),
    ("w/app.py", "import json, hashlib\nprint(json.dumps(6 * 7))\n"),
    (
        "w/test_app.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(6 * 7, 42)\n",
    ),
    ("w/sum.test.js", "test('sum', () => expect(6 * 7).toBe(42))\n"),
    ("w/page.html", "<p id=p></p><script>p.textContent = 6 * 7</script>\n"),
    ("w/go.mod", "module demo\n\ngo 1.19\n"),
    ("w/main.go", "package main\n\nfunc main() { println(42) }\n"),
    (
        "w/pom.xml",
        "<project><modelVersion>4.0.0</modelVersion><groupId>demo</groupId><artifactId>app</artifactId>\
         <version>1</version><packaging>pom</packaging></project>\n",
    ),
    (
        "w/pyproject.toml",
        "[project]\nname = \"app\"\nversion = \"1.0.0\"\ndescription = \"a demo\"\nrequires-python = \">=3.9\"\n\
         readme = \"a.txt\"\nauthors = [{name = \"Anna\", email = \"anna@example.com\"}]\n",
    ),
    ("other/dep/package.json", "{\"name\":\"dep\",\"version\":\"1.0.0\"}\n"),
    ("w/change.patch", "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-beta\n+gamma\n"),
    (
        "home/.gitconfig",
        "[user]\n\tname = Anna\n\temail = anna@example.com\n[protocol \"file\"]\n\tallow = always\n",
    ),
];

/// The directories that every run starts with.
const DIRECTORIES: [&str; 4] = ["w", "out", "home", "other"];

/// What all stages of a test share: servers, and tools from the cache. Each is there when a row first names it.
#[derive(Default)]
pub(super) struct Host {
    pages: OnceCell<u16>,
    tls: OnceCell<Service>,
    database: OnceCell<Service>,
    redis: OnceCell<Service>,
    tools: OnceCell<Option<tempfile::TempDir>>,
}

impl Host {
    /// A text with the host's own places and ports filled in.
    fn fill(&self, mut text: String) -> String {
        let mut put = |name: &str, value: &dyn Fn() -> String| {
            if text.contains(name) {
                text = text.replace(name, &value());
            }
        };
        let tls = || self.tls.get_or_init(Service::tls);
        let database = || self.database.get_or_init(Service::database);
        put("{port}", &|| self.pages.get_or_init(services::pages).to_string());
        put("{tls}", &|| tls().port.to_string());
        put("{cert}", &|| tls().path().join("cert.pem").display().to_string());
        put("{pg}", &|| database().port.to_string());
        put("{sockets}", &|| database().path().display().to_string());
        put("{redis}", &|| self.redis.get_or_init(Service::redis).port.to_string());
        put("{tools}", &|| {
            let place = self.tools.get_or_init(tools::placed);
            place.as_ref().expect("looked for before").path().display().to_string()
        });
        text
    }
}

pub(super) struct Stage<'a> {
    host: &'a Host,
    dir: tempfile::TempDir,
    user: User,
}

/// What a run came to.
pub(super) struct Ran {
    pub(super) succeeded: bool,
    pub(super) code: Option<i32>,
    pub(super) text: String,
}

impl<'a> Stage<'a> {
    pub(super) fn new(host: &'a Host, user: User) -> Self {
        let dir =
            tempfile::Builder::new().prefix("bailiwick-programs").tempdir_in(services::open_place()).unwrap();
        let stage = Self { host, dir, user };
        for directory in DIRECTORIES {
            std::fs::create_dir(stage.path(directory)).unwrap();
        }
        for (name, text) in FILES {
            let path = stage.path(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for (directory, lines) in [
            ("w", "init -q -b main;add a.txt b.txt;commit -q -m one;branch topic"),
            ("other", "init -q -b main;commit -q --allow-empty -m other"),
        ] {
            lines.split(';').for_each(|line| stage.git(directory, line));
        }
        std::fs::write(stage.path("w/a.txt"), "alpha\nmore\n").unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), stage.path("bailiwick")).unwrap();
        if user == User::Plain {
            run_on_host(Command::new("chown").args(["-R", "65534:65534"]).arg(stage.dir.path()));
        }
        let first = stage.path("first");
        std::fs::create_dir(&first).unwrap();
        run_on_host(Command::new("cp").arg("-a").args(DIRECTORIES.map(|name| stage.path(name))).arg(&first));
        stage
    }

    fn git(&self, directory: &str, line: &str) {
        let mut command = Command::new("git");
        command.args(line.split(' ')).current_dir(self.path(directory)).env("HOME", self.path("home"));
        run_on_host(&mut command);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let text = DIRECTORIES.iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("{{{name}}}"), &self.path(name).display().to_string())
        });
        self.host.fill(text)
    }

    /// Runs a row with these grants, from the first files.
    pub(super) fn run(&self, row: &Row, grants: &[&str]) -> Ran {
        let grants: Vec<String> = grants.iter().map(|grant| self.fill(grant)).collect();
        self.run_with(row, &[], &grants)
    }

    /// The same with grants whose places are filled in already.
    pub(super) fn run_with(&self, row: &Row, options: &[&str], grants: &[String]) -> Ran {
        for directory in DIRECTORIES {
            std::fs::remove_dir_all(self.path(directory)).unwrap();
            let mut copy = Command::new("cp");
            run_on_host(copy.arg("-a").arg(self.path("first").join(directory)).arg(self.path("")));
        }
        let mut words = vec![self.path("bailiwick").display().to_string()];
        words.extend(["run", "--no-journal", "--timeout", "60s"].map(str::to_owned));
        words.extend(options.iter().map(|option| (*option).to_owned()));
        for grant in grants {
            words.extend(["--cap".to_owned(), grant.clone()]);
        }
        words.push("--".to_owned());
        words.extend(shlex::split(row.command).expect("words").iter().map(|word| self.fill(word)));
        let output = match row.keys {
            Some(keys) => self.type_keys(&words, keys),
            None => self.prepared(&words).stdin(Stdio::null()).output().unwrap(),
        };
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let worked = match row.expected {
            Expected::Text(text) => printed.contains(text),
            Expected::File(name) => Path::new(&self.fill(name)).symlink_metadata().is_ok(),
        };
        Ran {
            succeeded: output.status.success() && worked,
            code: output.status.code(),
            text: printed + &String::from_utf8_lossy(&output.stderr),
        }
    }

    fn prepared(&self, words: &[String]) -> Command {
        let (program, rest) = words.split_first().expect("a command");
        let mut command = as_user(self.user, program);
        command.args(rest).current_dir(self.path("w"));
        command
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TERM", "xterm");
        command
    }

    /// Runs a command on a terminal and types: `^X` is that control key, and every word waits for the one before.
    fn type_keys(&self, words: &[String], keys: &str) -> Output {
        let line = shlex::try_join(words.iter().map(String::as_str)).expect("no zero");
        let script = ["/usr/bin/script", "-qec", &line, "/dev/null"].map(str::to_owned);
        let mut command = self.prepared(&script);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut typing = child.stdin.take().expect("a pipe");
        for word in keys.split(' ') {
            std::thread::sleep(std::time::Duration::from_millis(700));
            let bytes = match word.strip_prefix('^') {
                Some(letter) => letter.bytes().map(|letter| letter & 0x1f).collect(),
                None => word.as_bytes().to_vec(),
            };
            let _ = typing.write_all(&bytes); // it may have ended
        }
        child.wait_with_output().unwrap()
    }
}

pub(super) fn run_on_host(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
