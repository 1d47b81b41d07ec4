//! The newest events of all sessions together, and where to follow them from.

use std::path::Path;

use bailiwick_journal::format::Record;
use bailiwick_journal::{Filter, Follow, JournalFault, last_records, sessions};

use crate::stream::cursor_of;

/// The most events of one answer.
const MOST: usize = 100_000;

/// The newest `limit` events before `until`, oldest first, as a document. The places to follow from are taken first, so
/// what is written meanwhile comes twice and never not at all: a reader knows it by its number.
pub(crate) fn newest(dir: &Path, limit: usize, until: Option<u64>) -> Result<String, JournalFault> {
    let limit = limit.min(MOST);
    let follow = Follow::from_end(dir, Filter::default())?;
    let mut listed = sessions(dir)?;
    listed.sort_by_key(|one| std::cmp::Reverse(one.last));
    let (mut kept, mut unreadable): (Vec<Record>, Vec<String>) = (Vec::new(), Vec::new());
    let filter = Filter { until, ..Filter::default() };
    for one in listed {
        let oldest = kept.first().map_or(0, Record::time);
        if kept.len() >= limit && one.last.unwrap_or(0) < oldest {
            break;
        }
        let (found, bad) = last_records(dir, &one.session, &filter, limit)?;
        kept.extend(found);
        unreadable.extend(bad.iter().map(ToString::to_string));
        kept.sort_by(|a, b| (a.time(), &a.session, a.seq).cmp(&(b.time(), &b.session, b.seq)));
        let more = kept.len().saturating_sub(limit);
        kept.drain(..more);
    }
    Ok(document(&kept, &unreadable, &cursor_of(follow.places())))
}

/// Lines of the journal as they stand there, with a cursor.
pub(crate) fn document(records: &[Record], unreadable: &[String], cursor: &serde_json::Value) -> String {
    let lines: Vec<String> = records.iter().map(Record::to_line).collect();
    let unreadable = serde_json::Value::from(unreadable);
    format!("{{\"cursor\":{cursor},\"unreadable\":{unreadable},\"events\":[{}]}}", lines.join(","))
}
