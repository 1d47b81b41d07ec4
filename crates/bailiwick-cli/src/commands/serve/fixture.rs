//! `serve --fixture conformance`, in a program beside the command: no other command needs it.
//!
//! The fixture has no registry and no authority, and nothing of it is recorded.

use std::net::SocketAddr;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::serve::Serve;
use bailiwick_command::listening::until_signalled;
use bailiwick_door::{Limits, Listening};
use bailiwick_mcp::fixture::Fixture;
use bailiwick_mcp::http::serve_fixture;

use super::http::{announce, fresh_token};
use super::speak;

/// Serves what a test suite asks for.
pub(crate) fn run(args: &Serve) -> anyhow::Result<Answer> {
    let fixture = Fixture::new()?;
    match args.http {
        Some(address) => speak_http(address, fixture, args.no_token)?,
        None => speak(fixture)?,
    };
    Ok(Answer::result(Exit::Fine, String::new()))
}

/// Over HTTP it may be open to every process of this machine.
fn speak_http(address: SocketAddr, fixture: Fixture, open: bool) -> anyhow::Result<&'static str> {
    until_signalled(|stop| async move {
        let listening = Listening::bind(address).await?;
        let kept = if open { None } else { Some(fresh_token(&listening)?) };
        let (token, file) = kept.unzip();
        announce(&listening, file.as_ref());
        serve_fixture(listening, token, Limits::default(), fixture, stop.cancelled_owned()).await;
        Ok(())
    })
}
