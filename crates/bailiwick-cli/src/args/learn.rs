//! Arguments of `learn`, `replay` and `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use bailiwick_journal::format::SessionId;
use clap::Args;

use super::run::{NameOptions, Time};

/// What is watched, and what it may do meanwhile: the same for the three.
#[derive(Debug, Args)]
pub(crate) struct Watched {
    /// Call the tools of the server with these arguments, one call a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Make the calls of this session of the journal again, where `wrap --record-arguments` recorded their arguments.
    #[arg(long, value_name = "SESSION", conflicts_with = "calls")]
    pub(crate) from_journal: Option<SessionId>,
    /// Hand it this variable of yours; may be repeated.
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) variables: Vec<String>,
    /// Let it reach this host; may be repeated. Every other is refused. `ask` asks about each other host once the program has
    /// ended, and starts it again with those that you let; `deny` asks about none. On a terminal, `ask` is what
    /// happens without the option.
    #[arg(long = "net", value_name = "HOST[:PORT]|ask|deny")]
    pub(crate) reached: Vec<String>,
    /// Let it read this directory too; may be repeated.
    #[arg(long = "read", value_name = "DIR")]
    pub(crate) reads: Vec<PathBuf>,
    /// How long one answer, or a program that is no server, may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Time,
    /// Let the scripts of a package run when it is fetched, in a sandbox; the manifest then says so, and `wrap` does the same.
    #[arg(long)]
    pub(crate) install_scripts: bool,
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
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
pub(crate) struct Learn {
    /// Write the manifest there instead of to stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Add what is new to this manifest's lines instead, and say what that is.
    #[arg(long, value_name = "MANIFEST")]
    pub(crate) update: Option<PathBuf>,
    /// Write what was learned as JSON there too, each line with the tools and calls that need it.
    #[arg(long, value_name = "FILE")]
    pub(crate) provenance: Option<PathBuf>,
    /// What the manifest is called; else as the program.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The command is an MCP server: list its tools and call each.
    #[arg(long)]
    pub(crate) server: bool,
    /// Make the calls of `--calls`, or start the program, so many times, each time from the same files.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Make no calls but those of `--calls`. Else each tool that has none there is called with the least arguments that its
    /// schema allows, without network and without variables of yours.
    #[arg(long)]
    pub(crate) no_generate: bool,
    /// Carry over to the host what it wrote.
    #[arg(long)]
    pub(crate) commit: bool,
    /// Record nothing.
    #[arg(long)]
    pub(crate) no_journal: bool,
    #[command(flatten)]
    pub(crate) watched: Watched,
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
pub(crate) struct Replay {
    /// The manifest that is tried.
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    #[command(flatten)]
    pub(crate) watched: Watched,
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
pub(crate) struct Audit {
    /// The manifest that is compared.
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// Read this source too, and show for each tool what is declared, what the source does, and what was done.
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watched: Watched,
}
