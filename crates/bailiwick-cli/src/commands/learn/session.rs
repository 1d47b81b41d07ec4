//! One run of a program that is watched: every access is attributed to the call in flight, and none is lost unnoticed.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bailiwick_command::facts;
use bailiwick_command::terminal::Progress;
use bailiwick_journal::SharedJournal;
use bailiwick_launch::{
    Access, AccessKind, Accesses, BrokeredInside, Command, Exit, Launch, Launched, Layer, NetworkEvent,
    Options, Pipes, Recorder, Stdio, Told, ToldRefusals, Watch,
};
use bailiwick_learn::{Evidence, ToolCall, Touch, least_calls, without_numbers};
use bailiwick_mcp::driver::{DriveError, Driver, ListedTool, Outcome};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use super::names;
use super::plan::environment;
use super::subject::Subject;

/// How much of what a server says on stderr is kept, to be shown if it fails.
const KEPT: usize = 2_000;

/// What is known while a program runs.
struct Watching {
    evidence: Evidence,
    /// The tool that is called now.
    tool: Option<usize>,
    accesses: Option<Accesses>,
    count: usize,
}

impl Watching {
    /// Takes in everything that was told already; false when nothing more will be.
    fn drain(&mut self) -> bool {
        let Some(accesses) = self.accesses.take() else { return false };
        let goes_on = loop {
            match accesses.next_told() {
                Told::Access(access) => {
                    self.count += 1;
                    note(&mut self.evidence, self.tool, &access);
                }
                Told::Nothing => break true,
                Told::End => break false,
            }
        };
        self.accesses = Some(accesses);
        goes_on
    }
}

/// A program's accesses, taken in by a thread of its own.
struct Observer {
    shared: Arc<Mutex<Watching>>,
    reader: Option<JoinHandle<()>>,
}

impl Observer {
    fn new(evidence: Evidence) -> Self {
        let watching = Watching { evidence, tool: None, accesses: None, count: 0 };
        Self { shared: Arc::new(Mutex::new(watching)), reader: None }
    }

    /// Begins to take in what a program that was just started touches.
    fn follow(&mut self, accesses: Accesses) -> std::io::Result<()> {
        let line = accesses.as_fd().try_clone_to_owned()?;
        let brought = accesses.brought_along().filter_map(|path| AbsPath::new(path.to_str()?).ok());
        let brought: Vec<AbsPath> = brought.collect();
        {
            let mut watching = self.lock();
            watching.evidence.shown.extend(brought);
            watching.accesses = Some(accesses);
        }
        let shared = Arc::clone(&self.shared);
        self.reader = Some(std::thread::spawn(move || {
            loop {
                // An interrupted wait is followed by another look.
                let _ = poll(&mut [PollFd::new(&line, PollFlags::IN)], None);
                if !shared.lock().unwrap_or_else(PoisonError::into_inner).drain() {
                    return;
                }
            }
        }));
        Ok(())
    }

    /// What is touched from now on belongs to a call of this tool, or to none. What was touched before was told before.
    fn attribute(&self, tool: Option<usize>) {
        let mut watching = self.lock();
        watching.drain();
        if let Some(tool) = tool {
            watching.evidence.begin_call(tool);
        }
        watching.tool = tool;
    }

    fn net(&self) -> impl Fn(&NetworkEvent) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |event| {
            let mut watching = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let tool = watching.tool;
            let is_allowed = event.refusal().is_none();
            if let (true, Some(port), Some(request)) = (is_allowed, event.port(), event.request()) {
                watching.evidence.requested(tool, event.host(), port, request);
            } else if !is_allowed || event.port().is_some() {
                watching.evidence.reached(tool, event.host(), event.port(), is_allowed);
            }
        }
    }

    fn count(&self) -> usize {
        self.lock().count
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watching> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything, once every process has ended.
    fn finish(mut self) -> (Evidence, usize) {
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
        {
            self.lock().evidence.lost("the thread that takes in accesses failed");
        }
        let mut watching = self.lock();
        let evidence = std::mem::replace(&mut watching.evidence, Evidence::new(""));
        (evidence, watching.count)
    }
}

/// Takes in one access.
fn note(evidence: &mut Evidence, tool: Option<usize>, access: &Access) {
    if names::take(evidence, access) {
        return;
    }
    let touch = match access.kind {
        AccessKind::Socket => return evidence.asked_for_socket(tool),
        AccessKind::Lost => return evidence.lost("an access could not be told"),
        AccessKind::Listen => {
            evidence.ports.extend(access.address.map(|address| address.port()));
            return;
        }
        // Whom it reaches is known by name from its network.
        AccessKind::Connect => return,
        AccessKind::Execute | AccessKind::Protected => None,
        AccessKind::Read => Some(Touch::Read),
        AccessKind::List => Some(Touch::List),
        AccessKind::Look => Some(Touch::Look),
        AccessKind::Write => Some(Touch::Write),
        AccessKind::Make => Some(Touch::Make),
        AccessKind::Remove => Some(Touch::Remove),
    };
    let Some(path) = access.path.to_str() else {
        return evidence.lost("a path that is not UTF-8 was touched");
    };
    match (touch, access.kind) {
        (Some(touch), _) if access.is_there => evidence.touch(tool, path, touch, true),
        (Some(touch), _) => {
            // What the host does not have either was not refused.
            let around =
                if touch == Touch::Make { access.path.parent() } else { Some(access.path.as_path()) };
            if around.is_some_and(|around| around.symlink_metadata().is_ok()) {
                evidence.touch(tool, path, touch, false);
            }
        }
        (None, AccessKind::Protected) => evidence.protected(tool, path),
        (None, _) if access.is_there => evidence.started(tool, path),
        (None, _) => {}
    }
}

