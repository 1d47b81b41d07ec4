//! One server for all clients of the modern era, whose requests stand for themselves.
//!
//! Each request gets an id of ours, its progress token and its subscription too; the client hears its own again. A client
//! that goes cancels its request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bailiwick_door::Answer;
use http::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::from_peer::{RawFields, ServerMessage};
use super::super::message::{INVALID_PARAMS, METHOD_NOT_FOUND, RequestKey, error_line};
use super::channel::Channel;
use super::events::{Event, EventSink, EventStream, stream};
use super::headers::Seen;
use super::{Conversation, json_answer, not_started};

/// How long a request may take before its stream begins, which says that it is alive; until then the answer may have a status
/// of its own.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the list of tools may take that is asked for to hold headers to it.
const LISTING: Duration = Duration::from_secs(30);

/// The most pages of that list.
const PAGES: usize = 64;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Codes of errors that have a status of their own.
const BAD_REQUESTS: [i64; 3] = [-32020, -32021, -32022];

pub(super) struct SharedServer {
    channel: Channel,
    state: Mutex<State>,
    /// The schemas of tools, once they were listed; gone when the list has changed.
    schemas: tokio::sync::Mutex<Option<HashMap<String, Value>>>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<i64, Pending>,
    last: i64,
    /// Counts changes of the list of tools.
    changes: u64,
    /// The change that the schemas are of.
    listed: u64,
}

/// A request that waits.
struct Pending {
    /// The client's id for it.
    id: Value,
    token: Option<Value>,
    sink: EventSink,
    is_listening: bool,
}

/// Cancels a request when its client goes.
struct Asked {
    server: Weak<SharedServer>,
    number: i64,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            server.cancel(self.number);
        }
    }
}

