//! The lock that tells wrapped servers that a console runs, where a person can be asked.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_journal::private;

use crate::facts;

/// Held, shared, by every console that can answer.
const LOCK: &str = "console.lock";

/// Whether a console runs that can answer. Without a state directory there is none.
#[must_use]
pub fn is_there() -> bool {
    let Some(path) = facts::state_dir().map(|dir| dir.join(LOCK)) else { return false };
    let Ok(file) = private::options().read(true).open(path) else { return false };
    matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
}

/// The lock of a console, held until it is dropped.
///
/// # Errors
/// If the state directory cannot be written.
pub fn held_lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join(LOCK);
    let file = private::options().read(true).append(true).create(true).open(&path);
    let file = file.with_context(|| format!("cannot open `{}`", path.display()))?;
    file.lock_shared().with_context(|| format!("cannot lock `{}`", path.display()))?;
    Ok(file)
}
