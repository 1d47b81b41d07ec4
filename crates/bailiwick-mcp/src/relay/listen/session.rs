//! A session of the legacy era: one client, one server behind a relay, and the streams on which the client hears it.
//!
//! A server on stdin and stdout does not say which request a message belongs to. Answers go to the request of their id,
//! progress to the request of its token; everything else goes to the latest request that waits, which is where a server
//! that does one thing at a time would say it, or to the stream that the client listens on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::super::from_peer::ServerMessage;
use super::super::message::{Malformed, OWN_ERROR, RequestKey, error_line};
use super::Conversation;
use super::channel::Channel;
use super::events::{Event, EventSink, EventStream, stream};

/// Bytes that a session keeps for clients that lose a connection and come again.
const KEPT: usize = 4 * 1024 * 1024;

/// The stream that belongs to no request.
const STANDALONE: u64 = 0;

pub(super) struct Session {
    channel: Channel,
    streams: Arc<Mutex<Streams>>,
}

struct Streams {
    all: VecDeque<ClientStream>,
    next: u64,
    used: Instant,
}

/// What a client hears on one stream, and what it heard.
struct ClientStream {
    number: u64,
    request: Option<RequestKey>,
    token: Option<Value>,
    /// Gone when the connection has ended.
    sink: Option<EventSink>,
    kept: VecDeque<Event>,
    next: u64,
    /// Whether the request waits for its answer.
    is_open: bool,
}

impl Session {
    /// Begins a conversation with a server.
    pub(super) fn open(conversation: Conversation) -> Arc<Self> {
        let standalone = ClientStream::new(STANDALONE, None, None);
        let streams = Streams { all: VecDeque::from([standalone]), next: 1, used: Instant::now() };
        let streams = Arc::new(Mutex::new(streams));
        Arc::new_cyclic(|session: &std::sync::Weak<Self>| {
            let session = session.clone();
            let receive = move |line: Vec<u8>| {
                if let Some(session) = session.upgrade() {
                    session.receive(line);
                }
            };
            Self { channel: Channel::open(conversation, receive), streams }
        })
    }

    /// Sends the request that opens the session, and waits for its answer, and whether that opened it; `None` if the server
    /// ended.
    pub(super) async fn open_with(&self, id: RequestKey, line: Vec<u8>) -> Option<(EventStream, bool)> {
        let mut body = self.ask(id, &Map::new(), line).ok()?;
        let mut heard = vec![body.next().await?];
        loop {
            let event = tokio::select! {
                biased;
                event = body.next() => event?,
                () = self.channel.ended() => return None,
            };
            let message = event.line.as_deref().and_then(|line| serde_json::from_slice::<Value>(line).ok());
            let is_answer = message.as_ref().is_some_and(|message| message.get("method").is_none());
            let is_open = message.is_some_and(|message| message.get("result").is_some());
            heard.push(event);
            if is_answer {
                return Some((body.starting_with(heard), is_open));
            }
        }
    }

    /// Passes a request on; its answer and what belongs to it come on the stream.
    pub(super) fn ask(
        &self,
        id: RequestKey,
        params: &Map<String, Value>,
        line: Vec<u8>,
    ) -> Result<EventStream, Malformed> {
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let (sink, body) = stream();
        let mut streams = self.locked();
        if streams.all.iter().any(|stream| stream.is_open && stream.request.as_ref() == Some(&id)) {
            return Err(Malformed::repeated(id));
        }
        let number = streams.next;
        streams.next += 1;
        let mut asked = ClientStream::new(number, Some(id), token);
        asked.sink = Some(sink);
        asked.push(None);
        streams.all.push_back(asked);
        streams.used = Instant::now();
        drop(streams);
        self.send(line);
        Ok(body)
    }

    /// Passes on what needs no answer.
    pub(super) fn send(&self, line: Vec<u8>) {
        self.locked().used = Instant::now();
        self.channel.send(line);
    }

    /// The stream for what belongs to no request. A new one takes the place of the old.
    pub(super) fn listen(&self) -> EventStream {
        let (sink, body) = stream();
        let mut streams = self.locked();
        streams.used = Instant::now();
        if let Some(standalone) = streams.all.iter_mut().find(|stream| stream.number == STANDALONE) {
            standalone.sink = Some(sink);
            standalone.push(None);
        }
        drop(streams);
        body
    }

    /// Goes on with a stream after the event that a client heard last. One that is not kept ends at once.
    pub(super) fn resume(&self, last: &str) -> EventStream {
        let (sink, body) = stream();
        let place = last
            .split_once('/')
            .and_then(|(event, number)| Some((event.parse::<u64>().ok()?, number.parse::<u64>().ok()?)));
        let Some((event, number)) = place else { return body };
        let mut streams = self.locked();
        streams.used = Instant::now();
        if let Some(found) = streams.all.iter_mut().find(|stream| stream.number == number) {
            found.resume(event, sink);
        }
        drop(streams);
        body
    }

