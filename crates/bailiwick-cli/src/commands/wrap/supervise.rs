//! A wrapped server from its start to its end: messages, signals, and who outlives whom.
//!
//! When the client has gone, the server's input is closed; it has two seconds, then it is asked to end, and two seconds
//! later every process of it is ended. When we are asked to end it has 250 ms. A server that closes its input or its output
//! is ended in the same way, and so is one whose client reads nothing more: both are seen though nothing is being written.

use std::convert::Infallible;
use std::future::Future;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, terminal};
use bailiwick_journal::Journal;
use bailiwick_launch::{Change, Exit as Ended, Launched, NetworkEvent, Pipes};
use bailiwick_mcp::relay::isolate::{BaseStreams, isolate};
use bailiwick_mcp::relay::{
    CallsInFlight, RelayCounts, RelayEnd, RelayOptions, RelayStreams, relay as relay_messages,
};
use bailiwick_mcp::{CancellationToken, stdio};
use bailiwick_replica::Leash;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, Interest, duplex};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::WrappedServer;
use super::gate::Gate;
use super::isolate::{ToolInstances, all_ended};
use super::refusals::SandboxRefusals;
use super::run_state::RunState;
use super::server_log::ServerLog;
use crate::commands::run::told_of_server;

/// How long a server may take to end by itself, and then after it was asked.
const GRACE: Duration = Duration::from_secs(2);

/// How long when we are asked to end: clients kill us soon after.
const HASTE: Duration = Duration::from_millis(250);

/// How long the relay may take to hand over the last answers.
pub(super) const PARTING: Duration = Duration::from_secs(1);

/// After this long nearly all that only a start needs was needed, and after this long without a call none is likely.
const STARTED: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(10);

/// What the client reads, opened anew: how it is opened here changes nothing for who shares it.
const OWN_OUTPUT: &str = "/proc/self/fd/1";

const SIGTERM: i32 = 15;

/// Bytes on their way between the relay and a server of several processes.
pub(super) const BUFFER: usize = 64 * 1024;

/// Relays until the server has ended.
pub(super) fn relay(
    server: &Arc<WrappedServer>,
    gate: Gate,
    mut launched: Launched,
    pipes: Pipes,
    journal: &Journal,
) -> anyhow::Result<Answer> {
    let log = ServerLog::open(&server.name, gate.redactor.clone(), server.is_recorded);
    let errors = log.follow(pipes.stderr);
    let refused = SandboxRefusals::record(&mut launched, &server.name, journal, gate.serving());
    let instances = split(server, &gate, journal, &log)?;
    let shown = RunState::begin(server, &server.identity, launched.pid(), journal, Some(launched.status()));
    let counts = Arc::new(RelayCounts::default());
    let (note, noted) = log.notes();
    let options = gate.into_options(journal, Arc::clone(&counts), note);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        tokio::spawn(give_back_while_idle(Arc::clone(&counts)));
        let shown = shown.map(|shown| tokio::spawn(shown.follow(counts)));
        let mut signals = Signals::new()?;
        let (stdin, stdout) = (pipes.stdin, pipes.stdout);
        let leash = server.leash.as_ref();
        let attended =
            Attended { launched: &mut launched, stdin, stdout, refused: &refused, instances, leash };
        let reads_no_more = reader_has_gone(OpenOptions::new().open_sender(OWN_OUTPUT));
        let ended =
            attend(options, stdio::standard(), attended, (reads_no_more, server.until_asked(signals.recv())))
                .await;
        if let Some(shown) = shown {
            shown.abort();
            // Its file is gone when it has ended.
            drop(shown.await);
        }
        ended
    });
    // A read of stdin that will never end must not keep us.
    runtime.shutdown_timeout(Duration::from_millis(50));
    let how = ended.as_ref().map_or_else(|fault| format!("{fault:#}"), ToString::to_string);
    // What it was refused last is recorded before its end.
    drop(launched.observations());
    let lost = told_of_server(&launched.take_lost(), facts::home().as_deref());
    let recorded = launched.finish(&how);
    errors.wait();
    noted.wait();
    if let Some(lost) = &lost {
        terminal::remark(&format!("{}: {}\n", style::warning("warning"), escape::line(lost)));
    }
    let lost = lost.map(|lost| format!("; {lost}")).unwrap_or_default();
    journal.append(server.ended(&format!("the server has ended: {how}{lost}")))?;
    recorded?;
    Ok(Answer::result(exit_code(ended?), String::new()))
}

