//! What an agent's own files say about whether it runs our hooks.

use std::path::Path;

use serde_json::Value;

/// Where an agent keeps whether a person trusts its hooks.
#[derive(Debug, Clone, Copy)]
pub struct TrustFile {
    /// The file, below the home.
    pub path: &'static str,
    state: fn(&str, &Path, &Path) -> String,
}

impl TrustFile {
    /// What the file's text says of the hooks in a settings file, and of a directory.
    #[must_use]
    pub fn state(&self, text: &str, settings: &Path, dir: &Path) -> String {
        (self.state)(text, settings, dir)
    }
}

pub(super) const CODEX_TRUST: TrustFile = TrustFile {
    path: ".codex/config.toml",
    state: |config, settings, _| {
        let known = config.contains(&format!("[hooks.state.\"{}:pre_tool_use:", settings.display()));
        let text = if known {
            "a person has looked at these hooks in Codex; it checks the hash itself"
        } else {
            "Codex has no trust in these hooks: it runs none of them; open `/hooks` in it"
        };
        text.to_owned()
    },
};

pub(super) const GEMINI_TRUST: TrustFile = TrustFile {
    path: ".gemini/trustedFolders.json",
    state: |text, _, dir| {
        let folders: Value = serde_json::from_str(text).unwrap_or_default();
        let is_trusted = |dir: &Path| {
            let kind = folders.get(dir.to_string_lossy().as_ref()).and_then(Value::as_str);
            kind.is_some_and(|kind| kind != "DO_NOT_TRUST")
        };
        let trusted = dir.ancestors().any(is_trusted);
        format!("Gemini CLI {} this folder", if trusted { "trusts" } else { "has no word on trusting" })
    },
};
