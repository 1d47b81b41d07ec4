//! From a plan and a command to a program that runs, with its network served and its start and end recorded.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bailiwick_broker::Brokering;
use bailiwick_confine::{
    Accesses, BrokeredInside, Change, Command, Exit, Fault, Layer, LostFiles, Moment, Observation,
    Observations, Options, Prepared, Refusal, Relays, Status, Step, System,
};
use bailiwick_egress::{Event as NetworkEvent, ListenError, Listeners};
use bailiwick_policy::plan::{Network, Origin, Plan};

use crate::launcher::{Launcher, Ready, Running};
use crate::network::{self, GrantLines, NameSources, NetworkRefusals, ProgramNetwork};
use crate::record::{RecordError, Recorded, Recorder};

type Watch = Arc<dyn Fn(&NetworkEvent) + Send + Sync>;

/// A command that is to be held to a plan, and who records it.
///
/// # Examples
///
/// What would be held is known before anything runs, and nothing is recorded for asking:
///
/// ```
/// use bailiwick_launch::{Command, HostPlanner, Launch, Recorder};
/// use bailiwick_policy::authority::Authority;
/// use bailiwick_policy::enforcement::{Aspect, Level};
///
/// let plan = HostPlanner::default().authority_plan("demo", &Authority::bottom())?;
/// let ready = Launch::new(&plan, Command::new("true"), Recorder::unrecorded("demo")).prepare()?;
/// assert_eq!(ready.status().coverage.held(Aspect::Network).level, Level::Kernel);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Launch<'a> {
    plan: &'a Plan,
    command: Command,
    recorder: Recorder,
    options: Options,
    sandbox: Sandbox<'a>,
    names: NameSources,
    refusals: NetworkRefusals,
    watch: Option<Watch>,
    lines: GrantLines,
    opens_ports: bool,
    waits_for_names: bool,
    brokering: Option<Brokering>,
}

/// Who holds it.
enum Sandbox<'a> {
    /// Our own, on a system that was looked at before.
    On(Cow<'a, System>),
    By(Launcher, PathBuf),
}

/// Why nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The sandbox refuses, or failed to start.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The start could not be recorded.
    #[error("{0}; nothing was started")]
    Unrecorded(RecordError),
    /// A granted port cannot be listened on outside.
    #[error("{0}; nothing was started")]
    Port(ListenError),
    /// Its network could not be served. It was started for that, and ended.
    #[error("cannot serve the network of the program: {0}")]
    Network(std::io::Error),
}

impl LaunchError {
    /// The exit code of a command that ends so: 126 and 127 as in shells, else 125.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(refusal) => refusal.exit_code(),
            Self::Unrecorded(_) | Self::Port(_) | Self::Network(_) => 125,
        }
    }
}

impl LaunchError {
    /// The code that shells have for a program that is not there or is none; nothing where the sandbox is the reason.
    #[must_use]
    pub fn shell_code(&self) -> Option<i32> {
        match self {
            Self::Refused(Refusal::Fault(fault)) => (fault.step == Step::Exec).then_some(126),
            Self::Refused(refusal) => Some(i32::from(refusal.exit_code())).filter(|code| *code != 125),
            Self::Unrecorded(_) | Self::Port(_) | Self::Network(_) => None,
        }
    }
}

impl<'a> Launch<'a> {
    /// `command` held to `plan` by the native sandbox.
    #[must_use]
    pub fn new(plan: &'a Plan, command: Command, recorder: Recorder) -> Self {
        Self {
            plan,
            command,
            recorder,
            options: Options::default(),
            sandbox: Sandbox::By(Launcher::Native, PathBuf::new()),
            names: NameSources::default(),
            refusals: NetworkRefusals::default(),
            watch: None,
            lines: GrantLines::default(),
            opens_ports: false,
            waits_for_names: false,
            brokering: None,
        }
    }

    /// The ports that the plan names are listened on outside, and their connections handed in. Without this they are
    /// not opened. The native sandbox alone can.
    #[must_use]
    pub fn opening_ports(mut self) -> Self {
        self.opens_ports = true;
        self
    }

