//! `wrap --isolate tool`: a process of the server for each capability set, beside the base that opens, lists and tells.
//!
//! A tool that keeps nothing in its server's process runs with exactly what it was granted, beside tools that were granted the
//! same; tools with `state = "shared"` run together, with all that they were granted. What no manifest says anything about
//! runs in the base, together with methods that the manifest lists.
//!
//! Residual: limits hold for each process, not for all together.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bailiwick_journal::Journal;
use bailiwick_launch::{CallsInFlight as Serving, Exit as Ended, Launched, Pipes};
use bailiwick_manifest::{Checked, Manifest, Tool, ToolState};
use bailiwick_mcp::CancellationToken;
use bailiwick_mcp::relay::isolate::{InstanceStreams, Instances};
use bailiwick_mcp::relay::{CallsInFlight, is_method};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::WrappedServer;
use super::gate::no_calls;
use super::refusals::SandboxRefusals;
use super::server_log::ServerLog;
use super::supervise::{last_words, until_the_end, with_reason};
use crate::commands::run::PlannedRun;

/// The most processes of one server, besides the base.
const MOST: usize = 64;

/// How long instances may take to end together; each is ended after its own time.
const ENDING: Duration = Duration::from_secs(5);

/// Tools that run in one process.
pub(super) struct ToolGroup {
    pub(super) tools: Vec<String>,
    /// Whether they share it because they say so.
    pub(super) is_shared: bool,
    pub(super) asked: PlannedRun,
}

/// Which tools run together: names, and whether they share what is in the process.
struct Grouping {
    base: BTreeSet<String>,
    groups: Vec<(Vec<String>, bool)>,
}

impl Grouping {
    fn of(checked: &Checked) -> Self {
        let manifest = checked.manifest();
        let state = |tool: &Tool| if is_method(tool.name()) { None } else { manifest.state_of(tool) };
        let (mut base, mut shared, mut alone) = (BTreeSet::new(), Vec::new(), Vec::<Vec<String>>::new());
        for tool in manifest.tools() {
            let name = tool.name().to_owned();
            match state(tool) {
                None => drop(base.insert(name)),
                Some(ToolState::Shared) => shared.push(name),
                Some(ToolState::None) => {
                    let same = |group: &&mut Vec<String>| {
                        group.first().is_some_and(|other| is_same_authority(checked, other, tool))
                    };
                    match alone.iter_mut().find(same) {
                        Some(group) => group.push(name),
                        None => alone.push(vec![name]),
                    }
                }
            }
        }
        let shared = (!shared.is_empty()).then_some((shared, true));
        Self {
            base,
            groups: shared.into_iter().chain(alone.into_iter().map(|group| (group, false))).collect(),
        }
    }
}

/// Whether two tools are granted the same, by what is written and by what it means.
fn is_same_authority(checked: &Checked, one: &str, other: &Tool) -> bool {
    let written = |tool: &Tool| tool.lines().map(|line| line.value.to_string()).collect::<BTreeSet<_>>();
    let manifest = checked.manifest().tools().iter().find(|tool| tool.name() == one);
    let means = checked.tool(one).zip(checked.tool(other.name()));
    manifest.is_some_and(|one| written(one) == written(other))
        && means.is_some_and(|(one, other)| {
            let (one, other) = (one.authority(), other.authority());
            one.within(other).holds() && other.within(one).holds()
        })
}

/// The base, and every group of tools that runs apart from it. `plan` is given a manifest, and the tool that alone counts.
///
/// # Errors
/// If there are too many, or one cannot be planned for.
pub(super) fn groups(
    checked: &Checked,
    plan: impl Fn(Manifest, Option<String>) -> anyhow::Result<PlannedRun>,
) -> anyhow::Result<(PlannedRun, Vec<ToolGroup>)> {
    let grouping = Grouping::of(checked);
    anyhow::ensure!(
        grouping.groups.len() <= MOST,
        "`--isolate tool` would need {} processes, and {MOST} are the most; let tools share one with `state = \"shared\"`",
        grouping.groups.len()
    );
    let only =
        |names: &BTreeSet<String>| checked.manifest().clone().with_tools(|tool| names.contains(tool.name()));
    let base = plan(only(&grouping.base), None)?;
    let planned = grouping.groups.into_iter().map(|(tools, is_shared)| {
        let one = tools.first().cloned().filter(|_| !is_shared);
        let asked = match one {
            Some(one) => plan(checked.manifest().clone(), Some(one))?,
            None => plan(only(&tools.iter().cloned().collect()), None)?,
        };
        Ok(ToolGroup { tools, is_shared, asked })
    });
    Ok((base, planned.collect::<anyhow::Result<_>>()?))
}

/// How an instance ended.
type LastEnd = Arc<Mutex<Option<Ended>>>;

/// The instances of one conversation.
pub(super) struct ToolInstances {
    server: Arc<WrappedServer>,
    orders: std::sync::mpsc::Sender<Order>,
    log: ServerLog,
    /// Writes a line there without waiting for its reader.
    note: Box<dyn Fn(&str) + Send + Sync>,
    running: Arc<Mutex<JoinSet<()>>>,
    /// Cancelled when the conversation is over, and when we are asked to end.
    pub(super) over: CancellationToken,
    pub(super) asked: CancellationToken,
    /// How the one that ended last has ended; nothing if none has, or if that is not known.
    pub(super) last: LastEnd,
}

