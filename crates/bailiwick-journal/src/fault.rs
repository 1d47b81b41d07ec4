//! What can go wrong with a journal, each with a stable code. A fault is an answer too: a gate that waits for
//! `append` refuses the call.
use crate::format::SessionId;
use std::io;
use std::path::{Path, PathBuf};

/// Why the journal refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// The directory cannot be trusted.
    #[error("journal directory `{path}` {why}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The key cannot be trusted.
    #[error("journal key `{path}` {why}")]
    Key {
        /// The key file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another process writes this session.
    #[error("session `{0}` is being written by another process")]
    Locked(SessionId),
    /// What is on disk does not verify, so nothing is added to it.
    #[error("session `{session}` does not verify: {why}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// What was found.
        why: String,
    },
    /// No space.
    #[error("no space to {step} `{path}`: {cause}")]
    Full {
        /// What was tried.
        step: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        cause: Cause,
    },
    /// Another failure of the system.
    #[error("cannot {step} `{path}`: {cause}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        cause: Cause,
    },
    /// The queue stayed full.
    #[error("the journal's queue stayed full: the disk is too slow")]
    Busy,
    /// The event does not fit a line.
    #[error("the event is longer than a journal line may be")]
    TooLarge,
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// The writer is gone.
    #[error("the journal's writer has stopped")]
    Stopped,
}

/// What the system said: an error number, or words when there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// An error number.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    Errno(i32),
    /// Words.
    #[error("{0}")]
    Words(String),
}

impl JournalFault {
    /// What each code means, in one line.
    pub const MEANINGS: [(&str, &str); 10] = [
        ("journal-directory", "the directory has another owner, or others may write to it"),
        ("journal-key", "the key has another owner or mode, or is none"),
        ("journal-locked", "another process writes the session"),
        ("journal-damaged", "what is there does not verify, and nothing is added to it"),
        ("journal-full", "the disk is full"),
        ("journal-io", "the system failed to read or write"),
        ("journal-busy", "the queue stayed full: the disk is too slow"),
        ("journal-event-too-large", "the event does not fit a line"),
        ("journal-closed", "the journal was closed"),
        ("journal-stopped", "the journal's writer is gone"),
    ];

    /// Every code.
    pub const CODES: [&str; 10] = [
        "journal-directory",
        "journal-key",
        "journal-locked",
        "journal-damaged",
        "journal-full",
        "journal-io",
        "journal-busy",
        "journal-event-too-large",
        "journal-closed",
        "journal-stopped",
    ];

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "journal-directory",
            Self::Key { .. } => "journal-key",
            Self::Locked(_) => "journal-locked",
            Self::Damaged { .. } => "journal-damaged",
            Self::Full { .. } => "journal-full",
            Self::Io { .. } => "journal-io",
            Self::Busy => "journal-busy",
            Self::TooLarge => "journal-event-too-large",
            Self::Closed => "journal-closed",
            Self::Stopped => "journal-stopped",
        }
    }

    pub(super) fn io(step: &'static str, path: &Path, error: &io::Error) -> Self {
        let cause = error.raw_os_error().map_or_else(|| Cause::Words(error.to_string()), Cause::Errno);
        let path = path.to_path_buf();
        if matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        ) {
            return Self::Full { step, path, cause };
        }
        Self::Io { step, path, cause }
    }
}

/// Names the step and the file of a failure.
pub(super) trait During<T> {
    fn during(self, step: &'static str, path: &Path) -> Result<T, JournalFault>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, step: &'static str, path: &Path) -> Result<T, JournalFault> {
        self.map_err(|error| JournalFault::io(step, path, &error))
    }
}
