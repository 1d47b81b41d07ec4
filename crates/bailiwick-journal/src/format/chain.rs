//! The chain: which line may follow which, and, when one may not, what was done to the file.
//!
//! [`Chain`] is both the writer's and the verifier's state: it makes the next line or accepts it. It needs no
//! key, so it finds damage and clumsy edits; that nobody rewrote the whole chain is for the seals to show.
//!
//! Fails closed when: a line has the wrong form, hash, session, number or predecessor; the chain then stays
//! where it was. Residual: lines cut off the end are found only against a head that was kept elsewhere.
#[cfg(test)]
mod tests;

use super::encode::{self, ChainPosition};
use super::{Digest, Event, Line, LineError, SEAL_DOMAIN, Seal, SessionId, Signature, VERSION};

/// One line of a chain: its number and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The line's number, from 0.
    pub seq: u64,
    /// The line's hash.
    pub hash: Digest,
}

/// Where a chain stands: what the next line must be.
#[derive(Debug, Clone)]
pub struct Chain {
    session: Option<SessionId>,
    next: u64,
    prev: Digest,
    version: u64,
}

/// Why a line does not follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// Not a record at all.
    #[error(transparent)]
    Form(#[from] LineError),
    /// Its hash is not that of its content.
    #[error("its content does not have its hash")]
    Hash,
    /// It belongs to another session.
    #[error("it belongs to another session")]
    Session,
    /// It is a first line, but names a predecessor.
    #[error("it is the first line but names one before it")]
    Genesis,
    /// Its number is too high.
    #[error("it is number {found}, but number {expected} comes here")]
    Ahead {
        /// The number that comes here.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// Its number was already there.
    #[error("it is number {found}, which was already there; number {expected} comes here")]
    Behind {
        /// The number that comes here.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// It names another predecessor.
    #[error("it does not follow the line before it: one of the two was rewritten")]
    Prev,
}

impl Chain {
    /// The chain of a session that has no lines yet.
    pub const fn genesis(session: SessionId) -> Self {
        Self { session: Some(session), next: 0, prev: Digest::ZERO, version: VERSION }
    }

    /// The chain of the index, whose lines are about different sessions.
    pub const fn index() -> Self {
        Self { session: None, next: 0, prev: Digest::ZERO, version: VERSION }
    }

    /// The same chain, standing after `point`.
    #[must_use]
    pub const fn after(mut self, point: Point) -> Self {
        self.next = point.seq.saturating_add(1);
        self.prev = point.hash;
        self
    }

    /// The same chain, whose lines are written in another version that is known.
    #[must_use]
    pub const fn in_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// The number of the next line.
    pub const fn next_seq(&self) -> u64 {
        self.next
    }

    /// The last line, if there is one.
    pub fn last(&self) -> Option<Point> {
        Some(Point { seq: self.next.checked_sub(1)?, hash: self.prev })
    }

    /// Writes `event` as the next line, newline included.
    pub fn push_event(&mut self, event: &Event, out: &mut Vec<u8>) -> Point {
        let start = out.len();
        let session = self.session.as_ref().map_or("", SessionId::as_str);
        let place = ChainPosition { session, seq: self.next, prev: &self.prev, version: self.version };
        encode::event(event, &place, out);
        self.advance(encode::finish(start, out))
    }

    /// Writes `seal` as the next line, newline included; `sign` makes the signature over the bytes it is given.
    pub fn push_seal(
        &mut self,
        seal: &Seal,
        sign: impl FnOnce(&[u8]) -> Signature,
        out: &mut Vec<u8>,
    ) -> Point {
        let (session, version) = (seal.session.as_str(), self.version);
        let place = ChainPosition { session, seq: self.next, prev: &self.prev, version };
        let mut unsigned = SEAL_DOMAIN.to_vec();
        encode::seal(seal, &place, None, &mut unsigned);
        let signature = sign(&unsigned);
        let start = out.len();
        encode::seal(seal, &place, Some(&signature), out);
        self.advance(encode::finish(start, out))
    }

    /// Moves past `line` (without its newline) if it is what comes next.
    pub fn accept<'a>(&mut self, line: &'a [u8]) -> Result<Line<'a>, Break> {
        let line = Line::parse(line)?;
        self.check(&line)?;
        self.advance(*line.hash());
        Ok(line)
    }

    fn check(&self, line: &Line<'_>) -> Result<(), Break> {
        if !line.hash_holds() {
            return Err(Break::Hash);
        }
        if self.session.as_ref().is_some_and(|session| session.as_str() != line.session()) {
            return Err(Break::Session);
        }
        let (expected, found) = (self.next, line.seq());
        if found > expected {
            return Err(Break::Ahead { expected, found });
        }
        if found < expected {
            return Err(Break::Behind { expected, found });
        }
        if *line.prev() != self.prev {
            return Err(if found == 0 { Break::Genesis } else { Break::Prev });
        }
        Ok(())
    }

    const fn advance(&mut self, hash: Digest) -> Point {
        let point = Point { seq: self.next, hash };
        self.next += 1;
        self.prev = hash;
        point
    }
}

