//! Running a project's scripts: a fixed directory, its facts on stdin and in the environment, bounded in time and
//! output, and gone with everything it started.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::injected::SourceKind;

/// How long a script may run.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);
/// How much of its output is kept, of each kind.
const MAX_OUTPUT: usize = 64 * 1024;
const CUT: &str = "\n[output cut]";
/// The prefixes that variables are given with.
const PREFIXES: [&str; 2] = ["BAILIWICK_", "OCTOMIND_"];

/// One script to run.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) kind: SourceKind,
    /// Relative to the working directory.
    pub(crate) path: String,
    /// What it reads.
    pub(crate) input: Value,
    /// Its facts, without prefix.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) timeout: Duration,
}

/// What a script did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) ended: Ended,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this code; a signal counts as 128 and its number.
    Code(i32),
    /// It ran out of time and was killed.
    TimedOut,
    /// It could not be started.
    NotStarted(String),
}

impl Ran {
    /// What is injected: the output of a script that ended by itself with something to say.
    pub(crate) fn says(&self) -> Option<&str> {
        let text = self.stdout.trim();
        (matches!(self.ended, Ended::Code(code) if code != 0) && !text.is_empty()).then_some(text)
    }
}

/// Runs scripts side by side, in the order given.
pub(crate) fn run_all(workdir: &Path, scripts: &[Script]) -> Vec<Ran> {
    std::thread::scope(|scope| {
        let running: Vec<_> = scripts.iter().map(|script| scope.spawn(|| run(workdir, script))).collect();
        let failed = || Ran {
            ended: Ended::NotStarted("its thread failed".to_owned()),
            stdout: String::new(),
            stderr: String::new(),
        };
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    })
}

fn run(workdir: &Path, script: &Script) -> Ran {
    let mut command = Command::new(workdir.join(&script.path));
    command.current_dir(workdir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for prefix in PREFIXES {
        let facts = script.facts.iter().map(|(name, value)| (format!("{prefix}{name}"), value));
        command.envs(facts).env(format!("{prefix}WORKDIR"), workdir);
    }
    match group::spawn(&mut command) {
        Ok(child) => attend(child, &script.input.to_string(), script.timeout),
        Err(error) => {
            Ran { ended: Ended::NotStarted(error.to_string()), stdout: String::new(), stderr: String::new() }
        }
    }
}

/// Feeds a script, gathers what it prints, and ends it with its group when it is over.
fn attend(mut child: Child, input: &str, timeout: Duration) -> Ran {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A script that does not read its input is no error.
            drop(stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        });
        let out = scope.spawn(|| gather(stdout));
        let err = scope.spawn(|| gather(stderr));
        let ended = wait(&mut child, timeout);
        end_group(&mut child);
        let text = |bytes: std::thread::Result<String>| bytes.unwrap_or_default();
        Ran { ended, stdout: text(out.join()), stderr: text(err.join()) }
    })
}

fn wait(child: &mut Child, timeout: Duration) -> Ended {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return Ended::Code(status.code().unwrap_or_else(|| 128 + group::signal(status)));
            }
            Ok(None) if started.elapsed() >= timeout => return Ended::TimedOut,
            Ok(None) => std::thread::sleep(pause),
            Err(error) => return Ended::NotStarted(error.to_string()),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Kills whatever is left of the script's group, itself included.
fn end_group(child: &mut Child) {
    group::kill(child);
    drop(child.wait());
}

fn gather(from: Option<impl Read>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut kept = Vec::new();
    let mut buffer = [0_u8; 8192];
    let mut cut = false;
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        let room = MAX_OUTPUT.saturating_sub(kept.len());
        cut |= count > room;
        kept.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&kept).into_owned();
    if cut { text + CUT } else { text }
}

/// Whether a person has marked the file as a program.
pub(crate) fn is_executable(found: &std::fs::Metadata) -> bool {
    group::is_executable(found)
}

/// A script and everything it starts, as one group of processes.
#[cfg(unix)]
mod group {
    use super::{Child, Command};
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

    pub(super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
        command.process_group(0).spawn()
    }

    pub(super) fn kill(child: &Child) {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It is gone already if nothing was left running.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    pub(super) fn signal(status: std::process::ExitStatus) -> i32 {
        status.signal().unwrap_or_default()
    }

    pub(super) fn is_executable(found: &std::fs::Metadata) -> bool {
        found.permissions().mode() & 0o111 != 0
    }
}

/// Elsewhere what a script leaves running could not be ended, so none is started.
#[cfg(not(unix))]
mod group {
    use super::{Child, Command};

    pub(super) fn spawn(_: &mut Command) -> std::io::Result<Child> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "scripts of guardrails run on Unix only"))
    }

    pub(super) fn kill(_: &Child) {}

    pub(super) fn signal(_: std::process::ExitStatus) -> i32 {
        0
    }

    pub(super) fn is_executable(_: &std::fs::Metadata) -> bool {
        true
    }
}
