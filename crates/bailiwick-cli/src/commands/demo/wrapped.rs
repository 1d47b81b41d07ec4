//! The part of the demonstration that shows `bailiwick wrap`: a server that is there already, else one of our own.
//!
//! The prefix is started as a client starts it, with the shipped manifest and state of its own, so that nothing of the
//! user's pins or journal changes. Nothing is fetched.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_command::packages::host;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{companion, facts};
use bailiwick_store::{
    InstalledServer, ResolveOptions, ServerCommand, Store, shipped_manifest, split_command,
};
use serde_json::{Value, json};

const IDENTITY: &str = "npm:@modelcontextprotocol/server-filesystem";
const LAUNCHER: [&str; 3] = ["npx", "-y", "@modelcontextprotocol/server-filesystem"];
const PROGRAM: &str = "mcp-server-filesystem";

/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server that is shown.
struct ShownServer {
    what: String,
    command: Vec<OsString>,
    is_ours: bool,
}

/// One call, and what a held one comes to.
struct ShownCall {
    title: &'static str,
    tool: &'static str,
    arguments: Value,
    expected: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Answered,
    /// The gate denies it.
    Denied,
    /// The server fails in its sandbox.
    Failed,
}

/// Plays it in a directory of its own; what is shown, and whether everything was held.
pub(super) fn play(directory: &Path, secret: &Path) -> anyhow::Result<(String, bool)> {
    let notes = directory.join("notes");
    std::fs::create_dir(&notes)?;
    std::fs::write(notes.join("a.txt"), "buy bread\n")?;
    let own = own_server(secret)?;
    if let Some(server) = real_server(&notes)
        && let Some(shown) = attempt(&server, directory, &notes, secret)?
    {
        return Ok(shown);
    }
    let shown = attempt(&own, directory, &notes, secret)?;
    shown.context("the demonstration's own server does not answer behind `bailiwick wrap`")
}

/// The filesystem server of the protocol, if its package was fetched or it is installed.
fn real_server(notes: &Path) -> Option<ShownServer> {
    let host = host(bailiwick_command::args::run::NameOptions::default(), true).ok()?;
    let found = |name: &str| host.search.callers.iter().map(|dir| dir.join(name)).find(|file| file.is_file());
    found("node")?;
    let words: Vec<OsString> = LAUNCHER.iter().map(OsString::from).collect();
    if let Ok(ServerCommand::Package(call)) = split_command(&words) {
        let options = ResolveOptions { refresh: false, install_scripts: false };
        let store = Store::new(&host);
        if store.has(&call, options).is_ok_and(|has| has)
            && let Ok(server) = store.resolve(&call, options)
        {
            let what = format!("{PROGRAM} {}, from the store", server.package.version);
            let command = server.command.into_iter().chain([notes.into()]).collect();
            return Some(ShownServer { what, command, is_ours: false });
        }
    }
    let program = found(PROGRAM)?;
    let command = vec![program.clone().into_os_string(), notes.into()];
    let claim =
        InstalledServer::find(&program, &command)?.claim.filter(|claim| claim.identity == IDENTITY)?;
    let what = format!("{PROGRAM} {}, as it is installed", claim.version);
    Some(ShownServer { what, command, is_ours: false })
}

fn own_server(secret: &Path) -> anyhow::Result<ShownServer> {
    // This companion itself: `bailiwick` would have to start it, and what is wrapped starts nothing.
    let program = facts::this_program().context("our own path is not known")?;
    let version = [companion::FOR, companion::VERSION].map(OsString::from);
    let server = ["demo".into(), "--as-server".into(), secret.into()];
    let command = [program.into()].into_iter().chain(version).chain(server).collect();
    let what = "a small one of our own, since no other is here".to_owned();
    Ok(ShownServer { what, command, is_ours: true })
}

fn calls(server: &ShownServer, notes: &Path, secret: &Path) -> Vec<ShownCall> {
    let call = |title, tool, arguments, expected| ShownCall { title, tool, arguments, expected };
    let mut calls = vec![
        call(
            "It reads what it was granted:",
            "read_text_file",
            json!({ "path": notes.join("a.txt") }),
            Ending::Answered,
        ),
        call(
            "It is told to read a private key:",
            "read_text_file",
            json!({ "path": secret }),
            Ending::Denied,
        ),
        call(
            "It is told to write elsewhere:",
            "write_file",
            json!({ "path": secret.with_file_name("planted"), "content": "evil" }),
            Ending::Denied,
        ),
    ];
    if server.is_ours {
        let title = "A harmless call, for which it reads the key by itself:";
        calls.push(call(title, "list_allowed_directories", json!({}), Ending::Failed));
    } else {
        let title = "It says where it may read and write:";
        calls.push(call(title, "list_allowed_directories", json!({}), Ending::Answered));
    }
    calls
}