/// What was done to a journal, with names that never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tamper {
    /// A line was changed, or put in.
    Edited,
    /// Lines are missing in the middle or at the start.
    Dropped,
    /// Lines stand in another order.
    Reordered,
    /// A line is there twice.
    Duplicated,
    /// A line comes from another session.
    Spliced,
    /// The first line is not a first line.
    BadGenesis,
    /// Lines are missing at the end.
    TruncatedTail,
    /// The last line is incomplete.
    TornTail,
    /// The chain is whole, but not the one that was vouched for.
    Rewritten,
    /// A seal's signature does not hold.
    ForgedHead,
    /// A seal was made with another key.
    ReplacedKey,
    /// Lines follow the last seal.
    UnsignedTail,
    /// The index or the head file of a session is missing or damaged.
    DamagedIndex,
    /// The index names a session that is not there.
    MissingSession,
}

impl Tamper {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Edited,
        Self::Dropped,
        Self::Reordered,
        Self::Duplicated,
        Self::Spliced,
        Self::BadGenesis,
        Self::TruncatedTail,
        Self::TornTail,
        Self::Rewritten,
        Self::ForgedHead,
        Self::ReplacedKey,
        Self::UnsignedTail,
        Self::DamagedIndex,
        Self::MissingSession,
    ];

    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Dropped => "dropped",
            Self::Reordered => "reordered",
            Self::Duplicated => "duplicated",
            Self::Spliced => "spliced",
            Self::BadGenesis => "bad-genesis",
            Self::TruncatedTail => "truncated-tail",
            Self::TornTail => "torn-tail",
            Self::Rewritten => "rewritten",
            Self::ForgedHead => "forged-head",
            Self::ReplacedKey => "replaced-key",
            Self::UnsignedTail => "unsigned-tail",
            Self::DamagedIndex => "damaged-index",
            Self::MissingSession => "missing-session",
        }
    }

    /// What it means, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Edited => "a line was changed or put in",
            Self::Dropped => "lines are missing at the start or in the middle",
            Self::Reordered => "lines stand in another order",
            Self::Duplicated => "a line, or its number, is there twice",
            Self::Spliced => "a line comes from another session",
            Self::BadGenesis => "the first line names one before it",
            Self::TruncatedTail => "lines are missing at the end",
            Self::TornTail => "the last line is incomplete",
            Self::Rewritten => "a line is not the one that was vouched for",
            Self::ForgedHead => "a seal's signature does not hold",
            Self::ReplacedKey => "a seal was made with another key",
            Self::UnsignedTail => "whole lines follow the last seal",
            Self::DamagedIndex => "the index or a session's head file is missing or damaged",
            Self::MissingSession => "the index knows a session that is not there",
        }
    }
}

/// The first bad line of a text, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// Where the line starts, in bytes.
    pub offset: usize,
    /// The number that comes there.
    pub seq: u64,
    /// What was done.
    pub tamper: Tamper,
    /// Why that is known.
    pub detail: String,
}

/// Walks `chain` over all lines of `text` and shows each to `each` with its number from 1, until one is bad.
///
/// `each` may refuse a line of the right form for reasons of its own (a signature, a kept head).
pub fn verify_lines<'a>(
    chain: &mut Chain,
    text: &'a [u8],
    mut each: impl FnMut(usize, &Line<'a>) -> Result<(), (Tamper, String)>,
) -> Result<usize, Located> {
    let mut offset = 0;
    let mut count = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        count += 1;
        let seq = chain.next_seq();
        let located = |tamper, detail| Located { line: count, offset, seq, tamper, detail };
        let Some((b'\n', bare)) = line.split_last() else {
            return Err(located(Tamper::TornTail, "the last line is incomplete".into()));
        };
        let parsed = chain.accept(bare).map_err(|why| {
            let rest = text.get(offset + line.len()..).unwrap_or_default();
            located(diagnose(why, rest), why.to_string())
        })?;
        each(count, &parsed).map_err(|(tamper, detail)| located(tamper, detail))?;
        offset += line.len();
    }
    Ok(count)
}

/// What was done, judging from the break and the lines after it.
fn diagnose(why: Break, rest: &[u8]) -> Tamper {
    match why {
        Break::Form(_) | Break::Hash | Break::Prev => Tamper::Edited,
        Break::Session => Tamper::Spliced,
        Break::Genesis => Tamper::BadGenesis,
        Break::Behind { .. } => Tamper::Duplicated,
        Break::Ahead { expected, .. } if has_seq(rest, expected) => Tamper::Reordered,
        Break::Ahead { .. } => Tamper::Dropped,
    }
}

fn has_seq(text: &[u8], seq: u64) -> bool {
    text.split(|byte| *byte == b'\n').filter_map(|line| Line::parse(line).ok()).any(|line| line.seq() == seq)
}
