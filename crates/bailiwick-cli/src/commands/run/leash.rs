//! What governs a run and must stay out of the command's hands: its journal, its manifest and its report.
//!
//! The journal is never visible inside; the manifest and the report are never writable. All are opened before anything
//! starts. A link on the way to one of them that lies where the command may write is refused: the command could make
//! the next run use another file.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_command::args::run::Run;
use bailiwick_command::output::{Draft, Existing, Placed, real_path};
use bailiwick_command::render::json;
use bailiwick_launch::{HostPlanner, PlanError, Recorder, Status};
use bailiwick_manifest::Manifest;
use bailiwick_policy::plan::Plan;

use super::journal;

/// Files that govern a run, by where they really lie.
#[derive(Debug, Default)]
pub(in crate::commands) struct Governing {
    /// As they were named.
    named: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    locked: Vec<PathBuf>,
    /// The fleet's manifests for what is run.
    pub(super) ceilings: Vec<Manifest>,
}

impl Governing {
    /// Finds the files that the command line names.
    ///
    /// # Errors
    /// The one that cannot be looked at.
    pub(in crate::commands) fn from_args(args: &Run) -> anyhow::Result<Self> {
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

    /// The same, with another file that governs it.
    pub(in crate::commands) fn and(mut self, file: &Path) -> anyhow::Result<Self> {
        let real = self.take(file)?;
        self.locked.push(real);
        Ok(self)
    }

    /// The same, where manifests of the fleet narrow what is granted.
    pub(in crate::commands) fn under(self, ceilings: Vec<Manifest>) -> Self {
        Self { ceilings, ..self }
    }

    fn take(&mut self, path: &Path) -> anyhow::Result<PathBuf> {
        let real = real_path(path, &[]).with_context(|| format!("cannot look at `{}`", path.display()))?;
        self.named.push(path.to_owned());
        Ok(real)
    }

    /// The same host, where these files govern the sandbox.
    pub(super) fn on(&self, planner: HostPlanner) -> Result<HostPlanner, PlanError> {
        let planner = self.hidden.iter().map(PathBuf::as_path).try_fold(planner, HostPlanner::hiding)?;
        self.locked.iter().map(PathBuf::as_path).try_fold(planner, HostPlanner::locking)
    }

    /// Whether opening makes files that were not there when the host was looked at.
    pub(super) fn is_made(args: &Run) -> bool {
        !args.no_journal || args.report.is_some()
    }

    /// Where the journal lies that the command line names.
    pub(super) fn journal(&self) -> Option<&Path> {
        self.hidden.first().map(PathBuf::as_path)
    }
}

/// What governs a run, opened.
pub(super) struct Leash {
    recorder: Recorder,
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
        let recorder = journal::recorder(args, governing.journal(), plan)?;
        let report = args.report.as_deref().map(|path| report(path, &writable)).transpose()?;
        Ok(Self { recorder, report })
    }

    /// Who records the run.
    pub(super) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Reports what will be held, before it is.
    ///
    /// # Errors
    /// Why it cannot be reported. Nothing may be started then.
    pub(super) fn report(&mut self, status: &Status) -> anyhow::Result<()> {
        match &mut self.report {
            Some(report) => Ok(report.write_all(&json::document(&status.to_json()))?),
            None => Ok(()),
        }
    }

    /// Nothing was started: there is nothing to report.
    pub(super) fn withdraw(self) {
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
