//! What governs a run and must stay out of the command's hands: its journal, its manifest and its report.
//!
//! The journal is never visible inside; the manifest and the report are never writable. All are opened before anything
//! starts. A link on the way to one of them that lies where the command may write is refused: the command could make
//! the next run use another file.

use std::path::{Path, PathBuf};

use bailiwick_confine::{Status, host};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;

use super::record::Record;
use crate::args::run::Run;
use crate::output::{Draft, Existing, Placed, real_path};
use crate::render::json;

/// Files that govern a run, by where they really lie.
#[derive(Debug, Default)]
pub(super) struct Governing {
    /// As they were named.
    named: Vec<PathBuf>,
    hidden: Vec<AbsPath>,
    locked: Vec<AbsPath>,
}

impl Governing {
    /// Finds the files that the command line names.
    ///
    /// # Errors
    /// The one that cannot be looked at.
    pub(super) fn of(args: &Run) -> Result<Self, String> {
        let mut all = Self::default();
        if let Some(Some(dir)) = &args.journal {
            let real = all.take(dir)?;
            all.hidden.push(real);
        }
        let manifest = args.manifest.as_deref().filter(|path| *path != Path::new("-"));
        for file in manifest.into_iter().chain(args.report.as_deref()) {
            let real = all.take(file)?;
            all.locked.push(real);
        }
        Ok(all)
    }

    fn take(&mut self, path: &Path) -> Result<AbsPath, String> {
        let real =
            real_path(path, &[]).map_err(|fault| format!("cannot look at `{}`: {fault}", path.display()))?;
        self.named.push(path.to_owned());
        let clean = real.to_str().and_then(|text| AbsPath::new(text).ok());
        clean.ok_or_else(|| format!("`{}` is not a path in UTF-8", real.display()))
    }

    /// The same host, where these files govern the sandbox.
    pub(super) fn on(&self, facts: HostFacts) -> HostFacts {
        let facts = self.hidden.iter().cloned().fold(facts, host::with_own);
        self.locked.iter().cloned().fold(facts, host::with_locked)
    }

    /// Whether opening makes files that were not there when the host was looked at.
    pub(super) fn is_made(args: &Run) -> bool {
        args.journal.is_some() || args.report.is_some()
    }
}

/// What governs a run, opened.
pub(super) struct Leash {
    pub(super) record: Record,
    report: Option<Placed>,
}

impl Leash {
    /// Opens the journal and makes the report, still empty.
    ///
    /// # Errors
    /// Why there is no journal or no report. Nothing may be started then.
    pub(super) fn open(args: &Run, governing: &Governing, plan: &Plan) -> anyhow::Result<Self> {
        let writable = writable(plan);
        for path in &governing.named {
            real_path(path, &writable)?;
        }
        let dir = args.journal.as_ref().map(|_| governing.hidden.first().map(|dir| dir.to_string().into()));
        let record = dir.map_or_else(|| Ok(Record::none()), Record::open_in)?;
        let report = args.report.as_deref().map(|path| report(path, &writable)).transpose()?;
        Ok(Self { record, report })
    }

    /// Records and reports what will be held, before it is.
    ///
    /// # Errors
    /// Why it cannot be recorded. Nothing may be started then.
    pub(super) fn started(&mut self, plan: &Plan, status: &Status) -> anyhow::Result<()> {
        self.record.started(plan, &status.coverage)?;
        match &mut self.report {
            Some(report) => Ok(report.write_all(&json::document(&status.to_json()))?),
            None => Ok(()),
        }
    }

    /// Nothing was started: the journal says so, and there is nothing to report.
    pub(super) fn unused(self, is_recorded: bool) {
        if is_recorded {
            // The refusal itself is the answer.
            drop(self.record.ended("it did not start"));
        }
        if let Some(report) = self.report {
            report.withdraw();
        }
    }
}

fn report(path: &Path, writable: &[PathBuf]) -> anyhow::Result<Placed> {
    let placed = Draft::begin(path, Existing::Replace, writable).and_then(Draft::finish);
    placed.map_err(|fault| anyhow::anyhow!("cannot write the report `{}`: {fault}", path.display()))
}

/// Where the command may write, links followed.
fn writable(plan: &Plan) -> Vec<PathBuf> {
    let grants = plan.files().iter().filter(|grant| grant.writable());
    grants.map(|grant| PathBuf::from(grant.source.to_string())).collect()
}
