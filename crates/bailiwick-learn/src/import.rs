//! A manifest drafted from what others say of a server already: clients' settings, packages, other sandboxes' profiles.
//!
//! Pure: a text comes in, the text of a manifest comes out. What is said precisely becomes a line, with the place where it
//! is said; what is not known, leads to a sensitive place or is as wide as everything becomes a question, which grants
//! nothing. A prohibition has no line of its own, because a manifest only grants; it is repeated as a remark.
//!
//! # Examples
//!
//! ```
//! use bailiwick_learn::{ImportFrom, ImportOptions, import};
//!
//! let profile = r#"{"read": ["/srv/data"], "network": {"outbound": {"insecure_allow_all": true}}}"#;
//! let imported = import(ImportFrom::Toolhive, profile, &ImportOptions::new("notes")).unwrap();
//! assert!(imported.text.contains("\"fs:read:/srv/data\""));
//! assert_eq!((imported.lines, imported.questions), (1, 1));
//! ```

mod clients;
mod profiles;
mod registry;
mod sheet;

use bailiwick_manifest::sensitive::SensitivePlaces;
use bailiwick_policy::path::AbsPath;
use serde_json::Value;

use self::sheet::Sheet;

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFrom {
    /// A manifest of capgate.
    Capgate,
    /// `mcp.json` of VS Code, with its sandbox.
    Vscode,
    /// `manifest.json` of an MCP bundle.
    Mcpb,
    /// `server.json` of the MCP registry.
    ServerJson,
    /// A permission profile of ToolHive.
    Toolhive,
    /// A policy of Wassette.
    Wassette,
    /// A manifest of AgentBound.
    Agentbound,
}

impl ImportFrom {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Capgate,
        Self::Vscode,
        Self::Mcpb,
        Self::ServerJson,
        Self::Toolhive,
        Self::Wassette,
        Self::Agentbound,
    ];

    /// As a person names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capgate => "capgate",
            Self::Vscode => "vscode",
            Self::Mcpb => "mcpb",
            Self::ServerJson => "server-json",
            Self::Toolhive => "toolhive",
            Self::Wassette => "wassette",
            Self::Agentbound => "agentbound",
        }
    }
}

/// What the text does not say.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// What the manifest is called where the text has no name.
    pub name: String,
    /// Which server is meant, where the text has several.
    pub server: Option<String>,
    /// The caller's home.
    pub home: Option<AbsPath>,
    /// What is never granted without a question.
    pub places: SensitivePlaces,
}

impl ImportOptions {
    /// A name, and nothing else that is known.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let places = SensitivePlaces::new(None, []);
        Self { name: name.to_owned(), server: None, home: None, places }
    }
}

/// A drafted manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its text.
    pub text: String,
    /// How many lines grant something.
    pub lines: usize,
    /// How many questions there are.
    pub questions: usize,
}

/// Why nothing is drafted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text is not of this form.
    #[error("it is no {what}: {why}")]
    OtherForm {
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It is about several servers.
    #[error("it has several servers; say which: --server {}", .0.join(" | --server "))]
    Several(Vec<String>),
    /// It has no server of this name.
    #[error("it has no server `{wanted}`; it has: {}", .known.join(", "))]
    NoSuchServer {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// Drafts a manifest.
///
/// # Errors
/// If the text is not of the form, or is about several servers.
pub fn import(from: ImportFrom, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut sheet = Sheet::new(options);
    match from {
        ImportFrom::Capgate => profiles::capgate(text, &mut sheet)?,
        ImportFrom::Vscode => clients::vscode(&json(text, "`mcp.json`")?, options, &mut sheet)?,
        ImportFrom::Mcpb => clients::mcpb(&json(text, "`manifest.json` of a bundle")?, &mut sheet)?,
        ImportFrom::ServerJson => registry::server_json(&json(text, "`server.json`")?, options, &mut sheet)?,
        ImportFrom::Toolhive => profiles::toolhive(&json(text, "permission profile")?, &mut sheet),
        ImportFrom::Wassette => profiles::wassette(text, &mut sheet)?,
        ImportFrom::Agentbound => profiles::agentbound(&json(text, "manifest of AgentBound")?, &mut sheet)?,
    }
    Ok(sheet.finish(from))
}

fn json(text: &str, what: &'static str) -> Result<Value, ImportError> {
    let other = |why: String| ImportError::OtherForm { what, why };
    let value: Value = serde_json::from_str(text).map_err(|fault| other(fault.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(other("it is no JSON object".to_owned())) }
}

/// A part of an object by its path, or nothing.
fn at<'v>(value: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(value, |value, key| value.get(key).unwrap_or(&Value::Null))
}

/// The texts of a list, with their number; nothing if it is none.
fn texts(value: &Value) -> impl Iterator<Item = (usize, &str)> {
    let all = value.as_array().into_iter().flatten().enumerate();
    all.filter_map(|(index, text)| Some((index, text.as_str()?)))
}

/// The entries of an object; nothing if it is none.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests;
