//! Streamable HTTP to a server that runs elsewhere, in both eras, behind a relay that sees a server of lines.
//!
//! Each message of the client is one request to the server's URL, as it was judged. In the legacy era the server's session is
//! kept here: its name, the stream on which the server speaks by itself, streams that broke off and are taken up again, and a
//! session that the server has forgotten, which is opened again as the client opened it. In the modern era the headers that
//! repeat the body are written here. Headers of a client never come here: it speaks lines.
//!
//! Fails closed when: an answer is of another content type, no message, for another request, larger or slower than it may be;
//! the request is answered with an error then. A stream may carry the answer of its own request and no other. The credential is
//! taken out of whatever comes back.
//!
//! Residual: a server may hold a request as long as it says that it is alive.

mod events;
mod request;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bailiwick_remote::{Answered, Body, Client, Credential, Endpoint};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

pub use self::events::{EventReader, ServerEvent, TooLong};
use self::request::{MessageHead, ToolHeaders};
use self::session::Session;
use super::from_peer::ServerMessage;
use super::lines::LineQueue;
use super::message::{OWN_ERROR, RequestKey, error_line};
use super::redact::Redactor;
use crate::stdio::frames::{Frame, Frames};

/// Bytes of an answer that is no stream. What a relay passes on is smaller.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// How long a server may be silent in the answer to a request, and to a message that is none.
const PATIENCE: Duration = Duration::from_secs(300);
const BRIEF: Duration = Duration::from_secs(30);

/// How long a client that has gone is answered.
const GRACE: Duration = Duration::from_secs(2);

/// How often a stream that broke off is taken up again.
const MAX_RESUMES: u32 = 5;

/// A server that runs elsewhere.
pub struct RemoteServer {
    /// Who asks it.
    pub client: Client,
    /// Where it is.
    pub endpoint: Endpoint,
    /// What is shown to it.
    pub credential: Credential,
    /// What to do when it wants a credential, in one line.
    pub advice: String,
    /// Told what people may want to know, in one line.
    pub note: Box<dyn Fn(&str) + Send + Sync>,
    /// Cancelled when everything is to end at once.
    pub stop: CancellationToken,
}

/// What all directions share.
struct Conversation {
    server: RemoteServer,
    to_relay: LineQueue,
    state: Mutex<RemoteState>,
    /// Held while a session is opened again.
    reopening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RemoteState {
    session: Session,
    /// Requests that wait, to end them.
    waiting: HashMap<RequestKey, AbortHandle>,
    /// The stream on which the server speaks by itself.
    listening: Option<AbortHandle>,
    headers: ToolHeaders,
    /// Takes the credential out of what comes back.
    secret: Option<(String, Arc<Redactor>)>,
}

/// A request of the client on its way.
struct Asked {
    id: RequestKey,
    head: MessageHead,
    line: Vec<u8>,
}

/// Why a request has no answer of the server's.
type Failure = String;

/// Relays lines to the server and back until the relay says no more.
pub async fn converse(server: RemoteServer, (from_relay, relay_output): (DuplexStream, DuplexStream)) {
    let (to_relay, queued) = LineQueue::new();
    let conversation = Arc::new(Conversation {
        server,
        to_relay,
        state: Mutex::default(),
        reopening: tokio::sync::Mutex::default(),
    });
    let writer = tokio::spawn(queued.write_to(relay_output));
    let stop = conversation.server.stop.clone();
    let mut frames = Frames::new(from_relay);
    let all = async {
        while let Ok(Frame::Whole(line)) = frames.next().await {
            conversation.send(line).await;
        }
        // What was asked before the end is still answered, for a while.
        let since = Instant::now();
        while conversation.is_waiting() && since.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = all => {}
        () = stop.cancelled() => {}
    }
    conversation.end().await;
    conversation.to_relay.close();
    drop(writer.await);
}

impl Conversation {
    fn locked(&self) -> MutexGuard<'_, RemoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_waiting(&self) -> bool {
        !self.locked().waiting.is_empty()
    }

