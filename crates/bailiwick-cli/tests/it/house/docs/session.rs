//! Runs the commands of a document as a reader would: one directory, one shell a block.
//!
//! The environment is empty but for a PATH, a HOME of its own and a plain terminal, so that the reader's and the
//! tester's machines look alike. A block that does not end within two minutes is stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::block::Step;
use crate::house::repo;

const PATIENCE: Duration = Duration::from_secs(120);

/// Separates the commands of a block in its output; nothing else prints it.
const MARK: &str = "\u{1e}step-exited:";

/// A document's working directory.
pub(super) struct Session {
    scratch: TempDir,
    path: std::ffi::OsString,
}

/// What one command did.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) output: String,
    /// `None` when the shell ended before it could tell.
    pub(super) exit: Option<i32>,
}

impl Session {
    /// A fresh directory with a copy of `examples`, and `binary`'s directory first on the PATH.
    pub(super) fn open(binary: &Path, examples: &Path) -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory can be made");
        for directory in ["work", "home"] {
            std::fs::create_dir(scratch.path().join(directory)).unwrap();
        }
        let session = Self { path: path_with(binary), scratch };
        copy(examples, &session.work().join("examples"));
        session
    }

    /// The same with a small journal in `journal`.
    pub(super) fn with_journal(self) -> Self {
        crate::journal::write(&self.work().join("journal"), "demo");
        self
    }

    /// Runs the commands of one block in one shell, so that `cd` and variables carry over.
    pub(super) fn run(&self, steps: &[Step]) -> Vec<Outcome> {
        let log = self.scratch.path().join("log");
        let mut shell = self.start(&script(steps), &log);
        wait(&mut shell);
        let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
        outcomes(&text, steps.len())
    }

    fn start(&self, script: &str, log: &Path) -> Child {
        let out = File::create(log).unwrap();
        Command::new("bash")
            .args(["--noprofile", "--norc", "-c", script])
            .current_dir(self.work())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.scratch.path().join("home"))
            .envs([("LANG", "C.UTF-8"), ("TERM", "dumb"), ("NO_COLOR", "1")])
            .stdin(Stdio::null())
            .stderr(out.try_clone().unwrap())
            .stdout(out)
            .spawn()
            .expect("bash starts")
    }

    fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }
}

fn path_with(binary: &Path) -> std::ffi::OsString {
    let first = binary.parent().map(Path::to_path_buf);
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(first.into_iter().chain(std::env::split_paths(&inherited)))
        .expect("PATH can be joined")
}

fn copy(from: &Path, to: &Path) {
    for file in repo::files_below(from) {
        let target = to.join(file.strip_prefix(from).expect("the walk stays below"));
        std::fs::create_dir_all(target.parent().expect("a file has a directory")).unwrap();
        std::fs::copy(&file, &target).unwrap();
    }
}

fn script(steps: &[Step]) -> String {
    let one = |step: &Step| format!("{}\nprintf '\\n{MARK}%d\\n' \"$?\"\n", step.command);
    steps.iter().map(one).collect()
}

fn wait(shell: &mut Child) {
    let started = Instant::now();
    while shell.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            shell.kill().unwrap();
            shell.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn outcomes(log: &str, steps: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut output = String::new();
    for line in log.lines() {
        if let Some(code) = line.strip_prefix(MARK) {
            outcomes.push(Outcome { output: std::mem::take(&mut output), exit: code.parse().ok() });
        } else {
            output = output + line + "\n";
        }
    }
    if outcomes.len() < steps {
        outcomes.push(Outcome { output, exit: None });
    }
    outcomes
}
