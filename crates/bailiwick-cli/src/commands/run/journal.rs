//! Where a run is recorded: in the shared journal of the day, in one of its own where `--journal` asks for that, or
//! nowhere where `--no-journal` does.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_command::args::run::Run;
use bailiwick_command::facts;
use bailiwick_journal::{Journal, Options, SharedJournal, new_session};
use bailiwick_launch::Recorder;
use bailiwick_policy::plan::Plan;

/// Who records the run; `own` is where the journal of `--journal=DIR` really lies.
///
/// # Errors
/// Why there is no journal. Nothing may be started then.
pub(super) fn recorder(args: &Run, own: Option<&Path>, plan: &Plan) -> anyhow::Result<Recorder> {
    let tool = super::subject(plan);
    match &args.journal {
        _ if args.no_journal => Ok(Recorder::unrecorded(tool)),
        None => shared(tool).context("nothing is recorded; `--no-journal` runs without a record"),
        Some(_) => {
            let dir = own.map_or_else(usual, |own| Ok(own.to_owned()))?;
            let journal = Journal::open(&dir, new_session()?, Options::default());
            let journal = journal.with_context(|| cannot_open(&dir))?;
            Ok(Recorder::session(tool, journal).durable())
        }
    }
}

fn shared(tool: &str) -> anyhow::Result<Recorder> {
    let dir = usual()?;
    Ok(Recorder::shared(tool, SharedJournal::open(&dir).with_context(|| cannot_open(&dir))?))
}

fn usual() -> anyhow::Result<PathBuf> {
    facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")
}

fn cannot_open(dir: &Path) -> String {
    format!("cannot open the journal in `{}`", dir.display())
}
