//! What the head of a request has to say about its body, and which lifecycle the two mean.
//!
//! Programs between a client and us route by headers without reading the body, so what both say has to be the same.

use bailiwick_door::{Answer, plain, with_header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::ALLOW;
use http::{HeaderMap, StatusCode};
use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value};

use super::super::message::{ClientMessage, INVALID_PARAMS, INVALID_REQUEST, RequestKey};
use super::refusal;

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A header and the body differ.
const MISMATCH: i64 = -32020;

/// From this version on requests stand for themselves.
const MODERN: &str = "2026-07-28";

/// How a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// In a session that `initialize` opened, or opens.
    Session,
    /// By itself.
    Single,
}

/// What has to be known of a message.
pub(super) struct Seen<'a> {
    pub(super) id: Option<&'a RequestKey>,
    pub(super) method: Option<&'a str>,
    params: Option<&'a Map<String, Value>>,
}

impl<'a> Seen<'a> {
    pub(super) fn from_message(message: &'a ClientMessage) -> Self {
        match message {
            ClientMessage::Request { id, method, params, .. } => {
                Self { id: Some(id), method: Some(method), params: Some(params) }
            }
            ClientMessage::Notification { method, params } => {
                Self { id: None, method: Some(method), params: Some(params) }
            }
            ClientMessage::Answer { .. } => Self { id: None, method: None, params: None },
        }
    }

    fn meta(&self) -> Option<&'a Map<String, Value>> {
        self.params?.get("_meta")?.as_object()
    }

    fn version(&self) -> Option<&'a str> {
        self.id?;
        self.meta()?.get(META_VERSION)?.as_str()
    }

    /// What a request of the modern era has to have in `_meta`, and this one has not.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let has_capabilities =
            self.meta().is_some_and(|meta| meta.get(META_CAPABILITIES).is_some_and(Value::is_object));
        let mut missing = Vec::new();
        if self.version().is_none() {
            missing.push(META_VERSION);
        }
        if !has_capabilities {
            missing.push(META_CAPABILITIES);
        }
        missing
    }

    /// Whether it opens a session. Without a version to agree on it is only a method that the modern era has no more.
    fn is_opening(&self) -> bool {
        let asks =
            self.params.is_some_and(|params| params.get("protocolVersion").is_some_and(Value::is_string));
        self.id.is_some() && self.method == Some("initialize") && asks
    }

    fn mismatch(&self, why: &str) -> Answer {
        refusal(StatusCode::BAD_REQUEST, self.id, MISMATCH, why)
    }
}

/// The one value of a header, as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn session_required() -> Answer {
    plain(StatusCode::BAD_REQUEST, "Bad Request: Session ID is required")
}

pub(super) fn no_session() -> Answer {
    plain(StatusCode::NOT_FOUND, "Not Found: Session not found")
}

