//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The hub of a fleet: enrolment, the signed log, revocations, approvals and budgets, on PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "bailiwick-hub", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

const EXAMPLES: &str = "Examples:
  bailiwick-hub init --keys keys --name fleet.example --url https://hub.example:8443
  bailiwick-hub token --keys keys --database @database.url --role admin
  bailiwick-hub --keys keys --database @database.url --listen 0.0.0.0:8443 --log-files log";

/// What else it can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draw the keys of a new fleet into a new directory.
    Init(InitArgs),
    /// Make an enrolment token, for the first admin or when no admin can be asked.
    Token(TokenArgs),
    /// Write the log's files into a directory, for any web server.
    Export(ExportArgs),
    /// After a restore: put the published log back into the database.
    Recover(RecoverArgs),
    /// Replace the key that signs the log: announce another one, and later have it sign.
    RotateLog(RotateLogArgs),
    /// Make the hub's own certificate anew, for the host in its URL.
    RenewServer(RenewServerArgs),
}

/// The database and the keys.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The database: postgres://USER@HOST/NAME?sslmode=require, or @FILE that holds this line
    #[arg(long, value_name = "URL|@FILE")]
    pub(crate) database: String,
    /// Authorities for the database's certificate, PEM; those of the system if absent
    #[arg(long, value_name = "FILE")]
    pub(crate) database_ca: Option<PathBuf>,
    /// The directory that `bailiwick-hub init` made
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
}

/// The hub itself.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) store: Option<StoreArgs>,
    /// Where members connect
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// The hub's certificate chain, PEM; the one in the directory of keys if absent
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// An authority whose client certificates are taken beside the fleet's own, for SPIFFE ids
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Vec<PathBuf>,
    /// A name of this hub beside those in its certificate
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Where the log's files are written; a directory for this hub alone, kept between restarts
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) log_files: Option<PathBuf>,
    /// Where /healthz, /readyz and /metrics are served, in clear text
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) probes: Option<SocketAddr>,
    /// How many connections to the database
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// Milliseconds between checkpoints
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub(crate) sign_every: u64,
    /// Seconds between entries for journal heads
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) anchor_every: u64,
}

/// A new fleet.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The directory to make
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The fleet's name: of the log, and of its members' SPIFFE ids
    #[arg(long)]
    pub(crate) name: String,
    /// Where members reach the hub
    #[arg(long, value_name = "https://HOST[:PORT]")]
    pub(crate) url: String,
    /// Where the log's files are, if not at the hub
    #[arg(long, value_name = "https://…")]
    pub(crate) log_url: Option<String>,
    /// The key of a witness that signs checkpoints
    #[arg(long, value_name = "NAME+ID+KEY")]
    pub(crate) witness: Vec<String>,
    /// How many witnesses have to sign
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) quorum: usize,
}

/// An enrolment token.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// What the member may do
    #[arg(long, value_parser = ["machine", "approver", "admin"])]
    pub(crate) role: String,
    /// A label of a machine
    #[arg(long)]
    pub(crate) label: Vec<String>,
    /// Seconds that it is good for
    #[arg(long, value_name = "S", default_value_t = 3600)]
    pub(crate) ttl: u64,
}

/// The log's files.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The directory
    pub(crate) directory: PathBuf,
}

/// Another key for the log.
#[derive(Debug, Args)]
pub(crate) struct RotateLogArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Have the announced key sign from now on, and the one before it no more
    #[arg(long)]
    pub(crate) finish: bool,
}

/// The hub's own certificate.
#[derive(Debug, Args)]
pub(crate) struct RenewServerArgs {
    /// The directory that `bailiwick-hub init` made
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
}

/// The published log.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The directory with the published files
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
}
