//! Being a job of the caller's shell: giving the terminal back when the command is stopped, and taking it again.
//!
//! A command that is stopped on a terminal stops this process too, so that the shell takes the terminal back; when the
//! shell lets this process go on, the command does.

use std::os::fd::OwnedFd;

use bailiwick_launch::Launched;
use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid, getsid, kill_current_process_group};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::signal::{SIGCONT, SIGSTOP, SIGTSTP};

use super::relay::{Raw, copy_size};
use super::supervise::Signals;

/// The caller's terminal, where the command has one of its own.
pub(super) struct Screen<'a> {
    pub(super) master: Option<&'a OwnedFd>,
    pub(super) raw: Option<Raw>,
}

impl Screen<'_> {
    /// Whether what is typed is the command's.
    pub(super) const fn is_ours(&self) -> bool {
        self.master.is_none() || self.raw.is_some()
    }

    /// Takes the terminal if this process is in its foreground.
    pub(super) fn take(&mut self) -> std::io::Result<()> {
        if let (Some(master), None, true) = (self.master, &self.raw, is_in_foreground()) {
            self.raw = Some(Raw::enter()?);
            copy_size(master);
        }
        Ok(())
    }

    /// The command was stopped. On a terminal of its own that was Ctrl-Z; else it stopped itself, and stays so.
    pub(super) fn on_stop(&mut self, confined: &Launched, signals: &mut Signals) -> std::io::Result<()> {
        if self.master.is_some() { self.suspend(confined, signals) } else { Ok(()) }
    }

    /// This process was asked to stop: the command stops first.
    pub(super) fn on_request(&mut self, confined: &Launched, signals: &mut Signals) -> std::io::Result<()> {
        // It may have ended already.
        if self.master.is_some() {
            drop(confined.signal(SIGTSTP));
            return Ok(());
        }
        drop(confined.signal(SIGSTOP));
        self.suspend(confined, signals)
    }

    /// Stops this process with its group, as the terminal would have, and lets the command go on afterwards. Nothing is
    /// stopped if no shell is there to let it go on: the kernel would not either.
    fn suspend(&mut self, confined: &Launched, signals: &mut Signals) -> std::io::Result<()> {
        if is_watched() {
            self.raw = None;
            kill_current_process_group(Signal::TSTP)?;
            signal_hook::low_level::raise(SIGSTOP)?;
            // These were for this process alone.
            let others: Vec<i32> =
                signals.pending().filter(|one| ![SIGTSTP, SIGCONT].contains(one)).collect();
            others.into_iter().for_each(|one| drop(confined.signal(one)));
            self.take()?;
        }
        // It may have been killed meanwhile.
        drop(confined.signal(SIGCONT));
        Ok(())
    }
}

/// Whether this process is in the foreground of the caller's terminal.
fn is_in_foreground() -> bool {
    // Where that cannot be asked, the terminal is not this session's, and the kernel does not stop it for using it.
    tcgetpgrp(std::io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Whether a shell of this session started this process' group.
fn is_watched() -> bool {
    let (group, session) = (getpgrp(), getsid(None));
    let mut above = getppid();
    while let Some(process) = above {
        match getpgid(Some(process)) {
            Ok(own) if own == group => above = parent_of(process),
            Ok(_) => return getsid(Some(process)) == session,
            Err(_) => return false,
        }
    }
    false
}

fn parent_of(process: Pid) -> Option<Pid> {
    let about = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name before may hold anything, brackets too.
    let (_, rest) = about.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}
