//! Connections to the database: a small pool, time limits, TLS, and what an error means for the request.
//!
//! A connection goes back to the pool only after its work was done or the database refused it in words. One that was given up in
//! the middle is closed. The outcome of a `COMMIT` that was cut off is unknown: that is [`StoreError::Down`], and every write of
//! the hub can be repeated with the same id.
//!
//! Fails closed when: the database is on another host and the connection to it is not TLS with a verified certificate.

mod pool;
mod tls;

pub use pool::{Database, DatabaseFault, PooledClient};

use tokio_postgres::error::SqlState;

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no answer from the database in time, or none at all.
    #[error("the database does not answer: {0}")]
    Down(String),
    /// Another hub was quicker; the same again may succeed.
    #[error("another hub was quicker")]
    Conflict,
    /// The id is that of something else.
    #[error("something else has this id")]
    Taken,
    /// The database refused the statement.
    #[error("the database refused: {0}")]
    Refused(String),
    /// What is stored contradicts itself or what was published.
    #[error("{0}")]
    Broken(String),
}

/// An error and what it came from, as `connection refused`.
fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(code) = error.code() else { return Self::Down(in_words(&error)) };
        let again = [
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::UNIQUE_VIOLATION,
        ];
        if again.contains(&code) {
            return Self::Conflict;
        }
        let class = code.code().get(..2).unwrap_or_default();
        let message =
            error.as_db_error().map_or_else(|| error.to_string(), |refusal| refusal.message().to_owned());
        // Connection, resources, operator (shutdown, cancelled statement), system.
        if ["08", "53", "57", "58"].contains(&class) { Self::Down(message) } else { Self::Refused(message) }
    }
}
