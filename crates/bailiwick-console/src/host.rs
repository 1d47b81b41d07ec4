//! What the console asks of the program that serves it: what only that program knows, and what only it may write.

use std::path::PathBuf;

use bailiwick_journal::format::Event;
use bailiwick_policy::capability::Capability;
use serde_json::Value;

use crate::entry::OneTimeCode;

/// Why something that the console asked for is not there, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostFault(pub String);

/// The manifest that holds a server, where it can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPlace {
    /// The file.
    pub file: PathBuf,
    /// What the server's pins are known by.
    pub identity: String,
    /// The directory that it was started in.
    pub project: String,
    /// The manifest that is shipped, where the file is to be the user's own copy of it and is not there yet.
    pub shipped: Option<String>,
}

impl ManifestPlace {
    /// What holds the server now.
    pub(crate) fn text(&self) -> std::io::Result<String> {
        match (std::fs::read_to_string(&self.file), &self.shipped) {
            (Err(error), Some(text)) if error.kind() == std::io::ErrorKind::NotFound => Ok(text.clone()),
            (read, _) => read,
        }
    }

    /// Whether there is no file yet.
    pub(crate) fn is_new(&self) -> bool {
        self.shipped.is_some() && std::fs::symlink_metadata(&self.file).is_err()
    }
}

/// The program that serves a console.
pub trait ConsoleHost: Send + Sync + 'static {
    /// Now, in microseconds since 1970.
    fn now_us(&self) -> u64;

    /// The wrapped servers that run now, as `bailiwick ps --format json` lists them.
    ///
    /// # Errors
    /// If that cannot be read.
    fn servers(&self) -> Result<Vec<Value>, HostFault>;

    /// What was pinned of each server and what waits: objects with `name`, `identity`, `tools`, `changes`, `grants` and `seen`,
    /// which names exactly what waits.
    ///
    /// # Errors
    /// If that cannot be read.
    fn pins(&self) -> Result<Vec<Value>, HostFault>;

    /// Accepts what waits of a server, if it is still what `seen` names.
    ///
    /// # Errors
    /// If that cannot be written.
    fn accept_pins(&self, identity: &str, seen: &str) -> Result<bool, HostFault>;

    /// The manifest of the server that a session of the journal records.
    fn manifest_of(&self, session: &str) -> Option<ManifestPlace>;

    /// Replaces a file of the user as a whole, through no link.
    ///
    /// # Errors
    /// If that is refused or fails.
    fn replace_file(&self, file: &std::path::Path, text: &str) -> Result<(), HostFault>;

    /// Removes a file that [`replace_file`](Self::replace_file) made.
    ///
    /// # Errors
    /// If that is refused or fails.
    fn remove_file(&self, file: &std::path::Path) -> Result<(), HostFault>;

    /// Notes that a person granted these lines to a tool, so that the server's next start is no question.
    ///
    /// # Errors
    /// If that cannot be written.
    fn note_grant(&self, place: &ManifestPlace, tool: &str, lines: &[Capability]) -> Result<(), HostFault>;

    /// Notes that a person took these lines back.
    ///
    /// # Errors
    /// If that cannot be written.
    fn forget_grant(&self, place: &ManifestPlace, tool: &str, lines: &[Capability]) -> Result<(), HostFault>;

    /// Shows the person who started the console the code for the next page.
    fn show_code(&self, code: &OneTimeCode);

    /// Records what a person did.
    fn record(&self, event: Event);
}
