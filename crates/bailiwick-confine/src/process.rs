//! A program of the host that is started within our limits, in a session of its own and with no descriptor but what it
//! is given: another sandbox's program, or one that Landlock and the filter hold. Dropping it ends every process of it.
//!
//! Residual: the thread that starts it must outlive it: the kernel tells it of that thread's end, not of the process'.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Instant;

use bailiwick_layout::fault::{Fault, Step};
use bailiwick_layout::refusal::Refusal;
use bailiwick_policy::enforcement::{Aspect, Coverage, judge};
use bailiwick_policy::plan::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal, setsid, waitid,
};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::cgroup::Places;
use crate::command::{Options, Stdio};
use crate::confined::Exit;
use crate::landlock::Ruleset;
use crate::limits::{Applied, Situation};
use crate::status::Status;
use crate::stdio::{self, Handed, Relays};
use crate::sys::before_exec::{before_exec, hide_descriptors};
use crate::sys::{privileges, seccomp};

/// What a child holds itself to, besides its limits.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) rules: Option<Ruleset>,
    pub(crate) filter: Option<&'static [libc::sock_filter]>,
}

/// A command line, ready to run.
#[derive(Debug)]
pub struct HostCommand {
    /// The program and its arguments.
    pub command: Command,
    /// Descriptors that it inherits under the numbers they have.
    pub inherited: Vec<OwnedFd>,
    /// What ends it besides killing its processes.
    pub teardown: Option<Command>,
    /// What must live as long as it does, such as a directory with its files.
    pub kept: Option<Box<dyn Any + Send>>,
}

impl HostCommand {
    /// A command that needs nothing else.
    #[must_use]
    pub const fn plain(command: Command) -> Self {
        Self { command, inherited: Vec::new(), teardown: None, kept: None }
    }
}

/// A running command.
#[derive(Debug)]
pub struct RunningProcess {
    child: Child,
    pidfd: OwnedFd,
    teardown: Option<Command>,
    status: Status,
    terminal: Option<OwnedFd>,
    relays: Relays,
    ended: Option<Exit>,
    limits: Arc<Applied>,
    _kept: Option<Box<dyn Any + Send>>,
}

/// A program that is ready to start within limits, with these descriptors and no others.
pub struct HostProcess {
    pub(crate) command: HostCommand,
    pub(crate) stdio: Stdio,
    pub(crate) limits: Applied,
    pub(crate) status: Status,
    pub(crate) steps: Steps,
}

/// Resource limits are set before the program makes its user namespace, so they count for the whole user.
const SITUATION: Situation =
    Situation { own_user_namespace: false, host_root: false, counts_by_namespace: false };

impl HostProcess {
    /// A program that confines by itself, as `held` says; limits are ours. `make` is asked for its command line if that
    /// reaches the floor.
    ///
    /// # Errors
    /// What is missing. Nothing was started.
    pub fn prepare(
        plan: &Plan,
        held: Status,
        (stdio, options): (Stdio, &Options),
        make: impl FnOnce() -> Result<HostCommand, Refusal>,
    ) -> Result<Self, Refusal> {
        let limits = Applied::prepare(plan.limits(), &Places::find(), SITUATION);
        let own = judge::limits(plan.limits(), &limits.mechanism());
        let coverage = Coverage::from_fn(|aspect| match aspect {
            Aspect::Limits => own.clone(),
            Aspect::Files
            | Aspect::Network
            | Aspect::Exec
            | Aspect::Environment
            | Aspect::Ipc
            | Aspect::Processes
            | Aspect::Clock => held.coverage.held(aspect).clone(),
        });
        crate::coverage::ensure_floor(&coverage, plan, options.floor.as_ref())?;
        let status = Status { coverage, unheld_limits: limits.unheld(), ..held };
        Ok(Self { command: make()?, stdio, limits, status, steps: Steps::default() })
    }

    /// What will be held.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Starts it.
    ///
    /// # Errors
    /// The step that failed. Nothing runs then.
    pub fn start(self) -> Result<RunningProcess, Refusal> {
        launch(self)
    }
}

fn launch(ready: HostProcess) -> Result<RunningProcess, Refusal> {
    let HostProcess { command, stdio, limits, status, steps } = ready;
    let HostCommand { mut command, inherited, teardown, kept } = command;
    let limits = Arc::new(limits);
    let (terminal, relays) = connect(&mut command, stdio)?;
    let with_terminal = terminal.is_some();
    let (entrances, within) = (limits.entrances().map_err(group)?, Arc::clone(&limits));
    before_exec(&mut command, move || {
        setsid()?;
        if with_terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        hide_descriptors()?;
        inherited.iter().try_for_each(|own| fcntl_setfd(own, FdFlags::empty()))?;
        // To the kernel, zero is the process that writes it.
        entrances.iter().try_for_each(|group| rustix::io::write(group, b"0").map(|_| ()))?;
        within.set_resources()?;
        take_on(&steps)
    });
    let child = command
        .spawn()
        .map_err(|fault| Fault::new(Step::Exec, Errno::from_io_error(&fault).unwrap_or(Errno::IO)))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH);
    let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())).map_err(supervise)?;
    Ok(RunningProcess { child, pidfd, teardown, status, terminal, relays, ended: None, limits, _kept: kept })
}

