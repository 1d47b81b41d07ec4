//! `wrap --url`: a server that runs elsewhere, gated, pinned and recorded as one that runs here; no sandbox holds it.
//!
//! Its credential comes from `--secret` or from `bailiwick login`, is never shown to the client, and is sent to its origin
//! alone. Fails closed when the credential cannot be had: nothing is asked then.

use std::sync::Arc;
use std::time::Duration;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::wrap::Wrap;
use bailiwick_command::logins::token_file;
use bailiwick_journal::Journal;
use bailiwick_mcp::relay::remote::{RemoteServer, converse};
use bailiwick_mcp::relay::{RelayCounts, RelayEnd, RelayStreams, relay as relay_messages};
use bailiwick_mcp::{CancellationToken, stdio};
use bailiwick_remote::{Client, Credential, Endpoint, LoginSession};
use tokio::io::duplex;
use tokio::sync::oneshot;

use super::WrappedServer;
use super::gate::Gate;
use super::run_state::RunState;
use super::server_log::ServerLog;
use super::supervise::{Signals, give_back_while_idle};

/// Bytes on their way between the relay and the connection.
const BUFFER: usize = 64 * 1024;

/// How long the last answers and the end of the session may take, and how long when we are asked to end.
const PARTING: Duration = Duration::from_secs(5);
const HASTE: Duration = Duration::from_millis(250);

/// Relays until the client has gone, or we are asked to end.
pub(super) fn relay(
    args: &Wrap,
    server: &Arc<WrappedServer>,
    gate: Gate,
    journal: &Journal,
) -> anyhow::Result<Answer> {
    let log = ServerLog::open(&server.name, Arc::clone(&gate.redactor), server.is_recorded);
    let stop = CancellationToken::new();
    let remote = remote_server(args, (&server.identity, gate.given.clone()), &log, stop.clone())?;
    let shown = RunState::begin(server, &server.identity, std::process::id(), journal, None);
    let counts = Arc::new(RelayCounts::default());
    let (note, noted) = log.notes();
    let options = gate.into_options(journal, Arc::clone(&counts), note);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let how = runtime.block_on(async {
        tokio::spawn(give_back_while_idle(Arc::clone(&counts)));
        let shown = shown.map(|shown| tokio::spawn(shown.follow(counts)));
        let ((server_in, from_relay), (to_relay, server_out)) = (duplex(BUFFER), duplex(BUFFER));
        let mut conversation = tokio::spawn(converse(remote, (from_relay, to_relay)));
        let (client_in, client_out) = stdio::standard();
        let streams = RelayStreams { client_in, client_out, server_in, server_out };
        let (tell, reason) = oneshot::channel();
        let end = RelayEnd { over: CancellationToken::new(), reason };
        let relayed = tokio::spawn(relay_messages(options, streams, end));
        let mut signals = Signals::new()?;
        let (how, patience) = tokio::select! {
            _ = &mut conversation => ("the client has gone", PARTING),
            () = server.until_asked(signals.recv()) => ("terminated", HASTE),
        };
        stop.cancel();
        drop(tell.send(server.ended_in_words("the connection to the server has been closed")));
        drop(tokio::time::timeout(patience, relayed).await);
        if let Some(shown) = shown {
            shown.abort();
            drop(shown.await);
        }
        anyhow::Ok(how)
    });
    // A read of stdin that will never end must not keep us.
    runtime.shutdown_timeout(Duration::from_millis(50));
    noted.wait();
    let how = how?;
    journal.append(server.ended(how))?;
    let exit = if how == "terminated" { Exit::Program(143) } else { Exit::Fine };
    Ok(Answer::result(exit, String::new()))
}

/// What `bailiwick login` was given, if anything.
fn of_login(args: &Wrap, endpoint: &Endpoint) -> anyhow::Result<Credential> {
    let file = token_file(endpoint)?;
    if file.read()?.is_none() {
        return Ok(Credential::Absent);
    }
    let client = Client::new(args.names.resolver(), args.names.hosts())?;
    Ok(Credential::Login(LoginSession::new(client, file)))
}

fn remote_server(
    args: &Wrap,
    (url, given): (&str, Option<(String, String)>),
    log: &ServerLog,
    stop: CancellationToken,
) -> anyhow::Result<RemoteServer> {
    let endpoint = Endpoint::new(url)?;
    let client = Client::new(args.names.resolver(), args.names.hosts())?;
    let credential = match given {
        Some((_, value)) => Credential::Given(value),
        None => of_login(args, &endpoint)?,
    };
    let advice = format!(
        "log in with `bailiwick login {endpoint}`, or give a token with `--secret NAME=env:VARIABLE` before `--url {endpoint}`"
    );
    // Its lines are written as long as we run.
    let (note, _) = log.notes();
    Ok(RemoteServer { client, endpoint, credential, advice, note: Box::new(note), stop })
}
