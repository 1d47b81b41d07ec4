//! Arguments of `ps` and `logs`.

use clap::Args;

use super::AnswerFormat;

/// Arguments of `ps`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick ps
  bailiwick ps --format json

Each server with the process that wraps it, the era of the protocol that its client speaks, calls and denials, the
memory of the server and of `wrap`, its pins, and what it may touch. Exit codes: 0 ok · 2 usage · 5 fault")]
pub(crate) struct Ps {
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AnswerFormat,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick logs notes
  bailiwick logs notes --lines 500
  bailiwick logs notes --follow

What the server wrote to stderr, and what was dropped of what it said. Exit codes: 0 ok · 1 nothing was logged of
this server · 2 usage · 5 fault")]
pub(crate) struct Logs {
    /// The server, as `bailiwick ps` names it.
    #[arg(value_name = "NAME")]
    pub(crate) server: String,
    /// How many of the last lines.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "100")]
    pub(crate) lines: usize,
    /// Go on with what is added, until interrupted.
    #[arg(short, long)]
    pub(crate) follow: bool,
}
