//! What a host says of itself, gathered once at the edge and passed in as a value.

use std::collections::BTreeMap;

use crate::finding::{Code, Finding};
use crate::path::AbsPath;

/// Facts about a host that a manifest may depend on.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    variables: BTreeMap<String, AbsPath>,
    places: BTreeMap<AbsPath, (AbsPath, PathKind)>,
    protected: Vec<AbsPath>,
    locked: Vec<AbsPath>,
}

/// What the host has at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A file, a device or a socket.
    File,
}

impl HostFacts {
    /// A host of which nothing is known: every path variable is unresolved.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// The same host, where the path variable `name` stands for `path`.
    ///
    /// # Errors
    /// A finding if the value is not a clean absolute path.
    pub fn with_variable(mut self, name: &str, path: &str) -> Result<Self, Finding> {
        let clean = AbsPath::new(path).ok().filter(|_| !path.chars().any(char::is_control));
        let value = clean.ok_or_else(|| {
            Finding::new(
                Code::PathVariableValue,
                format!("`{name}` is `{}`, not a clean absolute path", path.escape_debug()),
            )
            .help("give an absolute path without `.`, `..` or control characters")
        })?;
        self.variables.insert(name.to_owned(), value);
        Ok(self)
    }

    /// The value of a path variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&AbsPath> {
        self.variables.get(name)
    }

    /// The same host, where `path` really lies at `source`, and what is there.
    #[must_use]
    pub fn with_place(mut self, path: AbsPath, source: AbsPath, place: PathKind) -> Self {
        self.places.insert(path, (source, place));
        self
    }

    /// What the host has at the paths that it was asked about.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&AbsPath, PathKind)> {
        self.places.iter().map(|(path, (_, place))| (path, *place))
    }

    /// Where `path` really lies and what is there, as far as it was asked.
    pub(crate) fn located(&self, path: &AbsPath) -> (AbsPath, Option<PathKind>) {
        self.places
            .get(path)
            .map_or_else(|| (path.clone(), None), |(source, place)| (source.clone(), Some(*place)))
    }

    /// The same host, where `path` is the product's own: never visible in a sandbox.
    #[must_use]
    pub fn with_protected(mut self, path: AbsPath) -> Self {
        self.protected.push(path);
        self
    }

    /// The product's own paths.
    #[must_use]
    pub fn protected(&self) -> &[AbsPath] {
        &self.protected
    }

    /// The same host, where `path` governs this very sandbox: readable where it is granted, never writable.
    #[must_use]
    pub fn with_locked(mut self, path: AbsPath) -> Self {
        self.locked.push(path);
        self
    }

    /// Paths that govern the sandbox.
    #[must_use]
    pub fn locked(&self) -> &[AbsPath] {
        &self.locked
    }
}
