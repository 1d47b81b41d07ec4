//! The journal as everyone but its writer sees it: open, append, flush, close.
use super::heads::HeadFile;
use super::index;
use super::key::{Sealer, fingerprint};
use super::layout::Layout;
use super::queue::Queue;
use super::tape::Tape;
use super::writer::Writer;
use super::{JournalFault, Options};
use crate::format::{Chain, Digest, Event, MAX_LINE, Point, SealKind, SessionId};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What `append` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ack {
    /// The event's number in its session: what later events name as their parent.
    pub seq: u64,
}

/// A session's journal, open for writing. Clones write to the same session; the last one to go closes it.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<Queue>,
    clock: fn() -> u64,
    session: SessionId,
    dir: PathBuf,
    fingerprint: Digest,
    writer: Mutex<Option<Thread>>,
    /// The next number of a journal that keeps nothing.
    discarded: Option<AtomicU64>,
}

type Thread = JoinHandle<Result<Option<Point>, JournalFault>>;

impl Journal {
    /// Opens `session` in the directory `dir`, which is made if it is not there; goes on where it ended.
    pub fn open(dir: &Path, session: SessionId, options: Options) -> Result<Self, JournalFault> {
        let layout = Layout::for_writing(dir)?;
        let sealer = Sealer::load_or_create(&layout)?;
        let head = HeadFile::lock(&layout, &session)?;
        let opened = Tape::open(&layout, &session, sealer.public())?;
        let clock = options.clock;
        let (kind, point) = (SealKind::Opened, opened.chain.last());
        index::add(&layout, &sealer, &index::IndexEntry { kind, session: &session, point, time: clock() })?;

        let queue = Arc::new(Queue::new(options.clone(), opened.chain.next_seq()));
        let fingerprint = fingerprint(&sealer.public());
        let (tape, chain) = (opened.tape, opened.chain);
        let writer = Writer { layout, session: session.clone(), sealer, head, tape, chain, options };
        let writer = spawn(writer, Arc::clone(&queue), dir)?;
        let inner = Inner {
            queue,
            clock,
            session,
            dir: dir.to_owned(),
            fingerprint,
            writer: Mutex::new(Some(writer)),
            discarded: None,
        };
        let journal = Self { inner: Arc::new(inner) };
        for note in opened.notes {
            journal.append(note)?;
        }
        journal.flush()?;
        Ok(journal)
    }

    /// A journal that records nothing and says why: whatever must be recorded is refused.
    #[must_use]
    pub fn unavailable(fault: JournalFault) -> Self {
        Self::unwritten(fault, None)
    }

    /// A journal that keeps nothing and refuses nothing: for a person who asked for no record.
    #[must_use]
    pub fn discarding() -> Self {
        Self::unwritten(JournalFault::Closed, Some(AtomicU64::new(0)))
    }

    fn unwritten(fault: JournalFault, discarded: Option<AtomicU64>) -> Self {
        let session = SessionId::unavailable();
        // A directory that no path is below: nothing can be created behind a device.
        let dir = PathBuf::from(if discarded.is_some() { "/dev/null/journal" } else { "/" });
        let inner = Inner {
            queue: Arc::new(Queue::refusing(fault)),
            clock: || 0,
            session,
            dir,
            fingerprint: Digest::ZERO,
            writer: Mutex::new(None),
            discarded,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Records `event`. Cheap unless durability is `Fsync`: encoding, hashing and writing happen elsewhere.
    ///
    /// # Errors
    /// When the event cannot be recorded, what it is about must not happen.
    pub fn append(&self, event: Event) -> Result<Ack, JournalFault> {
        if let Some(next) = &self.inner.discarded {
            return Ok(Ack { seq: next.fetch_add(1, Ordering::Relaxed) });
        }
        if event.text_len() > MAX_LINE / 8 && line_len(&event) > MAX_LINE {
            return Err(JournalFault::TooLarge);
        }
        let event = if event.time() == 0 { event.at((self.inner.clock)()) } else { event };
        self.inner.queue.append(event).map(|seq| Ack { seq })
    }

    /// Waits until every event appended so far is on disk and sealed.
    pub fn flush(&self) -> Result<(), JournalFault> {
        if self.inner.discarded.is_some() { Ok(()) } else { self.inner.queue.flush() }
    }

    /// Why appends are refused at the moment, if they are.
    pub fn refusal(&self) -> Option<JournalFault> {
        if self.inner.discarded.is_some() { None } else { self.inner.queue.refusal() }
    }

    /// The directory it is written to. No sandbox shows it.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.inner.session
    }

    /// The fingerprint of the key that seals: worth keeping somewhere else.
    pub fn fingerprint(&self) -> Digest {
        self.inner.fingerprint
    }

    /// Writes and seals what is left, and notes the end in the index. Returns the last line: worth keeping too.
    ///
    /// Clones that are still around can append no more.
    pub fn close(self) -> Result<Option<Point>, JournalFault> {
        if self.inner.discarded.is_some() {
            return Ok(None);
        }
        self.inner.join().unwrap_or(Err(JournalFault::Closed))
    }
}

impl Inner {
    fn join(&self) -> Option<Result<Option<Point>, JournalFault>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.queue.close();
        Some(writer.join().unwrap_or(Err(JournalFault::Stopped)))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn spawn(writer: Writer, queue: Arc<Queue>, dir: &Path) -> Result<Thread, JournalFault> {
    std::thread::Builder::new()
        .name("journal".into())
        .spawn(move || writer.run(&queue))
        .map_err(|error| JournalFault::io("start the writer of", dir, &error))
}

/// How long the event's line is at most.
fn line_len(event: &Event) -> usize {
    let Ok(longest) = "x".repeat(64).parse::<SessionId>() else { return usize::MAX };
    let mut line = Vec::new();
    let last = Point { seq: crate::format::MAX_INTEGER - 1, hash: Digest::ZERO };
    Chain::genesis(longest).after(last).push_event(event, &mut line);
    line.len() + 16
}
