//! The exporter: reads what is sealed, hands it on in batches, and moves the cursor behind what was taken.

use std::path::PathBuf;
use std::time::Duration;

use bailiwick_journal::format::{RecordBody, SessionId};
use bailiwick_journal::{Filter, Follow, Found, JournalFault, Unreadable, now_us};

use crate::batch::{Batch, Exported};
use crate::counts::Counts;
use crate::cursor::{Cursor, CursorError, CursorFile};
use crate::deliver::{Collector, DeliverError};
use crate::json_lines::Lines;
use crate::spans;

/// How much of the journal one batch is made of.
const BATCH_BYTES: u64 = 256 * 1024;

/// The first and the longest wait after a failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// What is exported.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The directory of the journal.
    pub journal: PathBuf,
    /// How many bytes of the journal may lie behind; what is older is counted and not sent.
    pub bound_bytes: u64,
}

/// Where it goes.
pub enum Sink {
    /// JSON lines.
    Lines(Lines),
    /// Logs, metrics and traces.
    Otlp(Box<Collector>),
}

/// Why exporting cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The cursor.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// What one step did.
#[derive(Debug)]
pub enum Step {
    /// There is nothing new.
    Idle,
    /// So many events were taken, and the cursor stands behind them.
    Sent(usize),
    /// Nothing was taken; the same is sent again after this time.
    Failed(DeliverError, Duration),
}

/// Reads a journal and hands it on.
pub struct Exporter {
    follow: Follow,
    cursor: Cursor,
    file: Option<CursorFile>,
    sink: Sink,
    bound_bytes: u64,
    /// What was read and not taken yet.
    pending: Option<Batch>,
    failures: u32,
}

impl Exporter {
    /// Begins where the cursor stands; without one, at the beginning, and nothing is kept.
    ///
    /// # Errors
    /// If the cursor cannot be read.
    pub fn open(options: &ExportOptions, file: Option<CursorFile>, sink: Sink) -> Result<Self, ExportError> {
        let cursor = file.as_ref().map_or_else(|| Ok(CursorFile::beginning()), CursorFile::read)?;
        let filter = Filter { with_seals: true, ..Filter::default() };
        let follow = Follow::resume(&options.journal, filter, cursor.places()).sealed_only();
        Ok(Self { follow, cursor, file, sink, bound_bytes: options.bound_bytes, pending: None, failures: 0 })
    }

    /// What was counted, that which waits included.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.cursor.counts
    }

    /// Sends what waits, or reads more and sends that. It waits for the sink, and for nothing else.
    ///
    /// # Errors
    /// If the journal cannot be read, or the cursor cannot be kept.
    pub async fn step(&mut self) -> Result<Step, ExportError> {
        let batch = match self.pending.take() {
            Some(batch) => batch,
            None => match self.read_batch()? {
                Some(batch) => batch,
                None => return Ok(Step::Idle),
            },
        };
        let taken = match &mut self.sink {
            Sink::Lines(lines) => lines.write(&batch).map(|()| 0).map_err(DeliverError::from),
            Sink::Otlp(collector) => collector.deliver(&batch, now_us()).await,
        };
        match taken {
            Ok(rejected) => {
                self.failures = 0;
                self.cursor.counts.rejected += rejected;
                if let Some(file) = &self.file {
                    file.keep(&self.cursor)?;
                }
                Ok(Step::Sent(batch.len()))
            }
            Err(why) => {
                self.pending = Some(batch);
                self.failures += 1;
                let wait = why.wait().unwrap_or_else(|| backoff(self.failures));
                Ok(Step::Failed(why, wait))
            }
        }
    }

    /// The next batch, after what lies too far behind was counted; none if nothing is new.
    fn read_batch(&mut self) -> Result<Option<Batch>, ExportError> {
        let skipped = self.skip()?;
        loop {
            let found = self.follow.poll_at_most(BATCH_BYTES)?;
            let is_end = found.is_empty();
            let mut batch = self.take(found);
            self.cursor.move_to(self.follow.places());
            batch.counts = self.cursor.counts.clone();
            // What was skipped is told even if nothing else is new.
            if !batch.is_empty() || (is_end && skipped > 0) {
                return Ok(Some(batch));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    fn skip(&mut self) -> Result<u64, ExportError> {
        let mut skipped = 0;
        loop {
            let excess = self.follow.unread_bytes()?.saturating_sub(self.bound_bytes);
            if excess == 0 {
                return Ok(skipped);
            }
            let found = self.follow.poll_at_most(excess.min(BATCH_BYTES))?;
            if found.is_empty() {
                return Ok(skipped);
            }
            let counted = self.take(found).len() as u64;
            self.cursor.counts.skipped += counted;
            skipped += counted;
        }
    }

    /// The events among what was found; everything is counted.
    fn take(&mut self, found: Vec<Found>) -> Batch {
        let mut batch = Batch::default();
        for found in found {
            match found {
                Err(bad) => self.count_unreadable(&bad),
                Ok(record) => {
                    let line = matches!(record.entry, RecordBody::Event(_)).then(|| record.to_line());
                    let at = self.cursor.sessions.entry(record.session.as_str().to_owned()).or_default();
                    self.cursor.counts.removed += record.seq.saturating_sub(at.next_seq);
                    at.next_seq = record.seq + 1;
                    let (Some(line), RecordBody::Event(event)) = (line, record.entry) else { continue };
                    let traced = spans::trace(&mut at.begun, &record.session, record.seq, &event);
                    self.cursor.counts.add(&event);
                    batch.spans.extend(traced.ended);
                    let (trace_id, span_id) = (traced.trace_id, traced.span_id);
                    let (session, seq, hash) = (record.session, record.seq, record.hash.to_string());
                    batch.events.push(Exported { session, seq, hash, line, event, trace_id, span_id });
                }
            }
        }
        batch
    }

    /// Counts a line that is no record. It has a number all the same.
    fn count_unreadable(&mut self, bad: &Unreadable) {
        self.cursor.counts.unreadable += 1;
        let name = bad.file.file_stem().and_then(|name| name.to_str());
        let session = name
            .and_then(|name| name.rsplit_once('.'))
            .and_then(|(session, _)| session.parse::<SessionId>().ok());
        if let Some(session) = session {
            self.cursor.sessions.entry(session.as_str().to_owned()).or_default().next_seq += 1;
        }
    }
}

/// How long to wait after so many failures in a row: longer each time, and not the same for all.
fn backoff(failures: u32) -> Duration {
    let most = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(6)).min(LONGEST_WAIT);
    let mut random = [0];
    // Without randomness the wait is the longest of its step.
    let share = getrandom::fill(&mut random).map_or(255, |()| u32::from(random[0]));
    most / 2 + most / 2 * share / 255
}
