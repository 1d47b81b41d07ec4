//! One request and its answer, over one connection that is closed afterwards.

use std::time::Duration;

use bailiwick_policy::net::Method;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, LOCATION,
    USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::FetchRequest;
use super::connect::Stream;
use super::decode::{DecodeError, Decoder, Fed};
use super::secrets::Filled;
use super::target::Target;

/// All headers of an answer together.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// How long the next piece of a body may take.
const MAX_IDLE: Duration = Duration::from_secs(10);
const AGENT: &str = concat!("bailiwick/", env!("CARGO_PKG_VERSION"));
const WANTED: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, */*;q=0.5";

/// What a server answered.
pub(super) enum Answered {
    /// Ask there instead.
    Elsewhere(String),
    /// This.
    Here(Answer),
}

/// An answer that is no redirect.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) truncated: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    #[error("`{0}` gave no usable answer: {1}")]
    Unusable(String, String),
    #[error("`{0}` cannot be asked for: {1}")]
    Request(String, hyper::http::Error),
    #[error("the body stalled for {} s", MAX_IDLE.as_secs())]
    Stalled,
    #[error("the body broke off: {0}")]
    BrokeOff(String),
    #[error(transparent)]
    Body(#[from] DecodeError),
}

/// Sends the request and reads the answer.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    (target, filled): (&Target, Option<&Filled<'_>>),
    asked: &FetchRequest,
) -> Result<Answered, ExchangeError> {
    let broken = |error: hyper::Error| ExchangeError::Unusable(target.host.to_string(), chain(&error));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD).max_header_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Dropped with this call, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let response = sender.send_request(request(target, filled, asked.method)?).await.map_err(broken)?;
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    if let Some(location) = header(&response, &LOCATION).filter(|_| redirects) {
        return Ok(Answered::Elsewhere(location));
    }
    let status = response.status().as_u16();
    let content_type = header(&response, &CONTENT_TYPE);
    let (body, truncated) =
        if asked.method.as_str() == "HEAD" { (Vec::new(), false) } else { read(response, asked).await? };
    Ok(Answered::Here(Answer { status, content_type, body, truncated }))
}

fn request(
    target: &Target,
    filled: Option<&Filled<'_>>,
    method: Method,
) -> Result<Request<Empty<Bytes>>, ExchangeError> {
    let path = filled.map_or_else(|| target.path_and_query(), |filled| filled.path.clone());
    let request = Request::builder()
        .method(method.as_str())
        .uri(path)
        .header(HOST, target.authority())
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, WANTED)
        .header(ACCEPT_ENCODING, "gzip, deflate, br")
        .header(CONNECTION, "close")
        .body(Empty::new());
    let mut request = request.map_err(|source| ExchangeError::Request(target.shown().to_owned(), source))?;
    for (name, value) in filled.into_iter().flat_map(|filled| &filled.headers) {
        request.headers_mut().insert(name, value.clone());
    }
    Ok(request)
}

/// Reads the body until it ends or enough of it is there.
async fn read(response: Response<Incoming>, asked: &FetchRequest) -> Result<(Vec<u8>, bool), ExchangeError> {
    let coding = header(&response, &CONTENT_ENCODING);
    let mut decoder = Decoder::new(coding.as_deref(), asked.max_bytes)?;
    let mut body = response.into_body();
    loop {
        let next = tokio::time::timeout(MAX_IDLE, body.frame()).await;
        let next = next.map_err(|_| ExchangeError::Stalled)?;
        let Some(frame) = next else { return Ok(decoder.finish()?) };
        let frame = frame.map_err(|error| ExchangeError::BrokeOff(chain(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        if decoder.feed(data)? == Fed::Full {
            return Ok((decoder.into_body(), true));
        }
    }
}

fn header<B>(response: &Response<B>, name: &HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// An error and what caused it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
