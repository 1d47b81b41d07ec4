//! Private files that are replaced as a whole, durably, and locks.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use bailiwick_journal::private;

/// Writes a file for its owner alone. When this returns, the new text is on disk whatever happens next.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    replace_for(Readers::Owner, path, bytes)
}

/// The same for what is no secret: where all users may look into the directory, they may read it.
pub(crate) fn replace_shown(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let reads = if is_open_to_all(parent) { Readers::All } else { Readers::Owner };
    replace_for(reads, path, bytes)
}

/// Who reads a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Owner,
    All,
}

#[cfg(unix)]
fn is_open_to_all(directory: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & 0o005 == 0o005)
}

#[cfg(unix)]
fn open_to_all(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn open_to_all(_: &File) -> std::io::Result<()> {
    Ok(())
}

fn replace_for(readers: Readers, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    private::make_directory(parent)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let draft = parent.join(name);
    // One that a killed process left behind.
    drop(fs::remove_file(&draft));
    let mut file = private::options().write(true).create_new(true).open(&draft)?;
    file.write_all(bytes)?;
    if readers == Readers::All {
        open_to_all(&file)?;
    }
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
