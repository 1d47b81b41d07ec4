//! `bailiwick run` as a person or a script uses it, and what is left when it is killed.

mod dry_run;
mod ends;
mod git_names;
mod hints;
mod jobs;
mod killed;
mod layer_refused;
mod learned;
mod leash;
mod limits;
mod lost;
mod passes;
mod recorded;
mod terminal;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A directory outside `/tmp`, of which the sandbox has its own.
fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("bailiwick-run").tempdir_in("/var/tmp").expect("a directory")
}

/// `bailiwick run` with these capabilities and this script.
fn script(caps: &[&str], options: &[&str], text: &str) -> Command {
    let program = bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
    let mut command = Command::new(program);
    command.arg("run").args(unrecorded(options)).args(options).stdin(Stdio::null());
    for cap in caps {
        command.args(["--cap", cap]);
    }
    command.args(["--", "/bin/sh", "-c", text]);
    command
}

/// What leaves the caller's own journal alone, unless the options say where to record.
pub(crate) fn unrecorded(options: &[&str]) -> Option<&'static str> {
    let says = |option: &&str| option.starts_with("--journal") || option.starts_with("--unconfined");
    (!options.iter().any(says)).then_some("--no-journal")
}

/// What came of a script.
fn sh(caps: &[&str], options: &[&str], text: &str) -> Output {
    script(caps, options, text).output().expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Everything below a directory: what it is, its mode, and what a file holds or a link says.
pub(crate) fn tree_of(dir: &Path) -> std::collections::BTreeMap<std::path::PathBuf, String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        let holds = if about.is_dir() {
            found.extend(tree_of(&path));
            "directory".to_owned()
        } else if about.is_symlink() {
            format!("{:?}", std::fs::read_link(&path).unwrap())
        } else {
            format!("{:?}", std::fs::read(&path).unwrap_or_default())
        };
        found.insert(path, format!("{:o} {holds}", about.permissions().mode()));
    }
    found
}

/// Whether something comes true within a while.
pub(crate) fn eventually(mut true_now: impl FnMut() -> bool) -> bool {
    (0..600).any(|_| {
        let done = true_now();
        if !done {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        done
    })
}

/// The processes whose command line has this word.
pub(crate) fn processes(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let line = |dir: &Path| std::fs::read(dir.join("cmdline")).unwrap_or_default();
    all.map(|entry| entry.path())
        .map(|dir| String::from_utf8_lossy(&line(&dir)).replace('\0', " "))
        .filter(|line| line.contains(word))
        .collect()
}
