//! What an agent's own files say about whether it runs our hooks.

use std::path::Path;

/// Where an agent keeps whether a person trusts its hooks.
#[derive(Debug, Clone, Copy)]
pub struct TrustFile {
    /// The file, below the home.
    pub path: &'static str,
    pub(super) state: fn(&str, &Path, &Path) -> String,
}

impl TrustFile {
    /// What the file's text says of the hooks in a settings file, and of a directory.
    #[must_use]
    pub fn state(&self, text: &str, settings: &Path, dir: &Path) -> String {
        (self.state)(text, settings, dir)
    }
}
