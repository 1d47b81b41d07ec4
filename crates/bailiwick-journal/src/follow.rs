//! Following a journal as it grows, across rotation and new sessions, and resuming where another reader left off.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::layout::{self, Layout};
use super::read::{Filter, Found, read_from, scan};
use crate::fault::{During, JournalFault};
use crate::format::{MAX_LINE, SessionId};

/// Follows a journal as it grows, across rotation and new sessions.
pub struct Follow {
    layout: Layout,
    filter: Filter,
    places: BTreeMap<SessionId, ReadPlace>,
}

/// How far a session was read. Every reader may keep it and resume there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadPlace {
    /// The segment.
    pub segment: u32,
    /// How many of its bytes were read: whole lines.
    pub offset: u64,
    /// How many lines these are.
    pub lines: usize,
}

impl ReadPlace {
    /// The place behind the whole lines of `text`, which starts here.
    fn after(self, text: &[u8]) -> Self {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        Self { offset: self.offset + whole as u64, lines: self.lines + lines, ..self }
    }
}

impl Follow {
    /// Follows from the beginning of what is there.
    pub fn from_start(dir: &Path, filter: Filter) -> Self {
        Self::resume(dir, filter, [])
    }

    /// Follows from these places; a session that has none is read from its beginning.
    pub fn resume(
        dir: &Path,
        filter: Filter,
        places: impl IntoIterator<Item = (SessionId, ReadPlace)>,
    ) -> Self {
        Self { layout: Layout::for_reading(dir), filter, places: places.into_iter().collect() }
    }

    /// Follows from the end of what is there.
    pub fn from_end(dir: &Path, filter: Filter) -> Result<Self, JournalFault> {
        let mut follow = Self::from_start(dir, filter);
        for (session, numbers) in follow.layout.all_segments()? {
            if let Some(segment) = numbers.last().copied() {
                let text = layout::read_all(&follow.layout.segment(&session, segment))?;
                follow.places.insert(session, ReadPlace { segment, ..ReadPlace::default() }.after(&text));
            }
        }
        Ok(follow)
    }

    /// How far each session was read.
    pub fn places(&self) -> impl Iterator<Item = (&SessionId, &ReadPlace)> {
        self.places.iter()
    }

    /// What was added since the last time. Does not wait: the caller decides how often to look.
    pub fn poll(&mut self) -> Result<Vec<Found>, JournalFault> {
        self.poll_at_most(u64::MAX)
    }

    /// The same, about `bytes` of it at most: the rest comes the next time. One whole line always fits.
    pub fn poll_at_most(&mut self, bytes: u64) -> Result<Vec<Found>, JournalFault> {
        let (mut found, mut left) = (Vec::new(), bytes.max(MAX_LINE as u64 + 1));
        for (session, numbers) in self.layout.all_segments()? {
            if !self.filter.wants_session(&session) {
                continue;
            }
            let place = self.places.entry(session.clone()).or_default();
            let first = place.segment;
            for segment in numbers.into_iter().filter(|number| *number >= first) {
                if segment > place.segment {
                    *place = ReadPlace { segment, ..ReadPlace::default() };
                }
                let file = self.layout.segment(&session, segment);
                let length = length(&file)?;
                if length <= place.offset {
                    continue;
                }
                let text = read_from(&file, place.offset, left)?;
                found.extend(scan(&file, &text, place.lines, &self.filter));
                *place = place.after(&text);
                left -= text.len() as u64;
                if left <= MAX_LINE as u64 {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

/// How long a file is; a file that was removed is empty.
fn length(path: &Path) -> Result<u64, JournalFault> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).during("look at", path),
    }
}