/// Gives back the memory of what is not in use: after the start, and whenever no call came for a while. A client has many
/// servers, each with such a process.
pub(super) async fn give_back_while_idle(counts: Arc<RelayCounts>) {
    tokio::time::sleep(STARTED).await;
    bailiwick_confine::release_unused_code();
    let mut given_at = counts.calls();
    let mut before = given_at;
    loop {
        tokio::time::sleep(IDLE).await;
        let now = counts.calls();
        if now == before && now != given_at {
            bailiwick_confine::release_unused_code();
            given_at = now;
        }
        before = now;
    }
}

/// How we end when the server has ended so.
pub(super) fn exit_code(ended: Ended) -> Exit {
    let code = match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    };
    Exit::Program(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// A server that was started: its base, and what starts processes for its tools.
pub(super) struct Attended<'a> {
    pub(super) launched: &'a mut Launched,
    pub(super) stdin: PipeWriter,
    pub(super) stdout: PipeReader,
    pub(super) refused: &'a SandboxRefusals,
    pub(super) instances: Option<(ToolInstances, Arc<CallsInFlight>)>,
    /// What knows why the fleet ended it.
    pub(super) leash: Option<&'a Leash>,
}

/// What starts processes for tools, if they have processes of their own.
pub(super) fn split(
    server: &Arc<WrappedServer>,
    gate: &Gate,
    journal: &Journal,
    log: &ServerLog,
) -> anyhow::Result<Option<(ToolInstances, Arc<CallsInFlight>)>> {
    if server.groups.is_empty() {
        return Ok(None);
    }
    let instances = ToolInstances::new(server, journal, log.clone())?;
    Ok(Some((instances, Arc::clone(&gate.of_base))))
}

type ServerEnds = (Box<dyn AsyncWrite + Send + Unpin>, Box<dyn AsyncRead + Send + Unpin>);

/// The server as the relay sees it: one, whatever is behind.
fn server_ends(
    (stdin, stdout): (PipeWriter, PipeReader),
    instances: Option<(ToolInstances, Arc<CallsInFlight>)>,
) -> std::io::Result<ServerEnds> {
    let input = Sender::from_owned_fd(OwnedFd::from(stdin))?;
    let output = Receiver::from_owned_fd(OwnedFd::from(stdout))?;
    let Some((instances, in_flight)) = instances else { return Ok((Box::new(input), Box::new(output))) };
    let ((server_in, from_relay), (to_relay, server_out)) = (duplex(BUFFER), duplex(BUFFER));
    tokio::spawn(isolate(instances, (from_relay, to_relay), BaseStreams { input, output, in_flight }));
    Ok((Box::new(server_in), Box::new(server_out)))
}

/// Relays between a client and a server that was started, until that has ended. `reads_no_more` ends when the client does not
/// read any more, `asked` when we are asked to end.
pub(super) async fn attend<In, Out>(
    options: RelayOptions,
    (client_in, client_out): (In, Out),
    attended: Attended<'_>,
    (reads_no_more, asked): (impl Future<Output = ()>, impl Future<Output = ()>),
) -> anyhow::Result<Ended>
where
    In: AsyncRead + Send + Unpin + 'static,
    Out: AsyncWrite + Send + Unpin + 'static,
{
    let Attended { launched, stdin, stdout, refused, instances, leash } = attended;
    let of_tools = instances.as_ref().map(|(instances, _)| (instances.running(), instances.asked.clone()));
    let over = instances.as_ref().map(|(instances, _)| instances.over.clone()).unwrap_or_default();
    let input_is_closed = reader_has_gone(stdin.as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd));
    let (server_in, server_out) = server_ends((stdin, stdout), instances)?;
    let streams = RelayStreams { client_in, client_out, server_in, server_out };
    let (tell, reason) = oneshot::channel();
    let end = RelayEnd { over: over.clone(), reason };
    let relayed = tokio::spawn(relay_messages(options, streams, end));
    let asked = async {
        asked.await;
        of_tools.iter().for_each(|(_, asked)| asked.cancel());
    };
    let ended = tokio::select! {
        ended = until_the_end(launched, &over, asked) => ended,
        never = cancel_after(&over, reads_no_more, input_is_closed) => match never {},
    };
    let last = last_words(launched, ended.as_ref().ok(), refused).await;
    drop(tell.send(with_reason(leash, last)));
    drop(tokio::time::timeout(PARTING, relayed).await);
    if let Some((running, _)) = &of_tools {
        over.cancel();
        all_ended(running).await;
    }
    ended
}

