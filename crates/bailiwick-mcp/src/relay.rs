//! A relay between a client and a server that runs elsewhere: what it does not judge passes as it is.
//!
//! Every decision is the gate's. The relay reads a client's lines strictly, hands judged requests to the registry, and
//! sends exactly the bytes that were judged. Of the server's lines it reads the envelope, takes undeclared tools out of
//! lists and secrets out of everything, and matches answers with requests.
//!
//! Fails closed when: a client's message can be read in two ways, a judged method comes without an id, a method is
//! neither known nor listed in the manifest, the server asks its client for something that is not allowed, or it answers
//! a request that was not made. Nothing is passed on then.

mod call;
mod consent;
mod counts;
mod features;
mod from_client;
mod from_peer;
mod from_server;
mod in_flight;
pub mod isolate;
mod lines;
pub mod listen;
mod listing;
mod message;
mod own_list;
mod pins;
mod redact;
pub mod remote;
pub mod restart;
mod stand_in;
mod strict;
mod waiting;

pub use call::RemoteTool;
pub use consent::{ClientConsent, ClientQuestion, ask_client};
pub use counts::{Era, RelayCounts};
pub use features::{ClientFeature, ClientGate, FeatureVerdict, JudgedFeature, RootsAlone, visible};
pub use from_client::is_method;
pub use in_flight::CallsInFlight;
pub use pins::{ListKind, ListedTool, NoPins, PinKeeper};
pub use redact::{Redacted, Redactor};
pub use stand_in::StandIn;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bailiwick_guard::Grant;
use bailiwick_journal::Journal;
use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_policy::denial::DenialCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OnceCell, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::consent::ConsentDesk;
use self::lines::LineQueue;
use self::message::{OWN_ERROR, error_line};
use self::waiting::{Reply, Waiting};
use crate::handler::Tools;

/// How long answers may take to reach a client after the server has ended.
const PARTING: Duration = Duration::from_millis(500);

/// How long a client that was not heard yet may take to ask a server that has ended why.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// How long what a client has just sent may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The most bytes of one result.
pub const MAX_RESULT: usize = 8 * 1024 * 1024;

/// What a relay holds a server to.
pub struct RelayOptions {
    /// The registry whose gate judges; it has a [`RemoteTool`] for everything that the manifest declares.
    pub tools: Tools,
    /// What every call runs under.
    pub grant: Grant,
    /// Arguments that the manifest marks, by tool.
    pub marks: BTreeMap<String, Vec<String>>,
    /// Who remembers what the server said of itself.
    pub pins: Box<dyn PinKeeper>,
    /// Decides what the server may ask its client for.
    pub client: Box<dyn ClientGate>,
    /// The secrets that the server was given.
    pub redactor: Arc<Redactor>,
    /// What was done so far, for others to look at.
    pub counts: Arc<RelayCounts>,
    /// The calls that this server is answering.
    pub in_flight: Arc<CallsInFlight>,
    /// Where refusals are recorded.
    pub journal: Journal,
    /// Told what people may want to know, in one line.
    pub note: Box<dyn Fn(&str) + Send + Sync>,
}

/// The four ends of a relay.
pub struct RelayStreams<ClientIn, ClientOut, ServerIn, ServerOut> {
    /// What the client says.
    pub client_in: ClientIn,
    /// What it hears.
    pub client_out: ClientOut,
    /// What the server hears; closed when the client has gone.
    pub server_in: ServerIn,
    /// What it says.
    pub server_out: ServerOut,
}

/// How a relay and those who started the server tell each other of the end.
pub struct RelayEnd {
    /// Cancelled by the relay when the client has gone, or the server says nothing more.
    pub over: CancellationToken,
    /// Why the server has ended: pending requests are answered so.
    pub reason: oneshot::Receiver<String>,
}

/// What both directions share.
struct Shared {
    options: RelayOptions,
    waiting: Waiting,
    to_client: LineQueue,
    to_server: LineQueue,
    calls: Mutex<JoinSet<()>>,
    /// Questions of ours to the client.
    desk: ConsentDesk,
    /// Set once the server was asked for its tools before a call.
    listed: OnceCell<()>,
    /// Why the server has ended, once it has: everything is answered so.
    ended: OnceLock<String>,
    /// Whether the client has said anything.
    heard: AtomicBool,
}

