//! A server on a thread of its own, and requests to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

use bailiwick_door::{Limits, Listening, Token};
use bailiwick_mcp::CancellationToken;
use bailiwick_mcp::fixture::Fixture;
use bailiwick_mcp::http::{PATH, serve, serve_fixture};
use serde_json::{Value, json};

use super::mirror::Mirror;

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A running server; dropping it ends it.
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) token: String,
    pub(super) mirror: Mirror,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// The mirror, behind a token.
    pub(super) fn start(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let file = token.write(&directory.path().join("token")).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let mirror = Mirror::default();
        let handler = mirror.clone();
        Self::run(text, mirror, move |listening, stop| async move {
            serve(listening, token, limits, move || handler.clone(), stop.cancelled_owned()).await;
        })
    }

    /// The fixture, without a token.
    pub(super) fn fixture() -> Self {
        let fixture = Fixture::new().unwrap();
        Self::run(String::new(), Mirror::default(), move |listening, stop| async move {
            serve_fixture(listening, None, Limits::default(), fixture, stop.cancelled_owned()).await;
        })
    }

    fn run<F>(
        token: String,
        mirror: Mirror,
        serve: impl FnOnce(Listening, CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()>,
    {
        let stop = CancellationToken::new();
        let halt = stop.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listening = Listening::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
                sender.send(listening.url(PATH)).unwrap();
                serve(listening, halt).await;
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        });
        let url = receiver.recv_timeout(PATIENCE).unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        Self { port: port.parse().unwrap(), token, mirror, stop, thread: Some(thread) }
    }

    /// Tells it to end, and waits until it has.
    pub(super) fn end(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends bytes as they are and reads what comes back, to the end of the connection.
    pub(super) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        let _answered_early = stream.write_all(bytes);
        Reply::read(stream)
    }

    /// The head of a request that would be served, except for what `headers` say: one of the same name stands in
    /// its place, and an empty one leaves it out.
    pub(super) fn head(&self, method: &str, headers: &[(&str, &str)]) -> String {
        let (host, bearer) = (format!("127.0.0.1:{}", self.port), format!("Bearer {}", self.token));
        let usual = [
            ("host", host.as_str()),
            ("authorization", bearer.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("connection", "close"),
        ];
        let kept = usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        let given = headers.iter().filter(|(_, value)| !value.is_empty());
        let lines: String = kept.chain(given).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} /mcp HTTP/1.1\r\n{lines}")
    }

    pub(super) fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let head = self.head(method, headers);
        self.raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    pub(super) fn post(&self, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.send("POST", headers, &body.to_string())
    }

    /// A request of the modern era, its headers as its body has them unless `headers` say otherwise.
    pub(super) fn modern(&self, method: &str, params: &Value, headers: &[(&str, &str)]) -> Reply {
        let name =
            params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).unwrap_or_default();
        let usual = [("mcp-protocol-version", MODERN), ("mcp-method", method), ("mcp-name", name)];
        let kept = usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        let all: Vec<_> = kept.chain(headers).copied().collect();
        self.post(&all, &modern_body(method, params))
    }

    /// Opens a session of the legacy era and says its id.
    pub(super) fn open_session(&self) -> String {
        let reply = self.initialize();
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&[("mcp-session-id", &id)], &ready).status, 202);
        id
    }

    pub(super) fn initialize(&self) -> Reply {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.post(&[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

pub(super) const MODERN: &str = "2026-07-28";

pub(super) fn modern_body(method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "sampling": {}, "elicitation": {} });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _reset = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::trim)
    }

    /// The JSON-RPC answer, from a plain body or from the events of a stream.
    pub(super) fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.trim().strip_prefix("data:").unwrap_or(line).trim());
        let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut answers =
            messages.filter(|message| message.get("result").is_some() || message.get("error").is_some());
        answers.next_back().unwrap_or_else(|| panic!("there is no answer in {self:?}"))
    }

    pub(super) fn code(&self) -> Value {
        self.message()["error"]["code"].clone()
    }
}
