//! The name of a session: it becomes part of file names, so it is checked before anything else sees it.
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// 1 to 64 of `A-Z a-z 0-9 . _ -`, and no dot first.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// Text that cannot name a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a session name: use 1 to 64 of `A-Z a-z 0-9 . _ -`, with no dot first")]
pub struct SessionError(String);

impl SessionId {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a session of which nothing is recorded.
    pub fn unavailable() -> Self {
        Self("unavailable".into())
    }

    pub(super) fn is_valid(text: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(allowed)
    }
}

impl FromStr for SessionId {
    type Err = SessionError;

    fn from_str(text: &str) -> Result<Self, SessionError> {
        if Self::is_valid(text) {
            Ok(Self(text.into()))
        } else {
            Err(SessionError(text.chars().take(80).flat_map(char::escape_default).collect()))
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_paths_are_refused() {
        for bad in ["", ".", "..", ".a", "a/b", "a\0", "a b", "é", &"x".repeat(65)] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
        for good in ["a", "2026-01-02.x_Y", &"x".repeat(64)] {
            assert!(good.parse::<SessionId>().is_ok(), "{good}");
        }
    }
}
