//! Watching a confined command: its terminal, signals, time, network, and what is reported in the end.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::render::{escape, style};
use bailiwick_command::terminal;
use bailiwick_launch::{
    Change, Exit as Ended, Launched, Layer, LostFiles, NetworkEvent, Observations, Recorder,
};
use bailiwick_policy::plan::Plan;
use bailiwick_replica::Leash;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};
use signal_hook::consts::signal::{
    SIGABRT, SIGBUS, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGQUIT, SIGSEGV, SIGSYS, SIGTERM, SIGTRAP,
    SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::Chosen;
use super::jobs::Screen;
use super::relay::{Relay, Woken, copy_size};

/// How long a command may take to end after it was asked to because its time was over.
const GRACE: Duration = Duration::from_millis(500);

/// How often a command in the background looks whether it is in the foreground again: a shell does not say so.
const GLANCE: Duration = Duration::from_millis(200);

/// What was sent to us.
pub(super) type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// What became known of a command while it ran.
pub(super) struct Events {
    /// What its network was refused.
    pub(super) refused: Vec<NetworkEvent>,
    /// What else was seen of it.
    pub(super) observed: Observations,
    /// What it wrote where nothing is kept.
    pub(super) lost: LostFiles,
    /// What it wrote where the host stays as it is.
    pub(super) layer: Option<Layer>,
    /// Whether it ended by itself and said that something went wrong.
    pub(super) failed: bool,
}

/// Watches a command until it ends. Returns the answer, and what became known.
pub(super) fn watch(
    plan: &Plan,
    mut launched: Launched,
    mut signals: Signals,
    fleet: Option<&Leash>,
) -> anyhow::Result<(Answer, Events)> {
    let timeout = plan.limits().timeout_ms.map(Duration::from_millis);
    let ended = until_the_end(&mut launched, &mut signals, timeout, fleet);
    let failed = ended.as_ref().is_ok_and(|end| end.is_failure());
    let how = ended.as_ref().map_or_else(|fault| format!("{fault:#}"), |end| in_words(*end, fleet));
    let recorded = if ended.is_ok() { launched.record_end(&how) } else { Ok(()) };
    let (refused, lost) = (launched.refusals(), launched.take_lost());
    let layer = launched.take_layer();
    let events = Events { refused, observed: launched.observations(), lost, layer, failed };
    let finished = launched.finish_last(&how);
    let ended = ended?;
    recorded?;
    finished?;
    Ok((answer(ended, timeout, fleet), events))
}

/// Signals that a program brings upon itself: it crashed, or gave up over something that it was refused.
const CRASHES: [i32; 7] = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP];

/// Ends this process, and with it the sandbox, as soon as the one that started it has ended.
pub(super) fn die_with_parent() -> anyhow::Result<()> {
    let parent = getppid().context("it has ended already")?;
    let watched = pidfd_open(parent, PidfdFlags::empty())?;
    anyhow::ensure!(getppid() == Some(parent), "it has ended already");
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) == Err(Errno::INTR) {}
        // The sandbox's first process sees it and ends everything.
        kill_process(getpid(), Signal::KILL)
    });
    Ok(())
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
enum End {
    Itself(Ended),
    TimedOut,
    /// The fleet said so.
    Revoked,
}

impl End {
    /// Whether it ended by itself because something went wrong.
    fn is_failure(self) -> bool {
        match self {
            Self::Itself(Ended::Code(code)) => code > 0,
            Self::Itself(Ended::Signal(signal)) => CRASHES.contains(&signal),
            Self::TimedOut | Self::Revoked => false,
        }
    }
}

fn until_the_end(
    confined: &mut Launched,
    signals: &mut Signals,
    timeout: Option<Duration>,
    fleet: Option<&Leash>,
) -> anyhow::Result<End> {
    let master = confined.terminal();
    let mut screen = Screen { master: master.as_ref(), raw: None };
    screen.take().context("cannot use the terminal")?;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let ended = confined.as_fd().try_clone_to_owned()?;
    let watched = signals.get_read().as_fd().try_clone_to_owned()?;
    let mut relay = Relay {
        master: master.as_ref(),
        ended: ended.as_fd(),
        signals: watched.as_fd(),
        names: confined.unasked_names().map(|name| name.try_clone_to_owned()).collect::<Result<_, _>>()?,
        typing: true,
        listening: true,
    };
    let mut asked_to_end = None;
    let exit = loop {
        relay.listening = screen.is_ours();
        let glance = (!relay.listening || fleet.is_some()).then(|| Instant::now() + GLANCE);
        if asked_to_end.is_none() && fleet.is_some_and(|leash| leash.ended().is_some()) {
            confined.signal(SIGTERM)?;
            asked_to_end = Some(Instant::now() + GRACE);
        }
        let limit = asked_to_end.or(deadline);
        match relay.wait(limit.into_iter().chain(glance).min())? {
            Woken::Ended => match confined.wait_for_change()? {
                Change::Ended(exit) => break exit,
                Change::Stopped => screen.on_stop(confined, signals)?,
            },
            Woken::Name => {
                relay.names.clear();
                confined.answer_names()?;
            }
            Woken::Signal => {
                screen.take()?;
                pass_on(signals, confined, &mut screen)?;
            }
            Woken::Time if limit.is_none_or(|limit| Instant::now() < limit) => screen.take()?,
            Woken::Time if asked_to_end.is_some() => {
                confined.kill();
                return Ok(by_us(fleet));
            }
            Woken::Time => {
                confined.signal(SIGTERM)?;
                asked_to_end = Some(Instant::now() + GRACE);
            }
        }
    };
    relay.drain();
    Ok(if asked_to_end.is_some() { by_us(fleet) } else { End::Itself(exit) })
}

