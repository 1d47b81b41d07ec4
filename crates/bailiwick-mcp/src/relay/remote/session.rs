//! The server's session of the legacy era: its name, its stream, and what happens when it is forgotten.

use std::sync::Arc;
use std::time::Duration;

use bailiwick_remote::Body;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

use super::super::from_peer::ServerMessage;
use super::events::EventReader;
use super::request::{MessageHead, written};
use super::{BRIEF, Conversation, Failure, MAX_BODY, MAX_RESUMES, content_type};

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// How long the server's own stream may be silent.
const LISTENING: Duration = Duration::from_secs(3600);

/// How long the end of a session may take.
const PARTING: Duration = Duration::from_secs(2);
const HASTE: Duration = Duration::from_millis(100);

/// The longest name of a session and of a version.
const LONGEST: usize = 1024;

/// A session, as far as the server has told it.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) name: Option<String>,
    /// The version that both agreed on.
    pub(super) version: Option<String>,
    /// How the client opened it, to open it again.
    pub(super) opening: Option<Vec<u8>>,
    pub(super) opened: Option<Vec<u8>>,
}

impl Session {
    pub(super) fn begin(&mut self, line: &[u8]) {
        *self = Self { opening: Some(line.to_vec()), ..Self::default() };
    }

    /// Whether the server has agreed to one.
    pub(super) const fn is_open(&self) -> bool {
        self.version.is_some()
    }

    /// Remembers the version of an answer to an opening.
    pub(super) fn note_version(&mut self, line: &[u8]) {
        let answer: Option<Value> = serde_json::from_slice(line).ok();
        let version = answer.as_ref().and_then(|answer| answer.pointer("/result/protocolVersion")?.as_str());
        self.version = version.filter(|version| is_name(version.as_bytes())).map(str::to_owned);
    }
}

fn is_name(bytes: &[u8]) -> bool {
    (1..=LONGEST).contains(&bytes.len()) && bytes.iter().all(|byte| matches!(byte, 0x21..=0x7e))
}

/// A name that can be sent back as it came.
pub(super) fn checked_name(bytes: &[u8]) -> Result<String, Failure> {
    if is_name(bytes) {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    Err("the server's session has a name that cannot be sent back".to_owned())
}

/// How long to wait before a stream is taken up again, whatever the server wants.
pub(super) fn pause(retry: Option<u64>) -> Duration {
    Duration::from_millis(retry.unwrap_or(1000).clamp(100, 30_000))
}

impl Conversation {
    /// Opens the session again that the server has forgotten, once for all who notice.
    pub(super) async fn reopen(self: &Arc<Self>, forgotten: Option<&str>) -> Result<(), Failure> {
        let _one = self.reopening.lock().await;
        let (known, opened) = {
            let state = self.locked();
            (state.session.name.clone(), state.session.opened.clone())
        };
        if known.as_deref() != forgotten {
            return Ok(());
        }
        let opening = self.locked().session.opening.clone();
        let opening = opening.ok_or("the server has forgotten its session, which cannot be opened again")?;
        let head = MessageHead::from_line(&opening).ok_or("the session cannot be opened again")?;
        let answered = self.post(&head, &opening, BRIEF).await?;
        let failed = |why: &str| format!("the server has forgotten its session and opens no other: {why}");
        if !answered.status.is_success() {
            return Err(failed(&format!("HTTP {}", answered.status.as_u16())));
        }
        let name = answered.headers.get(SESSION).map(|name| checked_name(name.as_bytes())).transpose()?;
        let is_stream = content_type(&answered.headers).as_deref() == Some("text/event-stream");
        let read = tokio::time::timeout(BRIEF, first_message(answered.body, is_stream)).await;
        let line = read.ok().flatten().ok_or_else(|| failed("there is no answer"))?;
        if ServerMessage::read(&line).is_none_or(|message| message.result.is_none()) {
            return Err(failed("it answers with an error"));
        }
        {
            let mut state = self.locked();
            state.session.name = name;
            state.session.note_version(&line);
        }
        self.note("the server had forgotten its session; it was opened again");
        if let Some(opened) = opened
            && let Some(head) = MessageHead::from_line(&opened)
        {
            self.tell(&head, &opened).await;
            self.listen();
        }
        Ok(())
    }

    /// Listens to what the server says by itself, if it has a stream for that.
    pub(super) fn listen(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let task = tokio::spawn(async move {
            let mut reader = EventReader::default();
            let mut failures = 0;
            while failures < MAX_RESUMES {
                let last = reader.last_id.clone();
                match this.get(last.as_deref()).await {
                    Ok(body) => {
                        let heard = this.read_stream(None, &mut reader, body).await;
                        failures = if heard.is_ok() { 0 } else { failures + 1 };
                    }
                    Err(NoStream::Never) => return,
                    Err(NoStream::Now) => failures += 1,
                }
                tokio::time::sleep(pause(reader.retry)).await;
            }
        });
        if let Some(before) = self.locked().listening.replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// The server's own stream, from an event on if one is given.
    pub(super) async fn get(&self, last: Option<&str>) -> Result<Body, NoStream> {
        let value = self.credential().await.map_err(|_| NoStream::Now)?;
        let session = self.locked().session.clone();
        let head = MessageHead::empty();
        let request = written(Method::GET, Bytes::new(), &head, &session, &[], value.as_deref());
        let mut request = request.map_err(|_| NoStream::Never)?;
        if let Some(last) = last.and_then(|last| last.parse().ok()) {
            request.headers_mut().insert(LAST_EVENT, last);
        }
        let sent = self.server.client.send(&self.server.endpoint, &request, LISTENING).await;
        let answered = sent.map_err(|_| NoStream::Now)?;
        let is_stream = content_type(&answered.headers).as_deref() == Some("text/event-stream");
        match answered.status {
            StatusCode::OK if is_stream => Ok(answered.body),
            status if status.is_server_error() => Err(NoStream::Now),
            _ => Err(NoStream::Never),
        }
    }

    /// Ends what waits, and the session.
    pub(super) async fn end(&self) {
        let (tasks, session) = {
            let mut state = self.locked();
            let listening = state.listening.take();
            let tasks: Vec<_> = state.waiting.drain().map(|(_, task)| task).chain(listening).collect();
            (tasks, state.session.clone())
        };
        tasks.iter().for_each(tokio::task::AbortHandle::abort);
        if session.name.is_none() {
            return;
        }
        let value = self.credential().await.ok().flatten();
        let request =
            written(Method::DELETE, Bytes::new(), &MessageHead::empty(), &session, &[], value.as_deref());
        if let Ok(request) = request {
            let patience = if self.server.stop.is_cancelled() { HASTE } else { PARTING };
            let sent = self.server.client.send(&self.server.endpoint, &request, patience);
            drop(tokio::time::timeout(patience, sent).await);
        }
    }
}

/// Why there is no stream.
pub(super) enum NoStream {
    /// The server has none.
    Never,
    /// It may have one later.
    Now,
}

/// The first message of a body.
async fn first_message(mut body: Body, is_stream: bool) -> Option<Vec<u8>> {
    if !is_stream {
        return super::one_line(&body.read(MAX_BODY).await.ok()?);
    }
    let mut reader = EventReader::default();
    while let Some(piece) = body.chunk().await.ok()? {
        let events = reader.read(&piece).ok()?;
        let lines = events.into_iter().filter_map(|event| super::one_line(&event.data));
        let mut answers =
            lines.filter(|line| ServerMessage::read(line).is_some_and(|message| message.method.is_none()));
        if let Some(line) = answers.next() {
            return Some(line);
        }
    }
    None
}