/// Relays until the server says nothing more; then everything that waits is answered with the reason.
pub async fn relay<ClientIn, ClientOut, ServerIn, ServerOut>(
    options: RelayOptions,
    streams: RelayStreams<ClientIn, ClientOut, ServerIn, ServerOut>,
    end: RelayEnd,
) where
    ClientIn: AsyncRead + Send + Unpin + 'static,
    ClientOut: AsyncWrite + Send + Unpin + 'static,
    ServerIn: AsyncWrite + Send + Unpin + 'static,
    ServerOut: AsyncRead + Send + Unpin + 'static,
{
    let RelayEnd { over, reason } = end;
    let (to_client, client_lines) = LineQueue::new();
    let (to_server, server_lines) = LineQueue::new();
    let calls = Mutex::new(JoinSet::new());
    let (waiting, ended, heard) = (Waiting::default(), OnceLock::new(), AtomicBool::new(false));
    let desk = ConsentDesk::new();
    let listed = OnceCell::new();
    let shared =
        Arc::new(Shared { options, waiting, to_client, to_server, calls, desk, listed, ended, heard });

    let (gone, output) = (over.clone(), streams.client_out);
    let client_writer = tokio::spawn(async move {
        if client_lines.write_to(output).await.is_err() {
            gone.cancel();
        }
    });
    let server_writer = tokio::spawn(server_lines.write_to(streams.server_in));
    let mut reader = tokio::spawn({
        let (shared, over) = (Arc::clone(&shared), over.clone());
        async move {
            from_client::read_all(&shared, streams.client_in).await;
            over.cancel();
        }
    });
    // The server's input ends with the first side that sees the end.
    let closing = tokio::spawn({
        let (shared, over) = (Arc::clone(&shared), over.clone());
        async move {
            over.cancelled().await;
            shared.to_server.close();
        }
    });
    from_server::read_all(&shared, streams.server_out).await;
    over.cancel();

    let reason = reason.await.unwrap_or_else(|_| "the server has ended".to_owned());
    let reason = shared.ended.get_or_init(|| reason).clone();
    shared.fail_all(&reason);
    let patience = if shared.heard.load(Ordering::Acquire) { LAST_WORDS } else { FIRST_WORD };
    drop(tokio::time::timeout(patience, &mut reader).await);
    reader.abort();
    shared.finish_calls().await;
    shared.fail_all(&reason);
    drop(closing.await);
    server_writer.abort();
    shared.to_client.close();
    drop(tokio::time::timeout(PARTING, client_writer).await);
}

impl Shared {
    /// Sends the client a line without secrets.
    fn send_to_client(&self, line: Vec<u8>) {
        let redacted = std::str::from_utf8(&line).ok().and_then(|text| self.options.redactor.json(text));
        match redacted {
            None => self.to_client.push(line),
            Some(Redacted { text, count }) => {
                let reason = format!("{count} values of secrets were taken out of what the server says");
                drop(self.options.journal.append(
                    Event::new(RecordKind::CapabilityDenied).with_code("secret-redacted").with_reason(reason),
                ));
                self.to_client.push(text.into_bytes());
            }
        }
    }

    /// Records that something was not passed on.
    fn record_refusal(&self, code: DenialCode, reason: &str) {
        self.options.counts.count_denial();
        let event = Event::new(RecordKind::CapabilityDenied)
            .with_decision(Decision::Deny)
            .with_code(code.as_str())
            .with_reason(reason.to_owned());
        drop(self.options.journal.append(event));
    }

    fn note(&self, text: &str) {
        (self.options.note)(text);
    }

    /// Answers everything that waits with an error.
    fn fail_all(&self, reason: &str) {
        for (id, reply) in self.waiting.end_all() {
            let line = error_line(&id, OWN_ERROR, reason, None);
            match reply {
                Reply::Passed | Reply::Opening | Reply::List(_) => self.send_to_client(line),
                Reply::Own(waits) => drop(waits.send(line)),
                Reply::Judged(waits) => waits.answer(line),
            }
        }
    }

    /// Lets calls that have their answers end.
    async fn finish_calls(&self) {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while calls.join_next().await.is_some() {} };
        drop(tokio::time::timeout(PARTING, ended).await);
    }
}
