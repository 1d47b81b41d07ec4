//! Trust: a person's word that a directory's guardrails, and the scripts they name, may run as they are.
//!
//! What is trusted is a hash over the file and every script. Scripts of a directory that is not trusted never run;
//! a trusted directory whose file or scripts are missing or changed refuses everything until it is trusted again.
//! Residual: what a script itself reads or starts is not part of the hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};

use super::file::Text;
use super::state::{State, StateFault, VERSION};

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";

/// Which directories are trusted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trust {
    #[serde(default)]
    version: u32,
    directories: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Reads the store.
    ///
    /// # Errors
    /// If it is there and cannot be read: then nothing is known to be trusted, or changed.
    pub fn load(state: &State) -> Result<Self, StateFault> {
        let Some(bytes) = state.read(FILE)? else { return Ok(Self::default()) };
        let trust: Self = serde_json::from_slice(&bytes)
            .map_err(|error| StateFault::new("read", &state.path(FILE), error))?;
        state.check_version(FILE, trust.version)?;
        Ok(trust)
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
        trust.version = VERSION;
        let bytes = serde_json::to_vec_pretty(&trust)
            .map_err(|error| StateFault::new("write", &state.path(FILE), error))?;
        state.replace(FILE, &bytes, true)
    }
}

/// A script that a file names and that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{script}` cannot be read: {source}")]
pub(crate) struct UnreadScript {
    script: String,
    source: std::io::Error,
}

/// The hash over a file and every script it names.
///
/// # Errors
/// Which script cannot be read.
pub(crate) fn hash(workdir: &Path, text: &Text, scripts: &[String]) -> Result<Digest, UnreadScript> {
    let mut all = Vec::new();
    let mut add = |part: &[u8]| {
        all.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        all.extend_from_slice(part);
    };
    add(b"bailiwick-guardrails-v1");
    add(text.source.text().as_bytes());
    for script in scripts {
        let bytes = std::fs::read(workdir.join(script))
            .map_err(|source| UnreadScript { script: script.clone(), source })?;
        add(script.as_bytes());
        add(&bytes);
    }
    Ok(Digest::sha256(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_of_the_first_version_holds_and_that_of_a_newer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(&dir.path().join("state")).unwrap();
        state.replace(FILE, br#"{"directories":{"/p":"hash"}}"#, false).unwrap();
        assert_eq!(Trust::load(&state).unwrap().hash(Path::new("/p")), Some("hash"));
        Trust::add(&state, Path::new("/q"), Digest::sha256(b"q")).unwrap();
        let both = Trust::load(&state).unwrap();
        assert_eq!((both.version, both.directories().count()), (VERSION, 2));
        state.replace(FILE, br#"{"version":2,"directories":{}}"#, false).unwrap();
        let fault = Trust::load(&state).unwrap_err().to_string();
        assert!(fault.contains("it has version 2, and this program knows 1"), "{fault}");
    }
}
