//! What the tests share: a directory with a journal in it, and children that are this binary again.
use bailiwick_guard::journal::{Durability, Expected, Filter, Journal, Options, Report, records, verify};
use bailiwick_policy::journal::{Event, Kind, Record, SessionId, Tamper};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Dir {
    temp: tempfile::TempDir,
}

impl Dir {
    pub(crate) fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.temp.path().join("journal")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn open(&self, name: &str, options: Options) -> Journal {
        Journal::open(&self.path(), session(name), options).unwrap()
    }

    pub(crate) fn verify(&self) -> Report {
        verify(&self.path(), &Expected::default()).unwrap()
    }

    /// The problems as (file, line, what).
    pub(crate) fn problems(&self, expected: &Expected) -> Vec<(String, usize, Tamper)> {
        let report = verify(&self.path(), expected).unwrap();
        report
            .problems()
            .map(|p| (p.file.file_name().unwrap().to_str().unwrap().to_string(), p.line, p.tamper))
            .collect()
    }

    pub(crate) fn records(&self, filter: Filter) -> Vec<Record> {
        all_records(&self.path(), filter)
    }
}

pub(crate) fn all_records(path: &Path, filter: Filter) -> Vec<Record> {
    records(path, filter).unwrap().map(|found| found.unwrap().unwrap()).collect()
}

pub(crate) fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

pub(crate) fn event(what: impl Into<String>) -> Event {
    Event::new(Kind::ToolCalled).with_tool("shell").with_reason(what.into())
}

pub(crate) fn fsync() -> Options {
    Options { durability: Durability::Fsync, ..Options::default() }
}

/// Set for children only: their tests do nothing in an ordinary run.
const CHILD: &str = "BAILIWICK_TEST_CHILD";

/// Starts this binary again with only the test `name`; it reads its arguments from standard input.
pub(crate) fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

pub(crate) fn start(mut command: Command, input: &str) -> Child {
    use std::io::Write;
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

/// The lines that a parent wrote; none in an ordinary run.
pub(crate) fn input() -> Vec<String> {
    let is_child = std::env::var_os(CHILD).is_some();
    let text = if is_child { std::io::read_to_string(std::io::stdin()).unwrap() } else { String::new() };
    text.lines().map(Into::into).collect()
}

/// Says why a test did not run, or fails when all are required.
pub(crate) fn skip(why: &str) {
    let is_required = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    assert!(!is_required, "required, but {why}");
    eprintln!("skipped: {why}");
}
