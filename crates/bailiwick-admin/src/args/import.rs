//! Arguments of `import`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick import --from vscode --server notes --out notes.toml .vscode/mcp.json
  bailiwick import --from toolhive --out notes.toml profile.json
  unzip -p notes.mcpb manifest.json | bailiwick import --from mcpb --out notes.toml -

What the file says precisely becomes a line. What it does not say, what leads to a sensitive place and what is as wide as
everything becomes a question, which grants nothing.
Exit codes: 0 drafted · 2 usage · 3 unreadable input")]
pub(crate) struct Import {
    /// Who wrote the file.
    #[arg(long, value_name = "FORM", value_parser = ["capgate", "vscode", "mcpb", "server-json", "toolhive", "wassette", "agentbound"])]
    pub(crate) from: String,
    /// Which server of the file is meant.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Write the manifest there instead of to stdout.
    #[arg(long, value_name = "MANIFEST")]
    pub(crate) out: Option<PathBuf>,
    /// The file; `-` is stdin.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
