//! `bailiwick wrap` as clients use it: the built command before the command of a server.

mod asked;
mod clients;
mod confined;
mod demo;
mod elsewhere;
mod ends;
mod fetched;
mod forbidden;
mod halves;
mod identified;
pub(crate) mod in_fleet;
mod installed;
mod isolated;
mod killed;
mod learned;
mod listening;
mod logged_in;
mod pinned;
mod projects;
mod purged;
mod real;
mod restarted;
mod ruled;
mod shown;
mod traced;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A script that does not tell its tools when it is asked by `wrap` itself.
const UNLISTED: &str = r#"*'"id":"bailiwick-'*tools/list*) own=${line#*'"id":"'}; own=${own%%'"'*}
    printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"no list"}}\n' "$own";;"#;

/// A home of its own, outside `/tmp`, of which the sandbox has its own.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("bailiwick-wrap").tempdir_in("/var/tmp").expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn bailiwick(&self, args: &[&str]) -> Command {
        let mut command = Command::new(bailiwick_testkit::reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(args)
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", path)
            .current_dir(self.0.path());
        command
    }

    /// A server, wrapped with this manifest. Another manifest is another file: one that grants more than it did waits for
    /// a person.
    fn wrap(&self, manifest: &str, options: &[&str], server: &[&str]) -> Wrapped {
        let name = bailiwick_policy::digest::Digest::sha256(manifest.as_bytes());
        let manifest = self.write(&format!("{name}.toml"), manifest);
        let mut command = self.bailiwick(&["wrap", "--manifest"]);
        command.arg(manifest).args(options).arg("--").args(server);
        Wrapped::spawned(command)
    }

    /// A server of the shell: what it does with each line is `text`.
    fn wrap_script(&self, manifest: &str, options: &[&str], text: &str) -> Wrapped {
        let script = format!("while IFS= read -r line; do case \"$line\" in {UNLISTED} {text} esac; done");
        self.wrap(manifest, options, &["/bin/sh", "-c", &script])
    }

    /// The records of the journal.
    fn recorded(&self) -> String {
        let output = self.bailiwick(&["log", "export"]).output().expect("the command starts");
        String::from_utf8(output.stdout).expect("text")
    }

    fn run(&self, args: &[&str]) -> Output {
        self.bailiwick(args).stdin(Stdio::null()).output().expect("the command starts")
    }
}

/// A wrapped server and what it says.
pub(crate) struct Wrapped {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Wrapped {
    pub(crate) fn spawned(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { input: child.stdin.take(), child, lines }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(format!("{message}\n").as_bytes()).expect("it reads");
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.next()
    }

    pub(crate) fn next(&mut self) -> Value {
        let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
            drop(self.child.kill());
            panic!("no message in time");
        };
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer =
            self.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Kills `wrap` itself, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Closes the input; the exit code and stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

pub(crate) fn text(answer: &Value) -> String {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Where a server of the npm registry is installed for tests.
fn npm_server(name: &str) -> Option<PathBuf> {
    let cache =
        std::env::var_os("HOME").map(PathBuf::from)?.join(".cache/bailiwick/servers/node/node_modules");
    let entry = cache.join(name).join("dist/index.js");
    Path::is_file(&entry).then_some(entry)
}
