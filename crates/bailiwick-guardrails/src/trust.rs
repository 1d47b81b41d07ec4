//! Trust: a person's word that a directory's guardrails, and the scripts they name, may run as they are.
//!
//! What is trusted is a hash over the file and every script. Scripts of a directory that is not trusted never run;
//! a trusted directory whose file or scripts are missing or changed refuses everything until it is trusted again.
//! Residual: what a script itself reads or starts is not part of the hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_policy::journal::Digest;
use serde::{Deserialize, Serialize};

use super::file::Text;
use super::state::{State, StateFault};

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";

/// Which directories are trusted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trust {
    directories: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Reads the store.
    ///
    /// # Errors
    /// If it is there and cannot be read: then nothing is known to be trusted, or changed.
    pub fn load(state: &State) -> Result<Self, StateFault> {
        let Some(bytes) = state.read(FILE)? else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes).map_err(|error| StateFault::new("read", &state.path(FILE), error))
    }

    /// The hash that a directory was trusted with.
    #[must_use]
    pub fn hash(&self, directory: &Path) -> Option<&str> {
        self.directories.get(directory).map(String::as_str)
    }

    /// Every trusted directory and its hash.
    pub fn directories(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.directories.iter().map(|(path, hash)| (path.as_path(), hash.as_str()))
    }

    /// Records a person's trust in a directory as it is.
    ///
    /// # Errors
    /// If it cannot be recorded.
    pub fn add(state: &State, directory: &Path, hash: Digest) -> Result<(), StateFault> {
        Self::change(state, |trust| {
            trust.directories.insert(directory.to_path_buf(), hash.to_string());
        })
    }

    /// Takes the trust back; says whether there was any.
    ///
    /// # Errors
    /// If it cannot be recorded.
    pub fn remove(state: &State, directory: &Path) -> Result<bool, StateFault> {
        let mut was = false;
        Self::change(state, |trust| was = trust.directories.remove(directory).is_some())?;
        Ok(was)
    }

    fn change(state: &State, change: impl FnOnce(&mut Self)) -> Result<(), StateFault> {
        let _lock = state.lock(LOCK)?;
        let mut trust = Self::load(state)?;
        change(&mut trust);
        let bytes = serde_json::to_vec_pretty(&trust)
            .map_err(|error| StateFault::new("write", &state.path(FILE), error))?;
        state.replace(FILE, &bytes, true)
    }
}

/// The hash over a file and every script it names.
///
/// # Errors
/// Which script cannot be read.
pub(crate) fn hash(workdir: &Path, text: &Text, scripts: &[String]) -> Result<Digest, String> {
    let mut all = Vec::new();
    let mut add = |part: &[u8]| {
        all.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        all.extend_from_slice(part);
    };
    add(b"bailiwick-guardrails-v1");
    add(text.source.text().as_bytes());
    for script in scripts {
        let bytes = std::fs::read(workdir.join(script))
            .map_err(|error| format!("`{script}` cannot be read: {error}"))?;
        add(script.as_bytes());
        add(&bytes);
    }
    Ok(Digest::of(&all))
}
