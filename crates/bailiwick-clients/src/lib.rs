//! Where clients of the Model Context Protocol keep the commands of their servers, and how a prefix is put before one;
//! in [`hooks`], how agents speak to their hooks.
//!
//! Pure: texts in, texts out. [`CLIENTS`] says which files a client reads and where its servers stand in them;
//! [`wrap`] puts a prefix before the command of a server, and [`unwrap`] takes it away again. Only the places that
//! change are spliced: comments, order, spacing and spelling of everything else stay, in JSON with comments and in TOML.
//!
//! ```
//! use bailiwick_clients::{CLIENTS, CommandPrefix, unwrap, wrap};
//!
//! let cursor = CLIENTS.iter().find(|client| client.name == "cursor").unwrap();
//! let text = r#"{"mcpServers": {"notes": {"command": "notes-server", "args": ["/srv/notes"]}}}"#;
//! let prefix = CommandPrefix {
//!     program: "/usr/bin/bailiwick".to_owned(),
//!     arguments: ["wrap", "--name", "notes", "--"].map(str::to_owned).to_vec(),
//!     variables: Vec::new(),
//! };
//! let wrapped = wrap(&cursor.user[0].form, text, |_| Some(prefix.clone()))?;
//! assert!(wrapped.text.contains(r#""args": ["wrap", "--name", "notes", "--", "notes-server", "/srv/notes"]"#));
//! assert_eq!(unwrap(&cursor.user[0].form, &wrapped.text, &wrapped.changes)?, text);
//! # Ok::<(), bailiwick_clients::SettingsError>(())
//! ```
//!
//! Fails closed when: a text cannot be read, gives a server or its command twice, or does not read back as it was meant.
//! Nothing is changed then.
#![forbid(unsafe_code)]

mod clients;
mod entry;
pub mod hooks;
mod splice;
#[cfg(test)]
mod tests;
mod tree;

pub use clients::{Base, CLIENTS, Client, ServerTable, ServersForm, SettingsPlace, Syntax};
pub use entry::Server;

use serde::{Deserialize, Serialize};

use self::entry::{ServerEntry, entries};
use self::tree::Node;

/// What some editors write before a text.
const BOM: &str = "\u{feff}";

/// Why a settings text was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It cannot be read.
    #[error("is not {syntax}: {reason}")]
    Syntax {
        /// What it should be.
        syntax: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Clients disagree about which one counts.
    #[error("gives `{0}` twice")]
    Repeated(String),
    /// The change would not say what it should.
    #[error("has an entry `{0}` that cannot be changed without a person: put the prefix there by hand")]
    Unwritable(String),
}

/// What is put before the command of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPrefix {
    /// The program that is started instead.
    pub program: String,
    /// Its arguments, up to and with the `--` before the server's own command.
    pub arguments: Vec<String>,
    /// Variables that it needs and that the client may not pass on. Those that the entry has already stay.
    pub variables: Vec<(String, String)>,
}

/// A text with prefixes, and what undoes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// The new text.
    pub text: String,
    /// One for each server that was changed.
    pub changes: Vec<EntryChange>,
}

/// What was changed of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// Where the server stands.
    path: Vec<String>,
    /// The part that was changed, as it was.
    before: String,
    /// The same part, as it became.
    made: String,
    /// The variables that were added.
    #[serde(default)]
    variables: Vec<(String, String)>,
    /// Whether the table of variables was added with them.
    #[serde(default)]
    is_new_table: bool,
}

/// The servers that a text starts as programs.
///
/// # Errors
/// If the text cannot be read, or says something twice.
pub fn servers(form: &ServersForm, text: &str) -> Result<Vec<Server>, SettingsError> {
    let (_, text) = without_bom(text);
    let tree = Node::read(form.syntax, text)?;
    Ok(entries(form, &tree)?.iter().map(ServerEntry::server).collect())
}

/// Puts a prefix before every server for which there is one, and that is not wrapped already.
///
/// # Errors
/// If the text cannot be read, or cannot be changed without harm.
pub fn wrap(
    form: &ServersForm,
    text: &str,
    mut prefix: impl FnMut(&Server) -> Option<CommandPrefix>,
) -> Result<Wrapped, SettingsError> {
    let (bom, text) = without_bom(text);
    let tree = Node::read(form.syntax, text)?;
    let mut all = Vec::new();
    let mut changes = Vec::new();
    let mut expected = Vec::new();
    for entry in entries(form, &tree)? {
        let mut server = entry.server();
        if let Some(prefix) = Some(&server).filter(|server| !server.is_wrapped()).and_then(&mut prefix) {
            let splices = splice::wrapping(form, text, &entry, &prefix)?;
            changes.push(splice::as_change(text, &splices, &entry, &prefix));
            all.extend(splices);
            let before = std::iter::once(prefix.program).chain(prefix.arguments);
            server.command.splice(0..0, before);
        }
        expected.push(server);
    }
    let changed = splice::apply(text, all);
    if let Some(wrong) = first_difference(&servers(form, &changed)?, &expected) {
        return Err(SettingsError::Unwritable(wrong));
    }
    Ok(Wrapped { text: bom.to_owned() + &changed, changes })
}

/// Takes away the prefixes that [`wrap`] put there. What a person wrote elsewhere stays; an entry that was edited since, or
/// that a client wrote anew, loses the prefix and the variables that came with it. Variables in a TOML table with a heading of
/// its own stay there in that case.
///
/// # Errors
/// If the text cannot be read, or cannot be changed without harm.
pub fn unwrap(form: &ServersForm, text: &str, changes: &[EntryChange]) -> Result<String, SettingsError> {
    let (bom, text) = without_bom(text);
    let mut text = text.to_owned();
    for server in servers(form, &text)?.into_iter().filter(Server::is_wrapped) {
        let change = changes.iter().find(|change| change.path == server.path);
        if change.is_none() && !server.is_as_we_write() {
            continue;
        }
        let tree = Node::read(form.syntax, &text)?;
        let all = entries(form, &tree)?;
        let Some(entry) = all.iter().find(|entry| entry.path == server.path) else { continue };
        let exact = change.and_then(|change| splice::restoring(&text, entry, &change.before, &change.made));
        let splices =
            exact.map_or_else(|| splice::unwrapping(&text, entry, change), |splice| Some(vec![splice]));
        let unwritable = || SettingsError::Unwritable(server.name().to_owned());
        let after = splice::apply(&text, splices.ok_or_else(unwritable)?);
        let left = servers(form, &after)?.into_iter().find(|left| left.path == server.path);
        if left.is_none_or(|left| Some(left.command.as_slice()) != server.wrapped_command()) {
            return Err(unwritable());
        }
        text = after;
    }
    Ok(bom.to_owned() + &text)
}

fn without_bom(text: &str) -> (&'static str, &str) {
    text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest))
}

fn first_difference(found: &[Server], expected: &[Server]) -> Option<String> {
    let differs = found.iter().zip(expected).find(|(one, other)| one != other);
    let missing = (found.len() != expected.len()).then(String::new);
    differs.map(|(one, _)| one.name().to_owned()).or(missing)
}
