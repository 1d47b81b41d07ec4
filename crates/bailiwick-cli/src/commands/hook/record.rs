//! What a hook leaves behind: refusals and questions in the journal, scripts' complaints in a file for developers.
//!
//! A process that judges one call cannot keep a journal open, and opening one costs more than judging. So only what
//! was refused or asked about is recorded, and only where a journal is kept. That it cannot be recorded does not turn
//! a refusal into consent.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use bailiwick_guardrails::Decision;
use bailiwick_journal::{Journal, Options};
use bailiwick_policy::journal::{Decision as Decided, Digest, Event, Kind, SessionId};

use crate::facts;

/// How often another process's hold on the journal is waited out.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(10);
/// The largest file of complaints; it is begun anew then.
const MAX_DEBUG: u64 = 1024 * 1024;

/// Records that a call was refused or asked about.
pub(super) fn decision(session: &str, tool: &str, decision: &Decision) {
    let event = match decision {
        Decision::Allow => return,
        Decision::Ask(question) => {
            Event::new(Kind::ApprovalAsked).with_decision(Decided::Ask).with_reason(question.clone())
        }
        Decision::Deny(denial) => Event::new(Kind::CapabilityDenied)
            .with_decision(Decided::Deny)
            .with_code(denial.code().as_str())
            .with_reason(denial.for_record()),
    };
    append(&session_name(session), event.with_tool(tool.to_owned()));
}

/// Records a person's act.
pub(in crate::commands) fn act(event: Event) {
    append("person", event);
}

fn append(session: &str, event: Event) {
    let Some(dir) = facts::journal_dir().filter(|dir| dir.is_dir()) else { return };
    let Ok(session) = session.parse::<SessionId>() else { return };
    for _ in 0..TRIES {
        if let Ok(journal) = Journal::open(&dir, session.clone(), Options::default()) {
            drop(journal.append(event));
            drop(journal.close());
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Adds lines to the file of complaints.
pub(super) fn debug(lines: &[String]) {
    let Some(path) = facts::state_dir().map(|dir| dir.join("debug.log")).filter(|_| !lines.is_empty()) else {
        return;
    };
    let long = std::fs::metadata(&path).is_ok_and(|found| found.len() > MAX_DEBUG);
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(0o600);
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
    let hash: String = Digest::of(session.as_bytes()).to_string().chars().take(16).collect();
    format!("hook-{hash}")
}
