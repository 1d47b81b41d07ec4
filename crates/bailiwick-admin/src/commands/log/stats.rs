//! `bailiwick log stats`: how often what happened.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::moment;
use bailiwick_command::render::{json, style};
use bailiwick_journal::format::{Record, SessionId};
use bailiwick_journal::{JournalFault, records, sessions};
use serde_json::{Value, json};

use super::{Scope, complaint, unreadable};
use crate::render::event;

/// The most rows of one count that are shown to people.
const SHOWN: usize = 10;

#[derive(Default)]
struct Stats {
    events: u64,
    sessions: BTreeSet<SessionId>,
    first: Option<u64>,
    last: Option<u64>,
    bytes: u64,
    counts: [Count; 4],
    complaints: String,
}

/// How many events have each value of a member.
#[derive(Default)]
struct Count(BTreeMap<String, u64>);

const COUNTED: [&str; 4] = ["decision", "kind", "tool", "code"];

pub(super) fn run(scope: &Scope) -> Answer {
    let stats = match gather(scope) {
        Ok(stats) => stats,
        Err(fault) => return unreadable(&fault),
    };
    let exit = if stats.complaints.is_empty() { Exit::Fine } else { Exit::Invalid };
    let text = match scope.format {
        AnswerFormat::Text => text(scope, &stats),
        AnswerFormat::Json => json::document(&document(&stats)),
    };
    Answer { complaint: stats.complaints, ..Answer::result(exit, text) }
}

fn gather(scope: &Scope) -> Result<Stats, JournalFault> {
    let mut stats = Stats::default();
    for found in records(&scope.dir, scope.filter.clone())? {
        match found? {
            Ok(record) => stats.add(&record),
            Err(unreadable) => stats.complaints += &complaint(&unreadable.to_string()),
        }
    }
    let listed = sessions(&scope.dir)?.into_iter();
    stats.bytes = listed.filter(|one| stats.sessions.contains(&one.session)).map(|one| one.bytes).sum();
    Ok(stats)
}

impl Stats {
    fn add(&mut self, record: &Record) {
        let Some(event) = record.event() else { return };
        self.events += 1;
        if !self.sessions.contains(&record.session) {
            self.sessions.insert(record.session.clone());
        }
        let time = record.time();
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
        let decision = event.decision().map(bailiwick_journal::format::Decision::name);
        let values = [decision, Some(event.kind().name()), event.tool(), event.code()];
        for (count, value) in self.counts.iter_mut().zip(values) {
            value.into_iter().for_each(|value| count.add(value));
        }
    }
}

impl Count {
    fn add(&mut self, value: &str) {
        if let Some(count) = self.0.get_mut(value) {
            *count += 1;
        } else {
            self.0.insert(value.to_owned(), 1);
        }
    }

    /// Most frequent first.
    fn sorted(&self) -> Vec<(&str, u64)> {
        let mut sorted: Vec<_> = self.0.iter().map(|(value, count)| (value.as_str(), *count)).collect();
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        sorted
    }
}

fn text(scope: &Scope, stats: &Stats) -> String {
    let events = usize::try_from(stats.events).unwrap_or(usize::MAX);
    let mut text = format!(
        "{} in {}, {} bytes\n",
        style::count(events, "event", "events"),
        style::count(stats.sessions.len(), "session", "sessions"),
        stats.bytes
    );
    if let (Some(first), Some(last)) = (stats.first, stats.last) {
        text += &format!("from {} to {}\n", scope.clock.show(first), scope.clock.show(last));
    }
    for (name, count) in COUNTED.iter().zip(&stats.counts) {
        let sorted = count.sorted();
        if sorted.is_empty() {
            continue;
        }
        text += &format!("\n{}\n", style::strong(name));
        for (value, count) in sorted.iter().take(SHOWN) {
            text += &format!("  {count:>8}  {}\n", event::short(value));
        }
        if sorted.len() > SHOWN {
            text += &format!("            and {} more\n", sorted.len() - SHOWN);
        }
    }
    text
}

fn document(stats: &Stats) -> Value {
    let mut document = json!({
        "format": "bailiwick.stats/1",
        "events": stats.events,
        "sessions": stats.sessions.iter().map(SessionId::as_str).collect::<Vec<_>>(),
        "first": stats.first.map(moment::utc),
        "last": stats.last.map(moment::utc),
        "bytes": stats.bytes,
    });
    for (name, count) in COUNTED.iter().zip(&stats.counts) {
        let counts: serde_json::Map<String, Value> =
            count.sorted().into_iter().map(|(value, count)| (value.to_owned(), count.into())).collect();
        if let Some(fields) = document.as_object_mut() {
            fields.insert((*name).to_owned(), Value::Object(counts));
        }
    }
    document
}
