//! The console: one page that shows what tools do and lets a person decide, served to this machine alone.
//!
//! Everything stands behind the door of [`bailiwick_door`]: exact `Host`, exact `Origin`, a token. The page itself holds no
//! secret and is open; a one-time code, printed by the command, is exchanged for the token once (`entry.rs`), and the page
//! keeps that in its memory. What the page shows comes from the journal (`stream.rs`, `history.rs`) and from the
//! [`ConsoleHost`]; what it does is what a command does: an answer to an approval, a pin that is accepted, a line in a manifest.
//!
//! Invariants: nothing is decided here; an asset is one of a fixed table, so no path is ever opened; every answer has the
//! same strict headers; a stream holds a bounded number of lines and is dropped if it is not read.
//!
//! Fails closed when: the code is wrong or was used, a request that changes something names no origin, the console only
//! watches. Residual: a process of the same user that no sandbox holds can read what the page reads.
#![forbid(unsafe_code)]

mod actions;
mod assets;
mod entry;
mod grant;
mod history;
mod host;
mod manifest_edit;
mod reply;
mod sessions;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;

use bailiwick_door::{Answer, DoorRules, Limits, Listening, Service, Token, TokenFault};
use bailiwick_guardrails::State;
use http::header::{IF_NONE_MATCH, ORIGIN};
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

pub use assets::{ASSETS, Asset};
pub use entry::OneTimeCode;
pub use host::{ConsoleHost, HostFault, ManifestPlace};
pub use manifest_edit::{EditFault, with_capability};

use entry::Entry;
use grant::Undone;
use reply::Reply;

/// The most bytes of a request: a cursor names every session of the journal.
const MAX_BODY: usize = 4 << 20;

/// Where a console finds things, and what it may do.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// The journal's directory.
    pub journal: PathBuf,
    /// Where approvals are.
    pub state: State,
    /// Whether it only shows.
    pub watches_only: bool,
}

/// A console that serves nothing yet.
pub struct Console<H> {
    options: ConsoleOptions,
    host: H,
    entry: Entry,
    undone: Undone,
    halt: CancellationToken,
}

impl<H: ConsoleHost> Console<H> {
    /// A console, and the code that its first page comes in with. The token is a new one where none is given.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(
        options: ConsoleOptions,
        host: H,
        token: Option<Token>,
    ) -> Result<(Self, Token, OneTimeCode), TokenFault> {
        let token = token.map_or_else(Token::random, Ok)?;
        let (entry, code) = Entry::new(&token)?;
        let halt = CancellationToken::new();
        Ok((Self { options, host, entry, undone: Undone::default(), halt }, token, code))
    }

    /// Serves until `stop` does.
    pub async fn serve(self, listening: Listening, token: Token, stop: impl Future<Output = ()>) {
        let mut limits = Limits::default();
        limits.body_bytes = MAX_BODY;
        limits.connections = 64;
        let rules = listening.name(DoorRules::with_token("/api/", token).with_open_paths(assets::OPEN_PATHS));
        listening.serve(rules, limits, Arc::new(Served(Arc::new(self))), stop).await;
    }

    /// Takes the short answers; whether it may take longer is the caller's affair.
    fn answer_quickly(&self, method: &Method, head: &Parts) -> Option<Reply> {
        let known = head.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        match (method.as_str(), head.uri.path()) {
            ("GET" | "HEAD", path) if !path.starts_with("/api/") => Some(assets::answer(path, known)),
            ("GET", "/api/state") => Some(actions::state(self).unless_known(known)),
            _ => None,
        }
    }
}

/// Why a request that changes something is not served.
fn refusal_to_change(head: &Parts, watches_only: bool) -> Option<Reply> {
    if !head.headers.contains_key(ORIGIN) {
        return Some(Reply::refused(
            StatusCode::FORBIDDEN,
            "a request that changes something names its origin",
        ));
    }
    watches_only.then(|| {
        Reply::refused(
            StatusCode::FORBIDDEN,
            "this console only watches; start it without `--watch` to decide here",
        )
    })
}

/// A console that is served: what takes long goes on beside the connection that asked for it.
struct Served<H>(Arc<Console<H>>);

impl<H: ConsoleHost> Service for Served<H> {
    async fn answer(&self, head: Parts, body: Incoming) -> Answer {
        if head.uri.path() == entry::PATH {
            let show = |code: &OneTimeCode| self.0.host.show_code(code);
            return self.0.entry.answer(&head, body, show).await.into_answer();
        }
        if let Some(reply) = self.0.answer_quickly(&head.method, &head) {
            return reply.into_answer();
        }
        let mut limits = Limits::default();
        limits.body_bytes = MAX_BODY;
        let body = match bailiwick_door::read_body(&head.headers, body, &limits).await {
            Ok(body) => body,
            Err(answer) => return reply::with_headers(answer),
        };
        let (method, path) = (head.method.as_str(), head.uri.path());
        if method == "POST" && path == "/api/stream" {
            return stream::answer(Arc::clone(&self.0), &body);
        }
        if method == "GET" && path == "/api/export" {
            return sessions::export(Arc::clone(&self.0), head.uri.query().unwrap_or_default());
        }
        let changes = method == "POST" && actions::CHANGING.contains(&path);
        if changes && let Some(refusal) = refusal_to_change(&head, self.0.options.watches_only) {
            return refusal.into_answer();
        }
        let (console, query) = (Arc::clone(&self.0), head.uri.query().unwrap_or_default().to_owned());
        let (method, path) = (method.to_owned(), path.to_owned());
        // Files are read and written there: other requests do not wait for them.
        let reply =
            tokio::task::spawn_blocking(move || actions::act(&console, (&method, &path), &query, &body))
                .await;
        reply.unwrap_or_else(|_| Reply::fault("the request could not be worked on")).into_answer()
    }

    async fn end(&self) {
        self.0.halt.cancel();
    }
}