    /// The secrets that the plan brokers are put into requests by this. Without it a plan that brokers any is refused. The
    /// native sandbox alone can.
    ///
    /// A sandbox starts as a copy of this process, so no value is in here: the process behind the brokering has them.
    #[must_use]
    pub fn brokering(mut self, brokering: Brokering) -> Self {
        self.brokering = Some(brokering);
        self
    }

    /// The caller that waits for the program answers names: see [`Launched::unasked_names`]. Most programs without a granted
    /// host never ask for one, and a thread that waits for it costs more than all else that a network without hosts needs.
    #[must_use]
    pub const fn waiting_for_names(mut self) -> Self {
        self.waits_for_names = true;
        self
    }

    /// Held by another sandbox. `scratch` is where a private directory may be made.
    #[must_use]
    pub fn held_by(mut self, launcher: Launcher, scratch: &Path) -> Self {
        self.sandbox = Sandbox::By(launcher, scratch.to_owned());
        self
    }

    /// Held by the native sandbox, on a system that was looked at before: for several programs of one call.
    #[must_use]
    pub fn on_system(mut self, system: &'a System) -> Self {
        self.sandbox = Sandbox::On(Cow::Borrowed(system));
        self
    }

    /// The same for the only program of a call.
    #[must_use]
    pub fn on_own_system(mut self, system: System) -> Self {
        self.sandbox = Sandbox::On(Cow::Owned(system));
        self
    }

    /// With a floor, a home and local services of the caller's.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// After the options: shows the command these files and directories of its own, see [`Options`].
    #[must_use]
    pub fn with_code(mut self, code: Vec<PathBuf>, data: Vec<PathBuf>) -> Self {
        (self.options.code, self.options.data) = (code, data);
        self
    }

    /// After the options: Unix sockets are told of where none is granted, see [`Options`].
    #[must_use]
    pub const fn telling_sockets(mut self) -> Self {
        self.options.told_refusals = bailiwick_confine::ToldRefusals::Sockets;
        self
    }

    /// Names are found so.
    #[must_use]
    pub fn with_names(mut self, names: NameSources) -> Self {
        self.names = names;
        self
    }

    /// What its network is refused is remembered there too.
    #[must_use]
    pub fn noting_refusals(mut self, refusals: NetworkRefusals) -> Self {
        self.refusals = refusals;
        self
    }

    /// `watch` is called for every decision of its network. It is called between packets, so it must not block.
    #[must_use]
    pub fn watched_by(mut self, watch: impl Fn(&NetworkEvent) + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Events of its network name the line that decided, as `name` calls it: a line of the manifest, or nothing where
    /// the plan knows of none.
    #[must_use]
    pub fn naming_lines(mut self, name: impl Fn(Option<&Origin>) -> String) -> Self {
        self.lines = GrantLines::new(self.plan, name);
        self
    }

    /// Checks and opens everything; starts and records nothing.
    ///
    /// # Errors
    /// What is missing, and what to write to change that.
    pub fn prepare(self) -> Result<ReadyLaunch<'a>, Refusal> {
        let Self { plan, command, recorder, mut options, sandbox, names, .. } = self;
        let Self { refusals, watch, lines, opens_ports, waits_for_names, brokering, .. } = self;
        must_be_brokered(plan, brokering.as_ref())?;
        if let Some(brokering) = &brokering {
            let placeholders =
                brokering.placeholders().map(|(name, text)| (name.into(), text.into())).collect();
            options.brokered = BrokeredInside { placeholders, files: brokering.files() };
        }
        if let (Some(first), Sandbox::By(launcher, _)) = (plan.environment().brokered.first(), &sandbox) {
            launcher.must_be_native(&first.value.to_string(), "put a secret into requests")?;
        }
        if opens_ports && let (Sandbox::By(launcher, _), [first, ..]) = (&sandbox, plan.listens()) {
            launcher.must_be_native(&format!("net:listen:{}", first.value), "open a port")?;
        }
        let ready = match sandbox {
            Sandbox::On(system) => Prepared::on_own(system.into_owned(), plan, command, options)?.into(),
            Sandbox::By(launcher, scratch) => launcher.prepare(plan, command, options, &scratch)?,
        };
        Ok(ReadyLaunch {
            plan,
            ready,
            recorder,
            names,
            refusals,
            watch,
            lines,
            opens_ports,
            waits_for_names,
            brokering,
        })
    }
}

