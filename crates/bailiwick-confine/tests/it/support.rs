//! Running a script in a sandbox and hearing what it says.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use bailiwick_confine::{Command, Confined, Exit, Options, Prepared, Refusal, Stdio};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

/// What a script said and how it ended.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) exit: Exit,
}

impl Said {
    /// What it said, if it ended well.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.exit, Exit::Code(0), "{}", self.text);
        self.text
    }

    /// What it said, if it did not.
    pub(crate) fn refused(self) -> String {
        assert_ne!(self.exit, Exit::Code(0), "was not refused: {}", self.text);
        self.text
    }
}

pub(crate) fn plan(capabilities: &[&str]) -> Plan {
    let set = CapabilitySet::new(capabilities.iter().copied()).unwrap();
    Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap()
}

/// Prepares a command on a pipe.
pub(crate) fn prepare(
    capabilities: &[&str],
    command: Command,
    options: Options,
) -> Result<(Prepared, std::io::PipeReader), Refusal> {
    let (reader, writer) = std::io::pipe().unwrap();
    let stdin = std::fs::File::open("/dev/null").unwrap().into();
    let stdio =
        Stdio::Descriptors { stdin, stdout: writer.try_clone().unwrap().into(), stderr: writer.into() };
    Prepared::new(&plan(capabilities), Command { stdio, ..command }, options)
        .map(|prepared| (prepared, reader))
}

/// Starts a command and leaves it running.
pub(crate) fn start(capabilities: &[&str], command: Command) -> (Confined, std::io::PipeReader) {
    let (prepared, reader) =
        prepare(capabilities, command, Options::default()).unwrap_or_else(|r| panic!("{r}"));
    (prepared.spawn().unwrap_or_else(|fault| panic!("{fault}")), reader)
}

pub(crate) fn run_with(capabilities: &[&str], command: Command, options: Options) -> Said {
    said(capabilities, command, options).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The same, where the plan may be refused.
pub(crate) fn said(capabilities: &[&str], command: Command, options: Options) -> Result<Said, Refusal> {
    let (prepared, mut reader) = prepare(capabilities, command, options)?;
    let mut confined = prepared.spawn().unwrap_or_else(|fault| panic!("{fault}"));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    Ok(Said { text, exit: confined.wait().unwrap() })
}

/// A shell script with the programs that scripts use.
pub(crate) fn script(text: &str, cwd: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args = vec!["-c".into(), text.into()];
    command.cwd = Some(cwd.to_owned());
    command
}

const TOOLS: [&str; 12] =
    ["cat", "ls", "mv", "rm", "mkdir", "cp", "touch", "ln", "grep", "sleep", "chmod", "head"];

/// Runs a shell script that may also start the usual tools.
pub(crate) fn sh(capabilities: &[&str], text: &str, cwd: &Path) -> Said {
    let tools: Vec<String> = TOOLS.iter().map(|tool| format!("exec:spawn:{tool}")).collect();
    let all: Vec<&str> = capabilities.iter().copied().chain(tools.iter().map(String::as_str)).collect();
    run_with(&all, script(text, cwd), Options::default())
}

/// A directory of this test's own, under its real name.
pub(crate) fn directory() -> (tempfile::TempDir, std::path::PathBuf) {
    let own = tempfile::tempdir().unwrap();
    let path = own.path().canonicalize().unwrap();
    (own, path)
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
