//! Arguments of `purge`.

use clap::Args;

/// Arguments of `purge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick purge --dry-run
  bailiwick purge
  bailiwick purge --yes

Takes our entries out of the settings of clients and agents, as `install --undo` does, also in projects. Then removes the
store of packages and the state: journal, keys, pins, trust and approvals. Your own settings and manifests stay. Journals that
were written elsewhere stay too.
Exit codes: 0 done · 1 not confirmed, or wrapped servers still run · 2 usage · 3 a settings file cannot be read · 5 fault")]
pub(crate) struct Purge {
    /// Show what would be changed and removed, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}
