//! Who decides: the supervisor, asked for each request before anything of it is sent.
//!
//! The process that holds the values decides nothing of what is granted, and records nothing. It says which request it
//! would send with which secrets, and waits for the word. Both ends are in this file.
//!
//! Fails closed when: the supervisor does not answer.

use std::io;
use std::net::IpAddr;

use bailiwick_egress::{
    Code, EgressOutcome, Event, Refusal, Request as Asked, Rules, Target, Teller, judge_request,
};
use bailiwick_policy::net::{Host, Method, UrlPath};
use bailiwick_policy::secret_use::SecretUse;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::wire::{receive_soon, send_soon};

/// The end that asks.
pub(crate) struct Referee {
    stream: Mutex<(OwnedWriteHalf, mpsc::Receiver<Value>)>,
}

impl Referee {
    /// Asks over this stream. What is given back ends when the supervisor ends the connection.
    pub(crate) fn over(stream: UnixStream) -> (Self, oneshot::Receiver<()>) {
        let (reader, writer) = stream.into_split();
        let (answers, answered) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        tokio::spawn(read_answers(reader, answers, end));
        (Self { stream: Mutex::new((writer, answered)) }, ended)
    }

    async fn converse(&self, message: &Value) -> io::Result<Value> {
        let mut stream = self.stream.lock().await;
        let (writer, answers) = &mut *stream;
        send_soon(writer, message).await?;
        answers.recv().await.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Whether a request may be sent with these secrets. It is recorded either way.
    pub(crate) async fn ask(&self, asked: &Asked, used: &[Box<str>]) -> Result<(), Refusal> {
        let message = json!({
            "ask": {
                "method": asked.method, "host": asked.host.to_string(), "port": asked.port, "path": asked.path,
                "overridden": asked.overridden,
            },
            "used": used.iter().map(|name| &**name).collect::<Vec<_>>(),
        });
        let unasked = || Refusal::new(Code::SecretBroker);
        let answer = self.converse(&message).await.map_err(|_| unasked())?;
        if answer.get("go").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        Err(refusal_in(&answer).unwrap_or_else(unasked))
    }

    /// Has a refusal recorded, of a request or of the whole connection.
    pub(crate) async fn tell(&self, refusal: &Refusal, request: Option<(&str, &str)>) {
        let message = json!({
            "refused": refusal.code().as_str(), "grant": refusal.grant(),
            "request": request.map(|(method, path)| [method, path]),
        });
        // A supervisor that is gone records nothing more, and its sandbox is gone too.
        drop(self.converse(&message).await);
    }
}

async fn read_answers(mut reader: OwnedReadHalf, answers: mpsc::Sender<Value>, end: oneshot::Sender<()>) {
    while let Ok(answer) = receive_soon(&mut reader).await {
        if answers.send(answer).await.is_err() {
            return;
        }
    }
    drop(answers);
    // Nothing waits any more if the connection is over.
    let _ = end.send(());
}

fn refusal_in(answer: &Value) -> Option<Refusal> {
    let text = answer.get("refused")?.as_str()?;
    let code = Code::ALL.iter().find(|code| code.as_str() == text)?;
    let refusal = Refusal::new(*code);
    Some(match answer.get("grant").and_then(Value::as_str) {
        Some(grant) => refusal.grantable(grant),
        None => refusal,
    })
}

/// The end that decides, for one connection.
pub(crate) struct Decider {
    pub(crate) target: Target,
    pub(crate) address: IpAddr,
    /// The addresses that were judged.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) rules: Rules,
    pub(crate) tell: Teller,
    /// How the secrets of the session are used.
    pub(crate) uses: std::sync::Arc<Vec<(Box<str>, SecretUse)>>,
}

impl Decider {
    /// Answers until the other process has ended the connection.
    pub(crate) async fn answer(&self, stream: &mut UnixStream) {
        while let Ok(message) = receive_soon(stream).await {
            let answer = self.decided(&message).unwrap_or_else(|| refused(&Refusal::new(Code::SecretBroker)));
            if send_soon(stream, &answer).await.is_err() {
                return;
            }
        }
    }

    /// Has a refusal of the connection recorded.
    pub(crate) fn refuse(&self, code: Code) {
        (self.tell)(Event::of_connection(&self.target, EgressOutcome::Refused(Refusal::new(code))));
    }

    /// The answer; nothing to what is no question.
    fn decided(&self, message: &Value) -> Option<Value> {
        let Some(asked) = message.get("ask") else { return self.told(message) };
        let text = |key: &str| asked.get(key).and_then(Value::as_str);
        let asked = Asked {
            method: text("method")?.into(),
            host: Host::new(text("host")?).ok()?,
            port: asked.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()),
            path: text("path")?.into(),
            overridden: asked.get("overridden")?.as_bool()?,
        };
        let used = message.get("used")?.as_array()?.iter();
        let used: Vec<Box<str>> = used.map(|name| name.as_str().map(Box::from)).collect::<Option<_>>()?;
        let request = (&*asked.method, &*asked.path);
        let judged = judge_request(&self.rules, &self.target, &self.addresses, &asked);
        let (outcome, answer) = match judged.and_then(|()| self.judge_uses(request, asked.overridden, &used))
        {
            Err(refusal) => (EgressOutcome::Refused(refusal.clone()), refused(&refusal)),
            Ok(()) if used.is_empty() => (EgressOutcome::Allowed(self.address), json!({ "go": true })),
            Ok(()) => (EgressOutcome::Brokered(self.address, used), json!({ "go": true })),
        };
        (self.tell)(Event::of_request(&self.target, request, outcome));
        Some(answer)
    }

    /// Refuses a request that one of the secrets is not used on. One that names another method or path besides its own may be
    /// any request.
    fn judge_uses(
        &self,
        (method, path): (&str, &str),
        overridden: bool,
        used: &[Box<str>],
    ) -> Result<(), Refusal> {
        let known = Method::new(method).ok().filter(|known| known.as_str() == method && !overridden);
        let path = UrlPath::of_target(path);
        let covers = |name: &str| {
            let usage = self.uses.iter().find(|(own, _)| **own == *name).map(|(_, usage)| usage);
            match (usage, known) {
                (Some(usage), Some(known)) => usage.is_used_on(known, &path),
                (Some(usage), None) => usage.is_used_on_all(),
                (None, _) => false,
            }
        };
        if used.iter().all(|name| covers(name)) { Ok(()) } else { Err(Refusal::new(Code::SecretRule)) }
    }

    fn told(&self, message: &Value) -> Option<Value> {
        let outcome = EgressOutcome::Refused(refusal_in(message)?);
        let request = message.get("request").and_then(Value::as_array);
        let request = request.and_then(|both| Some((both.first()?.as_str()?, both.get(1)?.as_str()?)));
        (self.tell)(match request {
            Some(request) => Event::of_request(&self.target, request, outcome),
            None => Event::of_connection(&self.target, outcome),
        });
        Some(json!({}))
    }
}

fn refused(refusal: &Refusal) -> Value {
    json!({ "refused": refusal.code().as_str(), "grant": refusal.grant() })
}
