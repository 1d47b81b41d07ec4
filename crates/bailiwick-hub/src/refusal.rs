//! Why a request was not done, and the answer that says so.

use bailiwick_door::{Answer, filled, retry_after, with_header};
use bailiwick_fleet::protocol::Refusal;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::database::StoreError;

/// Why a request was not done.
#[derive(Debug)]
pub enum HubError {
    /// The caller's part: a status, a stable code, and why.
    Refused {
        /// The status.
        status: StatusCode,
        /// The code.
        code: &'static str,
        /// Why, for people.
        message: String,
    },
    /// The store's part.
    Store(StoreError),
}

impl HubError {
    /// The request is wrong.
    pub fn wrong(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, code, message)
    }

    /// The caller may not.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::FORBIDDEN, code, message)
    }

    /// It was done otherwise already, or cannot be done now.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::CONFLICT, code, message)
    }

    /// There is no such thing, or not for this caller.
    #[must_use]
    pub fn missing() -> Self {
        Self::refused(StatusCode::NOT_FOUND, "not-found", "there is no such thing here")
    }

    /// A refusal with this status.
    pub fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { status, code, message: message.into() }
    }

    /// The code that counts it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Store(StoreError::Down(_)) => "database-down",
            Self::Store(StoreError::Conflict) => "busy",
            Self::Store(StoreError::Taken) => "id-taken",
            Self::Store(StoreError::Refused(_)) => "refused",
            Self::Store(StoreError::Broken(_)) => "broken",
        }
    }

    /// The answer. What the database said stays in the hub's own log.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let (status, message) = match self {
            Self::Refused { status, message, .. } => (*status, message.as_str()),
            Self::Store(StoreError::Down(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again")
            }
            Self::Store(StoreError::Conflict) => {
                (StatusCode::SERVICE_UNAVAILABLE, "other hubs were quicker; try again")
            }
            Self::Store(StoreError::Taken) => (StatusCode::CONFLICT, "something else was done under this id"),
            Self::Store(StoreError::Refused(_)) => {
                (StatusCode::BAD_REQUEST, "the database refused the values")
            }
            Self::Store(StoreError::Broken(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "what is stored contradicts itself")
            }
        };
        let refusal = Refusal { code: self.code().to_owned(), message: message.to_owned() };
        let answer = json(status, &refusal);
        let comes_again = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
        if comes_again { retry_after(answer, "1") } else { answer }
    }
}

impl From<StoreError> for HubError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// An answer with this value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => with_header(filled(status, body), CONTENT_TYPE, "application/json"),
        Err(_) => bailiwick_door::plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}
