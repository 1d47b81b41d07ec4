//! From a line to a message, or to the error that answers it.
//!
//! Strict about the envelope (JSON-RPC 2.0, one message a line) and about the parameters of methods that the protocol
//! has; methods it does not have are passed on. Notifications are never answered, and never call anything.
#![expect(deprecated, reason = "what the modern era has no more is still there for the legacy one")]

use rmcp::model::{
    CallToolRequest, CancelTaskRequest, CancelledNotification, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ClientResult, CompleteRequest, CustomNotification, CustomRequest, DiscoverRequest,
    ErrorCode, ErrorData, Extensions, GetPromptRequest, GetTaskRequest, InitializeRequest,
    InitializedNotification, JsonRpcMessage, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, ListToolsRequest, Notification, NotificationMetaObject, PingRequest,
    ProgressNotification, ProtocolVersion, ReadResourceRequest, Request, RequestId, RequestMetaObject,
    RequestOptionalParam, RootsListChangedNotification, SetLevelRequest, SubscribeRequest,
    SubscriptionsListenRequest, UnsubscribeRequest, UpdateTaskRequest,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value, json};

use crate::handler::OWN_ERROR;
use crate::json;

/// The longest id and the longest name of a method, in bytes.
const MAX_NAME: usize = 1024;

type Fields = Map<String, Value>;

/// Why a line is no message, and whom to tell.
#[derive(Debug)]
pub(crate) struct Malformed {
    id: Option<RequestId>,
    code: ErrorCode,
    message: String,
}

impl Malformed {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { id: None, code, message: message.into() }
    }

    fn request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, format!("Invalid request: {}", message.into()))
    }

    fn params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, format!("Invalid params: {}", message.into()))
    }

    fn with_id(self, id: Option<RequestId>) -> Self {
        Self { id, ..self }
    }

    pub(super) fn too_long() -> Self {
        Self::request("the message is longer than 16 MiB")
    }

    pub(super) fn repeated(id: RequestId) -> Self {
        Self::request("a request of this id waits for its answer").with_id(Some(id))
    }

    pub(super) fn shut_down(id: RequestId) -> Self {
        Self::request("the session was shut down; only `exit` is left").with_id(Some(id))
    }

    pub(super) fn busy(id: RequestId) -> Self {
        let message = "busy: too many requests wait for their answers; ask again when one has ended";
        Self::new(OWN_ERROR, message).with_id(Some(id))
    }

    pub(crate) const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The answer, as a line. An id that could not be read is null.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let id = self.id.clone().map_or(Value::Null, RequestId::into_json_value);
        let error = json!({ "code": self.code.0, "message": self.message });
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_bytes()
    }
}

/// A result that says nothing, as a line.
pub(super) fn null_result(id: RequestId) -> Vec<u8> {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id.into_json_value(), "result": null })).into_bytes()
}

/// Reads one line. A blank one is nothing.
pub(crate) fn read(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Malformed> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match json::read(line).map_err(|error| unreadable(line, &error))? {
        Value::Object(fields) => envelope(fields).map(Some),
        Value::Array(_) => Err(Malformed::request("a line is one message, not a batch")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(Malformed::request("a message is an object"))
        }
    }
}

/// The method that a message names, if it is one at all.
pub(crate) fn method(line: &[u8]) -> Option<String> {
    let message = json::read(line).ok()?;
    message.get("method").and_then(Value::as_str).map(str::to_owned)
}

fn unreadable(line: &[u8], error: &serde_json::Error) -> Malformed {
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => {
            Malformed::new(ErrorCode::PARSE_ERROR, format!("Parse error: {error}"))
        }
        Category::Data => Malformed::request(error.to_string()).with_id(id_of(line)),
    }
}

/// The id of a message that is JSON and cannot be taken as a whole.
fn id_of(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Named {
        id: Value,
    }
    // A list reads as the fields of an object too.
    line.trim_ascii_start().strip_prefix(b"{")?;
    let named: Named = serde_json::from_slice(line).ok()?;
    id(named.id).ok()
}