/// What came of a run.
pub(super) struct Ran {
    pub(super) evidence: Evidence,
    pub(super) accesses: usize,
    pub(super) layer: Option<Layer>,
    /// What each call answered.
    pub(super) answers: Vec<Result<Outcome, String>>,
    /// How a program that is no server ended.
    pub(super) exit: Option<Exit>,
}

/// Who records the run.
pub(super) fn recorder(name: &str, is_unrecorded: bool) -> anyhow::Result<Recorder> {
    if is_unrecorded {
        return Ok(Recorder::unrecorded(name));
    }
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let journal = SharedJournal::open(&dir)
        .with_context(|| format!("cannot open the journal in `{}`", dir.display()))?;
    Ok(Recorder::shared(name, journal))
}

fn launch<'a>(
    subject: &Subject,
    plan: &'a Plan,
    stdio: Stdio,
    recorder: Recorder,
    watch: Watch,
) -> anyhow::Result<Launch<'a>> {
    let (program, arguments) = subject.command.split_first().context("no command was given")?;
    let command = Command {
        program: program.clone(),
        args: arguments.to_vec(),
        cwd: Some(subject.host.cwd.clone()),
        env: environment(plan),
        stdio,
    };
    let options = Options {
        home: subject.host.home.clone(),
        services: facts::services(),
        watch,
        told_refusals: ToldRefusals::Sockets,
        brokered: if watch == Watch::Everything { names::inside() } else { BrokeredInside::default() },
        search: subject.host.search.clone(),
        layered: true,
        ..Options::default()
    };
    let launch = Launch::new(plan, command, recorder).with_options(options);
    let code = subject.code.clone();
    Ok(launch.with_code(code.code, code.data).with_names(subject.host.names.clone()))
}

/// A program that is watched while it runs.
struct Watched {
    launched: Launched,
    observer: Observer,
}

impl Watched {
    fn start(
        subject: &Subject,
        plan: &Plan,
        stdio: Stdio,
        recorder: Recorder,
        evidence: Evidence,
    ) -> anyhow::Result<Self> {
        let mut observer = Observer::new(evidence);
        let launch = launch(subject, plan, stdio, recorder, Watch::Everything)?.watched_by(observer.net());
        let mut launched = launch.prepare()?.start().map_err(explained)?;
        let accesses = launched.take_accesses().context("this sandbox tells nothing")?;
        observer.follow(accesses)?;
        Ok(Self { launched, observer })
    }

    fn finish(mut self, how: &str) -> anyhow::Result<(Evidence, usize, Option<Layer>)> {
        self.launched.kill();
        let layer = self.launched.take_layer();
        self.launched.finish(how)?;
        let (evidence, count) = self.observer.finish();
        Ok((evidence, count, layer))
    }
}

fn explained(error: bailiwick_launch::LaunchError) -> anyhow::Error {
    let more = bailiwick_command::written_trees::without_layer(&error);
    if more.is_empty() { error.into() } else { anyhow::anyhow!("{error}: {}", more.trim_end()) }
}

/// Runs a program that is no server until it ends, or its time is over.
pub(super) fn run_program(
    subject: &Subject,
    plan: &Plan,
    evidence: Evidence,
    recorder: Recorder,
    patience: Duration,
) -> anyhow::Result<Ran> {
    let mut watched = Watched::start(subject, plan, Stdio::Inherit, recorder, evidence)?;
    let ended = watched.launched.wait_until(Instant::now() + patience)?;
    let how = ended.map_or_else(|| "its time was over".to_owned(), |exit| exit.to_string());
    let (mut evidence, accesses, layer) = watched.finish(&how)?;
    if ended.is_none() {
        evidence.lost("it was ended because its time was over; `--timeout` gives it more");
    }
    Ok(Ran { evidence, accesses, layer, answers: Vec::new(), exit: ended })
}

