//! One server as several: a base that opens the session, lists and tells, and an instance for each capability set, to which
//! the calls of its tools go.
//!
//! A relay sees one server. Behind it, a call goes to the instance of its tool, which is started by its first call and
//! opened as the client opened the base. Everything else goes to the base. An instance may answer the calls that it was
//! given and no other, tell their progress and write to the log; requests of its own get ids that no other instance can
//! equal. What else it says is dropped.
//!
//! Fails closed when: an instance does not start or does not open; its calls are answered with the reason. A base that ends
//! ends all.
//!
//! Residual: tasks are of the base alone, and so is the progress that a client tells.

pub(super) mod instance;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::instance::RunningInstance;
use super::from_peer::{RawFields, ServerMessage};
use super::in_flight::{CallsInFlight, ServedCall};
use super::lines::LineQueue;
use super::message::{OWN_ERROR, RequestKey, error_line};
use crate::stdio::frames::{Frame, Frames};

/// Lines of a server are at most this long; longer ones end it.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;

/// How many requests of instances may wait for the client.
const MAX_ASKED: usize = 256;

/// Starts instances, and knows whose calls go where.
pub trait Instances: Send + Sync + 'static {
    /// The instance that calls of this tool go to; `None` is the base.
    fn of_tool(&self, tool: &str) -> Option<usize>;

    /// Starts one, or says why not.
    fn start(&self, instance: usize) -> impl Future<Output = Result<InstanceStreams, String>> + Send;

    /// Told what people may want to know.
    fn note(&self, text: &str);
}

/// One process of the server, and what is known of it.
pub struct InstanceStreams {
    /// Its input; dropped when it is to end.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// The calls that it is answering.
    pub in_flight: Arc<CallsInFlight>,
    /// Cancelled when it is to end.
    pub over: CancellationToken,
    /// Why it has ended.
    pub reason: oneshot::Receiver<String>,
}

/// The base: its two ends, and the calls that it is answering.
pub struct BaseStreams<In, Out> {
    /// Its input.
    pub input: In,
    /// Its output.
    pub output: Out,
    /// The calls that it is answering.
    pub in_flight: Arc<CallsInFlight>,
}

/// Where a line of the server comes from, and where a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Base,
    Instance(usize),
}

/// What all directions share.
struct Split<I> {
    instances: I,
    to_relay: LineQueue,
    to_base: LineQueue,
    base: Arc<CallsInFlight>,
    state: Mutex<SplitState>,
}

#[derive(Default)]
struct SplitState {
    /// Calls that wait for their answers.
    calls: HashMap<RequestKey, RoutedCall>,
    /// Requests of instances that wait for the client: by the id that the client sees.
    asked: HashMap<String, (usize, RequestKey)>,
    last: u64,
    running: HashMap<usize, RunningInstance>,
    /// How the client opened the session, to open instances the same way.
    opening: Option<Vec<u8>>,
    opened: Option<Vec<u8>>,
}

/// A request on its way to a process.
struct RoutedCall {
    place: Place,
    /// What it is, if it is a call.
    served: Option<Arc<ServedCall>>,
    /// By which its progress is told.
    token: Option<Value>,
}

/// Splits a server until the relay or the base has ended.
pub async fn isolate<I, In, Out>(
    instances: I,
    relay: (DuplexStream, DuplexStream),
    base: BaseStreams<In, Out>,
) where
    I: Instances,
    In: AsyncWrite + Send + Unpin + 'static,
    Out: AsyncRead + Send + Unpin + 'static,
{
    let (from_relay, relay_output) = relay;
    let (to_relay, relay_lines) = LineQueue::new();
    let (to_base, base_lines) = LineQueue::new();
    let split =
        Arc::new(Split { instances, to_relay, to_base, base: base.in_flight, state: Mutex::default() });
    let relay_writer = tokio::spawn(relay_lines.write_to(relay_output));
    tokio::spawn(base_lines.write_to(base.input));
    let reader = tokio::spawn({
        let split = Arc::clone(&split);
        async move {
            let mut frames = Frames::with_longest(from_relay, LONGEST);
            while let Ok(Frame::Whole(line)) = frames.next().await {
                split.receive_from_client(line);
                split.to_base.has_room().await;
            }
            split.close();
        }
    });
    let mut frames = Frames::with_longest(base.output, LONGEST);
    loop {
        split.to_relay.has_room().await;
        match frames.next().await {
            Ok(Frame::Whole(line)) => split.receive_from_base(line),
            Ok(Frame::TooLong) => {
                split.instances.note("the server wrote a line of more than 64 MiB, and is ended");
                break;
            }
            Ok(Frame::End) | Err(_) => break,
        }
    }
    reader.abort();
    split.close();
    split.to_relay.close();
    drop(relay_writer.await);
}

