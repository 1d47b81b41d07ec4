//! What a client is told: a refusal in words, or a response without the values of secrets.
//!
//! Fails closed when a response is of a kind in which a value could not be found: a part of something larger, a difference to
//! something else, compressed, in letters of more than one byte or of another order, or another protocol.

use std::time::Duration;

use bailiwick_egress::{Code, Refusal, Target};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode, Version};

use crate::body::{AnyBody, stepped, whole};
use crate::redact::Redactor;

/// Fields between two parties of a connection, never passed on.
pub(crate) const HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Beginnings of the names of character sets in which ASCII is itself.
const KNOWN_LETTERS: [&str; 16] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "iso-8859",
    "iso8859",
    "latin",
    "windows-",
    "cp125",
    "koi8",
    "euc-",
    "gb",
    "big5",
    "shift_jis",
    "binary",
    "macintosh",
];

/// The refusal as a response, after which the connection is closed, unless it is one that has several requests open.
pub(crate) fn refused(target: &Target, refusal: &Refusal, is_http2: bool) -> Response<AnyBody> {
    let code = refusal.code();
    let advice = refusal.grant().map(|grant| format!("; a person can allow it by granting {grant}"));
    let text = format!(
        "bailiwick: refused {}:{}: {}{}\n",
        target.host,
        target.port,
        code.meaning(),
        advice.unwrap_or_default()
    );
    let gateway =
        matches!(code, Code::SecretResponse | Code::SecretUpstream | Code::SecretBroker | Code::Unreachable);
    let mut response = Response::new(whole(text));
    *response.status_mut() = if gateway { StatusCode::BAD_GATEWAY } else { StatusCode::FORBIDDEN };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if !is_http2 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert("bailiwick-code", HeaderValue::from_static(code.as_str()));
    response
}

/// The response without values. Its body breaks off when nothing came for as long as `patience`.
pub(crate) fn redacted(
    response: Response<Incoming>,
    redactor: &Redactor,
    patience: Duration,
) -> Result<Response<AnyBody>, Refusal> {
    let (mut parts, body) = response.into_parts();
    let withheld = || Refusal::new(Code::SecretResponse);
    let partial = [StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE, StatusCode::IM_USED];
    let is_part = partial.contains(&parts.status);
    if is_part || parts.status.is_informational() || is_encoded(&parts.headers) {
        return Err(withheld());
    }
    drop_hop_fields(&mut parts.headers);
    parts.headers.remove(header::ALT_SVC);
    parts.headers = clean(&parts.headers, redactor).ok_or_else(withheld)?;
    // Each side has a version of its own.
    parts.version = Version::HTTP_11;
    // A reason phrase of the server's own would be one more place for a value.
    parts.extensions.clear();
    let mut redaction = redactor.stream();
    let step = move |piece: Option<&Bytes>| {
        Ok(Bytes::from(match piece {
            Some(piece) => redaction.push(piece),
            None => redaction.finish(),
        }))
    };
    Ok(Response::from_parts(parts, stepped(body, patience, Box::new(step))))
}

/// Fields without values; nothing if the name of one has a value in it.
pub(crate) fn clean(headers: &HeaderMap, redactor: &Redactor) -> Option<HeaderMap> {
    let mut clean = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if redactor.is_in_name(name.as_str()) {
            return None;
        }
        clean.append(name.clone(), HeaderValue::from_bytes(&redactor.redact(value.as_bytes())).ok()?);
    }
    Some(clean)
}

/// Whether a body is in a coding, so that a value would not be found in it.
fn is_encoded(headers: &HeaderMap) -> bool {
    let other = |name, plain: &[u8]| {
        headers.get_all(name).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(plain))
    };
    let is_strange =
        headers.get_all(header::CONTENT_TYPE).iter().any(|kind| !has_known_letters(kind.as_bytes()));
    is_strange || other(header::CONTENT_ENCODING, b"identity") || other(header::TRANSFER_ENCODING, b"chunked")
}

/// Whether the letters of a kind of content are bytes of ASCII, as far as it says: a value in others would not be found.
fn has_known_letters(kind: &[u8]) -> bool {
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    kind.split("charset").skip(1).all(|behind| {
        let named =
            behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '=' | '"' | '\'' | '*'));
        KNOWN_LETTERS.iter().any(|known| named.starts_with(known))
    })
}

/// Removes fields that are not for the other side, with those that `Connection` names.
pub(crate) fn drop_hop_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP.iter().chain(&named) {
        headers.remove(name);
    }
}