/// How it ended, after why the fleet ended it if it did.
pub(super) fn with_reason(leash: Option<&Leash>, how: String) -> String {
    leash.and_then(Leash::ended).map(|why| format!("{why}; {how}")).unwrap_or(how)
}

/// Cancels when one of them has ended. Both are gone then: what they hold keeps no pipe open.
async fn cancel_after(
    over: &CancellationToken,
    one: impl Future<Output = ()>,
    other: impl Future<Output = ()>,
) -> Infallible {
    tokio::select! {
        () = one => {}
        () = other => {}
        () = over.cancelled() => {}
    }
    over.cancel();
    std::future::pending().await
}

/// Ends when no process can read any more what is written there; this is seen without writing. Never where that cannot be watched.
async fn reader_has_gone(output: std::io::Result<Sender>) {
    match output {
        Ok(output) if output.ready(Interest::ERROR).await.is_ok() => {}
        Ok(_) | Err(_) => std::future::pending().await,
    }
}

/// Signals that ask us to end.
pub(super) struct Signals([Signal; 3]);

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        let [term, int, hup] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
        Ok(Self([term?, int?, hup?]))
    }

    pub(super) async fn recv(&mut self) {
        let [term, int, hup] = &mut self.0;
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hup.recv() => {}
        }
    }
}

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Its input is closed.
    Closed,
    /// It was asked to end.
    PlannedRun,
    Killed,
}

pub(super) async fn until_the_end(
    launched: &mut Launched,
    over: &CancellationToken,
    asked: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
    let mut asked = pin!(asked);
    let mut changed = next_change(launched)?;
    let (mut phase, mut deadline) = (Phase::Running, Instant::now());
    let mut signalled = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut changed => match launched.wait_for_change()? {
                Change::Ended(exit) => return Ok(exit),
                // A server that stops itself is still asked to end, and ended, in its time.
                Change::Stopped => changed = next_change(launched)?,
            },
            () = asked.as_mut(), if !signalled => {
                signalled = true;
                // It may have ended already.
                drop(launched.signal(SIGTERM));
                (phase, deadline) = (Phase::PlannedRun, Instant::now() + HASTE);
            }
            () = over.cancelled(), if phase == Phase::Running => {
                (phase, deadline) = (Phase::Closed, Instant::now() + GRACE);
            }
            () = sleep_until(deadline), if matches!(phase, Phase::Closed | Phase::PlannedRun) => {
                if phase == Phase::Closed {
                    drop(launched.signal(SIGTERM));
                    (phase, deadline) = (Phase::PlannedRun, Instant::now() + GRACE);
                } else {
                    launched.kill();
                    phase = Phase::Killed;
                }
            }
        }
    }
}

/// Told when the server has ended or was stopped. A thread waits for it: the descriptor is no stream.
fn next_change(launched: &Launched) -> std::io::Result<oneshot::Receiver<()>> {
    let watched = launched.as_fd().try_clone_to_owned()?;
    let (tell, changed) = oneshot::channel();
    std::thread::Builder::new().name("end of server".to_owned()).spawn(move || {
        while poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) == Err(Errno::INTR) {}
        tell.send(())
    })?;
    Ok(changed)
}

/// Ends all that a server has started, and says why pending requests get no answer. What it was refused in its last moment is told
/// apart from its end, and may come later.
pub(super) async fn last_words(
    launched: &mut Launched,
    ended: Option<&Ended>,
    refused: &SandboxRefusals,
) -> String {
    // Its pipes end with it.
    launched.kill();
    let deadline = Instant::now() + PARTING;
    while !launched.has_told_all() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    in_words(ended, &launched.refusals(), &refused.last())
}

/// Why pending requests get no answer, with what the server was refused last.
fn in_words(ended: Option<&Ended>, refusals: &[NetworkEvent], refused: &[String]) -> String {
    let how = ended.map_or_else(|| "it cannot be watched any more".to_owned(), ToString::to_string);
    let mut text = format!("the server has ended: {how}");
    for event in refusals.iter().rev().take(3).filter(|event| event.refusal().is_some()) {
        let port = event.port().map(|port| format!(":{port}")).unwrap_or_default();
        text += &format!("; it tried to reach {}{port}, which is not granted", event.host());
    }
    for what in refused {
        text += &format!("; it {what}, which is not granted");
    }
    text
}
