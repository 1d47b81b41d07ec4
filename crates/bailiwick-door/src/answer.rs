//! Answers that need no service, and the body of a request within its limits.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::limits::Limits;

/// What is sent back.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// A reason, as text.
#[must_use]
pub fn plain(status: StatusCode, reason: &'static str) -> Answer {
    with_header(filled(status, reason.as_bytes().to_vec()), CONTENT_TYPE, "text/plain; charset=utf-8")
}

/// An answer with this body, whose type is still to be said.
#[must_use]
pub fn filled(status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    answer
}

/// Closes the connection: what follows a request that was not read to its end cannot be trusted.
#[must_use]
pub fn closing(answer: Answer) -> Answer {
    with_header(answer, CONNECTION, "close")
}

/// Says when to ask again, in seconds.
#[must_use]
pub fn retry_after(answer: Answer, seconds: &'static str) -> Answer {
    with_header(answer, RETRY_AFTER, seconds)
}

/// The answer with this header.
#[must_use]
pub fn with_header(mut answer: Answer, name: HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

/// Reads a body, as large and as slow as the limits allow.
///
/// # Errors
/// The answer that says what is wrong with it.
pub async fn read_body(headers: &HeaderMap, body: Incoming, limits: &Limits) -> Result<Bytes, Answer> {
    let too_large =
        || closing(plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than this server reads"));
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    if announced.is_some_and(|length: usize| length > limits.body_bytes) {
        return Err(too_large());
    }
    match timeout(limits.body, Limited::new(body, limits.body_bytes).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(closing(plain(StatusCode::BAD_REQUEST, "the body did not arrive whole"))),
        Err(_) => Err(closing(plain(StatusCode::REQUEST_TIMEOUT, "the body took too long"))),
    }
}
