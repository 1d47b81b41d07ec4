//! Arguments of `wrap`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::run::NameOptions;
use super::secret::SecretOptions;
use super::serve::loopback;
use crate::facts::Setting;

/// What becomes of a call that the manifest refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GateMode {
    /// It is refused.
    Enforce,
    /// It is recorded, and let through.
    Audit,
}

/// Who shares a process with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Isolate {
    /// All tools run in one process, which may touch what any of them may.
    Server,
    /// Tools that keep nothing in the process run in one for each capability set.
    Tool,
}

/// When a server is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Restart {
    /// Its client starts it.
    Never,
    /// When it has ended with an error or by a signal.
    OnFailure,
}

/// Arguments of `wrap`.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  bailiwick wrap -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  bailiwick wrap -- uvx mcp-server-git --repository ~/project
  bailiwick wrap --manifest notes.toml -- node notes-server.js
  bailiwick wrap --manifest files.toml --set WORKSPACE=/home/me/project -- python3 -m files_server
  bailiwick wrap --manifest notes.toml --explain -- node notes-server.js
  bailiwick wrap --listen 127.0.0.1:8765 -- uvx mcp-server-time
  bailiwick wrap --manifest tickets.toml --secret TICKETS=env:TICKETS_TOKEN --url https://mcp.example.com/mcp
  bailiwick wrap --restart on-failure -- uvx mcp-server-time
  bailiwick wrap --isolate tool -- npx -y @modelcontextprotocol/server-filesystem ~/notes

stdin and stdout carry the Model Context Protocol and nothing else. Tools that the manifest does not declare
are not there; a call that it does not allow is refused, with the reason, and never reaches the server.
Without a usable manifest nothing runs: a server without tools says what to do in its instructions.
Exit codes: the server's own; 125 refused · 126 not executable · 127 not found")]
pub struct Wrap {
    /// The manifest or snapshot that says what the server and its tools may touch; without it the one for the server's
    /// package: yours in `servers` of Bailiwick's configuration directory, else the one that is shipped.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// What the server is called in records; the manifest's name if absent. It decides nothing.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Give a path variable of the manifest its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub settings: Vec<Setting>,
    /// Hold calls to a project's guardrails too, `DIR/.agents/guardrails.toml`.
    #[arg(long, value_name = "FILE")]
    pub guardrails: Option<PathBuf>,
    /// Ask the registry again for the package of `npx`, `uvx` and the like, instead of starting what was fetched before.
    #[arg(long)]
    pub refresh: bool,
    /// Serve the server over HTTP on this address of the loopback interface, on a free port if none is given; stderr says the
    /// address and the file that holds the token.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = loopback)]
    pub listen: Option<SocketAddr>,
    /// `audit` lets calls through that the manifest refuses or asks about, and records them as `would-deny`; sandbox, pins,
    /// secrets and guardrails hold. It needs `[wrap] audit = true` in config.toml.
    #[arg(long, value_enum, default_value_t = GateMode::Enforce, value_name = "MODE")]
    pub mode: GateMode,
    /// `tool` starts a process of the server for each capability set of its tools, with its first call; the manifest says
    /// which tools keep nothing in the process (`state`). Lists and resources come from one that may touch no more than they need.
    #[arg(long, value_enum, default_value_t = Isolate::Server, value_name = "WHAT")]
    pub isolate: Isolate,
    /// Start the server again when it has failed, after a pause that grows; calls that waited are answered with the reason. Only
    /// for a server whose manifest says that it keeps nothing in its process (`stateless = true`, or `state = "none"` of every tool).
    #[arg(long, value_enum, default_value_t = Restart::Never, value_name = "WHEN", conflicts_with_all = ["listen", "url"])]
    pub restart: Restart,
    /// How names are resolved.
    #[command(flatten)]
    pub names: NameOptions,
    /// Where the values of secrets come from.
    #[command(flatten)]
    pub secrets: SecretOptions,
    /// Record every file that the server was refused, too. Each open and each stat takes some microseconds more.
    #[arg(long)]
    pub tell: bool,
    /// Record the arguments of calls, up to 4 KB of each. Values under names such as `password`, tokens of known shapes and the
    /// server's own secrets are taken out; what else is private stays. `bailiwick learn --from-journal` makes such calls again. Without
    /// this, their digest alone is recorded.
    #[arg(long, conflicts_with = "no_journal")]
    pub record_arguments: bool,
    /// Record nothing.
    #[arg(long)]
    pub no_journal: bool,
    /// Say what the server and each tool may do and how this host would hold it, and start nothing.
    #[arg(long)]
    pub explain: bool,
    /// Instead of a command: a server that runs elsewhere and speaks streamable HTTP. Calls are judged and recorded; no sandbox
    /// holds it.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "listen", "isolate", "refresh", "tell"])]
    pub url: Option<String>,
    /// The server's command and its arguments.
    #[arg(required_unless_present = "url", last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Wrap {
    /// The command of the server as it was written, or its URL.
    #[must_use]
    pub fn shown_command(&self) -> String {
        if let Some(url) = &self.url {
            return url.clone();
        }
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}
