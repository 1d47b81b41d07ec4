//! Where the paths of a call start and lead: fixed when a session starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A working directory, a home, and the top-level directories of the host.
#[derive(Debug, Clone)]
pub struct Surroundings {
    cwd: PathBuf,
    home: Option<PathBuf>,
    top_level: BTreeSet<String>,
}

impl Surroundings {
    /// Those of a session that works in `cwd`, an absolute path, on this host. There is no home.
    #[must_use]
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let top_level = std::fs::read_dir("/").into_iter().flatten().filter_map(Result::ok);
        let top_level = top_level.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        Self { cwd: cwd.into(), home: None, top_level }
    }

    /// The same, where `~` is `home`.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The same on a host with these top-level directories.
    #[must_use]
    pub fn with_top_level(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.top_level = names.into_iter().collect();
        self
    }

    /// Where relative paths start.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// What `~` stands for.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Whether the host had a top-level directory of this name when the session started.
    pub(crate) fn has_top_level(&self, name: &str) -> bool {
        self.top_level.contains(name)
    }
}
