//! What the host says of itself, gathered by the caller and passed in as a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use bailiwick_launch::{NameSources, Recorder, Search};
use bailiwick_policy::facts::HostFacts;

/// The caller's host, as far as packages and their managers depend on it.
pub struct StoreHost {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The caller's directory.
    pub cwd: PathBuf,
    /// Where packages are kept: a directory of Bailiwick's own under the cache.
    pub packages: PathBuf,
    /// Where it is kept what each package was when it was fetched: no sandbox shows it.
    pub records: PathBuf,
    /// The caller's environment.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where programs are looked for.
    pub search: Search,
    /// What sandboxes must not show.
    pub facts: HostFacts,
    /// Who records what package managers do; asked only if one is run.
    pub recorder: Box<dyn Fn() -> Result<Recorder, String>>,
    /// How names of the network are found.
    pub names: NameSources,
}

impl StoreHost {
    /// A variable of the caller.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A host whose home, project and store lie in one directory.
    #[cfg(test)]
    pub(crate) fn for_tests(dir: &std::path::Path) -> Self {
        Self {
            home: Some(dir.join("home")),
            cwd: dir.join("project"),
            packages: dir.join("packages"),
            records: dir.join("records"),
            variables: BTreeMap::new(),
            search: Search::default(),
            facts: HostFacts::unknown(),
            recorder: Box::new(|| Ok(Recorder::unrecorded("test"))),
            names: NameSources::default(),
        }
    }
}
