//! The bearer token: who holds it may come in.
//!
//! Drawn anew from the system's random numbers for each server, written to a file that only its owner can read, and
//! compared in a time that does not depend on where two tokens differ. It is never printed; its `Debug` says nothing.

use std::fmt;
use std::fs::{OpenOptions, remove_file};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;

use crate::tls::only_of_owner;

const BYTES: usize = 32;
/// The fewest characters of a token that an operator made.
const SHORTEST: usize = 32;

/// Why there is no token, or no file of it.
#[derive(Debug, thiserror::Error)]
pub enum TokenFault {
    /// The system has no random numbers.
    #[error("cannot draw a token: {0}")]
    Random(getrandom::Error),
    /// The file exists already, or cannot be written.
    #[error("cannot write the token to `{}`: {cause}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file of an operator's token cannot be used.
    #[error("cannot take the token from `{}`: {why}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A secret that lets its holder in.
pub struct Token(String);

impl Token {
    /// A new, secret token.
    pub fn random() -> Result<Self, TokenFault> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(TokenFault::Random)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token that an operator keeps in a file, which its owner alone may read.
    ///
    /// # Errors
    /// If it cannot be read, others may read it, or it is easily guessed.
    pub fn from_file(path: &Path) -> Result<Self, TokenFault> {
        let fault = |why: String| TokenFault::Unusable { path: path.to_owned(), why };
        only_of_owner(path).map_err(|why| fault(why.to_string()))?;
        let text = std::fs::read_to_string(path).map_err(|cause| fault(cause.to_string()))?;
        let text = text.trim();
        let is_sendable = text.bytes().all(|byte| byte.is_ascii_graphic());
        match text.len() {
            SHORTEST..=4096 if is_sendable => Ok(Self(text.to_owned())),
            _ => Err(fault(format!(
                "a token has {SHORTEST} to 4096 printable characters, such as `openssl rand -hex 32` gives"
            ))),
        }
    }

    /// Writes the token to a file that must not exist yet, for its owner alone.
    pub fn write(&self, path: &Path) -> Result<TokenFile, TokenFault> {
        let fault = |cause| TokenFault::Write { path: path.to_owned(), cause };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(fault)?;
        let kept = TokenFile(path.to_owned());
        file.write_all(self.0.as_bytes()).map_err(fault)?;
        Ok(kept)
    }

    /// The token, to be handed to a client that has proven itself in another way.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is the token.
    pub fn is(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The file a token was written to; gone when this is dropped.
#[derive(Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _already_gone = remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn tokens_differ_and_only_the_same_one_is_accepted() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.0.len(), 2 * BYTES);
        assert!(one.is(one.0.as_bytes()));
        assert!(!one.is(other.0.as_bytes()));
        assert!(!one.is(b""));
        assert!(!one.is(&one.0.as_bytes()[..BYTES]));
        assert!(!format!("{one:?}").contains(&one.0));
    }

    #[test]
    fn the_file_is_the_owners_alone_and_goes_with_its_keeper() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let token = Token::random().unwrap();
        let file = token.write(&path).unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), token.0);
        assert!(
            matches!(token.write(&path), Err(TokenFault::Write { .. })),
            "a file that is there is not taken over"
        );
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_link_in_the_files_place_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (aim, path) = (directory.path().join("aim"), directory.path().join("token"));
        std::os::unix::fs::symlink(&aim, &path).unwrap();
        assert!(Token::random().unwrap().write(&path).is_err());
        assert!(!aim.exists());
    }
}