impl SharedServer {
    pub(super) fn open(conversation: Conversation) -> Arc<Self> {
        Arc::new_cyclic(|server: &Weak<Self>| {
            let server = server.clone();
            let receive = move |line: Vec<u8>| {
                if let Some(server) = server.upgrade() {
                    server.receive(&line);
                }
            };
            let channel = Channel::open(conversation, receive);
            Self { channel, state: Mutex::default(), schemas: tokio::sync::Mutex::default() }
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.channel.has_ended()
    }

    pub(super) fn end(&self) {
        self.channel.close();
        self.locked().waiting.clear();
    }

    /// Passes a request on. An answer with a status of its own is the whole answer; otherwise there is a stream.
    pub(super) async fn ask(
        self: &Arc<Self>,
        seen: &Seen<'_>,
        params: &Map<String, Value>,
        line: &[u8],
    ) -> Result<Answer, Answer> {
        let gone = || not_started(seen.id, "the server has ended");
        let id = seen.id.ok_or_else(gone)?;
        let is_listening = seen.method == Some("subscriptions/listen");
        let (asked, mut body) = self.begin(id.to_value(), params, line, is_listening).ok_or_else(gone)?;
        let first = tokio::select! {
            biased;
            first = tokio::time::timeout(PATIENCE, body.next()) => first,
            () = self.channel.ended() => return Err(gone()),
        };
        let Ok(first) = first else { return Ok(body.with_guard(asked).into_answer()) };
        let first = first.ok_or_else(gone)?;
        let line = first.line.as_deref().unwrap_or_default();
        match answer_code(line) {
            None => Ok(body.starting_with([first]).with_guard(asked).into_answer()),
            Some(code) => match status_of(code, !seen.missing().is_empty()) {
                StatusCode::OK => Ok(body.starting_with([first]).into_answer()),
                status => Ok(json_answer(status, first.line.unwrap_or_default())),
            },
        }
    }

    /// The schema that a call's arguments are held to, if the server lists one.
    pub(super) async fn schema_of(self: &Arc<Self>, params: &Map<String, Value>) -> Option<Value> {
        let name = params.get("name")?.as_str()?;
        let mut schemas = self.schemas.lock().await;
        let changes = self.locked().changes;
        if schemas.is_none() || self.locked().listed != changes {
            *schemas = self.listed(params.get("_meta")?).await;
            self.locked().listed = changes;
        }
        schemas.as_ref()?.get(name).cloned()
    }

    /// Asks for the list of tools, in the name of a client.
    async fn listed(self: &Arc<Self>, meta: &Value) -> Option<HashMap<String, Value>> {
        let mut schemas = HashMap::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let mut params = Map::from_iter([("_meta".to_owned(), without_token(meta))]);
            params.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
            let line =
                json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params }).to_string();
            let (_asked, mut body) = self.begin(Value::Null, &params, line.as_bytes(), false)?;
            let answer = tokio::time::timeout(LISTING, body.next()).await.ok()??;
            let mut answer: Value = serde_json::from_slice(&answer.line?).ok()?;
            let result = answer.get_mut("result")?;
            for tool in result.get_mut("tools")?.as_array_mut()? {
                let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
                schemas.extend(name.zip(tool.get_mut("inputSchema").map(Value::take)));
            }
            cursor = result.get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
            if cursor.is_none() {
                break;
            }
        }
        Some(schemas)
    }

    fn begin(
        self: &Arc<Self>,
        id: Value,
        params: &Map<String, Value>,
        line: &[u8],
        is_listening: bool,
    ) -> Option<(Asked, EventStream)> {
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let (sink, body) = stream();
        let mut state = self.locked();
        state.last += 1;
        let number = state.last;
        let line = with_own_ids(line, number)?;
        state.waiting.insert(number, Pending { id, token, sink, is_listening });
        drop(state);
        self.channel.send(line);
        Some((Asked { server: Arc::downgrade(self), number }, body))
    }

    fn cancel(&self, number: i64) {
        if self.locked().waiting.remove(&number).is_some() {
            let params = json!({ "requestId": number, "reason": "the client has gone" });
            let line = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            self.channel.send(line.to_string().into_bytes());
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line of the relay.
    fn receive(&self, line: &[u8]) {
        let text = std::str::from_utf8(line).ok();
        let Some(text) = text else { return };
        let Some(message) = ServerMessage::read(line) else { return };
        let id = message.id.and_then(RequestKey::from_raw);
        match (message.method.as_deref(), id) {
            (None, Some(RequestKey::Number(number))) => self.locked().answer(number, text),
            (Some(_), Some(id)) => {
                // In this era servers ask in their results.
                self.channel.send(error_line(
                    &id,
                    METHOD_NOT_FOUND,
                    "a server asks nothing in this era",
                    None,
                ));
            }
            (Some(method), None) => {
                let mut state = self.locked();
                if method == "notifications/tools/list_changed" {
                    state.changes += 1;
                }
                state.tell(text);
            }
            (None, Some(RequestKey::Text(_)) | None) => {}
        }
    }
}

impl State {
    fn answer(&mut self, number: i64, text: &str) {
        let Some(pending) = self.waiting.remove(&number) else { return };
        if let Some(line) = with_clients_ids(text, &pending) {
            let _goes_unheard = pending.sink.send(Event::message(line));
        }
    }

    /// Tells the client that a notification is for. One that is for no client is dropped.
    fn tell(&mut self, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let params = message.get("params");
        let token = params.and_then(|params| params.get("progressToken"));
        let subscription =
            params.and_then(|params| params.get("_meta")).and_then(|meta| meta.get(SUBSCRIPTION));
        let number = match token.or(subscription) {
            Some(number) => as_number(number),
            None => self.only_call(),
        };
        let Some(pending) = number.and_then(|number| self.waiting.get(&number)) else { return };
        if let Some(line) = with_clients_ids(text, pending)
            && !pending.sink.send(Event::message(line))
        {
            // Its connection ends, and with it the request.
            drop(number.and_then(|number| self.waiting.remove(&number)));
        }
    }

    /// The one request that can be meant when nothing says which.
    fn only_call(&self) -> Option<i64> {
        let mut calls = self.waiting.iter().filter(|(_, pending)| !pending.is_listening);
        let first = calls.next().map(|(number, _)| *number);
        first.filter(|_| calls.next().is_none())
    }
}

fn as_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn without_token(meta: &Value) -> Value {
    let mut meta = meta.clone();
    if let Value::Object(fields) = &mut meta {
        fields.shift_remove("progressToken");
    }
    meta
}

/// The code of an answer, 0 for a result; `None` if the line is none.
fn answer_code(line: &[u8]) -> Option<i64> {
    let message: Value = serde_json::from_slice(line).ok()?;
    if message.get("method").is_some() {
        return None;
    }
    Some(message.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64).unwrap_or(0))
}

