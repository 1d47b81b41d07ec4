//! What an authorization server gave, in a file of the user's alone, changed under a lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::endpoint::Endpoint;

/// How often a lock is tried, and with which pause.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// A login at one server.
#[derive(Clone, Serialize, Deserialize)]
pub struct Login {
    /// The server that it is for.
    pub(crate) resource: String,
    /// Who gave it.
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) client_id: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    /// When it expires, in seconds since 1970.
    pub(crate) expires_at: Option<u64>,
}

impl Login {
    /// Who gave it.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// The file of one server's login.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

/// Why a login cannot be kept or had.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be used.
    #[error("cannot use `{0}`: {1}")]
    Io(PathBuf, std::io::Error),
    /// What is in it is no login.
    #[error("`{0}` is damaged: remove it and log in again")]
    Damaged(PathBuf),
    /// Another process holds the lock.
    #[error("`{0}` is locked by another process")]
    Locked(PathBuf),
}

impl TokenFile {
    /// The file for a server, in this directory.
    #[must_use]
    pub fn for_server(directory: &Path, server: &Endpoint) -> Self {
        let digest = Sha256::digest(server.as_str().as_bytes());
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(directory.join(name + ".json"))
    }

    /// What is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self) -> Result<Option<Login>, TokenFileError> {
        match std::fs::read(&self.0) {
            Ok(text) => {
                serde_json::from_slice(&text).map(Some).map_err(|_| TokenFileError::Damaged(self.0.clone()))
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(TokenFileError::Io(self.0.clone(), why)),
        }
    }

    /// Replaces it as a whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, login: &Login) -> Result<(), TokenFileError> {
        let written = || {
            let text = serde_json::to_vec(login)?;
            self.make_directory()?;
            let draft = self.0.with_extension(format!("{}.new", std::process::id()));
            drop(std::fs::remove_file(&draft));
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.0)
        };
        written().map_err(|why| TokenFileError::Io(self.0.clone(), why))
    }

    /// Forgets it; whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self) -> Result<bool, TokenFileError> {
        match std::fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(TokenFileError::Io(self.0.clone(), why)),
        }
    }

    /// Held until it is dropped: one process at a time renews a login.
    pub(crate) async fn lock(&self) -> Result<File, TokenFileError> {
        let path = self.0.with_extension("lock");
        let failed = |why| TokenFileError::Io(path.clone(), why);
        self.make_directory().map_err(failed)?;
        let mut options = OpenOptions::new();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                Err(TryLockError::Error(why)) => return Err(failed(why)),
            }
        }
        Err(TokenFileError::Locked(path))
    }

    fn make_directory(&self) -> std::io::Result<()> {
        let Some(directory) = self.0.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)
    }
}
