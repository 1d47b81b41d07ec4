//! Arguments of `console` and `top`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `console`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick console --open
  bailiwick console --listen 127.0.0.1:7410
  bailiwick console --watch
  bailiwick console --listen 0.0.0.0:7410 --name box.example.org --tls-certificate box.pem --tls-key box.key --token-file token

stderr says the address, with a code that lets one page in, once, and then the next one; other pages borrow an open page's token. While a
console runs that can answer, a call that needs a person is held until one answers, for 45 seconds at most.
Exit codes: 0 ended by a signal · 2 usage · 5 fault")]
pub(crate) struct Console {
    /// Serve the page on this address; port 0 is a free one. One that is not of the loopback interface needs TLS, a name and
    /// a token file.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Serve in TLS, with this chain of certificates.
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "name")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The key of the certificate, in a file that only you can read.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The name that browsers have for this machine: that of the certificate.
    #[arg(long, value_name = "HOST", requires = "tls_certificate")]
    pub(crate) name: Option<String>,
    /// Take the token from this file, that only you can read, in place of a new one for each start.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Open the page in your browser. The code goes through a file that only you can read.
    #[arg(long)]
    pub(crate) open: bool,
    /// Show and decide nothing: no answer, no grant, no acceptance.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// An address; a port alone is one of the loopback interface.
fn address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.parse().map_err(|_| "write it as 127.0.0.1:PORT".to_owned()),
    }
}

/// How far consent goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ConsentFor {
    /// This call, once.
    #[default]
    Once,
    /// The same call, as often as it is made in its session.
    Session,
    /// The same call, in every session, until `bailiwick deny ID` or a change of the tool or its manifest.
    Always,
}

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick top
  bailiwick top --once

On a terminal the table is drawn anew every second, until `q` or an interrupt. Exit codes: 0 ok · 2 usage · 5 fault")]
pub(crate) struct Top {
    /// How many of the last denials.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "8")]
    pub(crate) denials: usize,
    /// Print the table once, and end.
    #[arg(long)]
    pub(crate) once: bool,
}
