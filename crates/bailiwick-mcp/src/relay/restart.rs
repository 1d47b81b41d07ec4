//! A server that is started again after it has failed, behind one relay: the client's session, pins, budgets and approvals stay.
//!
//! What waited for the process that failed is answered with the reason. The next one is opened as the client opened the first; what
//! the client says meanwhile waits for it. Requests of a later process get ids of their own, so that an answer to an earlier one
//! never reaches it.
//!
//! It ends when the client has gone, when a process ends well, or when it has failed too often in a row.
//!
//! Residual: only what the client said to open the session is said again, so this is for servers that keep nothing.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, DuplexStream};
use tokio::time::Instant;

use super::from_peer::ServerMessage;
use super::isolate::instance::{OPENING, PARTING, open};
use super::isolate::{InstanceStreams, LONGEST, with_id};
use super::lines::{LineQueue, QueuedLines};
use super::message::{OWN_ERROR, RequestKey, error_line};
use crate::stdio::frames::{Frame, Frames};

/// The pause before the first restart; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// How often a server may fail in a row.
const MOST: u32 = 5;

/// A process that has run so long has not failed in a row.
const STEADY: Duration = Duration::from_secs(60);

/// How many requests of a process may wait for the client.
const MAX_ASKED: usize = 256;

/// Begins the ids under which requests of later processes are known to the client.
const OWN: &str = "bailiwick-restarted-";

/// Starts processes of one server.
pub trait Restarts: Send + Sync + 'static {
    /// Starts one, or says why not.
    fn start(&self) -> impl Future<Output = Result<InstanceStreams, String>> + Send;

    /// Whether the process that ended last has failed, so that another is to follow it.
    fn has_failed(&self) -> bool;

    /// Told what people may want to know.
    fn note(&self, text: &str);
}

/// Relays to one process after the other; says how the last one ended.
pub async fn keep_running<S: Restarts>(servers: S, relay: (DuplexStream, DuplexStream)) -> String {
    let (from_relay, output) = relay;
    let (to_relay, relay_lines) = LineQueue::new();
    let writer = tokio::spawn(relay_lines.write_to(output));
    let client = Frames::with_longest(from_relay, LONGEST);
    let mut kept = Kept { client, has_gone: false, to_relay, talk: Talk::default() };
    let why = kept.run(&servers).await;
    for id in std::mem::take(&mut kept.talk.waiting) {
        kept.to_relay.push(error_line(&id, OWN_ERROR, &why, None));
    }
    kept.to_relay.close();
    drop(writer.await);
    why
}

/// What stays from one process to the next.
struct Kept {
    client: Frames<DuplexStream>,
    has_gone: bool,
    to_relay: LineQueue,
    talk: Talk,
}

/// What was said, as far as the next process has to know it.
#[derive(Default)]
struct Talk {
    /// How the client opened the session.
    opening: Option<(RequestKey, Vec<u8>)>,
    opened: Option<Vec<u8>>,
    /// Requests of the client that wait.
    waiting: HashSet<RequestKey>,
    /// Which process this is, and its requests that wait for the client: by the ids that the client knows.
    number: u32,
    asked: HashMap<String, RequestKey>,
    last: u64,
}

