//! What a session knows of its surroundings, fixed when it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Working directory, home, environment and top-level directories, gathered once at the edge.
#[derive(Debug, Clone)]
pub struct Session {
    cwd: PathBuf,
    home: Option<PathBuf>,
    env: BTreeMap<String, String>,
    top_level: BTreeSet<String>,
    own: Vec<PathBuf>,
    locked: Vec<PathBuf>,
}

impl Session {
    /// A session that works in `cwd`, an absolute path. It has no home and no environment.
    #[must_use]
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let top_level = std::fs::read_dir("/").into_iter().flatten().filter_map(Result::ok);
        let top_level = top_level.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        Self {
            cwd: cwd.into(),
            home: None,
            env: BTreeMap::new(),
            top_level,
            own: Vec::new(),
            locked: Vec::new(),
        }
    }

    /// The same session, where `~` is `home`.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The same session with these variables to read.
    #[must_use]
    pub fn with_env(mut self, env: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env = env.into_iter().collect();
        self
    }

    /// The same session on a host with these top-level directories.
    #[must_use]
    pub fn with_top_level(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.top_level = names.into_iter().collect();
        self
    }

    /// The same session, where these folders are Bailiwick's own (settings, trust, keys): no tool sees or changes them.
    /// The journal's folder always is.
    #[must_use]
    pub fn with_own(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own.extend(folders);
        self
    }

    /// The same session, where these files say what it may do: tools may read them where that is granted, and never
    /// change them. Absolute paths, links followed.
    #[must_use]
    pub fn with_locked(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.locked.extend(files);
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

    /// A variable of the environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// All variables of the environment.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Bailiwick's own directories.
    #[must_use]
    pub fn own(&self) -> &[PathBuf] {
        &self.own
    }

    /// The files that say what the session may do.
    #[must_use]
    pub fn locked(&self) -> &[PathBuf] {
        &self.locked
    }

    /// Whether the host had a top-level directory of this name when the session started.
    #[must_use]
    pub fn has_top_level(&self, name: &str) -> bool {
        self.top_level.contains(name)
    }
}
