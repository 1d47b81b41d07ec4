//! What a run leaves in the journal: who was held to which plan, and how it ended.

use std::path::PathBuf;

use anyhow::Context as _;
use bailiwick_journal::{Journal, Options, new_session};
use bailiwick_policy::enforcement::Coverage;
use bailiwick_policy::journal::{Decision, Enforcement, Event, Kind};
use bailiwick_policy::plan::Plan;

use crate::facts;

/// The journal of one run, if it has one.
pub(super) struct Record(Option<Journal>);

impl Record {
    /// No journal.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Opens a journal, in the usual place unless one is given.
    pub(super) fn open_in(dir: Option<PathBuf>) -> anyhow::Result<Self> {
        let dir = dir.or_else(facts::journal_dir);
        let dir = dir.context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
        let journal = Journal::open(&dir, new_session()?, Options::default());
        Ok(Self(Some(journal.with_context(|| format!("cannot open the journal in `{}`", dir.display()))?)))
    }

    /// Whether anything is recorded.
    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn append(&self, event: Event) -> anyhow::Result<()> {
        if let Some(journal) = &self.0 {
            journal.append(event).context("the journal takes no more")?;
        }
        Ok(())
    }

    /// The command is about to be started, held like this. It is on disk when this returns.
    pub(super) fn started(&self, plan: &Plan, held: &Coverage) -> anyhow::Result<()> {
        let pairs: Vec<(&str, &str)> =
            held.iter().map(|(aspect, held)| (aspect.as_str(), held.level.as_str())).collect();
        let event = Event::new(Kind::SandboxStarted)
            .with_tool(super::subject(plan).to_owned())
            .with_plan_hash(plan.digest())
            .with_enforcement(Enforcement::new(pairs)?);
        self.append(event)?;
        self.flush()
    }

    /// The command is about to be started and nothing holds it.
    pub(super) fn unconfined(&self, plan: &Plan) -> anyhow::Result<()> {
        let event = Event::new(Kind::SandboxStarted)
            .with_tool(super::subject(plan).to_owned())
            .with_decision(Decision::Allow)
            .with_code("unconfined")
            .with_reason("a person asked for no sandbox")
            .with_plan_hash(plan.digest())
            .with_enforcement(Enforcement::new([("all", "unsupported")])?);
        self.append(event)?;
        self.flush()
    }

    /// The run is over.
    pub(super) fn ended(&self, how: &str) -> anyhow::Result<()> {
        self.append(Event::new(Kind::SessionEnded).with_reason(how.to_owned()))?;
        self.flush()
    }

    fn flush(&self) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), |journal| journal.flush().context("the journal takes no more"))
    }
}
