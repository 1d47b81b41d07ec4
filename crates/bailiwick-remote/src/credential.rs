//! What is shown to a server to be let in.

use http::HeaderValue;

use crate::client::Client;
use crate::oauth::{LoginError, now, renewed};
use crate::token_file::{TokenFile, TokenFileError};

/// A token that expires in so many seconds is renewed first.
const SOON: u64 = 30;

/// A credential for one server.
#[derive(Default)]
pub enum Credential {
    /// None.
    #[default]
    Absent,
    /// A value that the user gave, sent as a bearer token.
    Given(String),
    /// What an authorization server gave, renewed when it has expired.
    Login(LoginSession),
}

/// A login, and who renews it.
pub struct LoginSession {
    client: Client,
    file: TokenFile,
}

/// Why there is no credential.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// It has characters that no header may have.
    #[error("the credential has characters that a header cannot have")]
    NotText,
    /// The login cannot be read or kept.
    #[error(transparent)]
    File(#[from] TokenFileError),
    /// It cannot be renewed.
    #[error("the login cannot be renewed: {0}")]
    Login(#[from] LoginError),
    /// It is gone.
    #[error("there is no login any more")]
    Gone,
}

impl LoginSession {
    /// The login of this file.
    #[must_use]
    pub const fn new(client: Client, file: TokenFile) -> Self {
        Self { client, file }
    }

    async fn value(&self) -> Result<String, CredentialError> {
        let login = self.file.read()?.ok_or(CredentialError::Gone)?;
        let expires = login.expires_at.is_some_and(|at| at <= now().saturating_add(SOON));
        if expires && login.refresh_token.is_some() {
            return self.renewed(&login.access_token).await;
        }
        Ok(login.access_token)
    }

    /// Renews a token, unless another process has done it meanwhile.
    async fn renewed(&self, old: &str) -> Result<String, CredentialError> {
        let _lock = self.file.lock().await?;
        let login = self.file.read()?.ok_or(CredentialError::Gone)?;
        if login.access_token != old {
            return Ok(login.access_token);
        }
        let login = renewed(&self.client, login).await?;
        self.file.write(&login)?;
        Ok(login.access_token)
    }
}

impl Credential {
    /// The value as it is now; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be had.
    pub async fn value(&self) -> Result<Option<String>, CredentialError> {
        Ok(match self {
            Self::Absent => None,
            Self::Given(value) => Some(value.clone()),
            Self::Login(session) => Some(session.value().await?),
        })
    }

    /// Whether there is another value, after the server refused this one.
    pub async fn renew(&self, refused: Option<&str>) -> bool {
        match (self, refused) {
            (Self::Login(session), Some(refused)) => {
                session.renewed(refused).await.is_ok_and(|value| value != refused)
            }
            (Self::Absent | Self::Given(_) | Self::Login(_), _) => false,
        }
    }

    /// The header that carries a value. It is never shown.
    ///
    /// # Errors
    /// If no header can carry it.
    pub fn header(value: &str) -> Result<HeaderValue, CredentialError> {
        let header = HeaderValue::try_from(format!("Bearer {value}"));
        let mut header = header.map_err(|_| CredentialError::NotText)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_one_header_and_never_shown() {
        let header = Credential::header("tok-123").unwrap();
        assert_eq!(header.as_bytes(), b"Bearer tok-123");
        assert!(!format!("{header:?}").contains("tok-123"));
        assert!(Credential::header("a\r\nX-Other: b").is_err());
    }
}
