//! Seals: the signed records. A `head` vouches for a session's chain up to itself; the other kinds live in the
//! index of the journal's directory and say which sessions exist, where they ended and what was removed.
//!
//! A seal signs [`SEAL_DOMAIN`](super::SEAL_DOMAIN) and the canonical JSON of its record without `sig` and
//! `hash`: everything it says, and through `prev` everything before it.
use super::{Chain, Digest, Event, Point, SessionId, Signature};

/// The kinds of seal, with names that never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SealKind {
    /// In a session's file: the chain up to here is vouched for.
    Head,
    /// In the index: a session was opened for writing.
    Opened,
    /// In the index: a session was closed, and this was its last line.
    Closed,
    /// In the index, a tombstone: the session's lines up to and with this one were removed by retention.
    Removed,
    /// In the index: a torn last line of the index was cut off.
    Repaired,
}

impl SealKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Head, Self::Opened, Self::Closed, Self::Removed, Self::Repaired];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Opened => "index-opened",
            Self::Closed => "index-closed",
            Self::Removed => "index-removed",
            Self::Repaired => "index-repaired",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a seal says, without its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// What is vouched for.
    pub kind: SealKind,
    /// The session it is about.
    pub session: SessionId,
    /// In the index: the line of that session which is meant. None in a head, where `prev` says it.
    pub point: Option<Point>,
    /// When, in microseconds since 1970.
    pub time: u64,
    /// The public key.
    pub key: Digest,
}

/// One decoded line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place in the chain, from 0.
    pub seq: u64,
    /// The session it belongs to; in the index, the session it is about.
    pub session: SessionId,
    /// The hash of the line before it.
    pub prev: Digest,
    /// Its own hash.
    pub hash: Digest,
    /// The version of its line.
    pub version: u64,
    /// What it says.
    pub entry: RecordBody,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every line is an event: a box would be one allocation a line"
)]
pub enum RecordBody {
    /// Something happened.
    Event(Event),
    /// Something is vouched for.
    Seal(Seal, Signature),
}

impl Record {
    /// The event, if it is one.
    pub const fn event(&self) -> Option<&Event> {
        match &self.entry {
            RecordBody::Event(event) => Some(event),
            RecordBody::Seal(..) => None,
        }
    }

    /// When it was written, in microseconds since 1970.
    pub const fn time(&self) -> u64 {
        match &self.entry {
            RecordBody::Event(event) => event.time(),
            RecordBody::Seal(seal, _) => seal.time,
        }
    }

    /// The record as a line of JSON, member for member as it was read, `hash` included, whether or not that holds. Without
    /// a newline.
    pub fn to_line(&self) -> String {
        let chain = Chain::genesis(self.session.clone()).in_version(self.version);
        let before = self.seq.checked_sub(1).map(|seq| Point { seq, hash: self.prev });
        let mut chain = before.into_iter().fold(chain, Chain::after);
        let mut line = Vec::new();
        match &self.entry {
            RecordBody::Event(event) => chain.push_event(event, &mut line),
            RecordBody::Seal(seal, signature) => chain.push_seal(seal, |_| *signature, &mut line),
        };
        let line = String::from_utf8_lossy(&line);
        let (body, _) = line.rsplit_once(",\"hash\":").unwrap_or((&line, ""));
        format!("{body},\"hash\":\"{}\"}}", self.hash)
    }
}
