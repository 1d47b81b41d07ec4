//! Private files that are replaced as a whole, durably, and locks.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use bailiwick_journal::private;

/// Writes a file for its owner alone. When this returns, the new text is on disk whatever happens next.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    private::make_directory(parent)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let draft = parent.join(name);
    // One that a killed process left behind.
    drop(fs::remove_file(&draft));
    let mut file = private::options().write(true).create_new(true).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(parent)?.sync_all()
}

/// The text of a file; nothing if there is none.
pub(crate) fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// A file to lock, made if it is not there.
pub(crate) fn lock_file(path: &Path) -> std::io::Result<File> {
    private::make_directory(path.parent().unwrap_or(Path::new("/")))?;
    private::options().read(true).write(true).create(true).truncate(false).open(path)
}
