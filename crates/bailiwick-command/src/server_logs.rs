//! Where the logs of wrapped servers are.

use std::path::PathBuf;

use crate::facts;

/// Where the logs of servers are.
#[must_use]
pub fn directory() -> Option<PathBuf> {
    facts::state_dir().map(|state| state.join("logs"))
}

/// The file name of a server's log: its name, without what means something in paths.
#[must_use]
pub fn file_name(server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.@".contains(c) { c } else { '_' };
    let name: String = server.chars().take(100).map(plain).collect();
    format!("{}.log", name.trim_start_matches('.'))
}
