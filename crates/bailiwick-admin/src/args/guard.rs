//! The command line of guardrails: `guard`, `trust`, `approve`, `deny`, `pending`, `install`.

use std::path::PathBuf;

use bailiwick_clients::hooks::Agent;
use bailiwick_command::args::hook::agents;
use clap::{Args, Subcommand};

use super::console::ConsentFor;
use super::{AnswerFormat, Format};

/// Arguments of `guard`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick guard init                            write .agents/guardrails.toml to start from
  bailiwick guard lint && bailiwick guard test
  bailiwick guard explain Bash 'rm -rf build'     which rule decides, and why

Exit codes: 0 ok · 1 findings, a failed example, a call that is blocked or asked about · 2 usage ·
3 the file is unreadable or invalid")]
pub(crate) struct Guard {
    #[command(subcommand)]
    pub(crate) command: GuardCommand,
}

/// What to do with guardrails.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Find what is wrong or doubtful: bad patterns, missing scripts, targets that nothing can be
    #[command(
        after_help = "Examples:\n  bailiwick guard lint\n  bailiwick guard lint --format sarif --dir project"
    )]
    Lint(Lint),
    /// Try the examples that are written beside the rules, or a session from a file
    #[command(after_help = "Examples:
  bailiwick guard test --dir project
  bailiwick guard test --events session.jsonl     guards, hooks and validators, event by event

A line is an event in the format of `hook generic`, with what is expected of it:
  {\"event\":\"before\",\"tool\":\"Bash\",\"params\":{\"command\":\"ls\"},\"expect\":{\"decision\":\"allow\"}}
  {\"event\":\"stop\",\"text\":\"done\",\"expect\":{\"inject\":\"run the tests\"}}
`message` and `inject` are parts of what is said, `null` for nothing.")]
    Test(Tested),
    /// Show what the rules make of one call, and why
    #[command(after_help = "Examples:
  bailiwick guard explain Bash 'sudo rm -fr /'
  bailiwick guard explain Read '{\"file_path\": \"/app/.env\"}' --format json

The session is taken to be new: nothing has happened before the call.")]
    Explain(Explain),
    /// Write a commented file of sensible rules, and the script it names
    #[command(after_help = "Example:\n  bailiwick guard init --dir project")]
    Init(GuardInit),
}

/// Arguments of `guard lint`.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// The project's directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// How to print the findings.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// Arguments of `guard test`.
#[derive(Debug, Args)]
pub(crate) struct Tested {
    /// The project's directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Play these events instead, one JSON object a line, each with what is expected of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `guard explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The tool as its agent names it: `Bash`, `mcp__server__tool`, `server:tool`.
    pub(crate) tool: String,
    /// Its arguments as JSON, or the text of a shell command.
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// The project's directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// How to print the explanation.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `guard init`.
#[derive(Debug, Args)]
pub(crate) struct GuardInit {
    /// The project's directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Overwrite the files if they exist.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick trust .
  bailiwick trust --list
  bailiwick trust --remove project

Trust is in the file and every script it names, as they are now. When one changes, nothing runs until it is
trusted again. Exit codes: 0 done · 1 not confirmed · 2 usage · 3 there is nothing that can be trusted")]
pub(crate) struct Trust {
    /// The project's directory.
    #[arg(required_unless_present = "list")]
    pub(crate) dir: Option<PathBuf>,
    /// Take the trust back.
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
    /// List what is trusted.
    #[arg(long, conflicts_with = "dir")]
    pub(crate) list: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `approve` and `deny`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  bailiwick pending
  bailiwick approve 1a2b3c4d
  bailiwick approve 1a2b3c4d --for session --note 'seen with the team'

An approval is for exactly that call, once, within 15 minutes; `--for session` lets the same call run again until its
session ends, for 12 hours at most.
Exit codes: 0 done · 1 not confirmed, or nothing waits under this id · 2 usage · 5 fault")]
pub(crate) struct Answer {
    /// What waits; see `bailiwick pending`.
    pub(crate) id: String,
    /// How far consent goes; calls of hooks belong to no session.
    #[arg(long = "for", value_enum, default_value = "once", value_name = "HOW-OFTEN")]
    pub(crate) reach: ConsentFor,
    /// A note for the record.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) note: String,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `pending`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bailiwick pending --format json")]
pub(crate) struct Pending {
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `install`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["hooks", "servers"]), after_help = "Examples:
  bailiwick install --hooks                       for every agent that has settings here
  bailiwick install --hooks claude-code codex
  bailiwick install --hooks --project . claude-code
  bailiwick install --hooks --undo
  bailiwick install --servers --dry-run           for every client that has servers here
  bailiwick install --servers --client cursor
  bailiwick install --servers --project .
  bailiwick install --servers --undo

Only entries of ours are added or removed; the rest of a file stays as it is written. A server is put behind
`bailiwick wrap` if there is a manifest $XDG_CONFIG_HOME/bailiwick/servers/NAME.toml; others are listed.
Exit codes: 0 done · 1 there are no settings · 2 usage · 3 a settings file cannot be read · 5 fault")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Install {
    /// Put in hook entries.
    #[arg(long)]
    pub(crate) hooks: bool,
    /// Put `bailiwick wrap` before the commands of MCP servers.
    #[arg(long)]
    pub(crate) servers: bool,
    /// Which agents get hooks; those with a settings directory if none is named.
    #[arg(value_parser = agents(), conflicts_with = "servers")]
    pub(crate) agents: Vec<&'static Agent>,
    /// Whose servers: claude-code, claude-desktop, cursor, vscode, codex, gemini, windsurf, zed, opencode,
    /// copilot, qwen or all.
    #[arg(long, value_name = "NAME", default_value = "all", conflicts_with = "hooks")]
    pub(crate) client: String,
    /// Where the manifests of servers are, each called after its server.
    #[arg(long, value_name = "DIR", conflicts_with = "hooks")]
    pub(crate) manifest_dir: Option<PathBuf>,
    /// Into this project's settings instead of the user's.
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Take the entries out again.
    #[arg(long)]
    pub(crate) undo: bool,
    /// Show the change of each file as a unified diff, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
