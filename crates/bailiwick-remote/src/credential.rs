//! What is shown to a server to be let in.

use http::HeaderValue;

/// A credential for one server.
#[derive(Default)]
pub enum Credential {
    /// None.
    #[default]
    Absent,
    /// A value that the user gave, sent as a bearer token.
    Given(String),
}

/// Why there is no credential.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// It has characters that no header may have.
    #[error("the credential has characters that a header cannot have")]
    NotText,
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
        })
    }

    /// Whether there is another value, after the server refused this one.
    pub async fn renew(&self, _refused: Option<&str>) -> bool {
        false
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