/// Runs a server, lists its tools and makes the calls that `choose` names for them, one after the other.
pub(super) fn run_server(
    subject: &Subject,
    plan: &Plan,
    evidence: Evidence,
    recorder: Recorder,
    patience: Duration,
    choose: impl FnOnce(&[ListedTool]) -> Vec<ToolCall>,
) -> anyhow::Result<Ran> {
    let (stdio, pipes) = Pipes::open()?;
    let watched = Watched::start(subject, plan, stdio, recorder, evidence)?;
    let errors = std::thread::spawn(move || last_words(pipes.stderr));
    let mut answers = Vec::new();
    let driven = drive(&watched.observer, pipes.stdin, pipes.stdout, patience, choose, &mut answers);
    let (mut evidence, accesses, layer) = watched.finish("every call was made")?;
    let said = errors.join().unwrap_or_default();
    if let Err(why) = driven {
        anyhow::ensure!(
            !answers.is_empty(),
            "{why}{}",
            if said.is_empty() { said } else { format!("; it said: {said}") }
        );
        evidence.lost(&why.to_string());
    }
    Ok(Ran { evidence, accesses, layer, answers, exit: None })
}

fn drive(
    observer: &Observer,
    input: std::io::PipeWriter,
    output: std::io::PipeReader,
    patience: Duration,
    choose: impl FnOnce(&[ListedTool]) -> Vec<ToolCall>,
    answers: &mut Vec<Result<Outcome, String>>,
) -> Result<(), DriveError> {
    let mut driver = Driver::open(input, output, patience)?;
    let tools = driver.tools()?;
    {
        let mut watching = observer.lock();
        for tool in &tools {
            if !watching.evidence.tools.iter().any(|known| known.name == tool.name) {
                let tool = bailiwick_learn::ToolSeen { name: tool.name.clone(), calls: 0 };
                watching.evidence.tools.push(tool);
            }
        }
    }
    let calls = choose(&tools);
    let progress = Progress::begin();
    for (at, call) in calls.iter().enumerate() {
        if let Some(progress) = &progress {
            progress.set(format!(
                "call {} of {}: {}, {} accesses",
                at + 1,
                calls.len(),
                bailiwick_command::render::escape::line(&call.tool),
                observer.count()
            ));
        }
        let known = observer.lock().evidence.tools.iter().position(|tool| tool.name == call.tool);
        observer.attribute(known);
        let answer = driver.call(&call.tool, &call.arguments);
        observer.attribute(None);
        match answer {
            Ok(outcome) => answers.push(Ok(outcome)),
            Err(why) => {
                answers.push(Err(why.to_string()));
                if let Some(progress) = progress {
                    progress.end();
                }
                return Err(why);
            }
        }
    }
    if let Some(progress) = progress {
        progress.end();
    }
    Ok(())
}

/// The end of what a server says on stderr.
fn last_words(mut from: std::io::PipeReader) -> String {
    let (mut kept, mut room) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = from.read(&mut room) {
        kept.extend_from_slice(room.get(..count).unwrap_or_default());
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// What a server or program answered that was held to a plan.
#[derive(Default)]
pub(super) struct Held {
    pub(super) answers: Vec<Result<Outcome, String>>,
    /// How a program that is no server ended.
    pub(super) exit: Option<Exit>,
    /// What a server said on stderr, and why it could not be driven.
    pub(super) said: String,
}

/// Runs the same server or program held to a plan, on a layer, and tells only what it answers.
pub(super) fn run_held(
    subject: &Subject,
    plan: &Plan,
    calls: &[ToolCall],
    patience: Duration,
) -> anyhow::Result<Held> {
    let start = |stdio| {
        let recorder = Recorder::unrecorded(&subject.name);
        let ready = launch(subject, plan, stdio, recorder, Watch::Nothing)?.prepare()?;
        ready.start().map_err(explained)
    };
    if !subject.is_server {
        let mut launched = start(Stdio::Inherit)?;
        let exit = launched.wait_until(Instant::now() + patience)?;
        launched.finish("replayed")?;
        return Ok(Held { exit, ..Held::default() });
    }
    let (stdio, pipes) = Pipes::open()?;
    let launched = start(stdio)?;
    let errors = std::thread::spawn(move || last_words(pipes.stderr));
    let mut answers = Vec::new();
    let driven = Driver::open(pipes.stdin, pipes.stdout, patience).map(|mut driver| {
        for call in calls {
            answers.push(driver.call(&call.tool, &call.arguments).map_err(|why| why.to_string()));
        }
    });
    launched.finish("replayed")?;
    let said = errors.join().unwrap_or_default();
    let said = driven.err().map_or(said.clone(), |why| format!("{why}; it said: {said}"));
    Ok(Held { answers, exit: None, said })
}

/// The least call of each tool that no other call drives.
pub(super) fn generated(tools: &[ListedTool], calls: &[ToolCall]) -> Vec<ToolCall> {
    least_calls(tools.iter().map(|tool| (tool.name.as_str(), &tool.schema)), calls)
}

/// What an answer says but for times, ids and temporary names.
pub(super) fn comparable(answer: &Result<Outcome, String>) -> String {
    without_numbers(&match answer {
        Ok(Outcome::Result(value)) => value.to_string(),
        Ok(Outcome::Error(value)) => Value::from(format!("error {value}")).to_string(),
        Err(why) => why.clone(),
    })
}
