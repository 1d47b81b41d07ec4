//! `serve --http`: where it listens, where its token is, and what ends it.

use std::fs::{DirBuilder, remove_file};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;

use anyhow::Context as _;
use bailiwick_command::listening::{kept_from_sandboxes, until_signalled};
use bailiwick_command::{facts, terminal};
use bailiwick_door::{Limits, Listening, Token, TokenFile};
use bailiwick_mcp::http::{PATH, serve};
use bailiwick_mcp::{CancellationToken, Server};

/// Serves until a signal ends the server; the reason of the end.
pub(super) fn speak(
    address: SocketAddr,
    server: Server,
    over: CancellationToken,
) -> anyhow::Result<&'static str> {
    until_signalled(|stop| async move {
        let ends = stop.clone();
        tokio::spawn(async move {
            over.cancelled().await;
            ends.cancel();
        });
        let listening = kept_from_sandboxes(Listening::bind(address).await?)?;
        let (token, file) = fresh_token(&listening)?;
        announce(&listening, Some(&file));
        serve(listening, token, Limits::default(), move || server.clone(), stop.cancelled_owned()).await;
        Ok(())
    })
}

/// A token, in a file that is named after the port, in a directory that no sandbox shows.
pub(in crate::commands) fn fresh_token(listening: &Listening) -> anyhow::Result<(Token, TokenFile)> {
    let directory =
        facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the token can be kept")?;
    let directory = directory.join("serve");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("cannot make `{}`", directory.display()))?;
    let path = directory.join(format!("http-{}.token", listening.port()));
    // The port is ours, so a file that is there was left by a server that has ended.
    let _none_left = remove_file(&path);
    let token = Token::random()?;
    let file = token.write(&path)?;
    Ok((token, file))
}

pub(in crate::commands) fn announce(listening: &Listening, file: Option<&TokenFile>) {
    let token = match file {
        Some(file) => format!("the token is in {}", file.path().display()),
        None => "every process of this machine may use it".to_owned(),
    };
    terminal::remark(&format!("serving MCP on {}\n{token}\n", listening.url(PATH)));
}
