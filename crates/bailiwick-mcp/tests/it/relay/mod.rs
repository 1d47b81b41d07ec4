//! The relay between a client and a server that the tests play themselves.

mod attacks;
mod gate;
mod readings;
mod smuggling;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bailiwick_guard::{Call, Interceptor, InterceptorError, Registry, Session, Verdict};
use bailiwick_journal::Journal;
use bailiwick_manifest::Manifest;
use bailiwick_mcp::relay::{
    CallsInFlight, NoPins, Redactor, RelayEnd, RelayOptions, RelayStreams, RemoteTool, RootsAlone, relay,
};
use bailiwick_mcp::{CancellationToken, Tools};
use bailiwick_policy::facts::HostFacts;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

/// Remembers every call that the gate was asked about.
#[derive(Clone, Default)]
struct SeenCalls(Arc<Mutex<Vec<Call>>>);

impl Interceptor for SeenCalls {
    fn name(&self) -> &'static str {
        "seen"
    }

    fn judge(&self, call: &Call) -> Result<Verdict, InterceptorError> {
        self.0.lock().unwrap().push(call.clone());
        Ok(Verdict::Allow)
    }
}

/// A relay, and the far ends of its four streams.
struct Relayed {
    client: DuplexStream,
    answers: Lines<BufReader<DuplexStream>>,
    server: DuplexStream,
    received: Lines<BufReader<DuplexStream>>,
    seen: SeenCalls,
    over: CancellationToken,
    reason: Option<oneshot::Sender<String>>,
    relay: JoinHandle<()>,
}

impl Relayed {
    /// A relay whose gate holds calls to a manifest.
    fn start(manifest: &str) -> Self {
        Self::with_secrets(manifest, Redactor::default())
    }

    fn with_secrets(manifest: &str, redactor: Redactor) -> Self {
        let checked = Manifest::parse(manifest).unwrap().check(&HostFacts::unknown()).unwrap();
        let seen = SeenCalls::default();
        let journal = Journal::discarding();
        let builder = Registry::builder(journal.clone(), Session::new("/")).interceptor(seen.clone());
        let builder =
            checked.tools().iter().fold(builder, |builder, tool| builder.tool(RemoteTool::new(tool.name())));
        let registry = builder.manifest(&checked).build().unwrap();
        let grant = registry.mint(checked.authority().clone());
        let marks = checked.manifest().tools().iter();
        let marks: BTreeMap<_, _> =
            marks.map(|tool| (tool.name().to_owned(), tool.arguments().keys().cloned().collect())).collect();
        let options = RelayOptions {
            tools: Tools::Plain(registry),
            grant,
            marks,
            pins: Box::new(NoPins),
            client: Box::new(RootsAlone),
            redactor: Arc::new(redactor),
            counts: Default::default(),
            in_flight: Arc::new(CallsInFlight::new(|| 0)),
            journal,
            note: Box::new(|_| {}),
        };
        let (client, client_in) = duplex(1 << 20);
        let (client_out, answers) = duplex(1 << 20);
        let (server_in, received) = duplex(1 << 20);
        let (server, server_out) = duplex(1 << 20);
        let over = CancellationToken::new();
        let (tell, reason) = oneshot::channel();
        let end = RelayEnd { over: over.clone(), reason };
        let streams = RelayStreams { client_in, client_out, server_in, server_out };
        let relay = tokio::spawn(relay(options, streams, end));
        let lines = |stream| BufReader::new(stream).lines();
        Self {
            client,
            answers: lines(answers),
            server,
            received: lines(received),
            seen,
            over,
            reason: Some(tell),
            relay,
        }
    }

    async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.client.write_all(line.as_ref()).await.unwrap();
        self.client.write_all(b"\n").await.unwrap();
    }

    async fn serve(&mut self, line: &str) {
        self.server.write_all(line.as_bytes()).await.unwrap();
        self.server.write_all(b"\n").await.unwrap();
    }

    /// The next line that the client hears.
    async fn heard(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.answers.next_line()).await.expect("in time");
        line.unwrap().expect("a line")
    }

    async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.heard().await).unwrap()
    }

    /// The next line that the server hears.
    async fn arrived(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.received.next_line()).await.expect("in time");
        line.unwrap().expect("a line")
    }
}

/// Runs a test on a runtime of one thread.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