/// The child's own last steps: no capability is kept, then rules, then the filter.
fn take_on(steps: &Steps) -> Result<(), Errno> {
    if steps.rules.is_some() || steps.filter.is_some() {
        privileges::drop_held()?;
    }
    steps.rules.as_ref().map_or(Ok(()), Ruleset::restrict_self)?;
    steps.filter.map_or(Ok(()), |filter| seccomp::install(filter, false).map(|_| ()))
}

/// Gives the command its descriptors; the supervisor's end of the terminal if it gets one.
fn connect(command: &mut Command, stdio: Stdio) -> Result<(Option<OwnedFd>, Relays), Refusal> {
    let opened = |errno| Fault::new(Step::Terminal, errno);
    let (handed, mut relays) = stdio::open(stdio)?;
    match handed {
        Handed::Given(three) => {
            let [stdin, stdout, stderr] = relays.without_null(three).map_err(opened)?;
            command.stdin(stdin).stdout(stdout).stderr(stderr);
            Ok((None, relays))
        }
        Handed::Terminal => {
            let outer =
                openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(opened)?;
            grantpt(&outer).map_err(opened)?;
            unlockpt(&outer).map_err(opened)?;
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let inner = ioctl_tiocgptpeer(&outer, flags).map_err(opened)?;
            let copy = || rustix::io::fcntl_dupfd_cloexec(&inner, 3).map_err(opened);
            command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
            Ok((Some(outer), relays))
        }
    }
}

impl RunningProcess {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is held.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// The supervisor's end of the terminal, once.
    pub const fn terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// The copying to what stays outside of descriptors 0 to 2, once.
    pub fn take_relays(&mut self) -> Relays {
        std::mem::take(&mut self.relays)
    }

    /// Sends the backend a signal, which it passes on.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, number: i32) -> Result<(), Fault> {
        let signal = Signal::from_named_raw(number).ok_or_else(|| supervise(Errno::INVAL))?;
        rustix::process::pidfd_send_signal(&self.pidfd, signal).map_err(supervise)
    }

    /// Ends every process of it and waits until the backend is gone.
    pub fn kill(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.end_others();
        let _ = self.child.kill();
        if let Ok(status) = self.child.wait() {
            self.ended = Some(exit_of(status));
        }
        self.tear_down();
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Result<Exit, Fault> {
        if let Some(exit) = self.ended {
            return Ok(exit);
        }
        // Its number stays its own until it is reaped.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::PidFd(self.pidfd.as_fd()), options)).map_err(supervise)?;
        self.end_others();
        let errno = |fault: std::io::Error| supervise(Errno::from_io_error(&fault).unwrap_or(Errno::IO));
        let status = self.child.wait().map_err(errno)?;
        self.tear_down();
        Ok(*self.ended.insert(exit_of(status)))
    }

    /// The same until a moment; `None` if it still runs then.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<Exit>, Fault> {
        loop {
            if self.ended.is_some() {
                return Ok(self.ended);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let pidfd = self.pidfd.as_fd();
            let mut ready = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
            match poll(&mut ready, timeout.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => return self.wait().map(Some),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(supervise(errno)),
            }
        }
    }

    /// Ends what the backend has started: its tree, its session's first group, and what is in the groups of limits.
    fn end_others(&self) {
        kill_tree(self.child.id());
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.limits.kill();
    }

    fn tear_down(&mut self) {
        if let Some(mut teardown) = self.teardown.take() {
            let null = std::process::Stdio::null;
            let _ = teardown.stdin(null()).stdout(null()).stderr(null()).status();
        }
    }
}

/// Readable when the program has ended.
impl AsFd for RunningProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills what a process has started, and what that has. A pid namespace's first process is among it, and takes the
/// others along; a process that left its parent without one is not found.
fn kill_tree(root: u32) {
    for _ in 0..8 {
        let found = descendants(root);
        if found.is_empty() {
            return;
        }
        for pid in found.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn descendants(root: u32) -> Vec<u32> {
    let (mut found, mut look) = (Vec::new(), vec![root]);
    while let Some(parent) = look.pop() {
        let children = children(parent);
        found.extend(children.iter().filter(|child| !is_dead(**child)));
        look.extend(children);
    }
    found
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn is_dead(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

fn exit_of(status: ExitStatus) -> Exit {
    status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(125)), Exit::Signal)
}

fn supervise(errno: Errno) -> Fault {
    Fault::new(Step::Supervise, errno)
}

fn group(errno: Errno) -> Fault {
    Fault::new(Step::Group, errno)
}
