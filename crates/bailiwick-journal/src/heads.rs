//! `SESSION.head`: the session's last seal, kept beside its lines so that a cut-off end shows, and the lock that
//! gives the session one writer.
//!
//! Two slots are written in turn, so that a write torn by a power cut leaves the one before it. A slot is written
//! only after its line is durable in the segment: the head file is never ahead of the journal.
use super::fault::{During, JournalFault};
use super::index;
use super::key;
use super::layout::{self, Layout};
use crate::format::{Digest, Line, Point, SealKind, SessionId, Signature};
use crate::private;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const SLOT: usize = 1024;

/// The head file, locked for as long as this value lives.
pub(super) struct HeadFile {
    file: File,
    path: PathBuf,
    turn: u64,
}

/// A kept head.
pub(super) struct Kept {
    pub(super) point: Point,
    pub(super) key: Digest,
    pub(super) signature: Signature,
    pub(super) signed: Vec<u8>,
}

impl Kept {
    /// Whether the key `public` vouches for it.
    pub(super) fn is_signed_with(&self, public: &Digest) -> bool {
        self.key == *public && key::holds(&self.key, &self.signature, &self.signed)
    }
}

impl Drop for HeadFile {
    /// A child that another thread is just starting shares the open file until it execs: closing alone would
    /// leave the session locked for that moment.
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

impl HeadFile {
    /// Locks the session, or says who has it.
    pub(super) fn lock(layout: &Layout, session: &SessionId) -> Result<Self, JournalFault> {
        let path = layout.head(session);
        Self::locked(layout, session, |file| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(JournalFault::Locked(session.clone())),
            Err(TryLockError::Error(error)) => Err(JournalFault::io("lock", &path, &error)),
        })
    }

    /// Locks a session that others hold for one append at a time, as soon as they let go of it.
    pub(super) fn lock_waiting(layout: &Layout, session: &SessionId) -> Result<Self, JournalFault> {
        let path = layout.head(session);
        Self::locked(layout, session, |file| index::wait(|| file.try_lock()).during("lock", &path))
    }

    fn locked(
        layout: &Layout,
        session: &SessionId,
        lock: impl Fn(&File) -> Result<(), JournalFault>,
    ) -> Result<Self, JournalFault> {
        let path = layout.head(session);
        loop {
            let file = layout::open_or_create(&path)?;
            lock(&file)?;
            // retention may have removed the file between opening and locking it: a lock on a
            // removed file excludes no other process
            let held = file.metadata().during("look at", &path)?;
            let named = fs::symlink_metadata(&path);
            if named.is_ok_and(|named| private::is_same_file(&named, &held)) {
                reserve(&file).during("write", &path)?;
                return Ok(Self { file, path, turn: 0 });
            }
        }
    }

    /// Keeps `line`, the newest seal.
    pub(super) fn keep(&mut self, line: &[u8]) -> Result<(), JournalFault> {
        let mut slot = line.to_vec();
        slot.resize(SLOT, b' ');
        let place = (self.turn % 2) * slot.len() as u64;
        private::write_all_at(&self.file, &slot, place).during("write", &self.path)?;
        self.turn += 1;
        Ok(())
    }

    /// The newest head that it keeps; none too where it is damaged. The next one goes into the other slot.
    pub(super) fn newest(&mut self, session: &SessionId) -> Result<Option<Kept>, JournalFault> {
        let mut bytes = [0; 2 * SLOT];
        private::read_exact_at(&self.file, &mut bytes, 0).during("read", &self.path)?;
        let (first, second) = bytes.split_at(SLOT);
        let read = |slot: &[u8]| read_slot(slot.trim_ascii_end(), session);
        let (newest, turn) = match (read(first), read(second)) {
            (Some(first), Some(second)) if second.point.seq > first.point.seq => (Some(second), 0),
            (None, Some(second)) => (Some(second), 0),
            (first, _) => (first, 1),
        };
        self.turn = turn;
        Ok(newest)
    }

