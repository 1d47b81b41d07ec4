//! The stream of what happens: lines of JSON, each with the events that are new and how far each session was read.
//!
//! A cursor belongs to its reader, not to this process: it says for each session the segment, the bytes and the lines that
//! were read, so a reader resumes at any console over the same journal, without a gap and without a repetition. A reader
//! that does not read is dropped; the journal keeps what it missed.

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bailiwick_door::Answer;
use bailiwick_guardrails::approvals::FILE;
use bailiwick_journal::format::{Record, SessionId};
use bailiwick_journal::{Filter, Follow, JournalFault, ReadPlace};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::host::ConsoleHost;
use crate::reply::{Reply, with_headers};
use crate::{Console, actions, history};

/// How often the journal is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How often the rest is.
const STATE_EVERY: Duration = Duration::from_millis(500);
/// How often something is sent where nothing happens.
const BEAT: Duration = Duration::from_secs(10);
/// How much of the journal one line brings, about.
const BATCH: u64 = 256 << 10;
/// How many lines wait for a reader.
const AHEAD: usize = 8;
/// How long a reader may not read.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most sessions that a cursor may name.
const MOST_SESSIONS: usize = 100_000;

/// How far a reader has read.
pub(crate) type Cursor = Vec<(SessionId, ReadPlace)>;

/// A cursor as JSON: `{"SESSION":[segment, bytes, lines]}`.
pub(crate) fn cursor_of<'a>(places: impl Iterator<Item = (&'a SessionId, &'a ReadPlace)>) -> Value {
    let place = |place: &ReadPlace| json!([place.segment, place.offset, place.lines]);
    Value::Object(places.map(|(session, at)| (session.to_string(), place(at))).collect())
}

/// Reads what [`cursor_of`] wrote; `None` if it is something else.
fn read_cursor(value: &Value) -> Option<Cursor> {
    let entries = value.as_object()?;
    let place = |value: &Value| {
        let [segment, offset, lines] = &**value.as_array()? else { return None };
        Some(ReadPlace {
            segment: u32::try_from(segment.as_u64()?).ok()?,
            offset: offset.as_u64()?,
            lines: usize::try_from(lines.as_u64()?).ok()?,
        })
    };
    let one = |(session, at): (&String, &Value)| Some((session.parse().ok()?, place(at)?));
    (entries.len() <= MOST_SESSIONS).then(|| entries.iter().map(one).collect())?
}

/// Answers with a stream that begins behind the cursor in the body.
pub(crate) fn answer<H: ConsoleHost>(console: Arc<Console<H>>, body: &[u8]) -> Answer {
    let asked: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let Some(cursor) = asked.get("cursor").and_then(read_cursor) else {
        return Reply::invalid("send `{\"cursor\":{…}}`, as an answer of this console gave it").into_answer();
    };
    let (sender, lines) = channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let follow = Follow::resume(&console.options.journal, Filter::default(), cursor);
        Teller { console, follow, sender, told: Told::default() }.run();
    });
    streamed("application/x-ndjson", lines)
}

/// An answer whose body is what comes out of a channel.
pub(crate) fn streamed(kind: &'static str, lines: Receiver<Bytes>) -> Answer {
    let mut answer = Response::new(ChannelBody(lines).boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    with_headers(answer)
}

struct ChannelBody(Receiver<Bytes>);

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

/// Sends bytes to a reader, and waits for it a while. `false` if it is gone, does not read, or the console ends.
pub(crate) fn send<H>(console: &Console<H>, sender: &Sender<Bytes>, mut bytes: Bytes) -> bool {
    let since = Instant::now();
    loop {
        match sender.try_send(bytes) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(back)) => bytes = back,
        }
        if console.halt.is_cancelled() || since.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(TICK);
    }
}

/// What one reader was told last.
#[derive(Default)]
struct Told {
    state: Option<Value>,
    waiting: Option<Value>,
    /// What the file of approvals was when it was read last.
    approvals: Option<FileStamp>,
    looked: Option<Instant>,
    sent: Option<Instant>,
}

/// What tells whether a file was replaced: when, by which, how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FileStamp(Option<(SystemTime, u64)>);

impl FileStamp {
    fn now(path: &Path) -> Self {
        let found = std::fs::symlink_metadata(path).ok();
        Self(found.and_then(|found| Some((found.modified().ok()?, found.len()))))
    }
}

