//! Arguments of `export`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::run::NameOptions;

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick export --format json-lines > events.jsonl
  bailiwick export --format json-lines --follow --out /var/log/bailiwick.jsonl
  bailiwick export --format otlp --endpoint http://127.0.0.1:4318
  bailiwick export --format otlp --follow --endpoint https://collector.example --header authorization=env:OTLP_AUTH

`[export.otlp]` of config.toml has `endpoint` and `headers` for those who do not write them here. Roots that TLS trusts are the
host's, or those of $SSL_CERT_FILE. A cursor says how far was exported; to stdout, everything is written unless --cursor is there.
Exit codes: 0 all is exported, or ended by a signal · 2 usage · 3 unreadable settings · 5 fault, such as a collector that
cannot be reached with --once; nothing is lost then")]
pub(crate) struct Export {
    /// What to write.
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Export what is there, and end. This is the default.
    #[arg(long, conflicts_with = "follow")]
    pub(crate) once: bool,
    /// Go on with what is recorded from now on, until a signal.
    #[arg(long)]
    pub(crate) follow: bool,
    /// The collector: https, or http on the loopback interface.
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// A header for the collector, and where its value comes from: `env:VARIABLE`, `file:/path`, `cmd:PROGRAM ARGUMENTS`,
    /// `keyring:SERVICE/USER` or `systemd:NAME`. May be repeated. Never the value itself.
    #[arg(long = "header", value_name = "NAME=SOURCE")]
    pub(crate) headers: Vec<NamedHeader>,
    /// Append JSON lines to this file instead of to stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How long that file may grow before it becomes FILE.1, in MiB.
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) rotate: u64,
    /// How much of the journal may lie behind, in MiB; what is older is counted and not sent.
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) bound: u64,
    /// Keep how far was exported in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) cursor: Option<PathBuf>,
    /// The journal's directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) names: NameOptions,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One line for each event.
    JsonLines,
    /// Logs, metrics and traces, to a collector.
    Otlp,
}

/// `NAME=SOURCE`: a header, and where its value comes from.
#[derive(Debug, Clone)]
pub(crate) struct NamedHeader {
    /// The header.
    pub(crate) name: String,
    /// The source, as it is written.
    pub(crate) source: String,
}

impl FromStr for NamedHeader {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, source) =
            text.split_once('=').ok_or("write NAME=SOURCE: a header and the source of its value")?;
        Ok(Self { name: name.to_owned(), source: source.to_owned() })
    }
}