    pub(super) fn sync(&self) -> Result<(), JournalFault> {
        self.file.sync_data().during("flush", &self.path)
    }
}

/// Whether a process writes the session now.
pub(super) fn is_live(layout: &Layout, session: &SessionId) -> bool {
    let file = layout::open_existing(&layout.head(session));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The newest kept head, if there is one. `Err` says that the file is there but damaged.
pub(super) fn kept(layout: &Layout, session: &SessionId) -> Result<Result<Option<Kept>, ()>, JournalFault> {
    let bytes = layout::read_all(&layout.head(session))?;
    let slots = bytes.chunks(SLOT).map(|slot| slot.trim_ascii_end()).filter(|slot| !slot.is_empty());
    let (mut newest, mut bad) = (None::<Kept>, false);
    for slot in slots {
        match read_slot(slot, session) {
            Some(kept) if newest.as_ref().is_none_or(|newest| newest.point.seq < kept.point.seq) => {
                newest = Some(kept);
            }
            Some(_) => {}
            None => bad = true,
        }
    }
    Ok(if newest.is_none() && bad { Err(()) } else { Ok(newest) })
}

/// The last seal of each session in `dir`, as its head file keeps it. Whether the lines are there is [`verify`](super::verify())'s
/// question.
///
/// # Errors
/// If a file cannot be read. A session whose head file is damaged is left out.
pub fn sealed_heads(dir: &Path) -> Result<Vec<(SessionId, Point)>, JournalFault> {
    let layout = Layout::for_reading(dir);
    let mut found = Vec::new();
    for session in layout.sessions()? {
        if let Ok(Some(kept)) = kept(&layout, &session)? {
            found.push((session, kept.point));
        }
    }
    Ok(found)
}

fn read_slot(slot: &[u8], session: &SessionId) -> Option<Kept> {
    let line = Line::parse(slot).ok().filter(Line::hash_holds)?;
    if line.session() != session.as_str() || line.seal_kind() != Some(SealKind::Head) {
        return None;
    }
    let (key, signature, signed) = line.signed_bytes()?;
    Some(Kept { point: Point { seq: line.seq(), hash: *line.hash() }, key, signature, signed })
}

/// Takes the space of both slots now, so that a full disk cannot keep a later head from being kept.
fn reserve(file: &File) -> std::io::Result<()> {
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if len < 2 * SLOT { private::write_all_at(file, &vec![b' '; 2 * SLOT - len], len as u64) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Chain, Seal};
    use crate::key::Sealer;

    #[test]
    fn a_torn_slot_leaves_the_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::for_writing(dir.path()).unwrap();
        let sealer = Sealer::load_or_create(&layout).unwrap();
        let session: SessionId = "x".repeat(64).parse().unwrap();
        let mut chain = Chain::genesis(session.clone());
        let mut file = HeadFile::lock(&layout, &session).unwrap();
        let newest = || kept(&layout, &session).unwrap().map(|kept| kept.map(|kept| kept.point.seq));
        assert_eq!(newest(), Ok(None));
        for seq in 0..5 {
            let (kind, key) = (SealKind::Head, sealer.public());
            let seal = Seal { kind, session: session.clone(), point: None, time: u64::MAX, key };
            let mut line = Vec::new();
            chain.push_seal(&seal, |bytes| sealer.sign(bytes), &mut line);
            assert!(line.len() <= SLOT, "{}", line.len());
            file.keep(line.trim_ascii_end()).unwrap();
            assert_eq!(newest(), Ok(Some(seq)));
        }
        // number 4 is in the first slot, number 3 in the second
        private::write_all_at(&file.file, b"?", 30).unwrap();
        assert_eq!(newest(), Ok(Some(3)));
        private::write_all_at(&file.file, b"?", 30 + SLOT as u64).unwrap();
        assert_eq!(newest(), Err(()));
        assert!(is_live(&layout, &session));
        drop(file);
        assert!(!is_live(&layout, &session));
    }
}
