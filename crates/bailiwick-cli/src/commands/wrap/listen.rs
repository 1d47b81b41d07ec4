//! `bailiwick wrap --listen`: a server on stdin and stdout, for clients that speak HTTP.
//!
//! Each session of the legacy era has a server of its own, and the clients of the modern era share one. Each is started
//! when it is first needed, in its own sandbox, behind its own relay and gate; the pins, the journal and the counts are one.

use std::io::{PipeReader, PipeWriter};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::wrap::Wrap;
use bailiwick_command::listening::{kept_from_sandboxes, until_signalled};
use bailiwick_door::{DoorRules, Limits, Listening};
use bailiwick_journal::Journal;
use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_launch::Launched;
use bailiwick_mcp::CancellationToken;
use bailiwick_mcp::http::PATH;
use bailiwick_mcp::relay::listen::{Conversation, Listener, Servers};
use bailiwick_mcp::relay::{CallsInFlight, RelayCounts, RelayOptions};
use bailiwick_policy::denial::DenialCode;
use bailiwick_replica::Leash;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::WrappedServer;
use super::gate::Gate;
use super::isolate::ToolInstances;
use super::refusals::SandboxRefusals;
use super::run_state::RunState;
use super::server_log::{ServerLog, WritersEnd};
use super::supervise::{Attended, attend, split};
use crate::commands::serve::{announce, fresh_token};

/// Bytes on their way between a client and its relay.
const BUFFER: usize = 64 * 1024;

/// How long servers may take to end when we do; each is ended after 250 ms.
const ENDING: Duration = Duration::from_secs(3);

/// Serves until we are asked to end.
pub(super) fn serve(
    args: &Wrap,
    server: Arc<WrappedServer>,
    journal: &Journal,
    address: SocketAddr,
) -> anyhow::Result<Answer> {
    // What is wrong with the manifest is said now, not to the first client.
    drop(Gate::new(args, &server, journal)?);
    let kept = Arc::clone(&server);
    let counts = Arc::new(RelayCounts::default());
    let shown = RunState::begin(&server, &server.identity, std::process::id(), journal, None);
    let how = until_signalled(|stop| async move {
        if let Some(leash) = server.leash.clone() {
            let stop = stop.clone();
            tokio::spawn(async move {
                leash.over().cancelled().await;
                stop.cancel();
            });
        }
        let listening = kept_from_sandboxes(Listening::bind(address).await?)?;
        let (token, file) = fresh_token(&listening)?;
        announce(&listening, Some(&file));
        let shown = shown.map(|shown| tokio::spawn(shown.follow(Arc::clone(&counts))));
        let starter = Starter { args: args.clone(), server, journal: journal.clone(), counts };
        let running = Arc::new(Mutex::new(JoinSet::new()));
        let children = Children {
            journal: journal.clone(),
            starter: starter.on_a_thread()?,
            running: Arc::clone(&running),
            stop: stop.clone(),
        };
        let listener = Listener::new(children, Limits::default());
        let entry = DoorRules::with_token(PATH, token);
        listening.serve(entry, Limits::default(), listener, stop.cancelled_owned()).await;
        let running = std::mem::take(&mut *running.lock().unwrap_or_else(PoisonError::into_inner));
        let _unfinished = tokio::time::timeout(ENDING, running.join_all()).await;
        if let Some(shown) = shown {
            shown.abort();
            drop(shown.await);
        }
        Ok(())
    })?;
    journal.append(kept.ended(how))?;
    Ok(Answer::result(Exit::Fine, String::new()))
}

/// A server that was started, and its relay's half.
struct StartedServer {
    launched: Launched,
    stdin: PipeWriter,
    stdout: PipeReader,
    errors: WritersEnd,
    options: RelayOptions,
    refused: SandboxRefusals,
    instances: Option<(ToolInstances, Arc<CallsInFlight>)>,
    leash: Option<Leash>,
}

/// Starts servers, one after the other.
struct Starter {
    args: Wrap,
    server: Arc<WrappedServer>,
    journal: Journal,
    counts: Arc<RelayCounts>,
}

type Order = oneshot::Sender<anyhow::Result<StartedServer>>;

impl Starter {
    /// Takes orders on a thread that stays: some sandboxes end their program with the thread that started it.
    fn on_a_thread(self) -> anyhow::Result<std::sync::mpsc::Sender<Order>> {
        let (orders, receiver) = std::sync::mpsc::channel::<Order>();
        let thread = std::thread::Builder::new().name("starts servers".to_owned());
        thread.spawn(move || {
            for order in receiver {
                // A client that went meanwhile leaves a server that ends at once.
                drop(order.send(self.start()));
            }
        })?;
        Ok(orders)
    }

    fn start(&self) -> anyhow::Result<StartedServer> {
        let gate = Gate::new(&self.args, &self.server, &self.journal)?;
        let serving = gate.serving();
        let (mut launched, pipes) = super::start(&self.server, &self.server.asked, &serving, &self.journal)?;
        let refused = SandboxRefusals::record(&mut launched, &self.server.name, &self.journal, serving);
        let log = ServerLog::open(&self.server.name, gate.redactor.clone(), self.server.is_recorded);
        let errors = log.follow(pipes.stderr);
        let instances = split(&self.server, &gate, &self.journal, &log)?;
        // Its lines are written as long as we run.
        let (note, _) = log.notes();
        let options = gate.into_options(&self.journal, Arc::clone(&self.counts), note);
        Ok(StartedServer {
            launched,
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            errors,
            options,
            refused,
            instances,
            leash: self.server.leash.clone(),
        })
    }
}

/// The servers of one listener.
struct Children {
    journal: Journal,
    starter: std::sync::mpsc::Sender<Order>,
    running: Arc<Mutex<JoinSet<()>>>,
    stop: CancellationToken,
}

impl Children {
    async fn start_one(&self) -> anyhow::Result<StartedServer> {
        let (order, started) = oneshot::channel();
        self.starter.send(order).ok().context("no server can be started any more")?;
        started.await.context("no server can be started any more")?
    }
}

impl Servers for Children {
    async fn start(&self) -> Result<Conversation, String> {
        let started = self.start_one().await.map_err(|fault| format!("{fault:#}"))?;
        let (input, client_in) = duplex(BUFFER);
        let (client_out, output) = duplex(BUFFER);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(until_it_ends(started, (client_in, client_out), self.stop.clone()));
        Ok(Conversation { input, output })
    }

    fn refused(&self, reason: &str) {
        let event = Event::new(RecordKind::CapabilityDenied)
            .with_decision(Decision::Deny)
            .with_code(DenialCode::MessageAmbiguous.as_str())
            .with_reason(reason.to_owned());
        drop(self.journal.append(event));
    }
}

async fn until_it_ends(
    started: StartedServer,
    client: (DuplexStream, DuplexStream),
    stop: CancellationToken,
) {
    let StartedServer { mut launched, stdin, stdout, errors, options, refused, instances, leash } = started;
    let leash = leash.as_ref();
    let attended = Attended { launched: &mut launched, stdin, stdout, refused: &refused, instances, leash };
    let ended = attend(options, client, attended, (std::future::pending(), stop.cancelled())).await;
    let how = ended.map_or_else(|fault| format!("{fault:#}"), |ended| ended.to_string());
    let finished = tokio::task::spawn_blocking(move || {
        // What it was refused last is recorded before its end.
        drop(launched.observations());
        // That an end cannot be recorded is said by the journal itself.
        drop(launched.finish(&how));
        errors.wait();
    });
    drop(finished.await);
}
