//! Watching a confined command: its terminal, signals, time, network, and what is reported in the end.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bailiwick_confine::{Exit as Ended, Running};
use bailiwick_policy::plan::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};
use signal_hook::consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::network::{self, Refusals};
use super::record::Record;
use super::relay::{Raw, Relay, Woken, copy_size};
use crate::answer::{Answer, Exit};
use crate::args::run::Run;

/// How long a command may take to end after it was asked to because its time was over.
const GRACE: Duration = Duration::from_millis(500);

/// What was sent to us.
pub(super) type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// Watches a command until it ends.
pub(super) fn watch(
    args: &Run,
    plan: &Plan,
    record: Record,
    refusals: &Refusals,
    (mut confined, mut signals): (Running, Signals),
) -> anyhow::Result<Answer> {
    let record = Arc::new(record);
    let sockets = confined.native().and_then(|native| native.take_egress());
    let network = sockets.map(|sockets| network::serve(args, plan, sockets, &record, refusals));
    let network = network.transpose()?;
    let timeout = plan.limits().timeout_ms.map(Duration::from_millis);
    let ended = until_the_end(&mut confined, &mut signals, timeout);
    let relays = confined.take_relays();
    drop(confined);
    drop(network);
    relays.finish();
    let ended = ended?;
    record.ended(&in_words(ended))?;
    Ok(answer(ended, timeout))
}

/// Ends this process, and with it the sandbox, as soon as the one that started it has ended.
pub(super) fn die_with_parent() -> anyhow::Result<()> {
    let parent = getppid().context("it has ended already")?;
    let watched = pidfd_open(parent, PidfdFlags::empty())?;
    anyhow::ensure!(getppid() == Some(parent), "it has ended already");
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) == Err(Errno::INTR) {}
        // The sandbox's first process hears of it and ends everything.
        kill_process(getpid(), Signal::KILL)
    });
    Ok(())
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
enum End {
    Itself(Ended),
    TimedOut,
}

fn until_the_end(
    confined: &mut Running,
    signals: &mut Signals,
    timeout: Option<Duration>,
) -> anyhow::Result<End> {
    let master = confined.terminal();
    let _raw = master.is_some().then(Raw::enter).transpose().context("cannot use the terminal")?;
    if let Some(master) = &master {
        copy_size(master);
    }
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let ended = confined.as_fd().try_clone_to_owned()?;
    let watched = signals.get_read().as_fd().try_clone_to_owned()?;
    let mut relay =
        Relay { master: master.as_ref(), ended: ended.as_fd(), signals: watched.as_fd(), typing: true };
    let mut asked_to_end = None;
    loop {
        let limit = asked_to_end.or(deadline);
        match relay.wait(limit.map(remaining))? {
            Woken::Ended => break,
            Woken::Signal => pass_on(signals, confined, master.as_ref()),
            Woken::Time if asked_to_end.is_some() => {
                confined.kill();
                return Ok(End::TimedOut);
            }
            Woken::Time => {
                confined.signal(SIGTERM)?;
                asked_to_end = Some(Instant::now() + GRACE);
            }
        }
    }
    let exit = confined.wait()?;
    relay.drain();
    Ok(if asked_to_end.is_some() { End::TimedOut } else { End::Itself(exit) })
}

fn remaining(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    }
}

/// Signals from now on: those that come before the command runs are passed on when it does.
pub(super) fn signals() -> std::io::Result<Signals> {
    let (read, write) = UnixStream::pair()?;
    let passed_on = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
    SignalDelivery::with_pipe(read, write, SignalOnly, passed_on)
}

/// Passes signals on to the command; a new window size to its terminal.
fn pass_on(signals: &mut Signals, confined: &mut Running, master: Option<&std::os::fd::OwnedFd>) {
    for signal in signals.pending() {
        match (signal, master) {
            (SIGWINCH, Some(master)) => copy_size(master),
            // It may have ended already: then there is nobody to signal.
            _ => drop(confined.signal(signal)),
        }
    }
}

fn in_words(end: End) -> String {
    match end {
        End::Itself(Ended::Code(code)) => format!("exit code {code}"),
        End::Itself(Ended::Signal(signal)) => format!("signal {signal}"),
        End::TimedOut => "its time was over".to_owned(),
    }
}

fn answer(end: End, timeout: Option<Duration>) -> Answer {
    match end {
        End::Itself(Ended::Code(code)) => program(code),
        End::Itself(Ended::Signal(signal)) => program(128 + signal),
        End::TimedOut => {
            let after = timeout.unwrap_or_default();
            let why = format!("the command was ended: its {after:?} are over");
            Answer::refusal(Exit::Program(124), super::complaint(&why))
        }
    }
}

fn program(code: i32) -> Answer {
    Answer::result(Exit::Program(u8::try_from(code & 0xff).unwrap_or(u8::MAX)), String::new())
}

/// Runs the command with no sandbox at all. Recorded before it starts; not recorded is not started.
pub(super) fn unconfined(args: &Run, plan: &Plan) -> anyhow::Result<Answer> {
    let opened = Record::open_in(args.journal.clone().flatten());
    let record = match opened.and_then(|record| record.unconfined(plan).map(|()| record)) {
        Ok(record) => record,
        Err(fault) => return Ok(super::refused(&format!("{fault:#}; nothing was started"))),
    };
    let Some((program_name, arguments)) = args.command.split_first() else { return Ok(program(0)) };
    let status = std::process::Command::new(program_name).args(arguments).status();
    match status {
        Ok(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            record.ended(&format!("exit code {code}, without a sandbox"))?;
            Ok(program(code))
        }
        Err(fault) => {
            record.ended("it did not start")?;
            let code = if fault.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            let why = format!("cannot start `{}`: {fault}", program_name.to_string_lossy());
            Ok(Answer::refusal(Exit::Program(code), super::complaint(&why)))
        }
    }
}