    fn note(&self, text: &str) {
        (self.server.note)(&self.redacted(text.to_owned()));
    }

    /// Says a line of the server's, without the credential.
    fn push(&self, line: Vec<u8>) {
        let redactor = self.locked().secret.as_ref().map(|(_, redactor)| Arc::clone(redactor));
        let text = std::str::from_utf8(&line).ok();
        let redacted = redactor.zip(text).and_then(|(redactor, text)| redactor.json(text));
        self.to_relay.push(redacted.map_or(line, |redacted| redacted.text.into_bytes()));
    }

    fn redacted(&self, text: String) -> String {
        let redactor = self.locked().secret.as_ref().map(|(_, redactor)| Arc::clone(redactor));
        redactor.map_or(text.clone(), |redactor| redactor.plain(&text).text)
    }

    /// A line that the relay has let through.
    async fn send(self: &Arc<Self>, line: Vec<u8>) {
        let Some(head) = MessageHead::from_line(&line) else { return };
        match (&head.method, head.id.clone()) {
            (Some(method), Some(id)) => {
                let is_opening = method == "initialize";
                if is_opening {
                    self.locked().session.begin(&line);
                }
                let this = Arc::clone(self);
                let asked = Asked { id: id.clone(), head, line };
                let task = tokio::spawn(async move { this.answer(asked).await });
                self.locked().waiting.insert(id, task.abort_handle());
                // What comes next belongs to the session that is opened.
                if is_opening {
                    drop(task.await);
                }
            }
            (Some(method), None) => {
                let cancelled = head.cancelled.clone().filter(|_| method == "notifications/cancelled");
                let is_session = self.locked().session.is_open();
                if method == "notifications/initialized" {
                    self.locked().session.opened = Some(line.clone());
                }
                // Where requests stand for themselves, one ends with its connection.
                if is_session || cancelled.is_none() {
                    self.tell(&head, &line).await;
                }
                if let Some(task) = cancelled.and_then(|id| self.locked().waiting.remove(&id)) {
                    task.abort();
                }
                if method == "notifications/initialized" && is_session {
                    self.listen();
                }
            }
            (None, _) => self.tell(&head, &line).await,
        }
    }

    /// Sends what has no answer, before anything else is sent.
    async fn tell(&self, head: &MessageHead, line: &[u8]) {
        let sent = self.post(head, line, BRIEF).await;
        match sent {
            Ok(answered) if answered.status.is_success() => {
                drop(tokio::time::timeout(BRIEF, answered.body.read(64 * 1024)).await);
            }
            Ok(answered) => {
                self.note(&format!("the server answered a message with HTTP {}", answered.status.as_u16()))
            }
            Err(why) => self.note(&format!("a message did not reach the server: {why}")),
        }
    }

    /// Asks, and says the answer or why there is none.
    async fn answer(self: &Arc<Self>, asked: Asked) {
        let failure = self.ask(&asked).await.err();
        self.locked().waiting.remove(&asked.id);
        if let Some(why) = failure {
            let line = error_line(&asked.id, OWN_ERROR, &self.redacted(why), None);
            self.to_relay.push(line);
        }
    }

    async fn ask(self: &Arc<Self>, asked: &Asked) -> Result<(), Failure> {
        let is_opening = asked.head.method.as_deref() == Some("initialize");
        let mut renewed = false;
        loop {
            let before = self.locked().session.name.clone();
            let shown = self.credential().await?;
            let answered = self.post(&asked.head, &asked.line, PATIENCE).await?;
            let status = answered.status;
            match status {
                StatusCode::UNAUTHORIZED
                    if !renewed && self.server.credential.renew(shown.as_deref()).await =>
                {
                    renewed = true;
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    return Err(format!(
                        "the server does not let us in (HTTP {}); {}",
                        status.as_u16(),
                        self.server.advice
                    ));
                }
                StatusCode::NOT_FOUND if before.is_some() && !is_opening => {
                    self.reopen(before.as_deref()).await?;
                    let after = self.locked().session.name.clone();
                    if after == before {
                        return Err("the server does not know its own session".to_owned());
                    }
                    let again = self.post(&asked.head, &asked.line, PATIENCE).await?;
                    return self.receive(asked, again).await;
                }
                _ => return self.receive(asked, answered).await,
            }
        }
    }

