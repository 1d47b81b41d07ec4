//! One request and its answer: in at the door, the body read within its limits, then `rmcp`.
//!
//! A body is read first as a line of [`crate::stdio`] is, so that what is no message, or could be one in two ways, gets
//! the same answer there and here; `rmcp` says only that it cannot read it. Everything else of the protocol is `rmcp`'s.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use rmcp::ServerHandler;
use rmcp::model::{ClientRequest, ErrorCode, JsonRpcMessage, ProtocolVersion};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::door::{Door, Refusal};
use super::limits::Limits;
use super::sessions::Sessions;
use super::strangers::Stranger;
use crate::room::Keeper;
use crate::stdio::message;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Methods with parameters that the modern era has no more.
const LEGACY: [&str; 4] = ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// What all connections of a server share.
pub(super) struct Exchange<H> {
    door: Door,
    limits: Limits,
    sessions: Arc<Sessions>,
    service: StreamableHttpService<H, Sessions>,
}

impl<H: ServerHandler + Send + 'static> Exchange<H> {
    pub(super) fn new(
        door: Door,
        limits: Limits,
        handler: impl Fn() -> H + Send + Sync + 'static,
        halt: CancellationToken,
    ) -> Self {
        let sessions = Arc::new(Sessions::new(limits.sessions, limits.idle));
        let config = StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(limits.body_bytes)
            .with_cancellation_token(halt);
        let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
        Self { door, limits, sessions, service }
    }

    pub(super) async fn close_sessions(&self) {
        self.sessions.close_all().await;
    }

    pub(super) async fn answer(&self, request: Request<Incoming>, stranger: &Stranger) -> Answer {
        let (mut head, body) = request.into_parts();
        if let Err(refusal) = self.door.admit(&mut head) {
            return refused(refusal);
        }
        if !stranger.admit() {
            let full =
                plain(StatusCode::SERVICE_UNAVAILABLE, "there are as many connections as this server holds");
            return last(with_header(full, RETRY_AFTER, "1"));
        }
        match head.method {
            Method::POST => {
                let keeper = Keeper::default();
                head.extensions.insert(keeper.clone());
                let answer = self.post(head, body).await.unwrap_or_else(|refusal| refusal);
                answer.map(|body| Kept { body, _keeper: keeper }.boxed())
            }
            Method::GET | Method::DELETE => self.pass(head, Bytes::new()).await,
            _ => with_header(
                plain(StatusCode::METHOD_NOT_ALLOWED, "GET, POST and DELETE are served"),
                ALLOW,
                "GET, POST, DELETE",
            ),
        }
    }

    async fn post(&self, head: Parts, body: Incoming) -> Result<Answer, Answer> {
        if !is_json(&head.headers) {
            return Err(last(plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            )));
        }
        let body = self.read(&head.headers, body).await?;
        let opens = opens_session(&head.headers, &body)?;
        if opens && self.sessions.is_full().await {
            let full =
                plain(StatusCode::SERVICE_UNAVAILABLE, "there are as many sessions as this server holds");
            return Err(with_header(full, RETRY_AFTER, "60"));
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

    async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Answer> {
        let too_large =
            || last(plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than this server reads"));
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        if announced.is_some_and(|length: usize| length > self.limits.body_bytes) {
            return Err(too_large());
        }
        match timeout(self.limits.body, Limited::new(body, self.limits.body_bytes).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(last(plain(StatusCode::BAD_REQUEST, "the body did not arrive whole"))),
            Err(_) => Err(last(plain(StatusCode::REQUEST_TIMEOUT, "the body took too long"))),
        }
    }
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

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn refused(refusal: Refusal) -> Answer {
    let answer = last(plain(refusal.status(), refusal.reason()));
    match refusal {
        Refusal::Token => with_header(answer, WWW_AUTHENTICATE, "Bearer"),
        Refusal::Host | Refusal::Origin | Refusal::Path => answer,
    }
}

/// A JSON-RPC error for what no handler gets to see.
fn malformed(code: ErrorCode, message: &str) -> Answer {
    let error = serde_json::json!({ "code": code.0, "message": message });
    json(serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string().into_bytes())
}

fn json(body: Vec<u8>) -> Answer {
    with_header(filled(StatusCode::BAD_REQUEST, body), CONTENT_TYPE, "application/json")
}

fn plain(status: StatusCode, reason: &'static str) -> Answer {
    with_header(filled(status, reason.as_bytes().to_vec()), CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn filled(status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    answer
}

/// Closes the connection: what follows a request that was not read to its end cannot be trusted.
fn last(answer: Answer) -> Answer {
    with_header(answer, CONNECTION, "close")
}

fn with_header(mut answer: Answer, name: HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}
