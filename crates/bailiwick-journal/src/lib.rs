//! The journal on disk: one writer per session, a chain that a reader can check, and seals that a key vouches
//! for. The form of a line is [`mod@format`]; this crate owns files, time, keys and threads.
//!
//! In the directory that is passed in:
//!
//! | file | what |
//! |---|---|
//! | `SESSION.000000.jsonl`, … | the session's lines, in segments; the chain goes on from one to the next |
//! | `SESSION.head` | the session's last seal, rewritten at every flush, and the lock of its writer |
//! | `day-2026-11-17.…` | a session that many short runs share for a day, see [`SharedJournal`] |
//! | `index.jsonl` | a chain of its own: sessions opened, closed and removed, each entry signed |
//! | `key` | the Ed25519 key, mode 0600 |
//!
//! Invariants: a line that was acknowledged as durable is on disk and sealed; a file never has two writers; what is
//! behind the last durable line is written again or repaired and recorded, never left torn.
//!
//! Fails closed when: the directory or key has other owners or modes, the file is locked, what is there does not
//! verify, the disk is full or fails: `open` and `append` then refuse. Residual: see `docs/journal.md`.
#![forbid(unsafe_code)]

mod clock;
mod fault;
mod follow;
pub mod format;
mod handle;
mod heads;
mod index;
mod key;
mod layout;
mod name;
mod own_dirs;
pub mod private;
mod queue;
mod read;
mod redact;
mod retain;
mod shared;
mod tape;
mod verify;
mod writer;

pub use clock::now_us;
pub use fault::{Cause, JournalFault};
pub use follow::{Follow, ReadPlace};
pub use handle::{Ack, Journal};
pub use heads::sealed_heads;
pub use key::{fingerprint, holds, local_fingerprint, local_key, sign_locally};
pub use name::new_session;
pub use own_dirs::OwnDirs;
pub use read::{Filter, Found, Listed, Unreadable, last_records, records, sessions};
pub use redact::{Body, Redaction};
pub use retain::{Retained, retain};
pub use shared::SharedJournal;
pub use verify::{Expected, Problem, Report, SessionReport, verify, verify_watched};

use std::time::Duration;

/// When `append` comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// At once; the event is on disk and sealed within about 50 ms.
    #[default]
    Group,
    /// When the event is on disk and sealed. Appenders that wait together share one flush.
    Fsync,
}

/// How a journal is written.
#[derive(Debug, Clone)]
pub struct Options {
    /// When `append` comes back.
    pub durability: Durability,
    /// How long events are gathered before they are written, when no caller waits for them.
    pub flush_every: Duration,
    /// How many events may wait for the writer.
    pub queue: usize,
    /// How many bytes of text the waiting events may hold.
    pub queue_bytes: usize,
    /// How long `append` waits for room in the queue before it refuses.
    pub queue_wait: Duration,
    /// How long a segment may grow before the next one is begun.
    pub segment_bytes: u64,
    /// How often a failed write is tried again.
    pub retry_every: Duration,
    /// What time it is, in microseconds since 1970.
    pub clock: fn() -> u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Group,
            flush_every: Duration::from_millis(20),
            queue: 16 * 1024,
            queue_bytes: 32 * 1024 * 1024,
            queue_wait: Duration::from_secs(5),
            segment_bytes: 64 * 1024 * 1024,
            retry_every: Duration::from_millis(100),
            clock: now_us,
        }
    }
}
