//! A client that drives a server, one request at a time: its tools are listed, and called.
//!
//! Only what that needs is spoken: the handshake of a session, lists page by page, calls. Requests of the server to its
//! client are refused, notifications are passed over. What the server says is hostile: a line and a list have a most.
//!
//! Fails closed when: a line is too long, a list has no end, or an answer does not come in time.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 64 << 20;
/// The most pages of one list.
const MOST_PAGES: usize = 64;
/// The most tools that are kept.
const MOST_TOOLS: usize = 2_000;
/// The version that is asked for.
const VERSION: &str = "2025-06-18";

/// One tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Its result.
    Result(Value),
    /// The error that the server answered with.
    Error(Value),
}

/// Why a server cannot be driven any further.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// It has ended, or closed its output.
    #[error("the server has ended or closed its output before it answered `{method}`")]
    Ended {
        /// What was asked.
        method: String,
    },
    /// It takes too long.
    #[error("the server did not answer `{method}` within {} seconds", patience.as_secs())]
    Silent {
        /// What was asked.
        method: String,
        /// How long was waited.
        patience: Duration,
    },
    /// It answered with an error where that ends everything.
    #[error("the server refuses `{method}`: {error}")]
    Refused {
        /// What was asked.
        method: String,
        /// What it said.
        error: Value,
    },
}

/// The client's side of one session.
pub struct Driver<W> {
    to_server: W,
    lines: Receiver<String>,
    patience: Duration,
    last_id: u64,
}

impl<W: Write> Driver<W> {
    /// Opens a session over a server's input and output; each answer may take that long.
    ///
    /// # Errors
    /// Why the server cannot be driven.
    pub fn open(
        to_server: W,
        from_server: impl Read + Send + 'static,
        patience: Duration,
    ) -> Result<Self, DriveError> {
        let (sender, lines) = sync_channel(64);
        std::thread::spawn(move || read_lines(from_server, &sender));
        let mut driver = Self { to_server, lines, patience, last_id: 0 };
        let hello = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": { "name": "bailiwick", "version": env!("CARGO_PKG_VERSION") },
        });
        driver.must("initialize", &hello)?;
        driver.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Ok(driver)
    }

    /// The server's tools, all pages.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn tools(&mut self) -> Result<Vec<ListedTool>, DriveError> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor: String| json!({ "cursor": cursor }));
            let page = self.must("tools/list", &params)?;
            let listed = page.get("tools").and_then(Value::as_array).into_iter().flatten();
            tools.extend(listed.filter_map(|tool| {
                let name = tool.get("name")?.as_str()?.to_owned();
                Some(ListedTool { name, schema: tool.get("inputSchema").cloned().unwrap_or(Value::Null) })
            }));
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        tools.truncate(MOST_TOOLS);
        Ok(tools)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Result<Outcome, DriveError> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn must(&mut self, method: &str, params: &Value) -> Result<Value, DriveError> {
        match self.ask(method, params)? {
            Outcome::Result(result) => Ok(result),
            Outcome::Error(error) => Err(DriveError::Refused { method: method.to_owned(), error }),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Outcome, DriveError> {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let deadline = Instant::now() + self.patience;
        loop {
            let line = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(DriveError::Silent { method: method.to_owned(), patience: self.patience });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(DriveError::Ended { method: method.to_owned() });
                }
            };
            // Some servers print banners.
            let Ok(Value::Object(mut message)) = serde_json::from_str(&line) else { continue };
            if message.contains_key("method") {
                self.refuse(&message);
            } else if message.get("id") == Some(&id) {
                return Ok(match message.remove("result") {
                    Some(result) => Outcome::Result(result),
                    None => Outcome::Error(message.remove("error").unwrap_or(Value::Null)),
                });
            }
        }
    }

    /// A request of the server's, which this client offers nothing for; a notification needs no answer.
    fn refuse(&mut self, message: &Map<String, Value>) {
        if let Some(id) = message.get("id") {
            let is_ping = message.get("method").is_some_and(|method| method == "ping");
            let answer = if is_ping {
                json!({ "jsonrpc": "2.0", "id": id, "result": {} })
            } else {
                let error = json!({ "code": -32601, "message": "this client offers nothing to its server" });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            };
            self.send(&answer);
        }
    }

    /// A server that has ended is noticed when its answer does not come.
    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        drop(self.to_server.write_all(line.as_bytes()).and_then(|()| self.to_server.flush()));
    }
}

/// Reads lines until there are none, or one is too long, or no one wants them any more.
fn read_lines(from: impl Read, to: &SyncSender<String>) {
    let mut reader = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") => {}
            Ok(_) | Err(_) => return,
        }
        if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_a_banner_pages_and_questions_of_its_own_is_driven() {
        let said = [
            "welcome!",
            r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"one","inputSchema":{}}],"nextCursor":"x"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"two"}]}}"#,
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1}}"#,
            "",
        ];
        let mut heard = Vec::new();
        let from = std::io::Cursor::new(said.join("\n").into_bytes());
        let mut driver = Driver::open(&mut heard, from, Duration::from_secs(5)).unwrap();
        let names: Vec<_> = driver.tools().unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(driver.call("one", &Map::new()).unwrap(), Outcome::Error(json!({ "code": -1 })));
        assert!(matches!(driver.call("one", &Map::new()), Err(DriveError::Ended { .. })));
        drop(driver);
        let heard = String::from_utf8(heard).unwrap();
        assert!(heard.contains(r#""id":"a","error""#), "{heard}");
    }
}
