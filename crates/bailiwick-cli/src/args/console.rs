//! Arguments of `console` and `top`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use super::serve::loopback;

/// Arguments of `console`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick console --open
  bailiwick console --listen 127.0.0.1:7410
  bailiwick console --watch

stderr says the address, with a code that lets one page in, once; other pages borrow that page's token. While a
console runs that can answer, a call that needs a person is held until one answers, for 45 seconds at most.
Exit codes: 0 ended by a signal · 2 usage · 5 fault")]
pub(crate) struct Console {
    /// Serve the page on this address of the loopback interface; port 0 is a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = loopback)]
    pub(crate) listen: SocketAddr,
    /// Open the page in your browser. The code goes through a file that only you can read.
    #[arg(long)]
    pub(crate) open: bool,
    /// Show and decide nothing: no answer, no grant, no acceptance.
    #[arg(long)]
    pub(crate) watch: bool,
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

On a terminal the table is drawn anew every second, until an interrupt. Exit codes: 0 ok · 2 usage · 5 fault")]
pub(crate) struct Top {
    /// How many of the last denials.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "8")]
    pub(crate) denials: usize,
    /// Print the table once, and end.
    #[arg(long)]
    pub(crate) once: bool,
}
