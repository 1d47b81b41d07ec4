//! What a session knows of its surroundings, fixed when it starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bailiwick_guardrails::Surroundings;
use bailiwick_launch::{BrokerProcess, FixedHosts, NameSources, Resolver};
use bailiwick_policy::secret_use::SecretUse;

/// Working directory, home, environment and top-level directories, gathered once at the edge.
///
/// # Examples
/// ```
/// use bailiwick_guard::Session;
///
/// let session = Session::new("/work").with_home("/home/me").with_env([("LANG".to_owned(), "C".to_owned())]);
/// assert_eq!(session.cwd().to_str(), Some("/work"));
/// assert_eq!(Session::new("/work").home(), None, "nothing is taken from this process");
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    around: Surroundings,
    env: BTreeMap<String, String>,
    own: Vec<PathBuf>,
    locked: Vec<PathBuf>,
    names: NameSources,
    secrets: Option<Arc<BrokerProcess>>,
    uses: Arc<BTreeMap<String, SecretUse>>,
}

impl Session {
    /// A session that works in `cwd`, an absolute path. It has no home and no environment.
    #[must_use]
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            around: Surroundings::new(cwd),
            env: BTreeMap::new(),
            own: Vec::new(),
            locked: Vec::new(),
            names: NameSources::default(),
            secrets: None,
            uses: Arc::default(),
        }
    }

    /// The same session, where `~` is `home`.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.around = self.around.with_home(home);
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
        self.around = self.around.with_top_level(names);
        self
    }

    /// The same session, where these directories are Bailiwick's own (settings, trust, keys): no tool sees or changes them.
    /// The journal's directory always is.
    #[must_use]
    pub fn with_own(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own.extend(directories);
        self
    }

    /// The same session, where these files say what it may do: tools may read them where that is granted, and never
    /// change them. Absolute paths, links followed.
    #[must_use]
    pub fn with_locked(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.locked.extend(files);
        self
    }

    /// The same session, where programs of the sandbox find names so: these addresses for these names, and `resolver` for
    /// all others. Addresses are judged like all others.
    #[must_use]
    pub fn with_names(mut self, resolver: Resolver, hosts: FixedHosts) -> Self {
        self.names = NameSources { resolver, hosts };
        self
    }

    /// The same session, where this process holds the values of brokered secrets. Without one a call that is granted such a
    /// secret is refused.
    #[must_use]
    pub fn with_secrets(mut self, process: Arc<BrokerProcess>) -> Self {
        self.secrets = Some(process);
        self
    }

    /// The same session, where brokered secrets are used so: where values may be put, and on which requests. One that is not
    /// named is put into `Authorization` and the usual fields for keys, on every request to its hosts.
    #[must_use]
    pub fn with_secret_uses(mut self, uses: BTreeMap<String, SecretUse>) -> Self {
        self.uses = Arc::new(uses);
        self
    }

    /// Where relative paths start.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        self.around.cwd()
    }

    /// What `~` stands for.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.around.home()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) const fn names(&self) -> &NameSources {
        &self.names
    }

    pub(crate) const fn secrets(&self) -> Option<&Arc<BrokerProcess>> {
        self.secrets.as_ref()
    }

    pub(crate) fn secret_uses(&self) -> &BTreeMap<String, SecretUse> {
        &self.uses
    }

    pub(crate) fn own(&self) -> &[PathBuf] {
        &self.own
    }

    pub(crate) fn locked(&self) -> &[PathBuf] {
        &self.locked
    }

    /// Where paths in arguments start and lead.
    pub(crate) const fn surroundings(&self) -> &Surroundings {
        &self.around
    }
}
