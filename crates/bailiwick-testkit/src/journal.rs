//! A directory with a journal in it.

use bailiwick_journal::format::{Event, Record, RecordKind, SessionId, Tamper};
use bailiwick_journal::{Durability, Expected, Filter, Journal, Options, Report, records, verify};
use std::path::{Path, PathBuf};

/// A directory for a journal, removed when dropped.
#[derive(Debug)]
pub struct Dir {
    temp: tempfile::TempDir,
}

impl Default for Dir {
    fn default() -> Self {
        Self::new()
    }
}

impl Dir {
    /// An empty one.
    pub fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    /// Where the journal is.
    pub fn path(&self) -> PathBuf {
        self.temp.path().join("journal")
    }

    /// A file of the journal.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Opens a session's journal.
    pub fn open(&self, name: &str, options: Options) -> Journal {
        Journal::open(&self.path(), session(name), options).unwrap()
    }

    /// What verification finds.
    pub fn verify(&self) -> Report {
        verify(&self.path(), &Expected::default()).unwrap()
    }

    /// The problems as (file, line, what).
    pub fn problems(&self, expected: &Expected) -> Vec<(String, usize, Tamper)> {
        let report = verify(&self.path(), expected).unwrap();
        report
            .problems()
            .map(|p| (p.file.file_name().unwrap().to_str().unwrap().to_string(), p.line, p.tamper))
            .collect()
    }

    /// All records.
    pub fn records(&self, filter: Filter) -> Vec<Record> {
        all_records(&self.path(), filter)
    }
}

/// All records of a journal.
pub fn all_records(path: &Path, filter: Filter) -> Vec<Record> {
    records(path, filter).unwrap().map(|found| found.unwrap().unwrap()).collect()
}

/// A session's name.
pub fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// Some event.
pub fn event(what: impl Into<String>) -> Event {
    Event::new(RecordKind::ToolCalled).with_tool("shell").with_reason(what.into())
}

/// Every event is on disk when `append` comes back.
pub fn fsync() -> Options {
    Options { durability: Durability::Fsync, ..Options::default() }
}