impl Kept {
    async fn run<S: Restarts>(&mut self, servers: &S) -> String {
        let mut failures = 0;
        loop {
            let (lines, queued) = LineQueue::new();
            let began = Instant::now();
            let started = self.beside(&lines, servers.start()).await;
            let why = match started {
                Ok(streams) => self.relay(streams, (lines, queued)).await,
                Err(why) => why,
            };
            failures = if began.elapsed() >= STEADY { 1 } else { failures + 1 };
            if self.has_gone || !servers.has_failed() || failures >= MOST {
                return why;
            }
            self.talk.end_process();
            for id in std::mem::take(&mut self.talk.waiting) {
                self.to_relay.push(error_line(&id, OWN_ERROR, &why, None));
            }
            let pause = PAUSE * 2_u32.pow(failures - 1);
            servers.note(&format!("{why}; it is started again in {} ms", pause.as_millis()));
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits for something; what the client says meanwhile is kept for the process.
    async fn beside<T>(&mut self, lines: &LineQueue, act: impl Future<Output = T>) -> T {
        let mut act = std::pin::pin!(act);
        loop {
            tokio::select! {
                done = &mut act => return done,
                () = self.hear(lines), if !self.has_gone => {}
            }
        }
    }

    /// One line of the client.
    async fn hear(&mut self, lines: &LineQueue) {
        lines.has_room().await;
        match self.client.next().await {
            Ok(Frame::Whole(line)) => {
                if let Some(line) = self.talk.line_of_client(line) {
                    lines.push(line);
                }
            }
            Ok(Frame::TooLong) => {}
            Ok(Frame::End) | Err(_) => {
                self.has_gone = true;
                lines.close();
            }
        }
    }

    /// Relays until a process has ended; how it ended.
    async fn relay(&mut self, streams: InstanceStreams, (lines, queued): (LineQueue, QueuedLines)) -> String {
        let InstanceStreams { mut input, output, over, reason, .. } = streams;
        let mut frames = Frames::with_longest(output, LONGEST);
        let opening = self.talk.opening.as_ref().filter(|_| self.talk.number > 0);
        let opening = opening.filter(|(id, _)| !self.talk.waiting.contains(id)).map(|(_, line)| line.clone());
        let mut is_open = true;
        if let Some(opening) = opening {
            let opened = self.talk.opened.clone();
            let opens = tokio::time::timeout(OPENING, open(&mut input, &mut frames, &opening, opened));
            is_open = self.beside(&lines, opens).await.unwrap_or_default();
        }
        if is_open {
            let writer = tokio::spawn(queued.write_to(input));
            let ends = over.clone();
            self.pump(&lines, &mut frames, || ends.cancel()).await;
            writer.abort();
        }
        over.cancel();
        let why = tokio::time::timeout(PARTING, reason).await.ok().and_then(Result::ok);
        why.unwrap_or_else(|| "the server has ended".to_owned())
    }

    /// Both directions, until the process says nothing more. `gone` is called when the client has gone.
    async fn pump(
        &mut self,
        lines: &LineQueue,
        frames: &mut Frames<impl AsyncRead + Unpin>,
        gone: impl Fn(),
    ) {
        loop {
            let to_relay = self.to_relay.clone();
            let next = async {
                to_relay.has_room().await;
                frames.next().await
            };
            match self.beside_or_gone(lines, next, &gone).await {
                Ok(Frame::Whole(line)) => {
                    if let Some(line) = self.talk.line_of_server(line) {
                        self.to_relay.push(line);
                    }
                }
                Ok(Frame::TooLong | Frame::End) | Err(_) => return,
            }
        }
    }

    async fn beside_or_gone<T>(
        &mut self,
        lines: &LineQueue,
        act: impl Future<Output = T>,
        gone: &impl Fn(),
    ) -> T {
        let mut act = std::pin::pin!(act);
        loop {
            if self.has_gone {
                gone();
                return act.await;
            }
            tokio::select! {
                done = &mut act => return done,
                () = self.hear(lines) => {}
            }
        }
    }
}

impl Talk {
    /// A line of the client, as the process is told it.
    fn line_of_client(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let read = ServerMessage::read(&line)?;
        match (read.method.as_deref(), read.id.and_then(RequestKey::from_raw)) {
            (Some(method), Some(id)) => {
                if method == "initialize" {
                    self.opening = Some((id.clone(), line.clone()));
                }
                self.waiting.insert(id);
            }
            (Some("notifications/initialized"), None) => self.opened = Some(line.clone()),
            (Some(_), None) => {}
            (None, Some(RequestKey::Text(id))) if id.starts_with(OWN) => {
                return with_id(&line, &self.asked.remove(&*id)?.to_value());
            }
            // It answers a process that has ended.
            (None, _) if self.number > 0 => return None,
            (None, _) => {}
        }
        Some(with_newline(line))
    }

    /// A line of the process, as the client is told it.
    fn line_of_server(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let Some(read) = ServerMessage::read(&line) else { return Some(with_newline(line)) };
        match (read.method.is_some(), read.id.and_then(RequestKey::from_raw)) {
            (false, Some(id)) => drop(self.waiting.remove(&id)),
            (true, Some(id)) if self.number > 0 => {
                if self.asked.len() >= MAX_ASKED {
                    return None;
                }
                self.last += 1;
                let own = format!("{OWN}{}-{}", self.number, self.last);
                let line = with_id(&line, &Value::from(own.as_str()))?;
                self.asked.insert(own, id);
                return Some(line);
            }
            (_, _) => {}
        }
        Some(with_newline(line))
    }

    fn end_process(&mut self) {
        self.number += 1;
        self.asked.clear();
        // A session that was not opened is not opened again.
        self.opening.take_if(|(id, _)| self.waiting.contains(id));
    }
}

fn with_newline(line: Vec<u8>) -> Vec<u8> {
    super::from_client::with_newline(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(talk: &mut Talk, text: &str) -> Option<String> {
        let line = talk.line_of_client(text.as_bytes().to_vec())?;
        Some(String::from_utf8(line).unwrap().trim_end().to_owned())
    }

    fn server(talk: &mut Talk, text: &str) -> Option<String> {
        let line = talk.line_of_server(text.as_bytes().to_vec())?;
        Some(String::from_utf8(line).unwrap().trim_end().to_owned())
    }

    #[test]
    fn an_answer_to_a_process_that_has_ended_never_reaches_the_next_one() {
        let mut talk = Talk::default();
        let asks = r#"{"id":1,"method":"roots/list"}"#;
        assert_eq!(
            server(&mut talk, asks).unwrap(),
            asks,
            "the first process is not in the way of its client"
        );
        let answer = r#"{"id":1,"result":{"roots":[]}}"#;
        assert_eq!(client(&mut talk, answer).unwrap(), answer);
        assert_eq!(server(&mut talk, asks).unwrap(), asks);
        talk.end_process();
        let again = server(&mut talk, r#"{"id":1,"method":"elicitation/create"}"#).unwrap();
        assert_eq!(again, r#"{"id":"bailiwick-restarted-1-1","method":"elicitation/create"}"#);
        assert_eq!(client(&mut talk, answer), None, "it answers the first process");
        let own = r#"{"id":"bailiwick-restarted-1-1","result":{"action":"accept"}}"#;
        assert_eq!(client(&mut talk, own).unwrap(), r#"{"id":1,"result":{"action":"accept"}}"#);
        assert_eq!(client(&mut talk, own), None, "an answer counts once");
        server(&mut talk, r#"{"id":1,"method":"elicitation/create"}"#).unwrap();
        talk.end_process();
        assert_eq!(client(&mut talk, &own.replace("1-1", "1-2")), None);
    }

    #[test]
    fn only_a_session_that_was_opened_is_opened_again() {
        let mut talk = Talk::default();
        let opening = r#"{"id":"o","method":"initialize"}"#;
        client(&mut talk, opening);
        talk.end_process();
        assert!(talk.opening.is_none());
        client(&mut talk, opening);
        server(&mut talk, r#"{"id":"o","result":{}}"#);
        client(&mut talk, r#"{"method":"notifications/initialized"}"#);
        client(&mut talk, r#"{"id":2,"method":"ping"}"#);
        talk.end_process();
        assert!(talk.opening.is_some() && talk.opened.is_some() && talk.waiting.len() == 1);
    }
}