    pub(super) fn has_ended(&self) -> bool {
        self.channel.has_ended()
    }

    /// Whether nothing was said for so long.
    pub(super) fn is_idle(&self, idle: Duration) -> bool {
        self.locked().used.elapsed() >= idle
    }

    /// Ends the server, and every stream with it.
    pub(super) fn end(&self) {
        self.channel.close();
        self.locked().all.clear();
    }

    fn locked(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line of the relay.
    fn receive(&self, line: Vec<u8>) {
        let Some(message) = ServerMessage::read(&line) else { return };
        let id = message.id.and_then(RequestKey::from_raw);
        let method = message.method.as_deref().map(str::to_owned);
        let mut streams = self.locked();
        streams.used = Instant::now();
        let Some(method) = method else {
            if let Some(id) = id {
                streams.answer(&id, line);
            }
            return;
        };
        let unheard = streams.tell(&method, line);
        drop(streams);
        if let (Some(id), true) = (id, unheard) {
            // The server would wait for a client that cannot hear it.
            self.channel.send(error_line(&id, OWN_ERROR, "the client does not listen", None));
        }
    }
}

impl Streams {
    fn answer(&mut self, id: &RequestKey, line: Vec<u8>) {
        let asked = self.all.iter_mut().find(|stream| stream.is_open && stream.request.as_ref() == Some(id));
        let Some(asked) = asked else { return };
        asked.push(Some(line));
        asked.is_open = false;
        asked.sink = None;
        self.forget();
    }

    /// Tells the client something that answers nothing; `true` if it does not hear it.
    fn tell(&mut self, method: &str, line: Vec<u8>) -> bool {
        let of_token = if method == "notifications/progress" { self.of_token(&line) } else { None };
        let is_of_lists = method.ends_with("/list_changed") || method == "notifications/resources/updated";
        let listens = self.all.iter().any(|stream| stream.number == STANDALONE && stream.sink.is_some());
        let latest = self.all.iter().rposition(|stream| stream.is_open && stream.number != STANDALONE);
        let standalone = self.all.iter().position(|stream| stream.number == STANDALONE);
        let chosen = match of_token {
            Some(found) => Some(found),
            None if is_of_lists && listens => standalone,
            None => latest.or(standalone),
        };
        let Some(chosen) = chosen.and_then(|at| self.all.get_mut(at)) else { return true };
        chosen.push(Some(line));
        chosen.sink.is_none()
    }

    fn of_token(&self, line: &[u8]) -> Option<usize> {
        let message: Value = serde_json::from_slice(line).ok()?;
        let token = message.get("params")?.get("progressToken")?;
        self.all.iter().position(|stream| stream.is_open && stream.token.as_ref() == Some(token))
    }

    /// Forgets streams that have ended, the oldest first, when they keep too much.
    fn forget(&mut self) {
        let size = |stream: &ClientStream| stream.kept.iter().map(|event| event.size() + 64).sum::<usize>();
        let mut kept: usize = self.all.iter().map(size).sum();
        while kept > KEPT {
            let oldest = self.all.iter().position(|stream| !stream.is_open && stream.number != STANDALONE);
            let Some(gone) = oldest.and_then(|at| self.all.remove(at)) else { return };
            kept -= size(&gone);
        }
    }
}

impl ClientStream {
    fn new(number: u64, request: Option<RequestKey>, token: Option<Value>) -> Self {
        Self { number, request, token, sink: None, kept: VecDeque::new(), next: 0, is_open: true }
    }

    /// Keeps an event and sends it to the client, if it listens.
    fn push(&mut self, line: Option<Vec<u8>>) {
        let event = Event { id: Some(format!("{}/{}", self.next, self.number)), line };
        self.next += 1;
        if self.sink.as_ref().is_some_and(|sink| !sink.send(event.clone())) {
            self.sink = None;
        }
        self.kept.push_back(event);
        let mut size: usize = self.kept.iter().map(Event::size).sum();
        while size > KEPT / 4 && self.kept.len() > 1 {
            size -= self.kept.pop_front().map_or(0, |event| event.size());
        }
    }

    /// Sends everything after an event to a new sink.
    fn resume(&mut self, after: u64, sink: EventSink) {
        let first = self.next - self.kept.len() as u64;
        let missed = self.kept.iter().zip(first..).filter(|(_, number)| *number > after);
        for (event, _) in missed {
            let _goes_unheard = sink.send(event.clone());
        }
        if self.is_open {
            self.sink = Some(sink);
        }
    }
}
