//! `[pins.files]`: programs and libraries outside of the system, by their hash.
//!
//! Fails closed when: a file is not there, cannot be read, is too large or has another hash. Nothing is started then.
//! Residual: a file that its owner changes between the look and the start is not noticed; inside the sandbox it cannot be
//! changed.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_manifest::Manifest;
use bailiwick_policy::digest::Digest;

/// The largest file that is pinned.
const MOST_BYTES: u64 = 256 << 20;

/// `sha256:` and the hash of a file.
///
/// # Errors
/// Why there is none.
pub fn hash_of(path: &Path) -> anyhow::Result<String> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot open `{}`", path.display()))?;
    let about = file.metadata()?;
    anyhow::ensure!(about.is_file(), "`{}` is not a file", path.display());
    anyhow::ensure!(about.len() <= MOST_BYTES, "`{}` is larger than {MOST_BYTES} bytes", path.display());
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(format!("sha256:{}", Digest::sha256(&bytes)))
}

/// # Errors
/// The first file that is not what it was, and what to do.
pub fn ensure_unchanged(manifest: &Manifest) -> anyhow::Result<()> {
    for (path, hash) in &manifest.pins().files {
        let now =
            hash_of(Path::new(&path.to_string())).context("a file of `[pins.files]` cannot be compared")?;
        anyhow::ensure!(
            now == *hash,
            "`{path}` has changed since the manifest pinned it, so nothing was started. If you changed or updated it, have the manifest \
             learned again with `bailiwick learn --update MANIFEST -- COMMAND…`, or write \"{now}\" behind it in `[pins.files]`; else find \
             out who did"
        );
    }
    Ok(())
}