/// A program that is ready to start.
pub struct ReadyLaunch<'a> {
    plan: &'a Plan,
    ready: Ready,
    recorder: Recorder,
    names: NameSources,
    refusals: NetworkRefusals,
    watch: Option<Watch>,
    lines: GrantLines,
    opens_ports: bool,
    waits_for_names: bool,
    brokering: Option<Brokering>,
}

impl ReadyLaunch<'_> {
    /// What will be held.
    #[must_use]
    pub fn status(&self) -> &Status {
        self.ready.status()
    }

    /// Records the start, starts the program and serves its network.
    ///
    /// # Errors
    /// Why nothing runs. A start that was recorded and did not happen is recorded as such.
    pub fn start(self) -> Result<Launched, LaunchError> {
        let Self { plan, ready, recorder, names, refusals, watch, lines, .. } = self;
        let Self { opens_ports, waits_for_names, brokering, .. } = self;
        let ports = plan.listens().iter().filter(|_| opens_ports).map(|listen| listen.value);
        let listeners = Listeners::bind(ports).map_err(LaunchError::Port)?;
        let coverage = ready.status().coverage.clone();
        let (mut running, (beginning, tls_end)) = ready.start(|| {
            let began =
                recorder.begin(plan, &coverage).map(Beginning::new).map_err(LaunchError::Unrecorded)?;
            Ok::<_, LaunchError>((began, brokering.map(Brokering::open)))
        })?;
        let sockets = running.native().and_then(|native| native.take_egress());
        let is_closed = *plan.network() == Network::None && listeners.is_empty();
        let network = sockets.map(|sockets| {
            let (recorded, refusals) = (Arc::clone(&beginning.recorded), refusals.clone());
            network::unserved(plan.network(), (sockets, listeners), names, tls_end, move |event| {
                refusals.note(event);
                if let Some(watch) = &watch {
                    watch(event);
                }
                recorded.network(event, lines.deciding(event));
            })
        });
        let network = match network {
            Some(network) if !(is_closed && waits_for_names) => {
                Some(network.serve().map_err(LaunchError::Network)?)
            }
            unasked => unasked,
        };
        Ok(Launched { running, network, recorded: Some(beginning.happened()), refusals })
    }
}

/// Refuses a plan with a secret that nothing puts into requests: its program would only fail, and not say why.
fn must_be_brokered(plan: &Plan, brokering: Option<&Brokering>) -> Result<(), Refusal> {
    let has = |name: &str| brokering.is_some_and(|all| all.placeholders().any(|(own, _)| own == name));
    match plan.environment().brokered.iter().find(|secret| !has(&secret.value.name)) {
        None => Ok(()),
        Some(secret) => Err(Refusal::Unusable {
            backend: "native".to_owned(),
            why: format!("`{}` has no source of its value", secret.value),
            fix: format!("name one with `--secret {}=SOURCE`", secret.value.name),
        }),
    }
}

/// A start on record that has not happened yet. Dropped before it has, it is recorded as such.
struct Beginning {
    recorded: Arc<Recorded>,
    has_happened: bool,
}

impl Beginning {
    fn new(recorded: Recorded) -> Self {
        Self { recorded: Arc::new(recorded), has_happened: false }
    }

    fn happened(mut self) -> Arc<Recorded> {
        self.has_happened = true;
        Arc::clone(&self.recorded)
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if !self.has_happened {
            // The refusal itself is the answer.
            drop(self.recorded.end("it did not start"));
        }
    }
}

/// A program that runs, held to its plan. Dropping it ends every process of it.
pub struct Launched {
    running: Running,
    /// Ends with the program.
    network: Option<ProgramNetwork>,
    /// Until its end is recorded.
    recorded: Option<Arc<Recorded>>,
    refusals: NetworkRefusals,
}

impl Launched {
    /// What is held.
    #[must_use]
    pub fn status(&self) -> &Status {
        self.running.status()
    }

    /// Its first process, as the host numbers it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// What its network was refused so far, each once.
    #[must_use]
    pub fn refusals(&self) -> Vec<NetworkEvent> {
        self.refusals.all()
    }

