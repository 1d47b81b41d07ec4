//! Streamable HTTP in front of servers that speak on stdin and stdout, in both eras of the protocol.
//!
//! A client that initializes gets a session with a server of its own. Clients of the modern era share one: their requests
//! get ids, progress tokens and subscriptions of ours on the way in, and their own again on the way out. Every server
//! stands behind a [`relay`](super::relay), which judges each line as it does on stdin; here is only transport.
//!
//! Fails closed when: a body can be read in two ways, a header does not repeat what the body says, or a server says
//! something of which it is not known whose it is. Nothing is passed on then.
//!
//! Residual: messages for a log, of a server that works for several clients of the modern era at once, are dropped,
//! because they do not say which request they belong to.

mod channel;
mod events;
mod headers;
mod session;
mod sharing;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bailiwick_door::{Answer, Limits, Service, filled, plain, read_body, with_header};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use tokio::io::DuplexStream;

use self::headers::{LAST_EVENT, Lifecycle, SESSION, Seen};
use self::session::Session;
use self::sharing::SharedServer;
use super::message::{
    ClientMessage, METHOD_NOT_FOUND, Malformed, OWN_ERROR, PARSE_ERROR, RequestKey, read_client,
};
use crate::http::{is_json, method_not_allowed, no_room, not_json};
use crate::json;

/// Methods that the modern era has no more. A server that speaks both eras would take them for the other one.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Starts servers, each behind a relay.
pub trait Servers: Send + Sync + 'static {
    /// Starts one more, or says why not.
    fn start(&self) -> impl Future<Output = Result<Conversation, String>> + Send;

    /// Told what was not passed on, to record it.
    fn refused(&self, reason: &str);
}

/// The client's side of a relay.
#[derive(Debug)]
pub struct Conversation {
    /// What the client says; dropping it ends the server.
    pub input: DuplexStream,
    /// What it hears; its end is the server's.
    pub output: DuplexStream,
}

/// The service that a door lets requests in to.
pub struct Listener<S> {
    servers: S,
    limits: Limits,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Held while a session is made, so that two cannot take the last place.
    making: tokio::sync::Mutex<()>,
    shared: tokio::sync::Mutex<Option<Arc<SharedServer>>>,
}

