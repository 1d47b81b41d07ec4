//! Retention: removes what is older than a given time, whole segments at a time, and signs a tombstone first.
//!
//! Only what verifies is removed: a tombstone must not bury a change. The newest segment of a session that is being
//! written stays. A crash in between leaves lines that the tombstone already covers; the next run removes them.
use super::fault::{During, JournalFault};
use super::heads::HeadFile;
use super::index;
use super::key::Sealer;
use super::layout::{self, Layout};
use super::shared;
use super::verify::{self, Expected};
use crate::format::{Line, Point, SealKind, SessionId};
use std::fs;
use std::path::{Path, PathBuf};

/// What retention did with a session that had something old enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retained {
    /// Segments were removed, up to this line.
    Removed {
        /// The session.
        session: SessionId,
        /// How many segments.
        segments: usize,
        /// The last line that was removed.
        upto: Point,
        /// Whether nothing is left of it.
        is_whole: bool,
    },
    /// It does not verify, so all of it was kept.
    Suspect(SessionId),
}

/// Removes segments whose last line was written before `before` (microseconds since 1970). `now` dates the tombstones.
pub fn retain(dir: &Path, before: u64, now: u64) -> Result<Vec<Retained>, JournalFault> {
    let layout = Layout::for_writing(dir)?;
    let sealer = Sealer::load_or_create(&layout)?;
    let mut outcomes = Vec::new();
    for session in layout.sessions()? {
        outcomes.extend(
            Sweep::plan(&layout, &session, before, now)?.map(|sweep| sweep.run(&sealer, now)).transpose()?,
        );
    }
    Ok(outcomes)
}

/// What is to be removed of one session.
struct Sweep<'a> {
    layout: &'a Layout,
    session: SessionId,
    old: Vec<PathBuf>,
    upto: Point,
    /// Held while the whole session goes.
    whole: Option<HeadFile>,
}

impl<'a> Sweep<'a> {
    fn plan(
        layout: &'a Layout,
        session: &SessionId,
        before: u64,
        now: u64,
    ) -> Result<Option<Self>, JournalFault> {
        let numbers = layout.segments(session)?;
        let (mut old, mut upto) = (Vec::new(), None);
        for number in &numbers {
            let path = layout.segment(session, *number);
            let text = layout::read_all(&path)?;
            let Some((point, time)) = last_line(&text) else { break };
            if time >= before {
                break;
            }
            old.push(path);
            upto = Some(point);
        }
        let mut whole = None;
        if old.len() == numbers.len() && upto.is_some() {
            let locked = match HeadFile::lock(layout, session) {
                Ok(_) if shared::is_open(session, now) => Err(JournalFault::Locked(session.clone())),
                locked => locked,
            };
            whole = match locked {
                Ok(held) => Some(held),
                Err(JournalFault::Locked(_)) => {
                    old.pop();
                    upto = old
                        .last()
                        .map(|path| layout::read_all(path))
                        .transpose()?
                        .as_deref()
                        .and_then(last_line)
                        .map(|(point, _)| point);
                    None
                }
                Err(fault) => return Err(fault),
            };
        }
        Ok(upto.map(|upto| Self { layout, session: session.clone(), old, upto, whole }))
    }

    fn run(self, sealer: &Sealer, now: u64) -> Result<Retained, JournalFault> {
        if !self.is_intact(sealer)? {
            return Ok(Retained::Suspect(self.session));
        }
        let entry = index::IndexEntry {
            kind: SealKind::Removed,
            session: &self.session,
            point: Some(self.upto),
            time: now,
        };
        index::add(self.layout, sealer, &entry)?;
        for path in &self.old {
            fs::remove_file(path).during("remove", path)?;
        }
        if self.whole.is_some() {
            let head = self.layout.head(&self.session);
            fs::remove_file(&head).during("remove", &head)?;
        }
        self.layout.sync()?;
        let (segments, upto, is_whole) = (self.old.len(), self.upto, self.whole.is_some());
        Ok(Retained::Removed { session: self.session, segments, upto, is_whole })
    }

    fn is_intact(&self, sealer: &Sealer) -> Result<bool, JournalFault> {
        let key = Some(super::fingerprint(&sealer.public()));
        let expected = Expected { key, session: Some(self.session.clone()), ..Expected::default() };
        let report = match self.whole {
            Some(_) => verify::verify_locked(self.layout.dir(), &expected)?,
            None => verify::verify(self.layout.dir(), &expected)?,
        };
        Ok(report.is_intact())
    }
}

/// The number, hash and time of the last line.
fn last_line(text: &[u8]) -> Option<(Point, u64)> {
    let line = text.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let line = Line::parse(line).ok().filter(Line::hash_holds)?;
    Some((Point { seq: line.seq(), hash: *line.hash() }, line.time()))
}