/// `None` if the server does not answer at all.
fn attempt(
    server: &ShownServer,
    directory: &Path,
    notes: &Path,
    secret: &Path,
) -> anyhow::Result<Option<(String, bool)>> {
    let (_, manifest) =
        shipped_manifest(IDENTITY).context("no manifest is shipped for the filesystem server")?;
    let file = directory.join("filesystem.toml");
    std::fs::write(&file, manifest)?;
    let mut client = Client::start(server, directory, &file, notes)?;
    let Some(tools) = client.open() else { return Ok(None) };
    let mut text = format!(
        "\n{}: {}\n",
        style::strong("An MCP server behind `bailiwick wrap`"),
        escape::line(&server.what)
    );
    let _ = writeln!(text, "  {:<15} {}", "read and write", notes.display());
    let _ = writeln!(text, "  {:<15} {tools} tools, from its manifest", "offer");
    let mut held = true;
    for shown in calls(server, notes, secret) {
        let Some((ending, said)) = client.call(&shown) else { return Ok(None) };
        held &= ending == shown.expected;
        let mark = match (ending == shown.expected, ending) {
            (false, _) => style::error("NOT HELD"),
            (true, Ending::Answered) => style::good("allowed"),
            (true, Ending::Denied) => style::warning("denied by the gate"),
            (true, Ending::Failed) => style::warning("did not work: the sandbox does not show it"),
        };
        let _ = writeln!(text, "\n{} {mark}", style::strong(shown.title));
        let _ =
            writeln!(text, "    {} {}", style::faint(shown.tool), escape::line(&shown.arguments.to_string()));
        for line in said.lines().filter(|line| !line.is_empty()).take(2) {
            let _ = writeln!(text, "    {}", escape::line(line));
        }
    }
    client.end();
    let recorded = super::recorded(&directory.join("state/bailiwick/journal"), &mut text)?;
    Ok(Some((text, held && recorded)))
}

/// A client of a wrapped server.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    number: u64,
}

impl Client {
    fn start(server: &ShownServer, directory: &Path, manifest: &Path, notes: &Path) -> anyhow::Result<Self> {
        let mut roots = OsString::from("ROOTS=");
        roots.push(notes);
        let own: PathBuf = facts::own_program().context("our own path is not known")?;
        let mut command = Command::new(own);
        let options =
            [OsStr::new("--manifest"), manifest.as_os_str(), OsStr::new("--set"), roots.as_os_str()];
        command.arg("wrap").args(options).arg("--").args(&server.command);
        command.current_dir(directory).env("XDG_STATE_HOME", directory.join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start `bailiwick wrap`")?;
        let (input, output) =
            (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        Ok(Self { child, input, lines, number: 0 })
    }

    /// Opens the session; how many tools there are.
    fn open(&mut self) -> Option<usize> {
        let own = json!({ "name": "bailiwick demo", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": own });
        self.ask("initialize", &params)?.get("result")?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        let listed = self.ask("tools/list", &json!({}))?;
        let tools = listed.get("result")?.get("tools")?.as_array()?.len();
        (tools > 0).then_some(tools)
    }

    fn call(&mut self, shown: &ShownCall) -> Option<(Ending, String)> {
        let answer = self.ask("tools/call", &json!({ "name": shown.tool, "arguments": shown.arguments }))?;
        let result = answer.get("result")?;
        let is_denied = result.get("_meta").is_some_and(|meta| meta.get("dev.bailiwick/decision").is_some());
        let failed = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
        let texts = result.get("content")?.as_array()?.iter();
        let said: Vec<&str> = texts.filter_map(|block| block.get("text")?.as_str()).collect();
        let ending = match (is_denied, failed) {
            (true, _) => Ending::Denied,
            (false, true) => Ending::Failed,
            (false, false) => Ending::Answered,
        };
        Some((ending, said.join("\n")))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.number += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }))?;
        loop {
            let line = self.lines.recv_timeout(PATIENCE).ok()?;
            let message: Value = serde_json::from_str(&line).ok()?;
            if message.get("id").and_then(Value::as_u64) == Some(self.number) {
                return Some(message);
            }
        }
    }

    fn send(&mut self, message: &Value) -> Option<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).ok()
    }

    /// As a client does: it closes the input, and `wrap` ends the server.
    fn end(self) {
        let Self { mut child, input, lines, .. } = self;
        drop(input);
        lines.iter().for_each(drop);
        drop(child.wait());
    }
}
