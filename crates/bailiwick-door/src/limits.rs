//! How much the server takes from a client, and how long it waits for one.

use std::time::Duration;

/// The limits of one server. The default is meant for a handful of clients on the same machine.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at a time that have shown the token.
    pub connections: usize,
    /// Connections at a time that have not; the oldest goes for a new one.
    pub strangers: usize,
    /// How long a connection has to show the token, from its start.
    pub proof: Duration,
    /// Header fields of one request.
    pub headers: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// From a connection's start, or its last answer, to the end of the next request's head.
    pub head: Duration,
    /// From the end of the head to the end of the body.
    pub body: Duration,
    /// Sessions at a time, of clients that initialize.
    pub sessions: usize,
    /// After so long without a message in either direction, a session is gone.
    pub idle: Duration,
    /// What running requests get when the server is told to end.
    pub ending: Duration,
    /// Between attempts to accept a connection when the system has no descriptor for it.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            strangers: 128,
            proof: Duration::from_secs(5),
            headers: 64,
            head_bytes: 64 << 10,
            body_bytes: 16 << 20,
            head: Duration::from_secs(20),
            body: Duration::from_secs(60),
            sessions: 128,
            idle: Duration::from_secs(30 * 60),
            ending: Duration::from_secs(5),
            pause: Duration::from_millis(100),
        }
    }
}
