//! `bailiwick serve` as clients use it: the built command over pipes.

mod busy;
mod cookbook;
mod demo;
mod ends;
mod explain;
mod hostile;
mod hostile_pages;
mod http;
mod leaks;
mod leash;
mod named;
mod pages;
mod python;
mod sources;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home with nothing in it, outside `/tmp`, of which the sandbox has its own.
fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("bailiwick-serve").tempdir_in("/var/tmp").expect("a directory")
}

/// `bailiwick serve` in an environment of its own.
fn command(home: &tempfile::TempDir, args: &[&str]) -> Command {
    command_of(Path::new(env!("CARGO_BIN_EXE_bailiwick")), home, args)
}

fn command_of(program: &Path, home: &tempfile::TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").args(args).env_clear().env("HOME", home.path()).current_dir(home.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running server and what it says.
struct Served {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    home: tempfile::TempDir,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let home = home();
        let command = command(&home, args);
        Self::spawned(command, home)
    }

    fn spawned(mut command: Command, home: tempfile::TempDir) -> Self {
        let mut child = command.spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let input = child.stdin.take();
        Self { child, input, lines, home }
    }

    fn send(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line.as_ref()).and_then(|()| input.write_all(b"\n")).expect("the server reads");
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a message in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string());
        loop {
            let next = self.next();
            if next["id"] == message["id"] {
                return next;
            }
        }
    }

    fn ping(&mut self) {
        let answer = self.ask(&json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" }));
        assert_eq!(answer["result"], json!({}));
    }

    fn shell(&mut self, id: u64, arguments: Value) -> Value {
        self.ask(&shell(id, arguments))
    }

    /// Closes the input and gives the exit code and what it said on stderr.
    fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("the server ends");
        let code = output.status.code().expect("it ends by itself");
        let left = self.lines.recv_timeout(PATIENCE);
        assert!(matches!(left, Err(RecvTimeoutError::Disconnected)), "unexpected: {left:?}");
        (code, String::from_utf8(output.stderr).expect("stderr is UTF-8"))
    }
}

fn shell(id: u64, arguments: Value) -> Value {
    let params = json!({ "name": "shell", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// The text of a result, all of it.
fn text(answer: &Value) -> String {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A page on loopback, for everyone who asks while the test runs.
fn page() -> std::net::SocketAddr {
    let body = "<html><title>A page</title><body><p>Words of a page.</p></body></html>";
    served(move |_| ("content-type: text/html".to_owned(), body.into()))
}

/// Answers on loopback: a path, and the headers and the body for it.
fn served(answer: impl Fn(&str) -> (String, Vec<u8>) + Send + Sync + 'static) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = std::sync::Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut asked = [0; 4096];
                let count = stream.read(&mut asked).unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..count]).into_owned();
                let (headers, body) = answer(asked.split(' ').nth(1).unwrap_or("/"));
                let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\nconnection: close");
                let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(&body);
            });
        }
    });
    at
}

/// A line of `/proc/PID/status`, in KiB.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
