//! What a hook leaves behind: refusals and questions in the shared journal of the day, calls that it allows too where the
//! configuration says `[journal] hooks = "all"`, and scripts' complaints in a file for developers.
//!
//! That a refusal cannot be recorded does not turn it into consent. Where allowed calls are to be recorded, one that
//! cannot be is refused.

use std::io::Write as _;

use anyhow::{Context as _, anyhow};
use bailiwick_clients::hooks::DRY_SESSION;
use bailiwick_guardrails::Decision;
use bailiwick_journal::format::{Decision as Decided, Digest, Event, RecordKind};
use bailiwick_journal::{SharedJournal, private};
use bailiwick_manifest::settings::HookRecords;

use crate::{facts, input};

/// The largest file of complaints; it is begun anew then.
const MAX_DEBUG: u64 = 1024 * 1024;

/// Records what was decided about a call.
///
/// # Errors
/// Why an allowed call that has to be recorded cannot be: it must not run then.
pub fn decision(session: &str, tool: &str, decision: &Decision) -> anyhow::Result<()> {
    let event = match decision {
        Decision::Allow if records_all()? => Event::new(RecordKind::ToolCalled).with_decision(Decided::Allow),
        Decision::Allow => return Ok(()),
        Decision::Ask(question) => {
            Event::new(RecordKind::ApprovalAsked).with_decision(Decided::Ask).with_reason(question.clone())
        }
        Decision::Deny(denial) => Event::new(RecordKind::CapabilityDenied)
            .with_decision(Decided::Deny)
            .with_code(denial.code().as_str())
            .with_reason(denial.for_record()),
    };
    match append(event.with_tool(tool.to_owned()).with_agent(session_name(session))) {
        Err(fault) if *decision == Decision::Allow => {
            Err(fault.context("the call cannot be recorded, and `[journal] hooks` says `all`"))
        }
        _ => Ok(()),
    }
}

/// Notes that an agent sent an event, for `doctor`; the time of the file says when.
pub fn seen(agent: &str, session: &str) {
    if session.ends_with(DRY_SESSION) {
        return;
    }
    let Some(dir) = facts::state_dir().filter(|dir| dir.is_dir()) else { return };
    let path = dir.join(format!("seen-{agent}"));
    drop(private::options().create(true).write(true).truncate(true).open(path));
}

/// When an agent last sent an event, in microseconds since 1970.
pub fn last_event(agent: &str) -> Option<u64> {
    let found = std::fs::metadata(facts::state_dir()?.join(format!("seen-{agent}"))).ok()?;
    let since = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}

/// Records a person's act.
pub fn act(event: Event) {
    // What the person did stands, and is shown where it was done.
    drop(append(event));
}

fn append(event: Event) -> anyhow::Result<()> {
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    SharedJournal::open(&dir)?.append([event])?;
    Ok(())
}

/// Whether the configuration says that allowed calls are recorded too.
fn records_all() -> anyhow::Result<bool> {
    let Some(path) = facts::configurations().next().filter(|path| path.exists()) else { return Ok(false) };
    let wrong = |why: &dyn std::fmt::Display| anyhow!("`{}` cannot be used: {why}", path.display());
    let source = input::read(&path).map_err(|_| wrong(&"it cannot be read"))?;
    let records = HookRecords::parse_config(source.text()).map_err(|findings| wrong(&findings))?;
    Ok(records == HookRecords::All)
}

/// Adds lines to the file of complaints.
pub fn debug(lines: &[String]) {
    let Some(path) = facts::state_dir().map(|dir| dir.join("debug.log")).filter(|_| !lines.is_empty()) else {
        return;
    };
    let long = std::fs::metadata(&path).is_ok_and(|found| found.len() > MAX_DEBUG);
    let mut options = private::options();
    options.create(true);
    if long {
        options.write(true).truncate(true)
    } else {
        options.append(true)
    };
    if let Ok(mut file) = options.open(path) {
        lines.iter().for_each(|line| drop(writeln!(file, "{line}")));
    }
}

fn session_name(session: &str) -> String {
    let hash: String = Digest::sha256(session.as_bytes()).to_string().chars().take(16).collect();
    format!("hook-{hash}")
}