fn status_of(code: i64, lacks_meta: bool) -> StatusCode {
    match code {
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        INVALID_PARAMS if lacks_meta => StatusCode::BAD_REQUEST,
        code if BAD_REQUESTS.contains(&code) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A request with our number for its id, and for its progress token if it has one.
fn with_own_ids(line: &[u8], number: i64) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    let text = replaced(text, &["id"], &number.to_string())?;
    let text = replaced(&text, &["params", "_meta", "progressToken"], &number.to_string()).unwrap_or(text);
    Some(text.into_bytes())
}

/// A message of the server with the client's id, token and subscription where ours are.
fn with_clients_ids(text: &str, pending: &Pending) -> Option<Vec<u8>> {
    let id = pending.id.to_string();
    let is_answer = ServerMessage::read(text.as_bytes()).is_some_and(|message| message.id.is_some());
    let mut text = if is_answer { replaced(text, &["id"], &id)? } else { text.to_owned() };
    for path in [["params", "_meta", SUBSCRIPTION], ["result", "_meta", SUBSCRIPTION]] {
        text = replaced(&text, &path, &id).unwrap_or(text);
    }
    if let Some(token) = &pending.token {
        text = replaced(&text, &["params", "progressToken"], &token.to_string()).unwrap_or(text);
    }
    Some(text.into_bytes())
}

/// The object with another value at this place; `None` if there is no such place. Everything else stays as it was written.
fn replaced(text: &str, path: &[&str], value: &str) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let fields: RawFields<'_> = serde_json::from_str(text).ok()?;
    let old: &RawValue = fields.0.iter().find(|(name, _)| name == first).map(|(_, old)| *old)?;
    let new = if rest.is_empty() { value.to_owned() } else { replaced(old.get(), rest, value)? };
    Some(fields.write(|name, _| (name == *first).then(|| new.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_our_ids_and_its_answer_the_clients() {
        let line = br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1.0e3,"_meta":{"progressToken":"t","k":1}}}"#;
        let own = String::from_utf8(with_own_ids(line, 7).unwrap()).unwrap();
        assert_eq!(
            own,
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":1.0e3,"_meta":{"progressToken":7,"k":1}}}"#
        );
        let pending =
            Pending { id: json!("a"), token: Some(json!("t")), sink: stream_sink(), is_listening: false };
        let back = |text: &str| String::from_utf8(with_clients_ids(text, &pending).unwrap()).unwrap();
        assert_eq!(
            back(r#"{"id":7,"result":{"id":7,"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#),
            r#"{"id":"a","result":{"id":7,"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}"#
        );
        assert_eq!(
            back(r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#),
            r#"{"method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#
        );
    }

    fn stream_sink() -> EventSink {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { stream().0 })
    }

    #[test]
    fn statuses_are_those_of_the_protocol() {
        assert_eq!(status_of(-32601, false), StatusCode::NOT_FOUND);
        assert_eq!(status_of(-32602, false), StatusCode::OK);
        assert_eq!(status_of(-32602, true), StatusCode::BAD_REQUEST);
        assert_eq!(status_of(-32022, false), StatusCode::BAD_REQUEST);
        assert_eq!(status_of(0, true), StatusCode::OK);
        assert_eq!(answer_code(br#"{"id":1,"result":{}}"#), Some(0));
        assert_eq!(answer_code(br#"{"method":"m"}"#), None);
    }
}