    async fn credential(&self) -> Result<Option<String>, Failure> {
        let value = self.server.credential.value().await.map_err(|why| why.to_string())?;
        let mut state = self.locked();
        let is_known = state.secret.as_ref().map(|(known, _)| known) == value.as_ref();
        if !is_known {
            // One that the user gave is known to the relay, by its name.
            let renewed = value.clone().filter(|_| !matches!(self.server.credential, Credential::Given(_)));
            state.secret = renewed.map(|value| {
                let redactor = Redactor::new([("credential", value.as_str())]);
                (value, Arc::new(redactor))
            });
        }
        Ok(value)
    }

    async fn post(&self, head: &MessageHead, line: &[u8], patience: Duration) -> Result<Answered, Failure> {
        let value = self.credential().await?;
        let (session, tools) = {
            let state = self.locked();
            (state.session.clone(), state.headers.of_call(head, line))
        };
        let body = Bytes::copy_from_slice(line.trim_ascii());
        let request = request::written(Method::POST, body, head, &session, &tools, value.as_deref())?;
        self.server
            .client
            .send(&self.server.endpoint, &request, patience)
            .await
            .map_err(|why| why.to_string())
    }

    /// The answer to a request, whatever form it has.
    async fn receive(self: &Arc<Self>, asked: &Asked, answered: Answered) -> Result<(), Failure> {
        let Answered { status, headers, body } = answered;
        let kind = content_type(&headers);
        if asked.head.method.as_deref() == Some("initialize") && status.is_success() {
            let name = headers.get(session::SESSION).map(|name| session::checked_name(name.as_bytes()));
            self.locked().session.name = name.transpose()?;
        }
        match kind.as_deref() {
            Some("text/event-stream") if status.is_success() => self.stream(asked, body).await,
            Some("application/json") => {
                let read = tokio::time::timeout(PATIENCE, body.read(MAX_BODY)).await;
                let text = read.map_err(|_| "the server's answer takes too long".to_owned())?;
                let text = text.map_err(|why| why.to_string())?;
                let line = whole_answer(&asked.id, &text, status)?;
                self.pass(asked, line);
                Ok(())
            }
            _ if status.is_success() && kind.is_none() => {
                Err("the server answered a request with nothing".to_owned())
            }
            Some(kind) if status.is_success() => {
                let kind: String = kind.chars().take(100).collect();
                Err(format!(
                    "the server answered with `{}`, which is no message",
                    crate::answer::shown(&kind)
                ))
            }
            _ => Err(format!("the server answered with HTTP {}", status.as_u16())),
        }
    }

    /// Passes an answer on, and remembers what it says of the session and of tools.
    fn pass(&self, asked: &Asked, line: Vec<u8>) {
        match asked.head.method.as_deref() {
            Some("initialize") => self.locked().session.note_version(&line),
            Some("tools/list") => self.locked().headers.note(&line),
            _ => {}
        }
        self.push(line);
    }