/// An instance that was started.
pub(super) struct StartedInstance {
    pub(super) launched: Launched,
    pub(super) pipes: Pipes,
    pub(super) refused: SandboxRefusals,
    pub(super) in_flight: Arc<CallsInFlight>,
}

type Order = (usize, oneshot::Sender<anyhow::Result<StartedInstance>>);

impl ToolInstances {
    /// Nothing is started yet. A thread stays for that: some sandboxes end their program with the thread that started it.
    pub(super) fn new(
        server: &Arc<WrappedServer>,
        journal: &Journal,
        log: ServerLog,
    ) -> anyhow::Result<Self> {
        let (kept, journal) = (Arc::clone(server), journal.clone());
        Self::started_by(server, log, move |number| start(&kept, number, &journal))
    }

    /// The same; `start` starts each.
    pub(super) fn started_by(
        server: &Arc<WrappedServer>,
        log: ServerLog,
        start: impl Fn(usize) -> anyhow::Result<StartedInstance> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (orders, receiver) = std::sync::mpsc::channel::<Order>();
        std::thread::Builder::new().name("starts instances".to_owned()).spawn(move || {
            for (number, order) in receiver {
                drop(order.send(start(number)));
            }
        })?;
        let (over, asked) = (CancellationToken::new(), CancellationToken::new());
        // Its lines are written as long as we run.
        let (note, _) = log.notes();
        let note = Box::new(note);
        let (server, running, last) = (Arc::clone(server), Arc::default(), Arc::default());
        Ok(Self { server, orders, log, note, running, over, asked, last })
    }

    /// What is waited for at the end.
    pub(super) fn running(&self) -> Arc<Mutex<JoinSet<()>>> {
        Arc::clone(&self.running)
    }

    pub(super) async fn start_one(&self, number: usize) -> anyhow::Result<InstanceStreams> {
        let (order, started) = oneshot::channel();
        self.orders.send((number, order)).ok().context("no instance can be started any more")?;
        let started = started.await.context("no instance can be started any more")??;
        let StartedInstance { mut launched, pipes, refused, in_flight } = started;
        let input = Box::new(Sender::from_owned_fd(OwnedFd::from(pipes.stdin))?);
        let output = Box::new(Receiver::from_owned_fd(OwnedFd::from(pipes.stdout))?);
        let errors = self.log.follow(pipes.stderr);
        let (over, asked) = (self.over.child_token(), self.asked.clone());
        let (tell, reason) = oneshot::channel();
        let (ends, last) = (over.clone(), Arc::clone(&self.last));
        let leash = self.server.leash.clone();
        let task = async move {
            let ended = until_the_end(&mut launched, &ends, asked.cancelled()).await;
            *last.lock().unwrap_or_else(PoisonError::into_inner) = ended.as_ref().ok().copied();
            let how = ended.as_ref().map_or_else(|fault| format!("{fault:#}"), ToString::to_string);
            let last = last_words(&mut launched, ended.as_ref().ok(), &refused).await;
            drop(tell.send(with_reason(leash.as_ref(), last)));
            let finished = tokio::task::spawn_blocking(move || {
                // What it was refused last is recorded before its end.
                drop(launched.observations());
                drop(launched.finish(&how));
                errors.wait();
            });
            drop(finished.await);
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(task);
        Ok(InstanceStreams { input, output, in_flight, over, reason })
    }
}

impl Instances for ToolInstances {
    fn of_tool(&self, tool: &str) -> Option<usize> {
        self.server.groups.iter().position(|group| group.tools.iter().any(|own| own == tool))
    }

    async fn start(&self, instance: usize) -> Result<InstanceStreams, String> {
        self.start_one(instance).await.map_err(|fault| format!("{fault:#}"))
    }

    fn note(&self, text: &str) {
        (self.note)(text);
    }
}

/// Starts the process of one group. What it is refused belongs to its one tool, else to the calls that it is answering.
fn start(server: &WrappedServer, number: usize, journal: &Journal) -> anyhow::Result<StartedInstance> {
    let group = server.groups.get(number).context("there is no such group of tools")?;
    let in_flight = no_calls();
    let serving: Serving = match group.tools.as_slice() {
        [only] => {
            let only = only.clone();
            Arc::new(move |_| vec![only.clone()])
        }
        _ => {
            let in_flight = Arc::clone(&in_flight);
            Arc::new(move |moment| in_flight.at(moment.as_nanos()))
        }
    };
    let (mut launched, pipes) = super::start(server, &group.asked, &serving, journal)?;
    let refused = SandboxRefusals::record(&mut launched, &server.name, journal, serving);
    Ok(StartedInstance { launched, pipes, refused, in_flight })
}

/// Waits until the processes of all instances have ended.
pub(super) async fn all_ended(running: &Mutex<JoinSet<()>>) {
    let running = std::mem::take(&mut *running.lock().unwrap_or_else(PoisonError::into_inner));
    drop(tokio::time::timeout(ENDING, running.join_all()).await);
}