impl<S: Servers> Listener<S> {
    /// Listens for clients of these servers. Must be called inside a runtime.
    pub fn new(servers: S, limits: Limits) -> Arc<Self> {
        let listener = Arc::new(Self {
            servers,
            limits,
            sessions: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            shared: tokio::sync::Mutex::default(),
        });
        tokio::spawn(end_idle_sessions(Arc::downgrade(&listener), limits.idle));
        listener
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(&self, head: &Parts, body: Incoming) -> Result<Answer, Answer> {
        let headers = &head.headers;
        if !accepts(headers, &["application/json", "text/event-stream"]) {
            let reason = "Not Acceptable: Client must accept both application/json and text/event-stream";
            return Err(plain(StatusCode::NOT_ACCEPTABLE, reason));
        }
        if !is_json(headers) {
            return Err(not_json());
        }
        let body = read_body(headers, body, &self.limits).await?;
        let (line, message) = read_line(&body).map_err(|malformed| {
            self.servers.refused(&malformed.message);
            json_answer(StatusCode::BAD_REQUEST, malformed.to_line())
        })?;
        let seen = Seen::from_message(&message);
        let lifecycle = headers::lifecycle(headers, Some(&seen))?;
        headers::repeat_the_body(headers, &seen)?;
        match lifecycle {
            Lifecycle::Session => self.post_in_session(headers, message, line).await,
            Lifecycle::Single => self.post_alone(headers, &seen, &message, &line).await,
        }
    }

    async fn post_in_session(
        &self,
        headers: &HeaderMap,
        message: ClientMessage,
        line: Vec<u8>,
    ) -> Result<Answer, Answer> {
        let id = match (headers::text(headers, SESSION), &message) {
            (Some(id), _) => id,
            (None, ClientMessage::Request { id, method, .. }) if method == "initialize" => {
                return self.open_session(id, line).await;
            }
            (None, _) => return Err(headers::session_required()),
        };
        let session = self.locked().get(id).cloned().ok_or_else(headers::no_session)?;
        match message {
            ClientMessage::Request { id, params, .. } => {
                let body = session
                    .ask(id, &params, line)
                    .map_err(|malformed| json_answer(StatusCode::BAD_REQUEST, malformed.to_line()))?;
                Ok(body.into_answer())
            }
            ClientMessage::Notification { .. } | ClientMessage::Answer { .. } => {
                session.send(line);
                Ok(filled(StatusCode::ACCEPTED, Vec::new()))
            }
        }
    }

    /// Starts a server for a client that initializes. A session whose opening fails is none.
    async fn open_session(&self, id: &RequestKey, line: Vec<u8>) -> Result<Answer, Answer> {
        let making = self.making.lock().await;
        if self.locked().len() >= self.limits.sessions {
            return Err(no_room());
        }
        let conversation = self.servers.start().await.map_err(|why| not_started(Some(id), &why))?;
        let name = random_name().ok_or_else(|| not_started(Some(id), "there are no random numbers"))?;
        let session = Session::open(conversation);
        self.locked().insert(name.clone(), Arc::clone(&session));
        drop(making);
        let opened = session.open_with(id.clone(), line).await;
        let Some((body, is_open)) = opened else {
            self.locked().remove(&name);
            return Err(not_started(Some(id), "the server has ended"));
        };
        let mut answer = body.into_answer();
        if !is_open {
            self.locked().remove(&name);
            session.end();
            return Ok(answer);
        }
        if let Ok(value) = HeaderValue::from_str(&name) {
            answer.headers_mut().insert(SESSION, value);
        }
        Ok(answer)
    }

    /// A request that stands for itself.
    async fn post_alone(
        &self,
        headers: &HeaderMap,
        seen: &Seen<'_>,
        message: &ClientMessage,
        line: &[u8],
    ) -> Result<Answer, Answer> {
        let ClientMessage::Request { id, params, .. } = message else {
            // A shared server cannot know whose notification it is; requests end with their connection.
            return Ok(filled(StatusCode::ACCEPTED, Vec::new()));
        };
        if let Some(gone) = seen.method.filter(|method| REMOVED.contains(method)) {
            return Err(refusal(StatusCode::NOT_FOUND, seen.id, METHOD_NOT_FOUND, gone));
        }
        let shared = self.shared_server().await.map_err(|why| not_started(Some(id), &why))?;
        if seen.method == Some("tools/call")
            && let Some(schema) = shared.schema_of(params).await
        {
            headers::repeat_the_arguments(headers, seen, &schema)?;
        }
        shared.ask(seen, params, line).await
    }

    async fn shared_server(&self) -> Result<Arc<SharedServer>, String> {
        let mut shared = self.shared.lock().await;
        if let Some(running) = shared.as_ref().filter(|server| !server.has_ended()) {
            return Ok(Arc::clone(running));
        }
        let started = SharedServer::open(self.servers.start().await?);
        *shared = Some(Arc::clone(&started));
        Ok(started)
    }

    #[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
    fn get(&self, headers: &HeaderMap) -> Result<Answer, Answer> {
        if !accepts(headers, &["text/event-stream"]) {
            let reason = "Not Acceptable: Client must accept text/event-stream";
            return Err(plain(StatusCode::NOT_ACCEPTABLE, reason));
        }
        let session = self.session_of(headers)?;
        let body = match headers::text(headers, LAST_EVENT) {
            Some(last) => session.resume(last),
            None => session.listen(),
        };
        Ok(body.into_answer())
    }

    #[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
    fn delete(&self, headers: &HeaderMap) -> Result<Answer, Answer> {
        drop(self.session_of(headers)?);
        if let Some(id) = headers::text(headers, SESSION) {
            let session = self.locked().remove(id);
            session.iter().for_each(|session| session.end());
        }
        Ok(filled(StatusCode::ACCEPTED, Vec::new()))
    }

    #[expect(clippy::result_large_err, reason = "an answer is made once a request and handed up three steps")]
    fn session_of(&self, headers: &HeaderMap) -> Result<Arc<Session>, Answer> {
        if headers::lifecycle(headers, None)? == Lifecycle::Single {
            return Err(headers::only_posts());
        }
        let id = headers::text(headers, SESSION).ok_or_else(headers::session_required)?;
        self.locked().get(id).cloned().ok_or_else(headers::no_session)
    }
}

impl<S: Servers> Service for Listener<S> {
    async fn answer(&self, head: Parts, body: Incoming) -> Answer {
        let answer = match head.method {
            Method::POST => self.post(&head, body).await,
            Method::GET => self.get(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => Err(method_not_allowed()),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    async fn end(&self) {
        for (_, session) in self.locked().drain() {
            session.end();
        }
        if let Some(shared) = self.shared.lock().await.take() {
            shared.end();
        }
    }
}

/// Ends sessions in which nothing was said for so long, and forgets those whose server has ended.
async fn end_idle_sessions<S: Servers>(listener: Weak<Listener<S>>, idle: Duration) {
    let pause = (idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(60));
    loop {
        tokio::time::sleep(pause).await;
        let Some(listener) = listener.upgrade() else { return };
        listener.locked().retain(|_, session| {
            let stays = !session.has_ended() && !session.is_idle(idle);
            if !stays {
                session.end();
            }
            stays
        });
    }
}

/// A body as one line, and the message that it is. Line ends between its parts mean nothing.
fn read_line(body: &[u8]) -> Result<(Vec<u8>, ClientMessage), Malformed> {
    let mut line = body.to_vec();
    if line.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        // A line end within a text is no JSON, and must not become a space there.
        json::read(body).map_err(|error| parse_error(&error.to_string()))?;
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    let message = read_client(&line)?.ok_or_else(|| parse_error("there is no message"))?;
    Ok((line, message))
}

fn parse_error(why: &str) -> Malformed {
    Malformed { id: None, code: PARSE_ERROR, message: format!("Parse error: {why}") }
}

fn accepts(headers: &HeaderMap, kinds: &[&str]) -> bool {
    let accepted: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    kinds.iter().all(|kind| accepted.iter().any(|value| value.contains(kind)))
}

/// An error of the protocol as the whole answer.
fn refusal(status: StatusCode, id: Option<&RequestKey>, code: i64, message: &str) -> Answer {
    let malformed = Malformed { id: id.cloned(), code, message: message.to_owned() };
    json_answer(status, malformed.to_line())
}

fn not_started(id: Option<&RequestKey>, why: &str) -> Answer {
    refusal(StatusCode::SERVICE_UNAVAILABLE, id, OWN_ERROR, why)
}

fn json_answer(status: StatusCode, line: Vec<u8>) -> Answer {
    with_header(filled(status, line), CONTENT_TYPE, "application/json")
}

/// A name that nobody can guess.
fn random_name() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_between_parts_are_spaces_and_within_a_text_an_error() {
        let (line, _) = read_line(b"{\"jsonrpc\":\"2.0\",\r\n \"method\":\"notifications/x\"\n}").unwrap();
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        assert!(read_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/\nx\"}").is_err());
        assert!(read_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}\n").is_err());
        assert!(read_line(b"\n").is_err());
    }
}
