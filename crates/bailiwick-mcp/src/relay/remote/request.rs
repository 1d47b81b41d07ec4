//! What is sent: the client's message as it was judged, with the headers that the protocol wants beside it.

use std::collections::HashMap;

use bailiwick_remote::Credential;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request};
use serde_json::{Map, Value};

use super::session::{SESSION, Session, VERSION};
use crate::relay::message::RequestKey;

/// The field of `_meta` by which a request of the modern era says its version.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The most headers that the arguments of one tool have.
const MAX_HEADERS: usize = 32;

/// What has to be known of a message. It was read strictly and judged before.
pub(super) struct MessageHead {
    pub(super) id: Option<RequestKey>,
    pub(super) method: Option<String>,
    /// What the method is about.
    name: Option<String>,
    /// The version that it says, if it stands for itself.
    version: Option<String>,
    /// The request that is cancelled.
    pub(super) cancelled: Option<RequestKey>,
}

/// Headers that repeat arguments, by tool: which header, and where the argument stands.
#[derive(Default)]
pub(super) struct ToolHeaders(HashMap<String, Vec<(HeaderName, Vec<String>)>>);

impl MessageHead {
    pub(super) fn from_line(line: &[u8]) -> Option<Self> {
        let mut message: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.remove("params").unwrap_or_default();
        let text = |field: &str| params.get(field).and_then(Value::as_str).map(str::to_owned);
        let name = match method.as_deref() {
            Some("tools/call" | "prompts/get") => text("name"),
            Some("resources/read" | "resources/subscribe" | "resources/unsubscribe") => text("uri"),
            Some("tasks/get" | "tasks/update" | "tasks/cancel") => text("taskId"),
            _ => None,
        };
        let version = params.get("_meta").and_then(|meta| meta.get(META_VERSION)).and_then(Value::as_str);
        Some(Self {
            id: message.get("id").and_then(RequestKey::from_value),
            name,
            version: version.map(str::to_owned),
            cancelled: params.get("requestId").and_then(RequestKey::from_value),
            method,
        })
    }

    /// One that only asks for the session's own stream, or ends it.
    pub(super) const fn empty() -> Self {
        Self { id: None, method: None, name: None, version: None, cancelled: None }
    }
}

impl ToolHeaders {
    /// Learns from a list of tools which arguments are repeated in headers.
    pub(super) fn note(&mut self, line: &[u8]) {
        let list: Option<Value> = serde_json::from_slice(line).ok();
        let tools = list.as_ref().and_then(|list| list.pointer("/result/tools")?.as_array());
        for tool in tools.into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mut headers = Vec::new();
            collect(tool.get("inputSchema").unwrap_or(&Value::Null), &mut Vec::new(), &mut headers);
            self.0.insert(name.to_owned(), headers);
        }
    }

    /// The headers of a call, with their values.
    pub(super) fn of_call(&self, head: &MessageHead, line: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
        let tool = head.name.as_ref().filter(|_| head.method.as_deref() == Some("tools/call"));
        let Some(headers) = tool.and_then(|tool| self.0.get(tool)).filter(|it| !it.is_empty()) else {
            return Vec::new();
        };
        let message: Option<Value> = serde_json::from_slice(line).ok();
        let arguments = message.as_ref().and_then(|message| message.pointer("/params/arguments"));
        let one = |(name, path): &(HeaderName, Vec<String>)| {
            let value = path.iter().try_fold(arguments?, |value, field| value.get(field))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((name.clone(), encoded(&text)?))
        };
        headers.iter().filter_map(one).collect()
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, headers: &mut Vec<(HeaderName, Vec<String>)>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        if path.len() >= 8 || headers.len() >= MAX_HEADERS {
            return;
        }
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str).filter(|it| !it.is_empty());
        let header = header.and_then(|it| HeaderName::try_from(format!("mcp-param-{it}")).ok());
        headers.extend(header.map(|header| (header, path.clone())));
        collect(property, path, headers);
        path.pop();
    }
}