fn id(value: Value) -> Result<RequestId, Malformed> {
    let id = RequestId::deserialize(value);
    let id = id.map_err(|_| Malformed::request("an id is a string or an integer of 64 bits"))?;
    match &id {
        RequestId::String(text) if text.len() > MAX_NAME => Err(Malformed::request("the id is too long")),
        RequestId::String(_) | RequestId::Number(_) => Ok(id),
    }
}

fn envelope(mut fields: Fields) -> Result<ClientJsonRpcMessage, Malformed> {
    let id = fields.remove("id").map(id).transpose()?;
    let malformed = |malformed: Malformed| malformed.with_id(id.clone());
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(malformed(Malformed::request("`jsonrpc` is \"2.0\"")));
    }
    let answers = ["result", "error"].map(|key| fields.contains_key(key));
    match (fields.remove("method"), answers) {
        (Some(Value::String(method)), [false, false]) => {
            let params = params(fields.remove("params")).map_err(malformed)?;
            match id.clone() {
                Some(id) => Ok(JsonRpcMessage::request(request(method, params).map_err(malformed)?, id)),
                None => Ok(JsonRpcMessage::notification(notification(method, params))),
            }
        }
        (Some(_), [false, false]) => Err(malformed(Malformed::request("`method` is a string"))),
        (None, [true, false]) => response(fields.remove("result"), id.clone()).map_err(malformed),
        (None, [false, true]) => failure(fields.remove("error"), id.clone()).map_err(malformed),
        (None, [false, false]) => Err(malformed(Malformed::request("there is no `method`"))),
        (Some(_), _) | (None, [true, true]) => {
            Err(malformed(Malformed::request("a message is a request, a result or an error")))
        }
    }
}

/// The parameters; absent and null are none.
fn params(value: Option<Value>) -> Result<Fields, Malformed> {
    match value {
        None | Some(Value::Null) => Ok(Fields::new()),
        Some(Value::Object(fields)) => Ok(fields),
        Some(Value::Array(_)) => Err(Malformed::params("they are named, not listed")),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(Malformed::request("`params` is an object"))
        }
    }
}

fn response(result: Option<Value>, id: Option<RequestId>) -> Result<ClientJsonRpcMessage, Malformed> {
    let id = id.ok_or_else(|| Malformed::request("a result has an `id`"))?;
    let result = ClientResult::deserialize(result.unwrap_or_default());
    Ok(JsonRpcMessage::response(result.map_err(|error| Malformed::request(error.to_string()))?, id))
}

fn failure(error: Option<Value>, id: Option<RequestId>) -> Result<ClientJsonRpcMessage, Malformed> {
    let error = ErrorData::deserialize(error.unwrap_or_default());
    Ok(JsonRpcMessage::error(error.map_err(|error| Malformed::request(error.to_string()))?, id))
}

fn request(method: String, mut params: Fields) -> Result<ClientRequest, Malformed> {
    let extensions = meta::<RequestMetaObject>(&mut params)?;
    if method == "initialize" {
        fill(&mut params);
    }
    Ok(match &*method {
        "ping" => PingRequest { method: Default::default(), extensions }.into(),
        "initialize" => typed::<InitializeRequest, _, _>(params, extensions)?.into(),
        "server/discover" => typed::<DiscoverRequest, _, _>(params, extensions)?.into(),
        "logging/setLevel" => typed::<SetLevelRequest, _, _>(params, extensions)?.into(),
        "tools/call" => typed::<CallToolRequest, _, _>(params, extensions)?.into(),
        "tools/list" => optional::<ListToolsRequest, _, _>(params, extensions)?.into(),
        "prompts/get" => typed::<GetPromptRequest, _, _>(params, extensions)?.into(),
        "prompts/list" => optional::<ListPromptsRequest, _, _>(params, extensions)?.into(),
        "resources/read" => typed::<ReadResourceRequest, _, _>(params, extensions)?.into(),
        "resources/list" => optional::<ListResourcesRequest, _, _>(params, extensions)?.into(),
        "resources/templates/list" => {
            optional::<ListResourceTemplatesRequest, _, _>(params, extensions)?.into()
        }
        "resources/subscribe" => typed::<SubscribeRequest, _, _>(params, extensions)?.into(),
        "resources/unsubscribe" => typed::<UnsubscribeRequest, _, _>(params, extensions)?.into(),
        "subscriptions/listen" => typed::<SubscriptionsListenRequest, _, _>(params, extensions)?.into(),
        "completion/complete" => typed::<CompleteRequest, _, _>(params, extensions)?.into(),
        "tasks/get" => typed::<GetTaskRequest, _, _>(params, extensions)?.into(),
        "tasks/update" => typed::<UpdateTaskRequest, _, _>(params, extensions)?.into(),
        "tasks/cancel" => typed::<CancelTaskRequest, _, _>(params, extensions)?.into(),
        _ if method.len() > MAX_NAME => {
            return Err(Malformed::new(
                ErrorCode::METHOD_NOT_FOUND,
                "Method not found: its name is too long",
            ));
        }
        _ => {
            let mut request = CustomRequest::new(method, Some(Value::Object(params)));
            request.extensions = extensions;
            request.into()
        }
    })
}

