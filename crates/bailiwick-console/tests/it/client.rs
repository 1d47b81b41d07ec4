//! A client that sends exactly what it is told.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Where a console is, and the token if one has it.
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// What was answered.
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

impl Address {
    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The head that a page of the console sends.
    fn head(&self, method: &str, path: &str, length: usize) -> String {
        let token = if self.token.is_empty() {
            String::new()
        } else {
            format!("Authorization: Bearer {}\r\n", self.token)
        };
        let origin = if method == "POST" { format!("Origin: {}\r\n", self.origin()) } else { String::new() };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{origin}{token}Content-Length: {length}\r\nConnection: close\r\n\r\n",
            self.port
        )
    }
}

pub(crate) async fn get(at: &Address, path: &str) -> Heard {
    raw(at, at.head("GET", path, 0).as_bytes()).await
}

pub(crate) async fn post(at: &Address, path: &str, body: &str) -> Heard {
    raw(at, (at.head("POST", path, body.len()) + body).as_bytes()).await
}

/// Sends these bytes and hears what comes until the connection ends.
pub(crate) async fn raw(at: &Address, request: &[u8]) -> Heard {
    let mut stream = TcpStream::connect(("127.0.0.1", at.port)).await.unwrap();
    // It may be refused before all of it was sent.
    drop(stream.write_all(request).await);
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Heard { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// A stream of events that is being read.
pub(crate) struct Followed {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Followed {
    /// Begins behind a cursor.
    pub(crate) async fn from(at: &Address, cursor: &Value) -> Self {
        let body = serde_json::json!({ "cursor": cursor }).to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", at.port)).await.unwrap();
        stream.write_all((at.head("POST", "/api/stream", body.len()) + &body).as_bytes()).await.unwrap();
        Self { stream, rest: Vec::new() }
    }

    /// The next frame: a line of JSON, wherever it was cut on its way.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                // Heads and the lengths of chunks are no JSON objects.
                if let Ok(frame @ Value::Object(_)) = serde_json::from_slice(&line) {
                    return frame;
                }
                continue;
            }
            let mut bytes = vec![0; 64 << 10];
            let read = self.stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "the stream ended");
            self.rest.extend(&bytes[..read]);
        }
    }
}
