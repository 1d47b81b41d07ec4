//! Sessions of the journal: which there are, whether they are what was written, and their lines to keep elsewhere.

use std::sync::Arc;

use bailiwick_door::Answer;
use bailiwick_journal::format::SessionId;
use bailiwick_journal::{
    Expected, Filter, Listed, Problem, SessionReport, local_fingerprint, records, sessions, verify,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::channel;

use crate::Console;
use crate::actions::queried;
use crate::host::ConsoleHost;
use crate::reply::Reply;
use crate::stream::{send, streamed};

/// How many lines are sent at once.
const TOGETHER: usize = 200;

pub(crate) fn list<H: ConsoleHost>(console: &Console<H>) -> Reply {
    let one = |one: &Listed| json!({ "session": one.session.as_str(), "segments": one.segments, "bytes": one.bytes, "last_us": one.last });
    match sessions(&console.options.journal) {
        Ok(all) => Reply::json(&json!({ "sessions": all.iter().map(one).collect::<Vec<_>>() })),
        Err(fault) => Reply::fault(&fault.to_string()),
    }
}

/// Whether every session is what was written, and who signed it.
pub(crate) fn verified<H: ConsoleHost>(console: &Console<H>) -> Reply {
    let dir = &console.options.journal;
    let report = match verify(dir, &Expected::default()) {
        Ok(report) => report,
        Err(fault) => return Reply::fault(&fault.to_string()),
    };
    let problem = |problem: &Problem| {
        json!({
            "file": problem.file.to_string_lossy(), "line": problem.line, "seq": problem.seq,
            "code": problem.tamper.code(), "why": problem.detail,
        })
    };
    let session = |one: &SessionReport| {
        json!({
            "session": one.session.as_str(), "lines": one.lines, "is_live": one.is_live,
            "last": one.last.map(|point| json!({ "seq": point.seq, "hash": point.hash.to_string() })),
            "removed": one.removed.map(|point| point.seq),
            "problems": one.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    };
    let is_local = local_fingerprint(dir).ok().flatten().is_some();
    Reply::json(&json!({
        "intact": report.is_intact(),
        "key": report.key.map(|key| key.to_string()),
        "key_beside_journal": is_local,
        "sessions": report.sessions.iter().map(session).collect::<Vec<_>>(),
        "index": report.index.iter().map(problem).collect::<Vec<Value>>(),
    }))
}

/// Every line of a session, or of all, as it stands in the journal.
pub(crate) fn export<H: ConsoleHost>(console: Arc<Console<H>>, query: &str) -> Answer {
    let session = match queried(query, "session").map(str::parse::<SessionId>).transpose() {
        Ok(session) => session,
        Err(error) => return Reply::invalid(&error.to_string()).into_answer(),
    };
    let filter = Filter { session, with_seals: true, ..Filter::default() };
    let found = match records(&console.options.journal, filter) {
        Ok(found) => found,
        Err(fault) => return Reply::fault(&fault.to_string()).into_answer(),
    };
    let (sender, lines) = channel(4);
    tokio::task::spawn_blocking(move || {
        let mut found = found.filter_map(|one| one.ok()?.ok());
        loop {
            let some: Vec<String> =
                found.by_ref().take(TOGETHER).map(|record| record.to_line() + "\n").collect();
            if some.is_empty() || !send(&console, &sender, Bytes::from(some.concat())) {
                return;
            }
        }
    });
    streamed("application/x-ndjson", lines)
}
