//! The session's segments as the writer sees them: where the chain stands, and adding durable bytes to it.
//!
//! Opening walks the newest segment. A torn end behind the last seal is kept until the first commit, which
//! writes what was found there in its place: the repair and its record reach the disk together.
//!
//! Fails closed when: a sealed line is bad, a seal is not ours, or the head file or the index knows of a line that is not there.
use super::fault::{During, JournalFault};
use super::heads;
use super::index::Index;
use super::key;
use super::layout::{self, Layout};
use crate::format::{
    Chain, Digest, Event, Line, Located, Point, RecordKind, SealKind, SessionId, Tamper, verify_lines,
};
use crate::private;
use std::fs::File;
use std::path::PathBuf;

/// No seal is longer than this.
const LONGEST_SEAL: u64 = 1024;

/// The segment that is being written.
pub(super) struct Tape {
    layout: Layout,
    session: SessionId,
    number: u32,
    file: File,
    path: PathBuf,
    /// Everything before this is durable.
    len: u64,
    /// Bytes that were found behind `len`, and are not recorded yet.
    is_torn: bool,
}

/// What was found on opening.
pub(super) struct Opened {
    pub(super) tape: Tape,
    pub(super) chain: Chain,
    /// What has to be recorded about it.
    pub(super) notes: Vec<Event>,
}

impl Tape {
    /// Opens the newest segment, or the first. The session must be locked.
    pub(super) fn open(layout: &Layout, session: &SessionId, local: Digest) -> Result<Opened, JournalFault> {
        let damaged = |why: &str| JournalFault::Damaged { session: session.clone(), why: why.into() };
        let kept = heads::kept(layout, session)?.map_err(|()| damaged("its head file is damaged"))?;
        let is_ours = |kept: &heads::Kept| kept.is_signed_with(&local);
        if kept.as_ref().is_some_and(|kept| !is_ours(kept)) {
            return Err(damaged("its head file was not signed with this key"));
        }
        let indexed = Index::of_session(layout, session)?;
        let numbers = layout.segments(session)?;
        if numbers.is_empty() && indexed.removed.is_some() {
            return Err(damaged("retention removed it: use another name"));
        }
        let number = numbers.last().copied().unwrap_or(0);
        let sealed = kept.map(|kept| kept.point);
        let known = Known {
            key: local,
            sealed: sealed.map(|point| point.seq),
            points: sealed.into_iter().chain(indexed.known).collect(),
        };
        let walk = Walk::newest(layout, session, &numbers, &known)?;
        let path = layout.segment(session, number);
        let file = layout::open_or_create(&path)?;
        layout.sync()?;
        let is_current = walk.number == number;
        let tape = Self {
            layout: layout.clone(),
            session: session.clone(),
            number,
            file,
            path,
            len: if is_current { walk.len } else { 0 },
            is_torn: is_current && walk.torn.is_some(),
        };
        Ok(Opened { tape, notes: walk.notes(), chain: walk.chain })
    }

    /// The newest segment of a session whose last line is the seal `end`; none where that is not so. Reads no more
    /// than the end. The session must be locked.
    pub(super) fn at_seal(
        layout: &Layout,
        session: &SessionId,
        segment_bytes: u64,
        end: Point,
    ) -> Result<Option<Self>, JournalFault> {
        for number in 0.. {
            let path = layout.segment(session, number);
            // retention may have removed it
            let Some(file) = layout::open_to_change(&path)? else { return Ok(None) };
            let len = file.metadata().during("look at", &path)?.len();
            if len >= segment_bytes && layout::is_there(&layout.segment(session, number + 1))? {
                continue;
            }
            if last_seal(&file, len).during("read", &path)? != Some(end) {
                return Ok(None);
            }
            let (layout, session) = (layout.clone(), session.clone());
            return Ok(Some(Self { layout, session, number, file, path, len, is_torn: false }));
        }
        Ok(None)
    }