/// A value as a header can hold it.
fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    let value = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    HeaderValue::try_from(value).ok()
}

/// The request for a message.
pub(super) fn written(
    method: Method,
    body: Bytes,
    head: &MessageHead,
    session: &Session,
    tools: &[(HeaderName, HeaderValue)],
    credential: Option<&str>,
) -> Result<Request<Bytes>, String> {
    let unwritable = |what: &str| format!("the server's own {what} cannot be sent back");
    let mut builder = Request::builder().method(method.clone());
    let accepted =
        if method == Method::POST { "application/json, text/event-stream" } else { "text/event-stream" };
    builder = builder.header(ACCEPT, accepted);
    if method == Method::POST {
        builder = builder.header(CONTENT_TYPE, "application/json");
    }
    let is_opening = head.method.as_deref() == Some("initialize");
    match (&head.version, &session.version) {
        (Some(own), _) => {
            builder = builder.header(VERSION, own.as_str());
            if let Some(method) = &head.method {
                builder = builder.header("mcp-method", method.as_str());
            }
            if let Some(name) = head.name.as_deref().and_then(encoded) {
                builder = builder.header("mcp-name", name);
            }
            builder = tools.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        }
        (None, Some(agreed)) if !is_opening => builder = builder.header(VERSION, agreed.as_str()),
        (None, _) => {}
    }
    if let Some(name) = session.name.as_deref().filter(|_| !is_opening && head.version.is_none()) {
        builder = builder.header(SESSION, name);
    }
    if let Some(value) = credential {
        builder = builder.header(AUTHORIZATION, Credential::header(value).map_err(|why| why.to_string())?);
    }
    builder.body(body).map_err(|_| unwritable("version or session"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_what_the_body_says() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"g\u00e9o","arguments":{"at":{"city":"Z\u00fcrich"},"n":7},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let head = MessageHead::from_line(line).unwrap();
        let mut tools = ToolHeaders::default();
        tools.note(br#"{"result":{"tools":[{"name":"g\u00e9o","inputSchema":{"properties":{"at":{"properties":{"city":{"x-mcp-header":"City"}}},"n":{"x-mcp-header":"N"},"bad":{"x-mcp-header":"a b"}}}}]}}"#);
        let session = Session { name: Some("s".to_owned()), ..Session::default() };
        let headers = tools.of_call(&head, line);
        let request = written(Method::POST, Bytes::new(), &head, &session, &headers, Some("t")).unwrap();
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let wanted = |text: &str| Some(text.to_owned());
        assert_eq!(header("mcp-protocol-version"), wanted("2026-07-28"));
        assert_eq!(header("mcp-method"), wanted("tools/call"));
        assert_eq!(header("mcp-name"), wanted("=?base64?Z8Opbw==?="));
        assert_eq!(header("mcp-param-city"), wanted("=?base64?WsO8cmljaA==?="));
        assert_eq!(header("mcp-param-n"), wanted("7"));
        assert_eq!(header("mcp-session-id"), None, "such a request stands for itself");
        assert_eq!(header("authorization"), wanted("Bearer t"));
    }

    #[test]
    fn an_opening_has_no_session_and_what_follows_has() {
        let session = Session {
            name: Some("s".to_owned()),
            version: Some("2025-11-25".to_owned()),
            ..Session::default()
        };
        let of = |line: &[u8]| {
            let head = MessageHead::from_line(line).unwrap();
            written(Method::POST, Bytes::new(), &head, &session, &[], None).unwrap()
        };
        let opening = of(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
        assert!(opening.headers().get(SESSION).is_none() && opening.headers().get(VERSION).is_none());
        let next = of(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
        assert_eq!(next.headers()[SESSION], "s");
        assert_eq!(next.headers()[VERSION], "2025-11-25");
        assert!(next.headers().get("mcp-method").is_none() && next.headers().get(AUTHORIZATION).is_none());
    }
}
