//! Answers with the headers that every one of them has.

use bailiwick_door::{Answer, filled};
use bailiwick_policy::digest::Digest;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// What a page of ours may do: run our own modules, show our own styles, talk to us, and nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                 img-src 'self' data:; require-trusted-types-for 'script'; frame-ancestors 'none'; \
                                 base-uri 'none'; form-action 'none'";

/// An answer in the making.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    /// What names the body, where a client may ask whether it has changed.
    tag: Option<String>,
}

impl Reply {
    /// A document.
    pub(crate) fn json(value: &Value) -> Self {
        Self::text("application/json", value.to_string().into_bytes())
    }

    /// Text of this type.
    pub(crate) fn text(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: StatusCode::OK, kind, body: body.into(), tag: None }
    }

    /// A refusal in words for people.
    pub(crate) fn refused(status: StatusCode, why: &str) -> Self {
        Self { status, ..Self::json(&json!({ "error": why })) }
    }

    /// A request that cannot be understood.
    pub(crate) fn invalid(why: &str) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, why)
    }

    /// Something that is not as the page believed.
    pub(crate) fn conflict(why: &str) -> Self {
        Self::refused(StatusCode::CONFLICT, why)
    }

    /// We or the system failed.
    pub(crate) fn fault(why: &str) -> Self {
        Self::refused(StatusCode::INTERNAL_SERVER_ERROR, why)
    }

    /// The same, or nothing but its name if the client has it.
    pub(crate) fn unless_known(mut self, known: Option<&str>) -> Self {
        let tag = format!("\"{}\"", Digest::sha256(&self.body));
        if known == Some(&*tag) {
            self.status = StatusCode::NOT_MODIFIED;
            self.body = Vec::new();
        }
        self.tag = Some(tag);
        self
    }

    pub(crate) fn into_answer(self) -> Answer {
        let mut answer = filled(self.status, self.body);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if let Some(tag) = self.tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
            headers.insert(ETAG, tag);
        }
        with_headers(answer)
    }
}

/// The headers of every answer.
pub(crate) fn with_headers(mut answer: Answer) -> Answer {
    let fixed = [
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
