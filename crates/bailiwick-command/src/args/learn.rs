//! Arguments of `learn`, `replay` and `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use bailiwick_journal::format::SessionId;
use clap::Args;

use super::run::{NameOptions, Time};

/// What is watched, and what it may do meanwhile: the same for the three.
#[derive(Debug, Args)]
pub struct Watched {
    /// Call the tools of the server with these arguments, one call a line.
    #[arg(long, value_name = "FILE")]
    pub calls: Option<PathBuf>,
    /// Make the calls of this session of the journal again, where `wrap --record-arguments` recorded their arguments.
    #[arg(long, value_name = "SESSION", conflicts_with = "calls")]
    pub from_journal: Option<SessionId>,
    /// Hand it this variable of yours; may be repeated.
    #[arg(long = "env", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Let it reach this host; may be repeated. Every other is refused. `ask` asks about each other host once the program has
    /// ended, and starts it again with those that you let; `deny` asks about none. On a terminal, `ask` is what
    /// happens without the option.
    #[arg(long = "net", value_name = "HOST[:PORT]|ask|deny")]
    pub reached: Vec<String>,
    /// Let it read this directory too; may be repeated.
    #[arg(long = "read", value_name = "DIR")]
    pub reads: Vec<PathBuf>,
    /// How long one answer, or a program that is no server, may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub timeout: Time,
    /// How names are resolved.
    #[command(flatten)]
    pub names: NameOptions,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `learn`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick learn --out build.toml -- make
  bailiwick learn --server --out notes.toml -- node notes-server.js ~/notes
  bailiwick learn --calls calls.jsonl --out notes.toml -- node notes-server.js ~/notes
  bailiwick learn --calls calls.jsonl --env API_TOKEN --net api.example.com:443 --out api.toml -- uvx api-server

The program runs in a sandbox. What it writes goes to a copy-on-write layer, so nothing on the host changes. It may read
the current directory, its own code, the paths in its arguments and the system, but no home, no file of secrets and no other
place that is sensitive. What it was refused, and what no line should grant unasked, becomes a question in the file.
A line of the calls is JSON: {\"tool\": \"read_file\", \"arguments\": {\"path\": \"/srv/a.txt\"}}
Exit codes: 0 learned · 1 not everything was seen · 2 usage · 3 unreadable input · 5 fault")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Learn {
    /// Write the manifest there instead of to stdout.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Add what is new to this manifest's lines instead, and say what that is.
    #[arg(long, value_name = "MANIFEST")]
    pub update: Option<PathBuf>,
    /// Write what was learned as JSON there too, each line with the tools and calls that need it.
    #[arg(long, value_name = "FILE")]
    pub provenance: Option<PathBuf>,
    /// What the manifest is called; else as the program.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The command is an MCP server: list its tools and call each.
    #[arg(long)]
    pub server: bool,
    /// Make the calls of `--calls`, or start the program, so many times, each time from the same files.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Make no calls but those of `--calls`. Else each tool that has none there is called with the least arguments that its
    /// schema allows, without network and without variables of yours.
    #[arg(long)]
    pub no_generate: bool,
    /// Carry over to the host what it wrote.
    #[arg(long)]
    pub commit: bool,
    /// Record nothing.
    #[arg(long)]
    pub no_journal: bool,
    /// What is watched.
    #[command(flatten)]
    pub watched: Watched,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick replay notes.toml --calls calls.jsonl -- node notes-server.js ~/notes
  bailiwick replay build.toml -- make

The program runs twice from the same files, each time on a copy-on-write layer: once as `learn` runs it, once held to
the manifest. Every answer has to be the same but for times, ids and temporary names. Without --calls, each tool of a server is
called with the least arguments that its schema allows.
Exit codes: 0 the same · 1 not the same, or learned from less than everything · 2 usage · 3 unreadable input · 5 fault")]
pub struct Replay {
    /// The manifest that is tried.
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    /// What is watched.
    #[command(flatten)]
    pub watched: Watched,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick audit notes.toml --calls calls.jsonl -- node notes-server.js ~/notes
  bailiwick audit notes.toml --source src --calls calls.jsonl -- node notes-server.js ~/notes
  bailiwick audit build.toml -- make

The program runs as `learn` runs it; tools that have no call in --calls are called with the least arguments that their schema
allows. What it used and the manifest does not declare begins with `+`, what the manifest declares and was not used with `-`:
calls that were not made may need it.
Exit codes: 0 neither · 1 one of them · 2 usage · 3 unreadable input · 5 fault")]
pub struct Audit {
    /// The manifest that is compared.
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    /// Read this source too, and show for each tool what is declared, what the source does, and what was done.
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// What is watched.
    #[command(flatten)]
    pub watched: Watched,
}
