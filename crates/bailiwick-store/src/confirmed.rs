//! Programs that a person confirmed to be what the metadata around them claims.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bailiwick_journal::private::make_directory;

const FILE: &str = "confirmed.list";

/// Whether a person confirmed the program at this real path.
#[must_use]
pub fn is_confirmed(records: &Path, program: &Path) -> bool {
    confirmed(records).is_ok_and(|all| all.iter().any(|known| known == program))
}

/// Notes that a person confirmed it.
///
/// # Errors
/// If that cannot be kept.
pub fn confirm(records: &Path, program: &Path) -> io::Result<()> {
    let name = program.to_str().filter(|name| !name.contains('\n'));
    let name = name.ok_or_else(|| io::Error::other("the path is not one line of text"))?;
    let mut all = confirmed(records)?;
    if all.iter().any(|known| known == program) {
        return Ok(());
    }
    all.push(PathBuf::from(name));
    make_directory(records)?;
    let mut file = tempfile::NamedTempFile::new_in(records)?;
    all.iter().try_for_each(|path| writeln!(file, "{}", path.display()))?;
    file.as_file().sync_all()?;
    file.persist(records.join(FILE))?;
    Ok(())
}

fn confirmed(records: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_to_string(records.join(FILE)) {
        Ok(text) => Ok(text.lines().map(PathBuf::from).collect()),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_confirmed_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let records = dir.path().join("records");
        assert!(!is_confirmed(&records, Path::new("/a/server")));
        confirm(&records, Path::new("/a/server")).unwrap();
        confirm(&records, Path::new("/b/server")).unwrap();
        assert!(
            is_confirmed(&records, Path::new("/a/server")) && is_confirmed(&records, Path::new("/b/server"))
        );
        assert!(!is_confirmed(&records, Path::new("/a")));
        assert!(confirm(&records, Path::new("/a\n/c")).is_err());
    }
}
