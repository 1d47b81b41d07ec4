//! Names for new sessions: they sort by time and do not collide.
use super::{JournalFault, now_us};
use crate::format::SessionId;
use std::io;
use std::path::Path;

/// A name for a session that starts now: the seconds since 1970, and eight random digits.
///
/// # Errors
/// If the system has no randomness to give.
pub fn new_session() -> Result<SessionId, JournalFault> {
    let failed = |why: String| JournalFault::io("name", Path::new("a session"), &io::Error::other(why));
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
    let name = format!("{}-{:08x}", now_us() / 1_000_000, u32::from_be_bytes(random));
    name.parse().map_err(|error: crate::format::SessionError| failed(error.to_string()))
}
