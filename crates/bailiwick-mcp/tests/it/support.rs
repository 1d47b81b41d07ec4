//! A client that writes lines and reads them, and tools to call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bailiwick_guard::{Effect, Hints, Output, Registry, Session, Stream, Tool, ToolContext, ToolError};
use bailiwick_journal::{Journal, Options, new_session};
use bailiwick_mcp::{About, CancellationToken, Server, Tools, instructions, stdio};
use bailiwick_policy::capability::CapabilitySet;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says what it is told, and asks for `rm` where it is told so.
pub(crate) struct Echo;

/// Runs until it is dropped, and talks meanwhile.
#[derive(Default)]
pub(crate) struct Slow(pub(crate) Arc<Running>);

/// How many calls of `slow` run, and how many were cut off.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) now: AtomicUsize,
    pub(crate) cut: AtomicUsize,
}

impl Running {
    /// Waits until so many calls were cut off.
    pub(crate) async fn are_cut(&self, count: usize) {
        self.until(|running| running.cut.load(Ordering::SeqCst) == count).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("in time");
    }
}

impl Tool for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn description(&self) -> &str {
        "Say it back."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": { "text": { "type": "string" } } })
    }

    fn output(&self) -> Option<Value> {
        Some(json!({ "type": "object", "properties": { "text": { "type": "string" } } }))
    }

    fn hints(&self) -> Hints {
        Hints { effect: Effect::Reads, idempotent: true, open_world: false }
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        match args["text"].as_str() {
            Some("rm") => context.check_exec("rm").map(|()| Value::Null.into()),
            Some(text) => Ok(json!({ "text": text }).into()),
            None => Err(ToolError::failed("echo: `text` is a string")),
        }
    }
}

impl Tool for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn invoke(&self, _: Value, context: &ToolContext) -> Result<Output, ToolError> {
        struct Cut<'a>(&'a Running);
        impl Drop for Cut<'_> {
            fn drop(&mut self) {
                self.0.now.fetch_sub(1, Ordering::SeqCst);
                self.0.cut.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.0.now.fetch_add(1, Ordering::SeqCst);
        let _cut = Cut(&self.0);
        loop {
            context.tell(Stream::Output, "tick\n");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A server and its client.
pub(crate) struct Talk {
    pub(crate) input: Option<DuplexStream>,
    pub(crate) output: Lines<BufReader<DuplexStream>>,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
    pub(crate) running: Arc<Running>,
    pub(crate) stop: CancellationToken,
    pub(crate) journal: tempfile::TempDir,
}

impl Talk {
    /// A session that may start `echo` and nothing else.
    pub(crate) fn start() -> Self {
        Self::with_guidance(None)
    }

    pub(crate) fn with_guidance(guidance: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path(), new_session().unwrap(), Options::default()).unwrap();
        let slow = Slow::default();
        let running = Arc::clone(&slow.0);
        let registry = Registry::builder(journal, Session::new("/")).tool(Echo).tool(slow).build().unwrap();
        let lines: &[&str] = if guidance.is_some() { &[] } else { &["exec:spawn:echo"] };
        let set = CapabilitySet::new(lines.iter().copied()).unwrap();
        let grant = registry.mint(set.authority().clone());
        let about = About {
            name: "test".to_owned(),
            version: "1".to_owned(),
            instructions: instructions(&grant, guidance),
            guidance: guidance.map(str::to_owned),
        };
        let server = Server::new(Tools::Plain(registry), grant, about);
        let (input, reader) = tokio::io::duplex(1 << 16);
        let (writer, output) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let served = tokio::spawn(stdio::serve(server, reader, writer, stop.clone()));
        let output = BufReader::new(output).lines();
        Self { input: Some(input), output, served, running, stop, journal: directory }
    }

    /// Writes one line.
    pub(crate) async fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a message in time");
        let line = line.unwrap().expect("a message");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request and reads until its answer; what came before is given too.
    pub(crate) async fn ask_hearing(&mut self, message: &Value) -> (Value, Vec<Value>) {
        self.send(message.to_string().as_bytes()).await;
        let mut others = Vec::new();
        loop {
            let next = self.next().await;
            if next.get("method").is_none() && next["id"] == message["id"] {
                return (next, others);
            }
            others.push(next);
        }
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.ask_hearing(&message).await.0
    }

    /// Whether it still answers.
    pub(crate) async fn ping(&mut self) {
        let answer = self.ask(json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" })).await;
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "ping", "result": {} }));
    }

    /// Waits until so many calls of `slow` run.
    pub(crate) async fn runs(&self, count: usize) {
        self.running.until(|running| running.now.load(Ordering::SeqCst) == count).await;
    }

    /// Waits until so many calls of `slow` were cut off.
    pub(crate) async fn was_cut(&self, count: usize) {
        self.running.are_cut(count).await;
    }

    /// Waits for the server to end.
    pub(crate) async fn ends(self) {
        tokio::time::timeout(PATIENCE, self.served).await.expect("in time").unwrap().unwrap();
    }
}

/// A call of a tool.
pub(crate) fn call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params })
}

/// The metadata of a request of the modern era.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The same request, in the modern era.
pub(crate) fn modern(mut request: Value) -> Value {
    request["params"]["_meta"] = modern_meta();
    request
}
