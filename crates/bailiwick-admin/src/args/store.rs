//! Arguments of `store`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `store`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick store list
  bailiwick store fetch -- npx -y @modelcontextprotocol/server-filesystem
  bailiwick store prune

A package is fetched once, in a sandbox that reaches the registry alone, into a directory of its own. `wrap` starts the
server from there without any network. A package that was changed since is not started.
Exit codes: 0 ok · 1 it cannot be fetched, or was not confirmed · 2 usage · 5 fault")]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List the packages that were fetched
    List,
    /// Fetch the package that a server's command names, so that its first start needs no network
    Fetch {
        /// Ask the registry again.
        #[arg(long)]
        refresh: bool,
        /// Let the package's own scripts run, in the same sandbox.
        #[arg(long)]
        install_scripts: bool,
        /// Record nothing.
        #[arg(long)]
        no_journal: bool,
        #[command(flatten)]
        names: super::run::NameOptions,
        /// The server's command, with `npx`, `uvx` or the like.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        server: Vec<OsString>,
    },
    /// Remove what no server is started from
    Prune {
        /// Remove everything.
        #[arg(long)]
        all: bool,
    },
    /// Confirm that a program is what the package around it claims to be, so that secrets may be handed to it
    Confirm {
        /// The server's program or script.
        path: PathBuf,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}
