//! Arguments of `login` and `logout`.

use clap::Args;

use super::run::NameOptions;

/// Arguments of `login`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bailiwick login https://mcp.example.com/mcp
  bailiwick login tickets                         the name of your manifest for that server
  bailiwick login tickets --no-browser --client-id my-client

The browser comes back to a port of the loopback interface, which is open until then, for five minutes at most.
Exit codes: 0 logged in · 1 refused · 2 usage · 3 there is no such server")]
pub(crate) struct Login {
    /// The URL of the server, or the name of your manifest for it.
    #[arg(value_name = "URL|NAME")]
    pub(crate) server: String,
    /// The client that is registered at the authorization server already; one is registered if absent.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// What to ask for; what the server says if absent.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Only say the address, and open no browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) names: NameOptions,
}

/// Arguments of `logout`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  bailiwick logout https://mcp.example.com/mcp")]
pub(crate) struct Logout {
    /// The URL of the server, or the name of your manifest for it.
    #[arg(value_name = "URL|NAME")]
    pub(crate) server: String,
}