impl<I: Instances> Split<I> {
    fn locked(&self) -> MutexGuard<'_, SplitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is said to any process.
    fn close(&self) {
        self.to_base.close();
        for (_, running) in self.locked().running.drain() {
            running.close();
        }
    }

    /// A line that the relay has let through.
    fn receive_from_client(self: &Arc<Self>, line: Vec<u8>) {
        // It was read strictly and judged before.
        let Some(read) = ServerMessage::read(&line) else { return };
        let id = read.id.and_then(RequestKey::from_raw);
        let params = || params_of(&read);
        let line = match (read.method.as_deref(), id) {
            (Some("tools/call"), Some(id)) => {
                let params = params();
                return self.call(id, &params, line);
            }
            (Some(method), Some(id)) => {
                let keeps = method == "initialize";
                let mut state = self.locked();
                state.opening = if keeps { Some(line.clone()) } else { state.opening.take() };
                state.calls.insert(id, RoutedCall { place: Place::Base, served: None, token: None });
                line
            }
            (Some("notifications/cancelled"), None) => {
                match params()
                    .get("requestId")
                    .and_then(RequestKey::from_value)
                    .and_then(|id| self.locked().end_call(&id))
                {
                    None => line,
                    Some(call) => return self.send_cancelled(&call, line),
                }
            }
            (Some("notifications/roots/list_changed"), None) => {
                self.locked().running.values().for_each(|running| running.lines.push(line.clone()));
                line
            }
            (Some("notifications/initialized"), None) => {
                self.locked().opened = Some(line.clone());
                line
            }
            (None, Some(RequestKey::Text(id))) => match self.locked().answered(&id, &line) {
                None => line,
                Some((lines, line)) => return lines.push(line),
            },
            (_, _) => line,
        };
        self.to_base.push(with_newline(line));
    }

    /// A call goes to the process of its tool.
    fn call(self: &Arc<Self>, id: RequestKey, params: &Value, line: Vec<u8>) {
        let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let served = self.base.call(tool);
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let line = with_newline(line);
        let Some(number) = self.instances.of_tool(tool) else {
            self.base.begin(&served);
            self.locked().calls.insert(id, RoutedCall { place: Place::Base, served: Some(served), token });
            return self.to_base.push(line);
        };
        let place = Place::Instance(number);
        let mut state = self.locked();
        if !state.running.contains_key(&number) {
            let running = instance::start(self, number, state.opening.clone(), state.opened.clone());
            state.running.insert(number, running);
        }
        let Some(running) = state.running.get(&number) else { return };
        running.begin(&served);
        running.lines.push(line);
        state.calls.insert(id, RoutedCall { place, served: Some(served), token });
    }

    fn send_cancelled(&self, call: &RoutedCall, line: Vec<u8>) {
        call.end();
        match call.place {
            Place::Base => self.to_base.push(with_newline(line)),
            Place::Instance(number) => {
                if let Some(running) = self.locked().running.get(&number) {
                    running.lines.push(with_newline(line));
                }
            }
        }
    }

    /// A line of the base: only answers are held to what it was asked.
    fn receive_from_base(&self, line: Vec<u8>) {
        if let Some(id) = answered_id(&line)
            && !self.take_answer(&id, Place::Base)
        {
            return self.instances.note("the server answered what it was not asked; the answer was dropped");
        }
        self.to_relay.push(with_newline(line));
    }

    /// Whether a process was asked this; it waits no more.
    fn take_answer(&self, id: &RequestKey, place: Place) -> bool {
        let call = {
            let mut state = self.locked();
            // What was cancelled is not waited for: the relay drops it, from wherever it comes.
            match state.calls.get(id) {
                Some(call) if call.place == place => state.end_call(id),
                Some(_) | None => return false,
            }
        };
        call.iter().for_each(RoutedCall::end);
        call.is_some()
    }

