//! Messages of both sides: what the relay must know of one, and no more.
//!
//! A client's message is read strictly, because it is judged; those of a server are read in `from_peer`.

use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::strict;

/// The longest text id, in bytes.
const MAX_ID: usize = 1024;

/// The codes of JSON-RPC that the relay answers with.
pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Said by the relay itself, not by the protocol.
pub(super) const OWN_ERROR: i64 = -32000;

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum RequestKey {
    Number(i64),
    Text(Box<str>),
}

/// What a client sends.
#[derive(Debug)]
pub(super) enum ClientMessage {
    Request {
        id: RequestKey,
        method: String,
        params: Map<String, Value>,
        has_odd_number: bool,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request of the server.
    Answer {
        id: RequestKey,
    },
}

/// Why a client's line is not passed on.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) id: Option<RequestKey>,
    pub(super) code: i64,
    pub(super) message: String,
}

impl RequestKey {
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                number.as_i64().filter(|id| id.unsigned_abs() <= 1 << 53).map(Self::Number)
            }
            Value::String(text) if text.len() <= MAX_ID => Some(Self::Text(text.as_str().into())),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The id as a server wrote it.
    pub(super) fn from_raw(raw: &RawValue) -> Option<Self> {
        Self::from_value(&serde_json::from_str(raw.get()).ok()?)
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => Value::from(&**text),
        }
    }
}

impl Malformed {
    fn new(id: Option<RequestKey>, code: i64, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    pub(super) fn too_long() -> Self {
        Self::new(None, INVALID_REQUEST, "Invalid request: the message is longer than 16 MiB")
    }

    pub(super) fn repeated(id: RequestKey) -> Self {
        Self::new(Some(id), INVALID_REQUEST, "Invalid request: a request of this id waits for its answer")
    }

    pub(super) fn busy(id: RequestKey) -> Self {
        let message = "busy: too many requests wait for their answers; ask again when one has ended";
        Self::new(Some(id), OWN_ERROR, message)
    }

    /// The answer, as a line. An id that could not be read is null.
    pub(super) fn to_line(&self) -> Vec<u8> {
        let id = self.id.as_ref().map_or(Value::Null, RequestKey::to_value);
        let error = json!({ "code": self.code, "message": self.message });
        line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error of the protocol, as a line.
pub(super) fn error_line(id: &RequestKey, code: i64, message: &str, data: Option<Value>) -> Vec<u8> {
    let mut error = json!({ "code": code, "message": message });
    if let (Some(data), Value::Object(fields)) = (data, &mut error) {
        fields.insert("data".to_owned(), data);
    }
    line(&json!({ "jsonrpc": "2.0", "id": id.to_value(), "error": error }))
}

/// A result, as a line.
pub(super) fn result_line(id: &RequestKey, result: &impl serde::Serialize) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_value(), "result": result }))
}

/// A message as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

/// Reads a client's line. A blank one is nothing.
pub(super) fn read_client(text: &[u8]) -> Result<Option<ClientMessage>, Malformed> {
    if text.trim_ascii().is_empty() {
        return Ok(None);
    }
    let read = strict::read(text).map_err(|error| unreadable(&error))?;
    let Value::Object(fields) = read.value else {
        let message = if read.value.is_array() {
            "a line is one message, not a batch"
        } else {
            "a message is an object"
        };
        return Err(Malformed::new(None, INVALID_REQUEST, format!("Invalid request: {message}")));
    };
    envelope(fields, read.has_odd_number).map(Some)
}

fn unreadable(error: &serde_json::Error) -> Malformed {
    use serde_json::error::Category;
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => {
            Malformed::new(None, PARSE_ERROR, format!("Parse error: {error}"))
        }
        Category::Data => Malformed::new(None, INVALID_REQUEST, format!("Invalid request: {error}")),
    }
}

fn envelope(mut fields: Map<String, Value>, has_odd_number: bool) -> Result<ClientMessage, Malformed> {
    let wrong = |id: Option<RequestKey>, why: &str| {
        Malformed::new(id, INVALID_REQUEST, format!("Invalid request: {why}"))
    };
    let id = match fields.remove("id") {
        None => None,
        Some(id) => Some(RequestKey::from_value(&id).ok_or_else(|| {
            wrong(None, "an id is a short string, or an integer that every parser holds exactly")
        })?),
    };
    if fields.remove("jsonrpc").as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(id, "`jsonrpc` is \"2.0\""));
    }
    let is_answer = fields.contains_key("result") != fields.contains_key("error");
    let answers = fields.contains_key("result") || fields.contains_key("error");
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), id) if !answers => {
            let params = match fields.remove("params") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(params)) => params,
                Some(_) => {
                    return Err(Malformed::new(id, INVALID_PARAMS, "Invalid params: `params` is an object"));
                }
            };
            Ok(match id {
                Some(id) => ClientMessage::Request { id, method, params, has_odd_number },
                None => ClientMessage::Notification { method, params },
            })
        }
        (None, Some(id)) if is_answer => Ok(ClientMessage::Answer { id }),
        (_, id) => Err(wrong(id, "a message is a request, a notification, a result or an error")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_message_is_told_apart() {
        let read = |text: &str| read_client(text.as_bytes());
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#),
            Ok(Some(ClientMessage::Request { .. }))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"m"}"#),
            Ok(Some(ClientMessage::Notification { .. }))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#),
            Ok(Some(ClientMessage::Answer { .. }))
        ));
        assert!(matches!(read(" "), Ok(None)));
        for text in [
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