fn by_us(fleet: Option<&Leash>) -> End {
    if fleet.is_some_and(|leash| leash.ended().is_some()) { End::Revoked } else { End::TimedOut }
}

/// Signals from now on: those that come before the command runs are passed on when it does.
pub(super) fn signals() -> std::io::Result<Signals> {
    let (read, write) = UnixStream::pair()?;
    let passed_on = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH];
    SignalDelivery::with_pipe(read, write, SignalOnly, passed_on)
}

/// Passes signals on to the command; a new window size to its terminal.
fn pass_on(signals: &mut Signals, confined: &Launched, screen: &mut Screen<'_>) -> std::io::Result<()> {
    let all: Vec<i32> = signals.pending().collect();
    for signal in all {
        match (signal, screen.master) {
            (SIGWINCH, Some(master)) => copy_size(master),
            (SIGTSTP, _) => screen.on_request(confined, signals)?,
            // It may have ended already: then there is no process to signal.
            _ => drop(confined.signal(signal)),
        }
    }
    Ok(())
}

fn in_words(end: End, fleet: Option<&Leash>) -> String {
    match end {
        End::Itself(exit) => exit.to_string(),
        End::TimedOut => "its time was over".to_owned(),
        End::Revoked => why_revoked(fleet),
    }
}

fn why_revoked(fleet: Option<&Leash>) -> String {
    fleet.and_then(Leash::ended).unwrap_or_default().to_owned()
}

fn answer(end: End, timeout: Option<Duration>, fleet: Option<&Leash>) -> Answer {
    match end {
        End::Itself(Ended::Code(code)) => program(code),
        End::Itself(Ended::Signal(signal)) => program(128 + signal),
        End::TimedOut => {
            let after = timeout.unwrap_or_default();
            let why = format!("the command was ended: its {after:?} are over");
            Answer::refusal(Exit::Program(124), super::complaint(&why))
        }
        End::Revoked => {
            let why = format!("the command was ended: {}", why_revoked(fleet));
            Answer::refusal(Exit::Program(124), super::complaint(&why))
        }
    }
}

fn program(code: i32) -> Answer {
    Answer::result(Exit::Program(u8::try_from(code & 0xff).unwrap_or(u8::MAX)), String::new())
}

/// Runs the command with no sandbox at all. Recorded before it starts; not recorded is not started.
pub(super) fn unconfined(chosen: &Chosen, plan: &Plan, recorder: Recorder) -> anyhow::Result<Answer> {
    let record = match recorder.begin_unconfined(plan) {
        Ok(record) => record,
        Err(fault) => return Ok(super::refused(&format!("{fault:#}; nothing was started"))),
    };
    let Some((program_name, arguments)) = chosen.command.split_first() else { return Ok(program(0)) };
    let shown = escape::line(&program_name.to_string_lossy());
    let why =
        format!("NO SANDBOX: `{shown}` runs with everything that you may do; nothing of the plan is held");
    terminal::remark(&format!("{}: {why}\n", style::error("warning")));
    let mut command = std::process::Command::new(program_name);
    command.args(arguments);
    if let Some(cwd) = &chosen.cwd {
        command.current_dir(cwd);
    }
    let status = command.status();
    match status {
        Ok(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            record.end(&format!("exit code {code}, without a sandbox"))?;
            Ok(program(code))
        }
        Err(fault) => {
            record.end("it did not start")?;
            let code = if fault.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            let why = format!("cannot start `{}`: {fault}", program_name.to_string_lossy());
            Ok(Answer::refusal(Exit::Program(code), super::complaint(&why)))
        }
    }
}
