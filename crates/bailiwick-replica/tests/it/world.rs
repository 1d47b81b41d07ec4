//! A machine with a directory of its own, and what it does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_remote::{Client, Resolver};
use bailiwick_replica::{ClientMaker, CopyStore, LogCopy, LogFinding, Refreshed, refresh};
use bailiwick_testkit::fleet::enrolment;
use tempfile::TempDir;

/// A machine.
pub(crate) struct Machine {
    pub(crate) state: TempDir,
    pub(crate) enrolment: Enrolment,
}

impl Machine {
    pub(crate) fn new(logs: &[&str]) -> Self {
        Self { state: tempfile::tempdir().unwrap(), enrolment: enrolment(logs) }
    }

    pub(crate) fn store(&self) -> CopyStore {
        CopyStore::new(self.state.path(), &self.enrolment)
    }

    /// Looks at the log once.
    pub(crate) fn look(&self) -> Refreshed {
        refresh(&self.store(), &client()).unwrap().unwrap()
    }

    pub(crate) fn copy(&self) -> Option<LogCopy> {
        self.store().load().unwrap()
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.copy().map(|copy| copy.head().checkpoint.size)
    }

    pub(crate) fn findings(&self) -> Vec<LogFinding> {
        self.store().findings()
    }

    /// A file of the copy.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let mut logs = std::fs::read_dir(self.state.path().join("fleet")).unwrap();
        logs.next().unwrap().unwrap().path().join(name)
    }
}

pub(crate) fn client() -> ClientMaker {
    Arc::new(|| Client::new(Resolver::default(), BTreeMap::new()).map_err(|why| why.to_string()))
}
