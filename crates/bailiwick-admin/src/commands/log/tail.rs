//! `bailiwick log tail`: the last events, and those to come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bailiwick_command::answer::{Answer, Chunk, Exit, Flow, Out};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::{facts, terminal};
use bailiwick_journal::format::{Record, SessionId};
use bailiwick_journal::{Follow, Found, JournalFault, last_records};

use super::{Scope, complaint, unreadable};
use crate::render::event::{self, Clock};

/// How often a journal that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// The last events of a session, oldest first.
#[derive(Default)]
struct Last {
    records: Vec<Record>,
    complaints: String,
}

pub(super) fn run(scope: Scope, lines: usize, follow: bool) -> anyhow::Result<Answer> {
    // from its end first: what is added while the last events are read is then seen, and told apart by its number
    let following = follow.then(|| Follow::from_end(&scope.dir, scope.filter.clone())).transpose();
    let following = match following {
        Ok(following) => following,
        Err(fault) => return Ok(unreadable(&fault)),
    };
    let last = match read(&scope, lines) {
        Ok(last) => last,
        Err(fault) => return Ok(unreadable(&fault)),
    };
    let text: String = last.records.iter().map(|record| line(record, scope.format, scope.clock)).collect();
    let exit = if last.complaints.is_empty() { Exit::Fine } else { Exit::Invalid };
    let Some(following) = following else {
        let out = if scope.format == AnswerFormat::Json { Out::Bytes(text) } else { Out::Text(text) };
        return Ok(Answer { exit, out, complaint: last.complaints });
    };
    let begun = [Chunk::Complaint(last.complaints), Chunk::Out(text)];
    let seen = last.records.last().map(|record| (record.session.clone(), record.seq)).into_iter().collect();
    let stopped = terminal::interrupted()?;
    let rest = Following { following, seen, scope, stopped };
    let is_json = rest.scope.format == AnswerFormat::Json;
    let chunks = begun.into_iter().filter(|chunk| !chunk.is_empty()).map(Ok).chain(rest);
    Ok(Answer { exit: Exit::Fine, out: Out::Flow(Flow::new(is_json, chunks)), complaint: String::new() })
}

fn read(scope: &Scope, lines: usize) -> Result<Last, JournalFault> {
    let mut last = Last::default();
    let session = match &scope.filter.session {
        Some(session) => Some(session.clone()),
        None => scope.newest()?,
    };
    let Some(session) = session else { return Ok(last) };
    let (records, unreadable) = last_records(&scope.dir, &session, &scope.filter, lines)?;
    last.records = records;
    last.complaints = unreadable.iter().map(|one| complaint(&one.to_string())).collect();
    Ok(last)
}

fn line(record: &Record, format: AnswerFormat, clock: Clock) -> String {
    match format {
        AnswerFormat::Text => event::text_line(record, clock) + "\n",
        AnswerFormat::Json => event::json_line(record) + "\n",
    }
}

/// What is added, as it is added, until an interrupt.
struct Following {
    following: Follow,
    /// Up to which number a session was shown already.
    seen: BTreeMap<SessionId, u64>,
    scope: Scope,
    stopped: Arc<AtomicBool>,
}

impl Iterator for Following {
    type Item = anyhow::Result<Chunk>;

    /// Empty chunks let the terminal find out that its output was closed.
    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        std::thread::sleep(PAUSE);
        Some(match self.following.poll() {
            Ok(found) => Ok(self.chunk(&found)),
            Err(fault) => Err(anyhow::Error::new(fault)),
        })
    }
}

impl Following {
    fn chunk(&self, found: &[Found]) -> Chunk {
        let clock = match self.scope.clock {
            Clock::Since(_) => Clock::Since(facts::now_us()),
            Clock::Utc => Clock::Utc,
        };
        let complaints: String = found
            .iter()
            .filter_map(|one| one.as_ref().err().map(|unreadable| complaint(&unreadable.to_string())))
            .collect();
        if !complaints.is_empty() {
            return Chunk::Complaint(complaints);
        }
        let is_new = |record: &&Record| self.seen.get(&record.session).is_none_or(|last| record.seq > *last);
        let fresh = found.iter().filter_map(|one| one.as_ref().ok()).filter(is_new);
        Chunk::Out(fresh.map(|record| line(record, self.scope.format, clock)).collect())
    }
}
