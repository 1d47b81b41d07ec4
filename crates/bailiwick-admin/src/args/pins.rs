//! Arguments of `pins`.

use clap::{Args, Subcommand};

/// Arguments of `pins`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick pins list
  bailiwick pins diff notes
  bailiwick pins approve notes
  bailiwick pins approve notes --tool read
  bailiwick pins reset notes

Exit codes: 0 ok · 1 something waits, or there is nothing to accept · 2 usage · 5 fault")]
pub(crate) struct Pins {
    #[command(subcommand)]
    pub(crate) command: PinsCommand,
}

/// What to do with pins.
#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// List the wrapped servers whose tools were pinned
    List,
    /// Show what a server says now that it did not say when it was pinned
    Diff {
        /// The server, as `pins list` names it.
        server: String,
    },
    /// Accept what a server says now
    Approve {
        /// The server, as `pins list` names it.
        server: String,
        /// Accept this tool alone.
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Forget a server: its next use is its first
    Reset {
        /// The server, as `pins list` names it.
        server: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}
