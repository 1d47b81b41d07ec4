//! Tools from PyPI and npm that `scripts/test` has installed into the cache, for a user who does not see the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::stage::run_on_host;

/// Where `scripts/test` installs them.
fn cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("bailiwick/programs")).filter(|directory| directory.is_dir())
}

/// Whether a tool, such as `{tools}/bin/uv`, is installed.
pub(super) fn has(path: &str) -> bool {
    let below = path.strip_prefix("{tools}/").unwrap_or(path);
    cache().is_some_and(|cache| cache.join(below).symlink_metadata().is_ok())
}

/// The same files at a place that everyone sees.
pub(super) fn placed() -> Option<tempfile::TempDir> {
    let (from, to) = (cache()?, super::services::directory());
    // Linked where the file system is the same: they are large.
    let copied = |how: &str| Command::new("cp").arg(how).arg(from.join(".")).arg(to.path()).status();
    if !copied("-al").is_ok_and(|status| status.success()) {
        run_on_host(Command::new("cp").arg("-a").arg(from.join(".")).arg(to.path()));
    }
    lead_scripts_to(&from, to.path());
    Some(to)
}

/// Scripts of a virtual environment name its interpreter by the path that it was made at.
fn lead_scripts_to(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(entries) = std::fs::read_dir(to.join("bin")) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).unwrap_or_default(); // others are programs
        if text.starts_with("#!") && !path.is_symlink() {
            std::fs::remove_file(&path).unwrap(); // never the one in the cache
            let own = text.replace(&from.display().to_string(), &to.display().to_string());
            std::fs::write(&path, own).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
