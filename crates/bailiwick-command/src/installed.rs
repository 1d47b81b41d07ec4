//! Where `install` keeps what a settings file was before.

use std::path::{Path, PathBuf};

use bailiwick_policy::digest::Digest;

use crate::user_state::state;

/// Whether `install` put our hooks into a file.
///
/// # Errors
/// If the state directory cannot be used.
pub fn was_installed(path: &Path) -> anyhow::Result<bool> {
    Ok(kept_path(&resolved(path))?.exists())
}

/// Where what a settings file was before is kept.
///
/// # Errors
/// If the state directory cannot be used.
pub fn kept_path(path: &Path) -> anyhow::Result<PathBuf> {
    let name: String =
        Digest::sha256(path.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
    Ok(state()?.dir().join("install").join(name))
}

/// The file itself, through links, whether it is there yet or not: a link to it stays one, and what is kept of it is
/// found again under the same name.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    let parts = (path.parent().filter(|parent| !parent.as_os_str().is_empty()), path.file_name());
    path.canonicalize().unwrap_or_else(|_| match parts {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_path_buf(),
    })
}
