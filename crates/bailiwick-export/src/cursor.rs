//! The cursor: how far each session was exported, what is counted, and which calls have begun. One file, for one process at a time.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bailiwick_journal::format::SessionId;
use bailiwick_journal::{ReadPlace, private};
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::spans::Begun;

/// No cursor is larger.
const MOST_BYTES: u64 = 64 << 20;

/// What is wrong with the text of a cursor.
#[derive(Debug, thiserror::Error)]
pub enum CursorTextError {
    /// It is none.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is one of another version.
    #[error("it is of version {0}")]
    Version(u32),
}

/// Why there is no cursor.
#[derive(Debug, thiserror::Error)]
pub enum CursorError {
    /// Another process exports from it.
    #[error("another process exports with the cursor `{}`", .0.display())]
    Locked(PathBuf),
    /// It was written by another version, or by hand.
    #[error("`{}` is not a cursor of this version: {why}; remove it to begin anew", file.display())]
    NotCursor {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: CursorTextError,
    },
    /// The file cannot be read or written.
    #[error("the cursor `{}`: {fault}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's word.
        fault: io::Error,
    },
}

/// How far was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cursor {
    version: u32,
    pub(crate) sessions: BTreeMap<String, SessionCursor>,
    pub(crate) counts: Counts,
}

/// How far a session was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionCursor {
    segment: u32,
    offset: u64,
    lines: usize,
    /// The number of the next line.
    pub(crate) next_seq: u64,
    /// Spans that have begun, by the number of the line that began them.
    pub(crate) begun: BTreeMap<u64, Begun>,
}

const VERSION: u32 = 1;

impl Cursor {
    pub(crate) fn places(&self) -> impl Iterator<Item = (SessionId, ReadPlace)> {
        self.sessions.iter().filter_map(|(name, at)| {
            let place = ReadPlace { segment: at.segment, offset: at.offset, lines: at.lines };
            Some((name.parse().ok()?, place))
        })
    }

    /// Takes over how far was read; sessions that are gone are forgotten.
    pub(crate) fn move_to<'a>(&mut self, places: impl Iterator<Item = (&'a SessionId, &'a ReadPlace)>) {
        let mut before = std::mem::take(&mut self.sessions);
        for (session, place) in places {
            let mut at = before.remove(session.as_str()).unwrap_or_default();
            (at.segment, at.offset, at.lines) = (place.segment, place.offset, place.lines);
            self.sessions.insert(session.as_str().to_owned(), at);
        }
    }

    fn read(text: &[u8]) -> Result<Self, CursorTextError> {
        let cursor: Self = serde_json::from_slice(text)?;
        if cursor.version == VERSION { Ok(cursor) } else { Err(CursorTextError::Version(cursor.version)) }
    }
}

/// The file of a cursor, locked for as long as this lives.
#[derive(Debug)]
pub struct CursorFile {
    path: PathBuf,
    _lock: File,
}

impl CursorFile {
    /// Locks the cursor at `path`; the file is made when it is first kept.
    ///
    /// # Errors
    /// If its directory cannot be used, or another process has it.
    pub fn lock(path: &Path) -> Result<Self, CursorError> {
        let in_file = |fault| CursorError::File { file: path.to_owned(), fault };
        let dir = path.parent().ok_or_else(|| in_file(io::ErrorKind::InvalidFilename.into()))?;
        private::make_directory(dir).map_err(in_file)?;
        let found = fs::symlink_metadata(dir).map_err(in_file)?;
        if let Some(why) = private::directory_fault(&found) {
            return Err(in_file(io::Error::other(format!("its directory {why}"))));
        }
        let lock = private::options().read(true).append(true).create(true).open(path.with_extension("lock"));
        let lock = lock.map_err(in_file)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(CursorError::Locked(path.to_owned())),
            Err(TryLockError::Error(fault)) => Err(in_file(fault)),
        }
    }

    /// What was kept; the beginning if nothing was.
    pub(crate) fn read(&self) -> Result<Cursor, CursorError> {
        let mut text = Vec::new();
        let read = private::options().read(true).open(&self.path);
        match read.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text)) {
            Ok(_) => {
                let wrong = |why| CursorError::NotCursor { file: self.path.clone(), why };
                Cursor::read(&text).map_err(wrong)
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(Self::beginning()),
            Err(fault) => Err(CursorError::File { file: self.path.clone(), fault }),
        }
    }

    /// The cursor before everything.
    pub(crate) fn beginning() -> Cursor {
        let counts = Counts { since_us: bailiwick_journal::now_us(), ..Counts::default() };
        Cursor { version: VERSION, sessions: BTreeMap::new(), counts }
    }

    /// Keeps it: on disk when this comes back.
    pub(crate) fn keep(&self, cursor: &Cursor) -> Result<(), CursorError> {
        self.replace(cursor).map_err(|fault| CursorError::File { file: self.path.clone(), fault })
    }

    fn replace(&self, cursor: &Cursor) -> io::Result<()> {
        let next = self.path.with_extension("next");
        match fs::remove_file(&next) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
        let mut file = private::options().write(true).create_new(true).open(&next)?;
        file.write_all(&serde_json::to_vec(cursor)?)?;
        file.sync_all()?;
        fs::rename(&next, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_kept_for_one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own").join("c.json");
        let file = CursorFile::lock(&path).unwrap();
        assert!(matches!(CursorFile::lock(&path), Err(CursorError::Locked(_))));
        let mut cursor = file.read().unwrap();
        cursor.sessions.insert("s".into(), SessionCursor { next_seq: 4, ..SessionCursor::default() });
        file.keep(&cursor).unwrap();
        drop(file);
        assert_eq!(CursorFile::lock(&path).unwrap().read().unwrap(), cursor);
        fs::write(&path, r#"{"version":2,"sessions":{},"counts":{}}"#).unwrap();
        let refused = CursorFile::lock(&path).unwrap().read();
        assert!(matches!(refused, Err(CursorError::NotCursor { .. })), "{refused:?}");
    }
}
