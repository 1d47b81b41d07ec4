//! One request that was let in, and its answer: the body read within its limits, then `rmcp`.
//!
//! A body is read first as a line of [`crate::stdio`] is, so that what is no message, or could be one in two ways, gets
//! the same answer there and here; `rmcp` says only that it cannot read it. Everything else of the protocol is `rmcp`'s.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bailiwick_door::{Answer, Limits, Service, closing, filled, plain, read_body, retry_after, with_header};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use rmcp::ServerHandler;
use rmcp::model::{ClientRequest, ErrorCode, JsonRpcMessage, ProtocolVersion};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::sessions::Sessions;
use crate::room::Keeper;
use crate::stdio::message;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Methods with parameters that the modern era has no more.
const LEGACY: [&str; 4] = ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// What all connections of a server share.
pub(super) struct Exchange<H> {
    limits: Limits,
    sessions: Arc<Sessions>,
    service: StreamableHttpService<H, Sessions>,
    halt: CancellationToken,
}

impl<H: ServerHandler + Send + 'static> Service for Exchange<H> {
    async fn answer(&self, mut head: Parts, body: Incoming) -> Answer {
        match head.method {
            Method::POST => {
                let keeper = Keeper::default();
                head.extensions.insert(keeper.clone());
                let answer = self.post(head, body).await.unwrap_or_else(|refusal| refusal);
                answer.map(|body| Kept { body, _keeper: keeper }.boxed())
            }
            Method::GET | Method::DELETE => self.pass(head, Bytes::new()).await,
            _ => method_not_allowed(),
        }
    }

    async fn end(&self) {
        self.halt.cancel();
        self.sessions.close_all().await;
    }
}

impl<H: ServerHandler + Send + 'static> Exchange<H> {
    pub(super) fn new(limits: Limits, handler: impl Fn() -> H + Send + Sync + 'static) -> Self {
        let halt = CancellationToken::new();
        let sessions = Arc::new(Sessions::new(limits.sessions, limits.idle));
        let config = StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(limits.body_bytes)
            .with_cancellation_token(halt.clone());
        let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
        Self { limits, sessions, service, halt }
    }

    async fn post(&self, head: Parts, body: Incoming) -> Result<Answer, Answer> {
        if !is_json(&head.headers) {
            return Err(not_json());
        }
        let body = read_body(&head.headers, body, &self.limits).await?;
        let opens = opens_session(&head.headers, &body)?;
        if opens && self.sessions.is_full().await {
            return Err(no_room());
        }
        let answer = self.pass(head, body).await;
        // The content type was right, so this is how rmcp says that it cannot read the message.
        if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return Err(malformed(
                ErrorCode::INVALID_REQUEST,
                "Invalid request: this is no message of the protocol",
            ));
        }
        Ok(answer)
    }

    async fn pass(&self, head: Parts, body: Bytes) -> Answer {
        self.service.handle(Request::from_parts(head, Full::new(body))).await
    }
}

/// Every other method than the protocol's three.
pub(crate) fn method_not_allowed() -> Answer {
    let answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET, POST and DELETE are served");
    with_header(answer, ALLOW, "GET, POST, DELETE")
}

pub(crate) fn not_json() -> Answer {
    closing(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"))
}

pub(crate) fn no_room() -> Answer {
    let full = plain(StatusCode::SERVICE_UNAVAILABLE, "there are as many sessions as this server holds");
    retry_after(full, "60")
}

/// A body that keeps the room of its answer until it has been sent, or given up.
struct Kept {
    body: BoxBody<Bytes, Infallible>,
    _keeper: Keeper,
}

impl Body for Kept {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a message as far as has to be known of it: that it is one, and whether it asks for a session.
#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
fn opens_session(headers: &HeaderMap, body: &[u8]) -> Result<bool, Answer> {
    match message::read(body) {
        Ok(Some(JsonRpcMessage::Request(request))) => {
            let opening = matches!(request.request, ClientRequest::InitializeRequest(_));
            Ok(opening && !headers.contains_key(SESSION))
        }
        Ok(Some(_)) => Ok(false),
        Ok(None) => Err(malformed(ErrorCode::PARSE_ERROR, "Parse error: there is no message")),
        Err(wrong) if wrong.code() == ErrorCode::INVALID_PARAMS && is_gone(headers, body) => Ok(false),
        Err(wrong) => Err(json(wrong.to_line())),
    }
}

/// Whether a request is of the modern era and for a method that only the legacy one has: then it is the method that is
/// wrong, whatever its parameters are.
fn is_gone(headers: &HeaderMap, body: &[u8]) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
        && message::method(body).is_some_and(|method| LEGACY.contains(&method.as_str()))
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// A JSON-RPC error for what no handler gets to see.
fn malformed(code: ErrorCode, message: &str) -> Answer {
    let error = serde_json::json!({ "code": code.0, "message": message });
    json(serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string().into_bytes())
}

fn json(body: Vec<u8>) -> Answer {
    with_header(filled(StatusCode::BAD_REQUEST, body), CONTENT_TYPE, "application/json")
}
