//! Where logins at servers that run elsewhere are kept.

use anyhow::Context as _;
use bailiwick_remote::{Endpoint, TokenFile};

use crate::facts;

/// The file of a server's login, if there can be one.
///
/// # Errors
/// If the environment names no directory for it.
pub fn token_file(server: &Endpoint) -> anyhow::Result<TokenFile> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where logins are kept")?;
    Ok(TokenFile::for_server(&state.join("logins"), server))
}