    /// The answer as a stream of events, taken up again where it breaks off.
    async fn stream(self: &Arc<Self>, asked: &Asked, body: Body) -> Result<(), Failure> {
        let mut reader = EventReader::default();
        let mut body = Some(body);
        let broken = |why: String| format!("the server's answer broke off: {why}");
        for resumes in 0.. {
            let why = match body.take() {
                Some(body) => match self.read_stream(Some(asked), &mut reader, body).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => "it has ended".to_owned(),
                    Err(StreamEnd::Final(why)) => return Err(broken(why)),
                    Err(StreamEnd::Broken(why)) => why,
                },
                None => "it cannot be taken up again".to_owned(),
            };
            let last =
                reader.last_id.clone().filter(|_| self.locked().session.is_open() && resumes < MAX_RESUMES);
            let Some(last) = last else { return Err(broken(why)) };
            tokio::time::sleep(session::pause(reader.retry)).await;
            body = self.get(Some(&last)).await.ok();
            reader = EventReader::after(last, reader.retry);
        }
        Err(broken("it was taken up too often".to_owned()))
    }

    /// Reads events until the answer has come (`true`) or the stream has ended.
    async fn read_stream(
        self: &Arc<Self>,
        asked: Option<&Asked>,
        reader: &mut EventReader,
        mut body: Body,
    ) -> Result<bool, StreamEnd> {
        loop {
            self.to_relay.has_room().await;
            let piece = body.chunk().await.map_err(|why| StreamEnd::Broken(why.to_string()))?;
            let Some(piece) = piece else { return Ok(false) };
            let too_long = |_| StreamEnd::Final(format!("an event has more than {} bytes", events::LONGEST));
            for event in reader.read(&piece).map_err(too_long)? {
                if self.event(asked, event.data) {
                    // The end of the stream is due now; a connection that reaches it is used again.
                    tokio::spawn(tokio::time::timeout(Duration::from_secs(1), body.read(4096)));
                    return Ok(true);
                }
            }
        }
    }

    /// One event of a stream; whether it is the answer that the stream is for.
    fn event(&self, asked: Option<&Asked>, data: Vec<u8>) -> bool {
        if data.trim_ascii().is_empty() {
            return false;
        }
        let line = one_line(&data);
        let Some((line, message)) = line.as_ref().and_then(|line| Some((line, ServerMessage::read(line)?)))
        else {
            self.note("the server sent an event that is no message; it was dropped");
            return false;
        };
        let id = message.id.and_then(RequestKey::from_raw);
        let is_session = self.locked().session.is_open();
        match (message.method.is_some(), message.id.is_some(), id) {
            (true, false, _) => self.push(line.clone()),
            (true, true, Some(_)) if is_session => self.push(line.clone()),
            (false, true, Some(id)) if asked.is_some_and(|asked| asked.id == id) => {
                if let Some(asked) = asked {
                    self.pass(asked, line.clone());
                }
                return true;
            }
            (false, _, _) => {
                self.note("the server answered what this stream is not for; the answer was dropped")
            }
            (true, true, _) => self.note("the server asked its client without a session; it was dropped"),
        }
        false
    }
}

/// How a stream ends before its answer.
enum StreamEnd {
    /// The connection broke off.
    Broken(String),
    /// It must not be taken up again.
    Final(String),
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// A message as one line; nothing if it is no JSON. Line ends stand between its parts alone.
fn one_line(text: &[u8]) -> Option<Vec<u8>> {
    let whole: &RawValue = serde_json::from_slice(text).ok()?;
    let plain = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
    Some(whole.get().bytes().map(plain).chain([b'\n']).collect())
}

/// The one message that a body must be: the answer to this request. An error that names no request is this one's.
fn whole_answer(id: &RequestKey, text: &[u8], status: StatusCode) -> Result<Vec<u8>, Failure> {
    let useless = || match status.is_success() {
        true => "the server's answer is no message".to_owned(),
        false => format!("the server answered with HTTP {}", status.as_u16()),
    };
    let line = one_line(text).ok_or_else(useless)?;
    let message = ServerMessage::read(&line).ok_or_else(useless)?;
    let of = message.id.filter(|id| id.get() != "null").map(RequestKey::from_raw);
    match of {
        Some(Some(of)) if of == *id && message.method.is_none() => {}
        None if message.result.is_none() && message.method.is_none() => {
            let mut error: Value = serde_json::from_slice(&line).map_err(|_| useless())?;
            if !error.get("error").is_some_and(Value::is_object) {
                return Err(useless());
            }
            if let Some(fields) = error.as_object_mut() {
                fields.insert("id".to_owned(), id.to_value());
            }
            return Ok(super::message::line(&error));
        }
        _ if status.is_success() => return Err("the server answered another request".to_owned()),
        _ => return Err(useless()),
    }
    Ok(line)
}
