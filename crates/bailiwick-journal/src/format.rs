//! The journal's format: what one line says, how it is written, and what makes a chain of lines whole.
//!
//! A journal is JSON Lines. Every line is the canonical JSON (RFC 8785) of one record, with one last member
//! `hash` placed textually at the end: the SHA-256 of the line as it was before that member was put in.
//! Every line names the hash of the line before it (`prev`), so a chain can be walked without trusting it.
//!
//! Invariants: one record has exactly one encoding; the decoder accepts nothing else, so an accepted line
//! re-encodes to the same bytes. Nothing here reads files or clocks, or checks signatures: the holder of the keys
//! does that over [`Line::signed_bytes`].
mod chain;
mod decode;
mod encode;
mod event;
mod seal;
mod session;
mod signature;
mod text;

pub use bailiwick_policy::digest::{Digest, HexError};
pub use chain::{Break, Chain, Located, Point, Tamper, verify_lines};
pub use decode::{Line, LineError};
pub use event::{Decision, Enforcement, Event, RecordKind, TokenError};
pub use seal::{Record, RecordBody, Seal, SealKind};
pub use session::{SessionError, SessionId};
pub use signature::Signature;
pub use text::Text;

/// The version that every line carries as `v` that is written now. Version 2 has the members `agent`, `origin`,
/// `risk` and `used_declared_capability` and the kind `sandbox-ended`; lines of version 1 are read, and written again as they were.
pub const VERSION: u64 = 2;

/// The first version.
pub(crate) const FIRST_VERSION: u64 = 1;

/// The longest line that is written or accepted, without its newline.
pub const MAX_LINE: usize = 64 * 1024;

/// The largest integer a line may hold: beyond it, JSON readers disagree.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// What is put before the bytes that a seal signs, so that no other signature can be taken for one.
pub const SEAL_DOMAIN: &[u8] = b"bailiwick-journal-seal-v1\n";
