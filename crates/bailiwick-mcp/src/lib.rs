//! The Model Context Protocol on the wire. Every decision is the gate's; this crate only reads and writes messages.
//!
//! [`Server`] answers requests of both eras of the protocol with the tools of a registry; [`stdio::serve`] carries its
//! messages, one a line, over any pair of streams; [`relay`] stands between a client and another server; [`http`] serves any handler over streamable HTTP, and [`fixture`] is the
//! one that the protocol's conformance suite asks for.
#![forbid(unsafe_code)]

mod answer;
pub mod driver;
pub mod fixture;
mod handler;
pub mod http;
mod instructions;
mod json;
mod progress;
pub mod relay;
mod room;
pub mod stdio;

pub use handler::{About, MAX_CALLS, Server, Tools};
pub use instructions::instructions;
pub use rmcp::ServerHandler;
pub use tokio_util::sync::CancellationToken;
