//! Where launches are recorded: in the journal of a session, in the shared journal of the day, or, said aloud, nowhere.
//!
//! A start is recorded before the program is started. Decisions of its network and its end name that record as their
//! parent, so that the events of one launch belong together in a journal that many share.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use bailiwick_confine::Moment;
use bailiwick_egress::Event as NetworkEvent;
use bailiwick_journal::format::{Decision, Enforcement, Event, RecordKind, TokenError};
use bailiwick_journal::{Journal, JournalFault, SharedJournal};
use bailiwick_policy::enforcement::Coverage;
use bailiwick_policy::plan::Plan;

use crate::network::network_event;

/// How many decisions of the network may wait to be written to a shared journal.
const WAITING: usize = 1024;

/// Who records a launch, under which name, and what caused it.
///
/// # Examples
///
/// Without a record, nothing starts:
///
/// ```
/// use bailiwick_journal::{Journal, Options, new_session};
/// use bailiwick_launch::{Command, HostPlanner, Launch, LaunchError, Recorder};
/// use bailiwick_policy::authority::Authority;
///
/// let directory = tempfile::tempdir()?;
/// let journal = Journal::open(&directory.path().join("journal"), new_session()?, Options::default())?;
/// let recorder = Recorder::session("demo", journal.clone());
/// journal.close()?;
///
/// let plan = HostPlanner::default().authority_plan("demo", &Authority::bottom())?;
/// let ready = Launch::new(&plan, Command::new("true"), recorder).prepare()?;
/// assert!(matches!(ready.start(), Err(LaunchError::Unrecorded(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    tool: String,
    parent: Option<u64>,
    sink: Sink,
    serving: Option<CallsInFlight>,
}

/// The calls that a server was answering at a moment, by the names of their tools.
pub type CallsInFlight = Arc<dyn Fn(Moment) -> Vec<String> + Send + Sync>;

/// An event that a server caused, with the call that it was answering: that tool if it was one, else all of them in the
/// reason.
#[must_use]
pub fn attributed(event: Event, server: &str, calls: &[String]) -> Event {
    match calls {
        [] => event,
        [tool] => event.with_tool(tool.clone()).with_server(server.to_owned()),
        several => {
            let reason = event.reason().unwrap_or_default().to_owned();
            let event = event.with_server(server.to_owned());
            event.with_reason(format!("{reason} (calls in flight: {})", several.join(", ")))
        }
    }
}

#[derive(Clone)]
enum Sink {
    Nowhere,
    Session { journal: Journal, is_durable: bool },
    Shared(Arc<SharedJournal>),
}

/// Why something cannot be recorded. What it is about must not happen.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The journal refuses.
    #[error("the journal takes no more: {0}")]
    Journal(#[from] JournalFault),
    /// What is held cannot be written down.
    #[error(transparent)]
    Enforcement(#[from] TokenError),
}

impl Recorder {
    /// Records nothing: a person asked for that, or there is nothing to answer for.
    #[must_use]
    pub fn unrecorded(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), parent: None, sink: Sink::Nowhere, serving: None }
    }

    /// Records in the journal of a session.
    #[must_use]
    pub fn session(tool: impl Into<String>, journal: Journal) -> Self {
        let sink = Sink::Session { journal, is_durable: false };
        Self { tool: tool.into(), parent: None, sink, serving: None }
    }

    /// Records in the shared journal of the day.
    #[must_use]
    pub fn shared(tool: impl Into<String>, journal: SharedJournal) -> Self {
        Self { tool: tool.into(), parent: None, sink: Sink::Shared(Arc::new(journal)), serving: None }
    }

    /// The same; starts and ends are on disk before the caller goes on. The shared journal is never waited for so.
    #[must_use]
    pub fn durable(mut self) -> Self {
        if let Sink::Session { is_durable, .. } = &mut self.sink {
            *is_durable = true;
        }
        self
    }

    /// The same, as a consequence of the event with this number.
    #[must_use]
    pub const fn caused_by(mut self, seq: u64) -> Self {
        self.parent = Some(seq);
        self
    }

    /// The same, where decisions of the network name the calls that the program was answering.
    #[must_use]
    pub fn serving(mut self, calls: CallsInFlight) -> Self {
        self.serving = Some(calls);
        self
    }

    /// The name under which it records.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Records that a program is about to be started, held so.
    ///
    /// # Errors
    /// Why it cannot be recorded. Nothing may be started then.
    pub(crate) fn begin(self, plan: &Plan, held: &Coverage) -> Result<Recorded, RecordError> {
        let levels = held.iter().map(|(aspect, held)| (aspect.as_str(), held.level.as_str()));
        let event = Event::new(RecordKind::SandboxStarted)
            .with_plan_hash(plan.digest())
            .with_enforcement(Enforcement::new(levels.collect::<Vec<_>>())?);
        self.start(event)
    }

    /// Records that a program is about to be started that nothing holds, because a person asked for that.
    ///
    /// # Errors
    /// Why it cannot be recorded. Nothing may be started then.
    pub fn begin_unconfined(self, plan: &Plan) -> Result<Recorded, RecordError> {
        let event = Event::new(RecordKind::SandboxStarted)
            .with_decision(Decision::Allow)
            .with_code("unconfined")
            .with_reason("a person asked for no sandbox")
            .with_plan_hash(plan.digest())
            .with_enforcement(Enforcement::new([("all", "unsupported")])?);
        self.start(event)
    }

    /// Records a decision about a request of this process's own. A journal that takes no more refuses the next call; the
    /// decision itself stands.
    pub(crate) fn network(&self, decided: &NetworkEvent) {
        drop(self.append(network_event(decided, &self.tool), false));
    }

    fn start(mut self, event: Event) -> Result<Recorded, RecordError> {
        let seq = self.append(event, true)?;
        self.parent = seq;
        Ok(Recorded { recorder: self, began: Instant::now(), queue: Mutex::new(Queue::Idle) })
    }

    fn append(&self, event: Event, is_boundary: bool) -> Result<Option<u64>, RecordError> {
        let event = if event.tool().is_some() { event } else { event.with_tool(self.tool.clone()) };
        let event = if let Some(parent) = self.parent { event.with_parent(parent) } else { event };
        Ok(match &self.sink {
            Sink::Nowhere => None,
            Sink::Session { journal, is_durable } => {
                let ack = journal.append(event)?;
                if *is_durable && is_boundary {
                    journal.flush()?;
                }
                Some(ack.seq)
            }
            Sink::Shared(journal) => Some(journal.append([event])?.seq),
        })
    }
}

