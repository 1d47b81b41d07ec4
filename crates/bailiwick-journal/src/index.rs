//! `index.jsonl`: which sessions exist, where they were closed and what retention removed. A chain of seals.
//!
//! Many processes add to it, each under an exclusive lock for as long as one entry takes. It is never cut.
//! Readers share the lock, so that an entry is there as a whole or not at all.
use super::fault::{During, JournalFault};
use super::key::Sealer;
use super::layout::{self, Layout};
use crate::format::{Chain, Line, Located, Point, Record, Seal, SealKind, SessionId, Tamper, verify_lines};
use crate::private;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::time::Duration;

/// No entry is longer than this.
const LONGEST: u64 = 2048;

const LOCK_TRIES: u32 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const FIRST_PAUSE: Duration = Duration::from_micros(50);

/// One thing to be said about a session.
pub(super) struct IndexEntry<'a> {
    pub(super) kind: SealKind,
    pub(super) session: &'a SessionId,
    pub(super) point: Option<Point>,
    pub(super) time: u64,
}

/// Adds an entry; when this returns, it is on disk.
pub(super) fn add(layout: &Layout, sealer: &Sealer, entry: &IndexEntry<'_>) -> Result<(), JournalFault> {
    let path = layout.index();
    let file = layout::open_or_create(&path)?;
    lock(&file).during("lock", &path)?;
    let end = End::find(&file).during("read", &path)?;
    let mut chain = Chain::index();
    if let Some(last) = &end.last_line {
        let point = last_point(last).ok_or_else(|| JournalFault::Damaged {
            session: entry.session.clone(),
            why: "the last entry of the index is not one".into(),
        })?;
        chain = chain.after(point);
    }
    let mut lines = Vec::new();
    let mut push = |kind, point| {
        let session = entry.session.clone();
        let seal = Seal { kind, session, point, time: entry.time, key: sealer.public() };
        chain.push_seal(&seal, |bytes| sealer.sign(bytes), &mut lines);
    };
    if end.is_torn {
        push(SealKind::Repaired, None);
    }
    push(entry.kind, entry.point);
    let written = private::write_all_at(&file, &lines, end.whole)
        .and_then(|()| file.set_len(end.whole + lines.len() as u64))
        .and_then(|()| file.sync_all());
    if written.is_err() && !end.is_torn {
        let _ = file.set_len(end.whole);
    }
    written.during("write", &path)?;
    // Only a file that is new has a name that is not on disk yet.
    if end.whole == 0 { layout.sync() } else { Ok(()) }
}

/// Waits for the lock, which others hold for as long as one entry takes; not for ever.
fn lock(file: &File) -> std::io::Result<()> {
    wait(|| file.try_lock())
}

/// Tries to lock until it can be, with short pauses at first; not for ever.
pub(super) fn wait(mut try_lock: impl FnMut() -> Result<(), TryLockError>) -> std::io::Result<()> {
    for tries in 0..LOCK_TRIES {
        match try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE.min(FIRST_PAUSE * (tries + 1))),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    Err(std::io::Error::other("another process does not let go of it"))
}

/// What the index says.
#[derive(Default)]
pub(super) struct Index {
    pub(super) sessions: BTreeMap<SessionId, Indexed>,
    /// The first bad entry; nothing is known from there on.
    pub(super) problem: Option<Located>,
}

/// What the index says about one session.
#[derive(Default, Clone)]
pub(super) struct Indexed {
    /// Every line it was closed or opened at.
    pub(super) known: Vec<Point>,
    /// Lines up to here were removed.
    pub(super) removed: Option<Point>,
}

impl Index {
    /// Reads all entries, as long as they are a chain and `check` has nothing against them.
    pub(super) fn read(
        layout: &Layout,
        mut check: impl FnMut(&Line<'_>) -> Result<(), (Tamper, String)>,
    ) -> Result<Self, JournalFault> {
        let text = read_shared(layout)?;
        let mut index = Self::default();
        let walked = verify_lines(&mut Chain::index(), &text, |_, line| {
            check(line)?;
            index.note(line).map_err(|why| (Tamper::Edited, why.to_string()))
        });
        index.problem = walked.err();
        Ok(index)
    }

    /// What they say of one session. Where its name is not in them, as that of a new one, they are not looked at one by one:
    /// there may be those of years.
    pub(super) fn of_session(layout: &Layout, session: &SessionId) -> Result<Indexed, JournalFault> {
        let text = read_shared(layout)?;
        if std::str::from_utf8(&text).is_ok_and(|text| !text.contains(&session.to_string())) {
            return Ok(Indexed::default());
        }
        let mut index = Self::default();
        // What is behind a bad entry is not known.
        let _ = verify_lines(&mut Chain::index(), &text, |_, line| {
            index.note(line).map_err(|why| (Tamper::Edited, why.to_string()))
        });
        Ok(index.sessions.remove(session).unwrap_or_default())
    }

    fn note(&mut self, line: &Line<'_>) -> Result<(), &'static str> {
        let Record { entry, .. } = line.record().ok_or("it is not a record")?;
        let crate::format::RecordBody::Seal(seal, _) = entry else { return Err("it is not a seal") };
        match seal.kind {
            SealKind::Head => return Err("a head does not belong in the index"),
            SealKind::Repaired => {}
            SealKind::Opened | SealKind::Closed => {
                self.sessions.entry(seal.session).or_default().known.extend(seal.point);
            }
            SealKind::Removed => self.sessions.entry(seal.session).or_default().removed = seal.point,
        }
        Ok(())
    }
}

fn read_shared(layout: &Layout) -> Result<Vec<u8>, JournalFault> {
    let path = layout.index();
    let mut text = Vec::new();
    if !layout::is_there(&path)? {
        return Ok(text);
    }
    let mut file = layout::open_existing(&path)?;
    // a process that never releases the lock must not block a verifier
    for _ in 0..LOCK_TRIES {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => break,
        }
    }
    file.read_to_end(&mut text).during("read", &path)?;
    Ok(text)
}

/// How the file ends.
struct End {
    /// The length of all whole lines.
    whole: u64,
    last_line: Option<Vec<u8>>,
    is_torn: bool,
}

impl End {
    fn find(file: &File) -> std::io::Result<Self> {
        let len = file.metadata()?.len();
        let start = len.saturating_sub(2 * LONGEST);
        let mut tail = vec![0; usize::try_from(len - start).unwrap_or(0)];
        private::read_exact_at(file, &mut tail, start)?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole == 0 && start > 0 {
            return Err(std::io::Error::other("its end is not a line"));
        }
        let is_torn = whole < tail.len();
        tail.truncate(whole);
        let last_line = tail
            .strip_suffix(b"\n")
            .map(|text| text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().to_vec());
        Ok(Self { whole: start + whole as u64, last_line, is_torn })
    }
}

fn last_point(line: &[u8]) -> Option<Point> {
    let line = Line::parse(line).ok().filter(Line::hash_holds)?;
    Some(Point { seq: line.seq(), hash: *line.hash() })
}
