//! The command line of `bailiwick scan`.

use std::path::PathBuf;

use bailiwick_command::facts::Setting;
use clap::Args;

use super::Format;

/// Arguments of `scan`.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick scan src
  bailiwick scan --manifest server.toml src
  bailiwick scan --strict --format sarif --manifest server.toml src > scan.sarif
  bailiwick scan --tools tools.json src
  bailiwick scan --draft src > server.toml

Without --manifest, tools are compared with the policy beside them in the source. Facts are kept by the hash of each
file in $XDG_CACHE_HOME/bailiwick/scan. Exit codes: 0 nothing beyond what is declared · 1 more, a server
without tools, or --strict: something is not known · 2 usage · 3 something cannot be read")]
pub(crate) struct Scan {
    /// Source files, or directories of them.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What was declared: a manifest or a snapshot.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The tools that the server lists while it runs: its answer to `tools/list`, or a manifest that was learned.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// How to print what was found.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// Fail on whatever is not known.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write a manifest to start from instead.
    #[arg(long, conflicts_with_all = ["manifest", "format", "strict"])]
    pub(crate) draft: bool,
    /// Read directories of dependencies too, such as node_modules.
    #[arg(long)]
    pub(crate) include_dependencies: bool,
    /// Read every file anew.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Give a path variable its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub(crate) settings: Vec<Setting>,
}
