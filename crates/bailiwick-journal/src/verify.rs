//! Verifying a journal directory: every line of every session, every seal, and the index against the files.
//!
//! Reports the first problem of each session and of the index, located by file and line. Nothing is changed.
//! What this proves and what not is in `docs/journal.md`: in short, a local key proves nothing against its own holder.
mod session;

use super::index::Index;
use super::key;
use super::layout::Layout;
use super::{JournalFault, fingerprint};
use crate::format::{Digest, Line, Located, Point, SessionId, Tamper};
use std::fmt;
use std::path::{Path, PathBuf};

/// What was kept elsewhere, to hold the journal against.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The fingerprint of the key. Without it, the key beside the journal is taken, which its holder could replace.
    pub key: Option<Digest>,
    /// Last lines of sessions.
    pub heads: Vec<(SessionId, Point)>,
    /// Only this session.
    pub session: Option<SessionId>,
}

/// What verification found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The fingerprint of the key that every seal was held against.
    pub key: Option<Digest>,
    /// Each session.
    pub sessions: Vec<SessionReport>,
    /// What is wrong with the index.
    pub index: Vec<Problem>,
}

/// One session.
#[derive(Debug, Clone)]
pub struct SessionReport {
    /// The session.
    pub session: SessionId,
    /// How many segments it has.
    pub segments: usize,
    /// How many lines were walked.
    pub lines: u64,
    /// The last good line.
    pub last: Option<Point>,
    /// Lines up to here were removed by retention.
    pub removed: Option<Point>,
    /// Whether a process writes it now.
    pub is_live: bool,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// The number of the chain that is concerned, if one is.
    pub seq: Option<u64>,
    /// What was done.
    pub tamper: Tamper,
    /// Why that is known.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, code) = (self.file.display(), self.tamper.code());
        match self.line {
            0 => write!(f, "{file}: {code}: {}", self.detail),
            line => write!(f, "{file}:{line}: {code}: {}", self.detail),
        }
    }
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.problems().next().is_none()
    }

    /// Everything that is wrong.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.index.iter().chain(self.sessions.iter().flat_map(|session| &session.problems))
    }
}

/// Verifies the journal in `dir`.
///
/// # Errors
/// Only when the files cannot be read; what is wrong in them is in the report.
pub fn verify(dir: &Path, expected: &Expected) -> Result<Report, JournalFault> {
    verify_watched(dir, expected, |_, _| {})
}

/// The same; `watch` is told after each segment how many lines and sessions were walked so far.
///
/// # Errors
/// As [`verify`].
pub fn verify_watched(
    dir: &Path,
    expected: &Expected,
    watch: impl FnMut(u64, usize),
) -> Result<Report, JournalFault> {
    walk(dir, expected, false, watch)
}

/// The same for a caller that has the lock of the session that is expected.
pub(super) fn verify_locked(dir: &Path, expected: &Expected) -> Result<Report, JournalFault> {
    walk(dir, expected, true, |_, _| {})
}

fn walk(
    dir: &Path,
    expected: &Expected,
    is_locked: bool,
    mut watch: impl FnMut(u64, usize),
) -> Result<Report, JournalFault> {
    let layout = Layout::for_reading(dir);
    let local = key::local_public(&layout).ok().flatten().map(|public| fingerprint(&public));
    let mut seals = Seals { key: expected.key.or(local), public: None };
    // the sessions first: one that appears while the index is read would seem to be missing from it
    let mut names = layout.sessions()?;
    let index = Index::read(&layout, |line| seals.check_line(line))?;
    names.extend(index.sessions.keys().cloned());
    names.extend(expected.heads.iter().map(|(session, _)| session.clone()));
    let (mut sessions, mut lines) = (Vec::new(), 0);
    for name in names {
        if expected.session.as_ref().is_none_or(|only| *only == name) {
            let done = sessions.len();
            let mut on_segment = |own| watch(lines + own, done);
            let report =
                session::verify(&layout, &name, &index, expected, is_locked, (&mut seals, &mut on_segment))?;
            lines += report.lines;
            sessions.push(report);
        }
    }
    let index = index.problem.map(|located| problem(&layout.index(), located));
    Ok(Report { key: seals.key, sessions, index: index.into_iter().collect() })
}

/// Checks seals against one key.
struct Seals {
    /// The fingerprint; when none is known, the first seal decides.
    key: Option<Digest>,
    /// The key that has this fingerprint, once it was seen.
    public: Option<Digest>,
}

impl Seals {
    fn check(&mut self, key: &Digest, holds: bool) -> Result<(), (Tamper, String)> {
        if !holds {
            return Err((Tamper::ForgedHead, "its signature does not hold".into()));
        }
        self.check_key(key)
    }

    fn check_key(&mut self, key: &Digest) -> Result<(), (Tamper, String)> {
        if self.public.as_ref() == Some(key) {
            return Ok(());
        }
        let found = fingerprint(key);
        let known = *self.key.get_or_insert(found);
        if found != known {
            return Err((Tamper::ReplacedKey, format!("it was signed with key {found}, not with {known}")));
        }
        self.public = Some(*key);
        Ok(())
    }

    fn check_line(&mut self, line: &Line<'_>) -> Result<(), (Tamper, String)> {
        match line.signed_bytes() {
            Some((public, signature, bytes)) => self.check(&public, key::holds(&public, &signature, &bytes)),
            None => Err((Tamper::Edited, "it is not a seal".into())),
        }
    }
}

fn problem(file: &Path, located: Located) -> Problem {
    let Located { line, seq, tamper, detail, .. } = located;
    Problem { file: file.to_path_buf(), line, seq: Some(seq), tamper, detail }
}