/// Tells one reader what happens.
struct Teller<H> {
    console: Arc<Console<H>>,
    follow: Follow,
    sender: Sender<Bytes>,
    told: Told,
}

impl<H: ConsoleHost> Teller<H> {
    fn run(mut self) {
        while !self.console.halt.is_cancelled() && !self.sender.is_closed() {
            match self.tell() {
                Some(true) => {}
                Some(false) => std::thread::sleep(TICK),
                None => return,
            }
        }
    }

    /// Whether something was told; `None` if there is no reader any more.
    fn tell(&mut self) -> Option<bool> {
        let events = self.events();
        let state = self.state();
        let beat =
            self.told.sent.is_none_or(|sent| sent.elapsed() > BEAT).then(|| "{\"beat\":true}".to_owned());
        let lines: Vec<String> = events.into_iter().chain(state).collect();
        let lines: Vec<String> = if lines.is_empty() { beat.into_iter().collect() } else { lines };
        if lines.is_empty() {
            return Some(false);
        }
        self.told.sent = Some(Instant::now());
        let bytes = Bytes::from(lines.join("\n") + "\n");
        send(&self.console, &self.sender, bytes).then_some(true)
    }

    /// The events that are new, and how far each of their sessions was read.
    fn events(&mut self) -> Option<String> {
        let before: std::collections::BTreeMap<SessionId, ReadPlace> =
            self.follow.places().map(|(session, place)| (session.clone(), *place)).collect();
        let found = match self.follow.poll_at_most(BATCH) {
            Ok(found) => found,
            Err(fault) => return self.fault(&fault),
        };
        let moved = self.follow.places().filter(|(session, place)| before.get(*session) != Some(*place));
        let cursor = cursor_of(moved);
        if cursor.as_object().is_none_or(Map::is_empty) {
            return None;
        }
        let (mut records, mut unreadable): (Vec<Record>, Vec<String>) = (Vec::new(), Vec::new());
        for one in found {
            match one {
                Ok(record) => records.push(record),
                Err(bad) => unreadable.push(bad.to_string()),
            }
        }
        Some(history::document(&records, &unreadable, &cursor))
    }

    fn fault(&mut self, fault: &JournalFault) -> Option<String> {
        let is_time = self.told.sent.is_none_or(|sent| sent.elapsed() > STATE_EVERY);
        is_time.then(|| json!({ "fault": fault.to_string() }).to_string())
    }

    /// What else changed: what waits for an answer at once, the rest every half second.
    fn state(&mut self) -> Option<String> {
        let mut news = Map::new();
        let stamp = FileStamp::now(&self.console.options.state.dir().join(FILE));
        let is_due = self.told.looked.is_none_or(|looked| looked.elapsed() > STATE_EVERY);
        if is_due || self.told.approvals != Some(stamp) {
            self.told.approvals = Some(stamp);
            let waiting = actions::waiting(&self.console);
            if self.told.waiting.as_ref() != Some(&waiting) {
                news.insert("waiting".to_owned(), waiting.clone());
                self.told.waiting = Some(waiting);
            }
        }
        if is_due {
            let state = actions::state_value(&self.console);
            self.told.looked = Some(Instant::now());
            if self.told.state.as_ref() != Some(&state) {
                news.insert("state".to_owned(), state.clone());
                self.told.state = Some(state);
            }
        }
        (!news.is_empty()).then(|| Value::Object(news).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let place = ReadPlace { segment: 2, offset: 300, lines: 4 };
        let session: SessionId = "s-1".parse().unwrap();
        let written = cursor_of([(&session, &place)].into_iter());
        assert_eq!(read_cursor(&written), Some(vec![(session, place)]));
        assert_eq!(read_cursor(&json!({})), Some(Vec::new()));
        for wrong in [
            json!(null),
            json!([]),
            json!({ "../x": [0, 0, 0] }),
            json!({ "s": [0, 0] }),
            json!({ "s": [-1, 0, 0] }),
            json!({ "s": [4_294_967_296_u64, 0, 0] }),
            json!({ "s": ["0", 0, 0] }),
            json!({ "s": { "segment": 0 } }),
        ] {
            assert_eq!(read_cursor(&wrong), None, "{wrong}");
        }
    }
}