pub(super) fn only_posts() -> Answer {
    with_header(plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"), ALLOW, "POST")
}

/// Which lifecycle a request means.
#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
pub(super) fn lifecycle(headers: &HeaderMap, seen: Option<&Seen<'_>>) -> Result<Lifecycle, Answer> {
    let version = known_version(headers, seen)?;
    let Some(seen) = seen else {
        return Ok(if version.is_some_and(|version| version >= MODERN) {
            Lifecycle::Single
        } else {
            Lifecycle::Session
        });
    };
    if seen.is_opening() {
        same_opening(version, seen)?;
        return Ok(Lifecycle::Session);
    }
    same_version(version, seen)?;
    let is_modern = seen.version().or(version).is_some_and(|version| version >= MODERN);
    let is_whole = seen.id.is_some() && seen.missing().is_empty();
    let is_discovery = seen.id.is_some() && seen.method == Some("server/discover");
    let is_single = is_modern || is_whole || is_discovery;
    Ok(if is_single { Lifecycle::Single } else { Lifecycle::Session })
}

/// The version that the head names; one that is not known is left to the server if the body names it too.
#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
fn known_version<'a>(headers: &'a HeaderMap, seen: Option<&Seen<'_>>) -> Result<Option<&'a str>, Answer> {
    let Some(value) = headers.get(VERSION) else { return Ok(None) };
    let unreadable =
        || plain(StatusCode::BAD_REQUEST, "Bad Request: Invalid MCP-Protocol-Version header encoding");
    let version = value.to_str().map_err(|_| unreadable())?;
    let is_known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
    if is_known || seen.is_some_and(|seen| seen.version().is_some()) {
        return Ok(Some(version));
    }
    Err(plain(StatusCode::BAD_REQUEST, "Bad Request: Unsupported MCP-Protocol-Version"))
}

#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
fn same_opening(version: Option<&str>, seen: &Seen<'_>) -> Result<(), Answer> {
    let asked = seen.params.and_then(|params| params.get("protocolVersion")).and_then(Value::as_str);
    if version.is_none() || version == asked {
        return Ok(());
    }
    let why = "Invalid Request: MCP-Protocol-Version header does not match initialize params.protocolVersion";
    Err(refusal(StatusCode::BAD_REQUEST, seen.id, INVALID_REQUEST, why))
}

#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
fn same_version(version: Option<&str>, seen: &Seen<'_>) -> Result<(), Answer> {
    if seen.id.is_none() {
        return Ok(());
    }
    match (seen.version(), version) {
        (None, version) => {
            let is_due = seen.method == Some("server/discover") || version.is_some_and(|v| v >= MODERN);
            if !is_due {
                return Ok(());
            }
            let missing = seen.missing().join(", ");
            let why = format!(
                "Invalid params: request _meta is missing or has malformed required fields: {missing}"
            );
            Err(refusal(StatusCode::BAD_REQUEST, seen.id, INVALID_PARAMS, &why))
        }
        (Some(_), None) => {
            Err(seen.mismatch("request _meta protocolVersion requires MCP-Protocol-Version header"))
        }
        (Some(body), Some(head)) if body != head => {
            Err(seen.mismatch("MCP-Protocol-Version header does not match request _meta protocolVersion"))
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

/// Holds the method and the name in the head to those in the body.
#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
pub(super) fn repeat_the_body(headers: &HeaderMap, seen: &Seen<'_>) -> Result<(), Answer> {
    let is_due = text(headers, VERSION).is_some_and(|version| version >= MODERN);
    let Some(method) = seen.method.filter(|_| is_due) else { return Ok(()) };
    match only(headers, METHOD) {
        Ok(None) if seen.is_opening() => return Ok(()),
        Ok(Some(said)) if said == method => {}
        Ok(None) => return Err(seen.mismatch("missing required Mcp-Method header")),
        Ok(Some(_)) | Err(Unclear) => {
            return Err(seen.mismatch("Mcp-Method header does not match body method"));
        }
    }
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(expected) = seen.params.and_then(|params| params.get(field)).and_then(Value::as_str) else {
        return Ok(());
    };
    match only(headers, NAME) {
        Ok(Some(said)) if decoded(said).as_deref() == Some(expected) => Ok(()),
        Ok(None) => Err(seen.mismatch("missing required Mcp-Name header")),
        Ok(Some(_)) | Err(Unclear) => Err(seen.mismatch("Mcp-Name header does not match body value")),
    }
}

/// Holds the arguments that a tool's schema wants in the head to those in the body.
#[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
pub(super) fn repeat_the_arguments(
    headers: &HeaderMap,
    seen: &Seen<'_>,
    schema: &Value,
) -> Result<(), Answer> {
    if text(headers, VERSION).is_none_or(|version| version < MODERN) {
        return Ok(());
    }
    let arguments = seen.params.and_then(|params| params.get("arguments")).unwrap_or(&Value::Null);
    let mut wanted = Vec::new();
    collect(schema, arguments, &mut wanted);
    for (header, value) in wanted {
        let name = format!("{PARAM}{header}").to_ascii_lowercase();
        let said = only(headers, &name).map_err(|Unclear| seen.mismatch("an Mcp-Param header is unclear"))?;
        let is_same = match (said, in_words(value)) {
            (None, None) => true,
            (Some(said), Some(expected)) => decoded(said) == Some(expected),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            return Err(seen.mismatch(&format!("Mcp-Param-{header} header does not match the argument")));
        }
    }
    Ok(())
}

/// Every header that a schema wants, with the argument that it repeats.
fn collect<'a>(schema: &'a Value, arguments: &'a Value, wanted: &mut Vec<(&'a str, &'a Value)>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        let value = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str).filter(|it| !it.is_empty())
        {
            wanted.push((header, value));
        }
        collect(property, value, wanted);
    }
}

fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value that a header cannot hold comes in base64.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|inner| inner.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// A header that is there twice, or is not text.
struct Unclear;

fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Unclear> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unclear),
        (Some(_), Some(_)) => Err(Unclear),
    }
}
