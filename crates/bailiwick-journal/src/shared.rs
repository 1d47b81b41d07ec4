//! The shared journal of a day: many short runs append to one session, each under a lock that is held for one append.
//!
//! It is a session like others, named `day-2026-11-17` (UTC): the same lines, seals, head file and index entry, so
//! everything that reads or verifies a session reads this one. What one run says is tied together by `parent`: the
//! number of the line that began it.
//!
//! An append is in the kernel's hands when it returns and survives the end of this process. It is not flushed to the
//! disk: a power cut loses what the kernel had not written yet.
//!
//! Invariants: an append begins behind a seal of ours that the head file knows; where it does not (a writer was killed
//! half-way, or the files were changed), the session is opened as any other is: repaired and noted, or refused.
//!
//! Fails closed when: the directory, key or session is refused as in [`Journal::open`](super::Journal::open), or
//! another process keeps the lock for seconds.
use super::fault::{During, JournalFault};
use super::heads::HeadFile;
use super::index;
use super::key::Sealer;
use super::layout::Layout;
use super::tape::Tape;
use super::{Ack, now_us};
use crate::format::{Chain, Event, MAX_LINE, Point, Seal, SealKind, SessionId};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How long a segment may grow before the next one is begun.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// What the name of a shared session begins with.
const PREFIX: &str = "day-";
const DAY_US: u64 = 86_400_000_000;

/// The shared journal of the day on which it was opened.
pub struct SharedJournal {
    layout: Layout,
    sealer: Sealer,
    session: SessionId,
    /// The last seal of ours: where it still is the end, its signature need not be checked again.
    own: Mutex<Option<Point>>,
}

impl SharedJournal {
    /// Opens today's journal in the directory `dir`, which is made if it is not there. Writes nothing yet.
    ///
    /// # Errors
    /// Why nothing can be recorded there.
    pub fn open(dir: &Path) -> Result<Self, JournalFault> {
        let layout = Layout::for_writing(dir)?;
        let sealer = Sealer::load_or_create(&layout)?;
        let session = day(now_us()).ok_or_else(|| {
            JournalFault::io("name", dir, &io::Error::other("the clock is beyond the year 9999"))
        })?;
        Ok(Self { layout, sealer, session, own: Mutex::new(None) })
    }

    /// Records events, one behind the other, and seals them. Returns where the first of them stands.
    ///
    /// # Errors
    /// When they cannot be recorded, what they are about must not happen.
    pub fn append(&self, events: impl IntoIterator<Item = Event>) -> Result<Ack, JournalFault> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut head = HeadFile::lock_waiting(&self.layout, &self.session)?;
        let End { mut tape, mut chain, notes } = self.end(&mut head, *own)?;
        let mut lines = Vec::new();
        for note in notes {
            chain.push_event(&dated(note), &mut lines);
        }
        let first = chain.next_seq();
        for event in events {
            let begin = lines.len();
            chain.push_event(&dated(event), &mut lines);
            if lines.len() - begin > MAX_LINE {
                return Err(JournalFault::TooLarge);
            }
        }
        let seal_at = lines.len();
        let seal = Seal {
            kind: SealKind::Head,
            session: self.session.clone(),
            point: None,
            time: now_us(),
            key: self.sealer.public(),
        };
        chain.push_seal(&seal, |bytes| self.sealer.sign(bytes), &mut lines);
        if tape.len() >= SEGMENT_BYTES {
            tape.rotate()?;
        }
        tape.append(&lines)?;
        head.keep(lines.get(seal_at..).unwrap_or_default().trim_ascii_end())?;
        *own = chain.last();
        Ok(Ack { seq: first })
    }

    /// The directory it is written to. No sandbox shows it.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// The session of the day.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Where the next line goes.
    fn end(&self, head: &mut HeadFile, own: Option<Point>) -> Result<End, JournalFault> {
        if let Some((tape, point)) = self.sealed_end(head, own)? {
            let chain = Chain::genesis(self.session.clone()).after(point);
            return Ok(End { tape, chain, notes: Vec::new() });
        }
        let opened = Tape::open(&self.layout, &self.session, self.sealer.public())?;
        let (kind, point) = (SealKind::Opened, opened.chain.last());
        let entry = index::IndexEntry { kind, session: &self.session, point, time: now_us() };
        index::add(&self.layout, &self.sealer, &entry)?;
        Ok(End { tape: opened.tape, chain: opened.chain, notes: opened.notes })
    }

    /// The end of the lines, if it is the seal of ours that the head file knows; else it has to be looked at.
    fn sealed_end(
        &self,
        head: &mut HeadFile,
        own: Option<Point>,
    ) -> Result<Option<(Tape, Point)>, JournalFault> {
        let Some(kept) = head.newest(&self.session)? else { return Ok(None) };
        let is_own = own == Some(kept.point);
        if !is_own && !kept.is_signed_with(&self.sealer.public()) {
            return Ok(None);
        }
        let tape = Tape::at_seal(&self.layout, &self.session, SEGMENT_BYTES, kept.point)?;
        Ok(tape.map(|tape| (tape, kept.point)))
    }
}

/// Where a chain goes on.
struct End {
    tape: Tape,
    chain: Chain,
    /// What has to be recorded about it first.
    notes: Vec<Event>,
}

fn dated(event: Event) -> Event {
    if event.time() == 0 { event.at(now_us()) } else { event }
}

/// The session of the day of `time`.
fn day(time: u64) -> Option<SessionId> {
    let moment = Timestamp::from_microsecond(i64::try_from(time).ok()?).ok()?;
    format!("{PREFIX}{}", moment.to_zoned(TimeZone::UTC).date()).parse().ok()
}

/// Whether several processes append to `session`.
pub(super) fn is_shared(session: &SessionId) -> bool {
    session.as_str().starts_with(PREFIX)
}

/// Whether runs may still append to `session` at `now`: on its own day, and those that began on it on the next.
pub(super) fn is_open(session: &SessionId, now: u64) -> bool {
    let days = [Some(now), now.checked_sub(DAY_US), now.checked_add(DAY_US)];
    days.into_iter().flatten().filter_map(day).any(|day| day == *session)
}

/// The lock that keeps writers of a shared session out while it is read.
pub(super) fn hold(layout: &Layout, session: &SessionId) -> Result<Option<std::fs::File>, JournalFault> {
    let path: PathBuf = layout.head(session);
    if !is_shared(session) || !super::layout::is_there(&path)? {
        return Ok(None);
    }
    let file = super::layout::open_existing(&path)?;
    super::index::wait(|| file.try_lock_shared()).during("lock", &path)?;
    Ok(Some(file))
}
