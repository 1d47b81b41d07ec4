//! `bailiwick serve` with secrets, spoken to as a client does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::secrets::VALUE;
use super::servers::Authority;
use super::world::Stage;
use crate::escape::{User, as_user};

/// A session, and what it answers.
pub(super) struct Served {
    pub(super) child: Child,
    output: BufReader<ChildStdout>,
    pub(super) journal: PathBuf,
}

impl Served {
    /// With these arguments, where servers that the authority vouches for are trusted and a variable of the caller has the
    /// value.
    pub(super) fn new(authority: &Authority, stage: &Stage, args: &[&str]) -> Self {
        let (own, journal) = (stage.path("own.pem"), stage.directory("journal"));
        std::fs::write(&own, &authority.pem).unwrap();
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o700)).unwrap();
        if stage.user == User::Plain {
            std::os::unix::fs::chown(&journal, Some(65534), Some(65534)).unwrap();
        }
        let mut command = as_user(stage.user, stage.path("bailiwick"));
        command.arg("serve").args(args).arg("--journal").arg(&journal);
        command.args(["--hosts", "good.test=93.184.216.34", "--hosts", "evil.test=93.184.216.66"]);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", stage.path(""))
            .env("SSL_CERT_FILE", own);
        command.env("THE_VALUE", VALUE).env("COPY", format!("x{VALUE}x")).current_dir(stage.path(""));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { child, output, journal };
        served.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
        served
    }

    pub(super) fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(super) fn ask(&mut self, message: Value) -> String {
        self.say(&message);
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// What a call of a tool answers.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["result"].clone()
    }

    pub(super) fn bash(id: u64, script: &str) -> Value {
        let arguments = json!({ "program": "/usr/bin/bash", "args": ["-c", script] });
        let params = json!({ "name": "shell", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