    /// Makes `bytes` durable, or leaves the segment as it was.
    pub(super) fn commit(&mut self, bytes: &[u8]) -> Result<(), JournalFault> {
        self.write(bytes, true)
    }

    /// Hands `bytes` to the kernel, or leaves the segment as it was. A power cut may lose them.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), JournalFault> {
        self.write(bytes, false)
    }

    fn write(&mut self, bytes: &[u8], is_durable: bool) -> Result<(), JournalFault> {
        let end = self.len + bytes.len() as u64;
        let done = private::write_all_at(&self.file, bytes, self.len)
            .and_then(|()| if self.is_torn { self.file.set_len(end) } else { Ok(()) })
            .and_then(|()| if is_durable { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = done {
            // an fsync that failed has forgotten what it failed on: all of it is written again next time
            if !self.is_torn {
                let _ = self.file.set_len(self.len);
            }
            return Err(JournalFault::io("write", &self.path, &error));
        }
        self.len = end;
        self.is_torn = false;
        Ok(())
    }

    /// How long the segment is.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Begins the next segment.
    pub(super) fn rotate(&mut self) -> Result<(), JournalFault> {
        let number = self.number.saturating_add(1);
        let path = self.layout.segment(&self.session, number);
        let file = layout::open_or_create(&path)?;
        file.set_len(0).during("empty", &path)?;
        self.layout.sync()?;
        (self.number, self.path, self.file, self.len) = (number, path, file, 0);
        Ok(())
    }
}

/// The last line, if it is whole and a seal.
fn last_seal(file: &File, len: u64) -> std::io::Result<Option<Point>> {
    let from = len.saturating_sub(LONGEST_SEAL);
    let mut end = vec![0; usize::try_from(len - from).unwrap_or_default()];
    private::read_exact_at(file, &mut end, from)?;
    let line = end.strip_suffix(b"\n").and_then(|end| end.rsplit(|byte| *byte == b'\n').next());
    let line = line.and_then(|line| Line::parse(line).ok());
    let seal = line.filter(|line| line.seal_kind() == Some(SealKind::Head) && line.hash_holds());
    Ok(seal.map(|line| Point { seq: line.seq(), hash: *line.hash() }))
}

/// The walk over the newest segment that has lines.
struct Walk {
    number: u32,
    chain: Chain,
    len: u64,
    last_head: Option<u64>,
    torn: Option<Torn>,
}

/// What is known about a session before its lines are read.
struct Known {
    key: Digest,
    /// The line up to which the head file vouches for the chain, with a signature that holds.
    sealed: Option<u64>,
    /// Lines that must be there.
    points: Vec<Point>,
}

impl Known {
    /// Refuses a seal that is not ours behind what the head file vouches for: we would seal what it stands for.
    fn check(&self, line: &Line<'_>) -> Result<(), (Tamper, String)> {
        if self.sealed.is_some_and(|sealed| line.seq() <= sealed) {
            return Ok(());
        }
        let is_ours = |(public, signature, signed): (Digest, _, Vec<u8>)| {
            public == self.key && key::holds(&public, &signature, &signed)
        };
        if line.signed_bytes().is_some_and(is_ours) {
            return Ok(());
        }
        Err((Tamper::ForgedHead, "its signature does not hold with this key".into()))
    }
}

struct Torn {
    bytes: usize,
    digest: Digest,
}

/// Why lines cannot be continued.
#[derive(Debug, thiserror::Error)]
enum Discontinued {
    #[error("line {0} was sealed and is not there")]
    Missing(u64),
    #[error("{code} at line {line}: {detail}")]
    Tampered { code: &'static str, line: usize, detail: String },
}

impl Walk {
    fn newest(
        layout: &Layout,
        session: &SessionId,
        numbers: &[u32],
        known: &Known,
    ) -> Result<Self, JournalFault> {
        let damaged =
            |why: Discontinued| JournalFault::Damaged { session: session.clone(), why: why.to_string() };
        let mut walk =
            Self { number: 0, chain: Chain::genesis(session.clone()), len: 0, last_head: None, torn: None };
        for number in numbers.iter().rev() {
            let text = layout::read_all(&layout.segment(session, *number))?;
            if text.is_empty() {
                continue;
            }
            walk.number = *number;
            walk.over(&text, *number > 0, known).map_err(damaged)?;
            break;
        }
        match known.points.iter().find(|point| walk.chain.next_seq() <= point.seq) {
            Some(point) => Err(damaged(Discontinued::Missing(point.seq))),
            None => Ok(walk),
        }
    }

    /// Walks over the lines; `Err` says why they cannot be continued.
    fn over(&mut self, text: &[u8], is_later: bool, known: &Known) -> Result<(), Discontinued> {
        let first = text.split(|byte| *byte == b'\n').next().and_then(|line| Line::parse(line).ok());
        if let (true, Some(first)) = (is_later, first)
            && let Some(seq) = first.seq().checked_sub(1)
        {
            self.chain = self.chain.clone().after(Point { seq, hash: *first.prev() });
        }
        let mut last_head = None;
        let walked = verify_lines(&mut self.chain, text, |_, line| {
            if line.seal_kind() == Some(SealKind::Head) {
                known.check(line)?;
                last_head = Some(line.seq());
            }
            if known.points.iter().any(|point| point.seq == line.seq() && point.hash != *line.hash()) {
                return Err((Tamper::Rewritten, "it is not the line that was sealed".into()));
            }
            Ok(())
        });
        self.last_head = last_head;
        self.len = text.len() as u64;
        match walked {
            Ok(_) => Ok(()),
            Err(located) => self.repair(text, &located),
        }
    }

    /// Decides whether what follows `located.offset` is a torn end, and keeps it out.
    fn repair(&mut self, text: &[u8], located: &Located) -> Result<(), Discontinued> {
        let rest = text.get(located.offset..).unwrap_or_default();
        let is_last_line = !rest.iter().take(rest.len().saturating_sub(1)).any(|byte| *byte == b'\n');
        let is_torn = match located.tamper {
            Tamper::TornTail => true,
            // the pages of a torn write reach the disk in any order; what was sealed did so as a whole
            Tamper::Edited => is_last_line || !has_head(rest),
            Tamper::Dropped
            | Tamper::Reordered
            | Tamper::Duplicated
            | Tamper::Spliced
            | Tamper::BadGenesis
            | Tamper::TruncatedTail
            | Tamper::Rewritten
            | Tamper::ForgedHead
            | Tamper::ReplacedKey
            | Tamper::UnsignedTail
            | Tamper::DamagedIndex
            | Tamper::MissingSession => false,
        };
        if !is_torn {
            let (code, line, detail) = (located.tamper.code(), located.line, located.detail.to_string());
            return Err(Discontinued::Tampered { code, line, detail });
        }
        self.len = located.offset as u64;
        self.torn = Some(Torn { bytes: rest.len(), digest: Digest::sha256(rest) });
        Ok(())
    }

    fn notes(&self) -> Vec<Event> {
        let mut notes = Vec::new();
        let next = self.chain.next_seq();
        let signed = self.last_head.map_or(0, |seq| seq + 1);
        if self.len > 0 && signed < next {
            let reason = format!("lines up to {} were found without a seal", next - 1);
            let event = Event::new(RecordKind::Fault).with_code("journal-unsigned-tail").with_reason(reason);
            notes.push(if signed > 0 { event.with_parent(signed - 1) } else { event });
        }
        if let Some(torn) = &self.torn {
            let reason = format!("a torn end of {} bytes was cut off before line {next}", torn.bytes);
            let event = Event::new(RecordKind::Fault).with_code("journal-repaired").with_reason(reason);
            notes.push(event.with_args_digest(torn.digest));
        }
        notes
    }
}

fn has_head(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| Line::parse(line).ok())
        .any(|line| line.seal_kind() == Some(SealKind::Head) && line.hash_holds())
}
