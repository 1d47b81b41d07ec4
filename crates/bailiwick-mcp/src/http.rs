//! Streamable HTTP for any handler, in both eras of the protocol, behind the door of [`bailiwick_door`].
//!
//! `rmcp` speaks the protocol: sessions and event streams for clients that initialize, self-contained requests for
//! those that do not, and the headers that have to repeat the body. Added here is how many sessions there may be, and
//! that a message is read as on stdin. Who may come in, and how much a request may bring, is the door's.
//!
//! Only the fixture, which can do nothing, can be served without a token.

mod exchange;
mod sessions;

use std::future::Future;
use std::sync::Arc;

use bailiwick_door::{DoorRules, Limits, Listening, Token};
use rmcp::ServerHandler;

use crate::fixture::Fixture;
use exchange::Exchange;
pub(crate) use exchange::{is_json, method_not_allowed, no_room, not_json};

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// Serves what `handler` makes, one for each session and one for each request without, to clients that have the token.
/// Ends some time after `stop` does, when the connections have ended or `limits.ending` is over.
pub async fn serve<H: ServerHandler + Send + 'static>(
    listening: Listening,
    token: Token,
    limits: Limits,
    handler: impl Fn() -> H + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) {
    let exchange = Arc::new(Exchange::new(limits, handler));
    listening.serve(DoorRules::with_token(PATH, token), limits, exchange, stop).await;
}

/// Serves the conformance fixture; without a token, to every process of this machine.
pub async fn serve_fixture(
    listening: Listening,
    token: Option<Token>,
    limits: Limits,
    fixture: Fixture,
    stop: impl Future<Output = ()>,
) {
    let entry = match token {
        Some(token) => DoorRules::with_token(PATH, token),
        None => DoorRules::for_everyone(PATH),
    };
    let exchange = Arc::new(Exchange::new(limits, move || fixture.clone()));
    listening.serve(entry, limits, exchange, stop).await;
}