    /// Tells `hear` of what is seen of the program as it is seen, and when that was: see [`Options::watch`]. It is called on a
    /// thread of its own.
    pub fn tell_live(&mut self, hear: impl Fn(&Observation, Moment) + Send + Sync + 'static) {
        if let Some(native) = self.running.native() {
            native.tell_live(hear);
        }
    }

    /// Whether everything was told that [`tell_live`](Self::tell_live) will ever tell. Soon so once the program has ended.
    pub fn has_told_all(&mut self) -> bool {
        self.running.native().is_none_or(|native| native.has_told_all())
    }

    /// What was seen of the program, once it has ended: see [`Options::watch`]. Only the native sandbox sees anything.
    pub fn observations(&mut self) -> Observations {
        self.running.observations()
    }

    /// Sockets on which a program without a granted host asks for names, where [`Launch::waiting_for_names`] left them: once one
    /// of them is readable, [`answer_names`](Self::answer_names) is to be called.
    pub fn unasked_names(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.network.iter().flat_map(|network| network.unasked()).map(AsFd::as_fd)
    }

    /// Answers names from now on, on a thread of its own.
    ///
    /// # Errors
    /// If no thread can be started. Names are not answered then.
    pub fn answer_names(&mut self) -> std::io::Result<()> {
        self.network = self.network.take().map(ProgramNetwork::serve).transpose()?;
        Ok(())
    }

    /// The supervisor's end of its terminal, once.
    pub fn terminal(&mut self) -> Option<OwnedFd> {
        self.running.terminal()
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, number: i32) -> Result<(), Fault> {
        self.running.signal(number)
    }

    /// What is told of everything that it touches, once: see [`Watch::Everything`](crate::Watch::Everything). Only the native
    /// sandbox tells.
    pub fn take_accesses(&mut self) -> Option<Accesses> {
        self.running.native().and_then(bailiwick_confine::Confined::take_accesses)
    }

    /// What it wrote to directories of the host, kept apart from them, once; nothing before its end: see
    /// [`Options::layered`].
    pub fn take_layer(&mut self) -> Option<Layer> {
        self.running.native().and_then(bailiwick_confine::Confined::take_layer)
    }

    /// What it wrote in the sandbox's own directories and lost at its end, once; nothing before.
    pub fn take_lost(&mut self) -> LostFiles {
        self.running.native().map_or_else(LostFiles::default, |native| native.take_lost())
    }

    /// Ends every process of it.
    pub fn kill(&mut self) {
        self.running.kill();
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Result<Exit, Fault> {
        self.running.wait()
    }

    /// Waits for the program to end or to be stopped. Only the native sandbox says that it was stopped.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_for_change(&mut self) -> Result<Change, Fault> {
        self.running.wait_for_change()
    }

    /// The same until a moment; `None` if it still runs then.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<Exit>, Fault> {
        self.running.wait_until(deadline)
    }

    /// Ends its network and records `how` it ended, while the kernel ends what is left of a program that has ended.
    /// [`finish`](Self::finish) does the same where this was not called.
    ///
    /// # Errors
    /// If the end cannot be recorded.
    pub fn record_end(&mut self, how: &str) -> Result<(), RecordError> {
        drop(self.network.take());
        self.recorded.take().map_or(Ok(()), |recorded| recorded.end(how))
    }

    /// Ends what is left of it and its network, waits for output that is still on its way, and records `how` it ended.
    ///
    /// # Errors
    /// If the end cannot be recorded.
    pub fn finish(self, how: &str) -> Result<(), RecordError> {
        self.finish_by(how, Running::kill)
    }

    /// The same, for a process that ends now: nothing of the program is left, and what the kernel has to clear away of its
    /// sandbox is not waited for. See [`Confined::leave`](bailiwick_confine::Confined::leave).
    ///
    /// # Errors
    /// If the end cannot be recorded.
    pub fn finish_last(self, how: &str) -> Result<(), RecordError> {
        self.finish_by(how, Running::leave)
    }

    fn finish_by(mut self, how: &str, end: impl FnOnce(&mut Running)) -> Result<(), RecordError> {
        let relays: Relays = self.running.take_relays();
        end(&mut self.running);
        relays.finish();
        self.record_end(how)
    }
}

/// Readable when the program has ended or was stopped: see [`Launched::wait_for_change`].
impl AsFd for Launched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.running.as_fd()
    }
}
