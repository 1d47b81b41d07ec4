//! `wrap --restart on-failure`: a server that has failed is started again, and opened as its client opened it.
//!
//! Fails closed when: the manifest does not say that the server keeps nothing in its process. Pins, budgets and approvals are
//! those of the conversation, not of the process.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::wrap::{Isolate, Wrap};
use bailiwick_journal::Journal;
use bailiwick_launch::Exit as Ended;
use bailiwick_manifest::{Checked, ToolState};
use bailiwick_mcp::relay::isolate::{InstanceStreams, Instances as _};
use bailiwick_mcp::relay::restart::{Restarts, keep_running};
use bailiwick_mcp::relay::{RelayCounts, RelayEnd, RelayStreams, is_method, relay as relay_messages};
use bailiwick_mcp::stdio;
use tokio::io::duplex;
use tokio::sync::oneshot;

use super::WrappedServer;
use super::gate::Gate;
use super::isolate::{StartedInstance, ToolInstances, all_ended};
use super::refusals::SandboxRefusals;
use super::run_state::RunState;
use super::server_log::ServerLog;
use super::supervise::{BUFFER, PARTING, Signals, exit_code, give_back_while_idle};

/// Refuses to start a server again that may keep something in its process.
///
/// # Errors
/// If the manifest does not say that it keeps nothing.
pub(super) fn refuse_stateful(args: &Wrap, checked: &Checked) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.isolate == Isolate::Server,
        "`--restart on-failure` and `--isolate tool` cannot be combined: there, the next call starts a process that has ended"
    );
    let manifest = checked.manifest();
    let tools = manifest.tools().iter().filter(|tool| !is_method(tool.name()));
    let kept = tools.into_iter().find(|tool| manifest.state_of(tool) != Some(ToolState::None));
    match kept {
        None => Ok(()),
        Some(tool) => anyhow::bail!(
            "`--restart on-failure` is for servers that keep nothing in their process, and the manifest does not say so of `{}`; \
             write `stateless = true` in its `[package]`, or `state = \"none\"` for each tool, if that is so",
            tool.name()
        ),
    }
}

/// Starts the whole server, as often as it fails.
struct WholeServer(ToolInstances);

impl Restarts for WholeServer {
    async fn start(&self) -> Result<InstanceStreams, String> {
        self.0.start_one(0).await.map_err(|fault| format!("{fault:#}"))
    }

    fn has_failed(&self) -> bool {
        let last = *self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        !self.0.asked.is_cancelled() && last.is_some_and(|ended| ended != Ended::Code(0))
    }

    fn note(&self, text: &str) {
        self.0.note(text);
    }
}

/// Relays until the server has ended for good.
pub(super) fn relay(server: &Arc<WrappedServer>, gate: Gate, journal: &Journal) -> anyhow::Result<Answer> {
    let log = ServerLog::open(&server.name, Arc::clone(&gate.redactor), server.is_recorded);
    let (kept, records, serving, in_flight) =
        (Arc::clone(server), journal.clone(), gate.serving(), Arc::clone(&gate.of_base));
    let instances = ToolInstances::started_by(server, log.clone(), move |_| {
        let (mut launched, pipes) = super::start(&kept, &kept.asked, &serving, &records)?;
        let refused = SandboxRefusals::record(&mut launched, &kept.name, &records, Arc::clone(&serving));
        Ok(StartedInstance { launched, pipes, refused, in_flight: Arc::clone(&in_flight) })
    })?;
    let (running, last) = (instances.running(), Arc::clone(&instances.last));
    let (over, asked) = (instances.over.clone(), instances.asked.clone());
    let shown = RunState::begin(server, &server.identity, std::process::id(), journal, None);
    let counts = Arc::new(RelayCounts::default());
    let (note, noted) = log.notes();
    let options = gate.into_options(journal, Arc::clone(&counts), note);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let how = runtime.block_on(async {
        tokio::spawn(give_back_while_idle(Arc::clone(&counts)));
        let shown = shown.map(|shown| tokio::spawn(shown.follow(counts)));
        let ((server_in, from_relay), (to_relay, server_out)) = (duplex(BUFFER), duplex(BUFFER));
        let (client_in, client_out) = stdio::standard();
        let streams = RelayStreams { client_in, client_out, server_in, server_out };
        let (tell, reason) = oneshot::channel();
        let end = RelayEnd { over: over.clone(), reason };
        let relayed = tokio::spawn(relay_messages(options, streams, end));
        let mut signals = Signals::new()?;
        let mut servers = tokio::spawn(keep_running(WholeServer(instances), (from_relay, to_relay)));
        let how = tokio::select! {
            how = &mut servers => how,
            () = server.until_asked(signals.recv()) => {
                asked.cancel();
                tokio::time::timeout(PARTING, &mut servers).await.unwrap_or_else(|_| Ok("terminated".to_owned()))
            }
        };
        let how = how.context("the server cannot be watched any more")?;
        drop(tell.send(server.ended_in_words(&how)));
        drop(tokio::time::timeout(PARTING, relayed).await);
        over.cancel();
        all_ended(&running).await;
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
    journal.append(server.ended(&how))?;
    let last = *last.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Answer::result(last.map_or(Exit::Program(125), exit_code), String::new()))
}
