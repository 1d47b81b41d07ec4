//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::AnswerFormat;
use super::run::NameOptions;
use super::secret::SecretOptions;
use crate::facts::Setting;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick serve --cap exec:spawn:git --cap 'fs:read,write:/home/me/project/**'
  bailiwick serve --grant session.toml --cwd /home/me/project
  bailiwick serve --grant session.toml --explain
  bailiwick serve --grant session.toml --http 127.0.0.1:8765

What the session may do comes from --grant and --cap. Without them it comes from the first of
$BAILIWICK_CAVEATS, $AGENT_BRIDLE_CAVEATS and the table [caveats] of $XDG_CONFIG_HOME/bailiwick/config.toml,
then of ~/.agent-bridle/config.toml; without any of these nothing is granted. Messages are one a line on stdin and stdout, and nothing else
is written there. With --http, stderr says the address and the file that holds the token.
Exit codes: 0 the client has gone · 2 usage · 3 a grant is unreadable or invalid · 5 fault")]
pub struct Serve {
    /// What the session may do: caveats, a manifest or snapshot, or a list of capabilities; may be repeated.
    #[arg(long = "grant", value_name = "FILE")]
    pub grants: Vec<PathBuf>,
    /// Also this, such as `exec:spawn:git`; may be repeated.
    #[arg(long = "cap", value_name = "CAPABILITY")]
    pub caps: Vec<String>,
    /// Give a path variable of a manifest its value; may be repeated.
    #[arg(long = "set", value_name = "NAME=PATH")]
    pub settings: Vec<Setting>,
    /// Where relative paths start and programs run; the current directory if absent.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// How names are resolved.
    #[command(flatten)]
    pub names: NameOptions,
    /// Where the values of secrets come from.
    #[command(flatten)]
    pub secrets: SecretOptions,
    /// Hold calls to a project's guardrails, `DIR/.agents/guardrails.toml`.
    #[arg(long, value_name = "FILE")]
    pub guardrails: Option<PathBuf>,
    /// What the server calls itself.
    #[arg(long, value_name = "NAME", default_value = "bailiwick")]
    pub name: String,
    /// Keep the journal there instead of in the usual place.
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Serve over HTTP on this address of the loopback interface, on a free port if none is given.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = loopback)]
    pub http: Option<SocketAddr>,
    /// Serve what a test suite asks for instead of the tools; it does nothing and is granted nothing.
    #[arg(long, value_enum, conflicts_with_all = ["grants", "caps", "settings", "guardrails", "journal", "explain"])]
    pub fixture: Option<Fixture>,
    /// Let every process of this machine use the fixture.
    #[arg(long, requires = "fixture", requires = "http")]
    pub no_token: bool,
    /// Say what the session may do and how this host would hold each tool to it, and serve nothing.
    #[arg(long)]
    pub explain: bool,
    /// How to print what --explain says.
    #[arg(long, value_enum, default_value = "text", requires = "explain")]
    pub format: AnswerFormat,
}

/// What is served to a test suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fixture {
    /// The official conformance suite of the protocol
    Conformance,
}

/// An address of the loopback interface; a port alone is one too.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = match text.parse::<u16>() {
        Ok(port) => SocketAddr::from(([127, 0, 0, 1], port)),
        Err(_) => text.parse::<SocketAddr>().map_err(|_| "write it as 127.0.0.1:PORT".to_owned())?,
    };
    let refused = || format!("`{address}` is not of the loopback interface; only that is served");
    if address.ip().is_loopback() { Ok(address) } else { Err(refused()) }
}
