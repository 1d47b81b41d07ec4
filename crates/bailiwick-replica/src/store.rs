//! The files of the copy, in a directory of the user's alone, one for each log.
//!
//! | file | what |
//! |---|---|
//! | `copy` | the copy, replaced as a whole |
//! | `head` | its checkpoint once more: what is rolled back is seen also when the copy is damaged |
//! | `looked` | when the log was last looked at, by the file's time, and the web servers' tags |
//! | `lock` | locked while a process refreshes; it is only tried |
//! | `findings` | forks and rollbacks that were seen, a line each, the last hundred |

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::SignedHead;
use bailiwick_fleet::enrolment::Enrolment;
use bailiwick_fleet::tile::MAX_CHECKPOINT;
use bailiwick_journal::private;

use crate::copy::{DamagedCopy, LogCopy, MAX_COPY, trust};
use crate::fetch::Tags;
use crate::finding::LogFinding;

/// The largest file of findings and tags that is read.
const MAX_SMALL: u64 = 256 * 1024;

/// How many findings are kept.
const MOST_FINDINGS: usize = 100;

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system would not.
    #[error("cannot use `{0}`: {1}")]
    Io(PathBuf, std::io::Error),
    /// The copy is damaged.
    #[error("`{0}`: {1}")]
    Damaged(PathBuf, DamagedCopy),
}

/// Where the copy of one log is.
#[derive(Debug, Clone)]
pub struct CopyStore {
    dir: PathBuf,
    enrolment: Enrolment,
}

/// What tells one state of the file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMark(SystemTime, u64, u64);

impl CopyStore {
    /// The files of the log of this enrolment, below `state`.
    #[must_use]
    pub fn new(state: &Path, enrolment: &Enrolment) -> Self {
        let log = Hash::sha256(enrolment.log_key.to_string().as_bytes()).to_string();
        let name: String = log.chars().take(16).collect();
        Self { dir: state.join("fleet").join(name), enrolment: enrolment.clone() }
    }

    pub(crate) const fn enrolment(&self) -> &Enrolment {
        &self.enrolment
    }

    /// The copy, if there is one.
    ///
    /// # Errors
    /// If it is there and cannot be used.
    pub fn load(&self) -> Result<Option<LogCopy>, StoreError> {
        let path = self.dir.join("copy");
        let Some(bytes) = read(&path, MAX_COPY)? else { return Ok(None) };
        LogCopy::parse(&bytes, &self.enrolment).map(Some).map_err(|why| StoreError::Damaged(path, why))
    }

    /// The last checkpoint that was verified, also where the copy itself cannot be used.
    pub(crate) fn last_head(&self) -> Option<SignedHead> {
        let most = u64::try_from(MAX_CHECKPOINT).unwrap_or(u64::MAX);
        let signed = read(&self.dir.join("head"), most).ok().flatten()?;
        trust(&self.enrolment, None).open(&signed).ok()
    }

    /// Replaces the copy. One that has grown is on the disk when this returns: what was seen once is not forgotten.
    ///
    /// # Errors
    /// If it cannot be written; the one before stays.
    pub(crate) fn save(&self, copy: &LogCopy) -> Result<(), StoreError> {
        let path = self.dir.join("copy");
        let bytes = copy.to_bytes().map_err(|why| StoreError::Damaged(path.clone(), why))?;
        let has_grown = self.last_head().is_none_or(|head| head.checkpoint.size < copy.head.checkpoint.size);
        self.replace("copy", &bytes, has_grown)?;
        self.replace("head", &copy.signed, has_grown)
    }

    /// Tries the lock; nothing if another process refreshes.
    pub(crate) fn try_lock(&self) -> Result<Option<File>, StoreError> {
        let made = private::make_directory(&self.dir);
        made.map_err(|why| StoreError::Io(self.dir.clone(), why))?;
        let path = self.dir.join("lock");
        let file = private::options().write(true).create(true).open(&path);
        let file = file.map_err(|why| StoreError::Io(path.clone(), why))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(why)) => Err(StoreError::Io(path, why)),
        }
    }

    /// How long ago the log was looked at. A time in the future counts as long ago.
    pub(crate) fn looked_ago(&self) -> Duration {
        let looked = self.dir.join("looked").symlink_metadata().and_then(|found| found.modified());
        let ago = looked.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        ago.unwrap_or(Duration::MAX)
    }

    /// The tags of the web servers' checkpoints.
    pub(crate) fn tags(&self) -> Tags {
        let bytes = read(&self.dir.join("looked"), MAX_SMALL).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Notes that the log was looked at now.
    pub(crate) fn note_look(&self, tags: &Tags) -> Result<(), StoreError> {
        self.replace("looked", &serde_json::to_vec(tags).unwrap_or_default(), false)
    }

    /// What tells whether the copy is another one than before.
    pub(crate) fn mark(&self) -> Option<FileMark> {
        use std::os::unix::fs::MetadataExt as _;
        let found = self.dir.join("copy").symlink_metadata().ok()?;
        Some(FileMark(found.modified().ok()?, found.ino(), found.len()))
    }

    /// Forks and rollbacks that were seen, the oldest first.
    #[must_use]
    pub fn findings(&self) -> Vec<LogFinding> {
        let bytes = read(&self.dir.join("findings"), MAX_SMALL).ok().flatten().unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Keeps a finding; says whether it is a new one.
    pub(crate) fn keep_finding(&self, finding: &LogFinding) -> Result<bool, StoreError> {
        let mut all = self.findings();
        if all.iter().any(|known| known.is_same(finding)) {
            return Ok(false);
        }
        all.push(finding.clone());
        let late = all.len().saturating_sub(MOST_FINDINGS);
        let lines = all.iter().skip(late).filter_map(|one| serde_json::to_string(one).ok());
        self.replace("findings", lines.map(|line| line + "\n").collect::<String>().as_bytes(), true)?;
        Ok(true)
    }

    fn replace(&self, name: &str, bytes: &[u8], is_durable: bool) -> Result<(), StoreError> {
        let (path, draft) = (self.dir.join(name), self.dir.join(format!("{name}.new")));
        let written = || {
            let mut file = private::options().write(true).create(true).truncate(true).open(&draft)?;
            file.write_all(bytes)?;
            if is_durable {
                file.sync_data()?;
            }
            std::fs::rename(&draft, &path)
        };
        written().map_err(|why| StoreError::Io(path.clone(), why))
    }
}

/// The bytes of a file, at most this many; nothing if it is not there.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let io = |why| StoreError::Io(path.to_owned(), why);
    let file = match private::options().read(true).open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(io(why)),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(io(std::io::Error::new(ErrorKind::FileTooLarge, "it is too large")));
    }
    Ok(Some(bytes))
}
