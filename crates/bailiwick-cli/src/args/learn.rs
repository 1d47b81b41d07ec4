//! Arguments of `learn`, `replay` and `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::run::{NameOptions, Time};

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
    /// What the manifest is called; else as the program.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The command is an MCP server: list its tools and call each.
    #[arg(long)]
    pub(crate) server: bool,
    /// Call the tools of the server with these arguments, one call a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Make no calls but those of `--calls`. Else each tool that has none there is called with the least arguments that its
    /// schema allows, without network and without variables of yours.
    #[arg(long)]
    pub(crate) no_generate: bool,
    /// Let it read this directory too; may be repeated.
    #[arg(long = "read", value_name = "DIR")]
    pub(crate) reads: Vec<PathBuf>,
    /// Hand it this variable of yours; may be repeated.
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) variables: Vec<String>,
    /// Let it reach this host; may be repeated. Every other is refused, and becomes a question.
    #[arg(long = "net", value_name = "HOST[:PORT]")]
    pub(crate) reached: Vec<String>,
    /// How long one answer, or a program that is no server, may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Time,
    /// Carry over to the host what it wrote.
    #[arg(long)]
    pub(crate) commit: bool,
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// Record nothing.
    #[arg(long)]
    pub(crate) no_journal: bool,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick replay notes.toml --calls calls.jsonl -- node notes-server.js ~/notes
  bailiwick replay build.toml -- make

The program runs twice from the same files, each time on a copy-on-write layer: once as `learn` runs it, once held to
the manifest. Every answer has to be the same but for times, ids and temporary names.
Exit codes: 0 the same · 1 not the same, or learned from less than everything · 2 usage · 3 unreadable input · 5 fault")]
pub(crate) struct Replay {
    /// The manifest that is tried.
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// Call the tools of the server with these arguments, one call a line; else each tool is called with the least arguments
    /// that its schema allows.
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Let it reach this host in the run that it is compared with; may be repeated.
    #[arg(long = "net", value_name = "HOST[:PORT]")]
    pub(crate) reached: Vec<String>,
    /// Hand it this variable of yours in the run that it is compared with; may be repeated.
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) variables: Vec<String>,
    /// How long one answer, or a program that is no server, may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Time,
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick audit notes.toml --calls calls.jsonl -- node notes-server.js ~/notes
  bailiwick audit build.toml -- make

The program runs as `learn` runs it. What it used and the manifest does not declare begins with `+`, what the manifest
declares and was not used with `-`: calls that were not made may need it.
Exit codes: 0 neither · 1 one of them · 2 usage · 3 unreadable input · 5 fault")]
pub(crate) struct Audit {
    /// The manifest that is compared.
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// Call the tools of the server with these arguments, one call a line; the others are called with the least arguments that
    /// their schema allows.
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Let it reach this host; may be repeated.
    #[arg(long = "net", value_name = "HOST[:PORT]")]
    pub(crate) reached: Vec<String>,
    /// Hand it this variable of yours; may be repeated.
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) variables: Vec<String>,
    /// How long one answer, or a program that is no server, may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Time,
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Audit {
    /// The same command line for the run that is watched.
    pub(crate) fn as_learn(&self, is_server: bool) -> Learn {
        let Self { manifest, calls, reached, variables, timeout, names, command } = self;
        let replay = Replay {
            manifest: manifest.clone(),
            calls: calls.clone(),
            reached: reached.clone(),
            variables: variables.clone(),
            timeout: *timeout,
            names: names.clone(),
            command: command.clone(),
        };
        Learn { no_generate: false, ..replay.as_learn(is_server) }
    }
}

impl Replay {
    /// The same command line for the run that is compared with.
    pub(crate) fn as_learn(&self, is_server: bool) -> Learn {
        Learn {
            out: None,
            update: None,
            name: None,
            server: is_server || self.calls.is_some(),
            calls: self.calls.clone(),
            no_generate: true,
            reads: Vec::new(),
            variables: self.variables.clone(),
            reached: self.reached.clone(),
            timeout: self.timeout,
            commit: false,
            names: self.names.clone(),
            no_journal: true,
            command: self.command.clone(),
        }
    }
}