    /// A line of an instance.
    fn receive_from_instance(&self, number: usize, line: Vec<u8>) {
        let dropped =
            |what: &str| self.instances.note(&format!("an instance of the server {what}; it was dropped"));
        let Some(message) = ServerMessage::read(&line) else {
            // The relay says what it was.
            return self.to_relay.push(with_newline(line));
        };
        match (message.method.as_deref(), message.id.map(RequestKey::from_raw)) {
            (None, Some(Some(id))) => {
                if self.take_answer(&id, Place::Instance(number)) {
                    self.to_relay.push(with_newline(line));
                } else {
                    dropped("answered what it was not asked");
                }
            }
            (Some(_), Some(Some(id))) => match self.locked().ask(number, id, &line) {
                Some(line) => self.to_relay.push(line),
                None => dropped("asked its client for too much"),
            },
            (Some("notifications/message"), None) => self.to_relay.push(with_newline(line)),
            (Some("notifications/progress"), None) if self.locked().is_progress_of(number, &line) => {
                self.to_relay.push(with_newline(line));
            }
            // Lists and what else there is to tell are the base's.
            (Some(_), None) => {}
            (_, _) => dropped("wrote a message without a usable id"),
        }
    }

    /// An instance has ended: its calls are answered with the reason, and the next one starts another.
    fn instance_ended(&self, number: usize, why: &str) {
        let mut state = self.locked();
        if let Some(running) = state.running.remove(&number) {
            running.close();
        }
        state.asked.retain(|_, (of, _)| *of != number);
        let place = Place::Instance(number);
        let waiting: Vec<RequestKey> =
            state.calls.iter().filter(|(_, call)| call.place == place).map(|(id, _)| id.clone()).collect();
        for id in waiting {
            drop(state.end_call(&id));
            self.to_relay.push(error_line(&id, OWN_ERROR, why, None));
        }
    }
}

impl RoutedCall {
    fn end(&self) {
        self.served.iter().for_each(|served| served.end());
    }
}

impl SplitState {
    fn end_call(&mut self, id: &RequestKey) -> Option<RoutedCall> {
        self.calls.remove(id)
    }

    /// A request of an instance under an id of ours, which no other can equal; `None` if too many wait.
    fn ask(&mut self, number: usize, id: RequestKey, line: &[u8]) -> Option<Vec<u8>> {
        if self.asked.len() >= MAX_ASKED {
            return None;
        }
        self.last += 1;
        let own = format!("bailiwick-instance-{number}-{}", self.last);
        let line = with_id(line, &Value::from(own.as_str()))?;
        self.asked.insert(own, (number, id));
        Some(line)
    }

    /// Where a client's answer to an instance goes, with the id that the instance chose.
    fn answered(&mut self, id: &str, line: &[u8]) -> Option<(LineQueue, Vec<u8>)> {
        let (number, own) = self.asked.remove(id)?;
        let lines = self.running.get(&number)?.lines.clone();
        Some((lines, with_id(line, &own.to_value())?))
    }

    fn is_progress_of(&self, number: usize, line: &[u8]) -> bool {
        let params = ServerMessage::read(line).map(|message| params_of(&message)).unwrap_or_default();
        let (place, token) = (Place::Instance(number), params.get("progressToken"));
        token.is_some() && self.calls.values().any(|call| call.place == place && call.token.as_ref() == token)
    }
}

/// The id of an answer; `None` if the line is none.
fn answered_id(line: &[u8]) -> Option<RequestKey> {
    ServerMessage::read(line)?.answered_id()
}

fn params_of(message: &ServerMessage<'_>) -> Value {
    message.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
}

/// The message with another id, and otherwise as it is.
pub(super) fn with_id(line: &[u8], id: &Value) -> Option<Vec<u8>> {
    let message: RawFields<'_> = serde_json::from_slice(line).ok()?;
    message.only("id")?;
    Some((message.write(|name, _| (name == "id").then(|| id.to_string())) + "\n").into_bytes())
}

fn with_newline(line: Vec<u8>) -> Vec<u8> {
    super::from_client::with_newline(line)
}
