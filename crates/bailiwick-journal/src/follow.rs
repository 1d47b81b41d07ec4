//! Following a journal as it grows, across rotation and new sessions, and resuming where another reader left off.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::layout::{self, Layout};
use super::read::{Filter, Found, read_from, scan};
use crate::fault::{During, JournalFault};
use crate::format::{Line, MAX_LINE, SessionId};

/// Follows a journal as it grows, across rotation and new sessions.
pub struct Follow {
    layout: Layout,
    filter: Filter,
    places: BTreeMap<SessionId, ReadPlace>,
    is_sealed_only: bool,
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
        let places = places.into_iter().collect();
        Self { layout: Layout::for_reading(dir), filter, places, is_sealed_only: false }
    }

    /// The same, but lines that no seal follows yet are left for later.
    #[must_use]
    pub const fn sealed_only(mut self) -> Self {
        self.is_sealed_only = true;
        self
    }

    /// How many bytes were not read yet, sealed or not.
    ///
    /// # Errors
    /// If the files cannot be looked at.
    pub fn unread_bytes(&self) -> Result<u64, JournalFault> {
        let mut unread = 0;
        for (session, numbers) in self.layout.all_segments()? {
            let place = self.places.get(&session).copied().unwrap_or_default();
            for segment in numbers.into_iter().filter(|number| *number >= place.segment) {
                let read = if segment == place.segment { place.offset } else { 0 };
                unread += length(&self.layout.segment(&session, segment))?.saturating_sub(read);
            }
        }
        Ok(unread)
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
        let all = self.layout.all_segments()?;
        // A name is never used again, so a session that was removed needs no place.
        self.places.retain(|session, _| all.contains_key(session));
        for (session, numbers) in all {
            if !self.filter.wants_session(&session) {
                continue;
            }
            let newest = numbers.last().copied();
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
                let end = if self.is_sealed_only && Some(segment) == newest {
                    sealed_end(&file, place.offset, length)?
                } else {
                    u64::MAX
                };
                let text = read_from(&file, place.offset, left.min(end - place.offset))?;
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

/// Where the last seal of a file ends that is so long; `from`, if there is none behind that.
fn sealed_end(file: &Path, from: u64, length: u64) -> Result<u64, JournalFault> {
    let near = length.saturating_sub(2 * MAX_LINE as u64).max(from);
    let end = end_of_seals(&read_from(file, near, length - near)?);
    if end > 0 || near == from {
        return Ok(near + end as u64);
    }
    Ok(from + end_of_seals(&read_from(file, from, length - from)?) as u64)
}

/// Where the last seal ends, its newline included.
fn end_of_seals(text: &[u8]) -> usize {
    let mut end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    while let Some(line) = text.get(..end).and_then(|text| text.strip_suffix(b"\n")) {
        let start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_seal = |line: &[u8]| Line::parse(line).is_ok_and(|line| line.seal_kind().is_some());
        if line.get(start..).is_some_and(is_seal) {
            return end;
        }
        end = start;
    }
    0
}

/// How long a file is; a file that was removed is empty.
fn length(path: &Path) -> Result<u64, JournalFault> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).during("look at", path),
    }
}