/// What an opening that says nothing means: the newest version that has one, a client without a name.
fn fill(params: &mut Fields) {
    let version = ProtocolVersion::LATEST_WITH_INITIALIZE.to_string();
    let defaults = [
        ("protocolVersion", json!(version)),
        ("capabilities", json!({})),
        ("clientInfo", json!({ "name": "unknown", "version": "unknown" })),
    ];
    for (key, value) in defaults {
        params.entry(key).or_insert(value);
    }
}

/// Takes the metadata out of the parameters.
fn meta<T>(params: &mut Fields) -> Result<Extensions, Malformed>
where
    T: From<Fields> + Clone + Send + Sync + 'static,
{
    let mut extensions = Extensions::new();
    match params.remove("_meta") {
        None | Some(Value::Null) => {}
        Some(Value::Object(fields)) => {
            extensions.insert(T::from(fields));
        }
        Some(_) => return Err(Malformed::params("`_meta` is an object")),
    }
    Ok(extensions)
}

/// A request whose parameters have to be there.
fn typed<T, M, P>(params: Fields, extensions: Extensions) -> Result<T, Malformed>
where
    T: From<Request<M, P>>,
    M: Default,
    P: DeserializeOwned,
{
    let mut request = Request::new(read_as(params)?);
    request.extensions = extensions;
    Ok(request.into())
}

/// A request whose parameters may be missing.
fn optional<T, M, P>(params: Fields, extensions: Extensions) -> Result<T, Malformed>
where
    T: From<RequestOptionalParam<M, P>>,
    M: Default,
    P: DeserializeOwned,
{
    let params = if params.is_empty() { None } else { Some(read_as(params)?) };
    Ok(RequestOptionalParam { method: M::default(), params, extensions }.into())
}

fn read_as<P: DeserializeOwned>(params: Fields) -> Result<P, Malformed> {
    P::deserialize(Value::Object(params)).map_err(|error| Malformed::params(error.to_string()))
}

/// A notification; what cannot be read is taken for an unknown one.
fn notification(method: String, mut params: Fields) -> ClientNotification {
    let kept = params.clone();
    let extensions = meta::<NotificationMetaObject>(&mut params).unwrap_or_default();
    let known = match &*method {
        "notifications/cancelled" => noted::<CancelledNotification, _, _>(params, &extensions),
        "notifications/progress" => noted::<ProgressNotification, _, _>(params, &extensions),
        "notifications/initialized" => {
            let extensions = extensions.clone();
            Some(InitializedNotification { method: Default::default(), extensions }.into())
        }
        "notifications/roots/list_changed" => {
            let extensions = extensions.clone();
            Some(RootsListChangedNotification { method: Default::default(), extensions }.into())
        }
        _ => None,
    };
    known.unwrap_or_else(|| CustomNotification::new(method, Some(Value::Object(kept))).into())
}

fn noted<T, M, P>(params: Fields, extensions: &Extensions) -> Option<ClientNotification>
where
    T: From<Notification<M, P>> + Into<ClientNotification>,
    M: Default,
    P: DeserializeOwned,
{
    let mut note = Notification::new(P::deserialize(Value::Object(params)).ok()?);
    note.extensions = extensions.clone();
    Some(T::from(note).into())
}