/// A start that was recorded: what follows names it.
pub struct Recorded {
    recorder: Recorder,
    began: Instant,
    queue: Mutex<Queue>,
}

/// Decisions of the network on their way to a shared journal, whose lock is not for the thread that serves packets.
enum Queue {
    Idle,
    Open(SyncSender<Event>, JoinHandle<()>),
    Closed,
}

impl Recorded {
    /// Records a decision of the program's network. A journal that takes no more refuses the next start; the decision
    /// itself stands.
    pub(crate) fn network(&self, decided: &NetworkEvent, line: Option<&str>) {
        let event = network_event(decided, &self.recorder.tool);
        let calls = self.recorder.serving.as_ref().map(|calls| calls(Moment::now())).unwrap_or_default();
        let event = attributed(event, &self.recorder.tool, &calls);
        let event = if let Some(line) = line { event.with_origin(line.to_owned()) } else { event };
        match &self.recorder.sink {
            Sink::Nowhere => {}
            Sink::Session { .. } => drop(self.recorder.append(event, false)),
            Sink::Shared(journal) => self.enqueue(journal, event),
        }
    }

    fn enqueue(&self, journal: &Arc<SharedJournal>, event: Event) {
        let parent = self.recorder.parent.unwrap_or_default();
        let event = event.with_parent(parent).at(bailiwick_journal::now_us());
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*queue, Queue::Idle) {
            let ((sender, receiver), journal) = (sync_channel(WAITING), Arc::clone(journal));
            let writer = std::thread::Builder::new().name("network-record".to_owned());
            if let Ok(writer) = writer.spawn(move || write(&journal, &receiver)) {
                *queue = Queue::Open(sender, writer);
            }
        }
        if let Queue::Open(sender, _) = &*queue {
            // A writer that is gone has met a journal that takes no more.
            drop(sender.send(event));
        }
    }

    /// Records the end.
    ///
    /// # Errors
    /// If the journal takes no more.
    pub fn end(&self, how: &str) -> Result<(), RecordError> {
        let queue =
            std::mem::replace(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner), Queue::Closed);
        if let Queue::Open(sender, writer) = queue {
            drop(sender);
            drop(writer.join());
        }
        let lasted = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let event = Event::new(RecordKind::SandboxEnded).with_reason(how.to_owned()).with_duration_us(lasted);
        self.recorder.append(event, true).map(|_| ())
    }
}

/// Writes what waits, all of it behind one seal, until no more can come.
fn write(journal: &SharedJournal, waiting: &Receiver<Event>) {
    while let Ok(first) = waiting.recv() {
        if journal.append(std::iter::once(first).chain(waiting.try_iter().take(WAITING))).is_err() {
            return;
        }
    }
}
