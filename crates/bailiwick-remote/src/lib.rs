//! Requests to a server that runs elsewhere, and the credentials for it.
//!
//! An [`Endpoint`] is an `https:` URL, or a plain one on the loopback interface. A [`Client`] connects to it and to no
//! other server: its name is resolved once for each connection, all of its addresses are screened by the decision of the network
//! allowlist, TLS is verified against the roots of the host, and a redirect is followed within the same origin alone. What
//! is sent is what the caller wrote; no header, cookie or proxy comes from anywhere else. A [`Credential`] is a value that
//! the user gave, or a [`Login`]: given by an authorization server, kept in a file of the user's alone, and renewed under a lock.
//!
//! Fails closed when: a name leads to a private address that was not typed, a certificate does not verify, an answer is
//! larger or slower than its bounds, or a redirect leads elsewhere.
//!
//! Residual: what the server does with what it is told is its own affair; nothing here holds it.
#![forbid(unsafe_code)]

mod client;
mod connect;
mod credential;
mod endpoint;
mod oauth;
mod token_file;

pub use bailiwick_egress::Resolver;
pub use client::{Answered, Body, Client, SendError};
pub use connect::{ConnectError, OwnTls};
pub use credential::{Credential, CredentialError, LoginSession};
pub use endpoint::{Endpoint, EndpointError};
pub use oauth::{LoginError, LoginRequest, PendingLogin};
pub use token_file::{Login, TokenFile, TokenFileError};
