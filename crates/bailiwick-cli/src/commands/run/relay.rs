//! Between the caller's terminal and the sandbox's own: bytes, window size, and raw mode while it lasts.
//!
//! The caller's terminal never enters the sandbox; what is typed and shown passes through here. It is in raw mode only
//! while this process is in its foreground: from the background a shell's job may write to it, but not read or set it.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// Whether the command is started from a terminal on all its sides.
pub(super) fn on_a_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// The caller's terminal in raw mode; put back when dropped.
pub(super) struct Raw(Termios);

impl Raw {
    pub(super) fn enter() -> std::io::Result<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A failure here cannot be reported any more.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// Gives the sandbox's terminal the size of the caller's.
pub(super) fn copy_size(master: &OwnedFd) {
    if let Ok(size) = tcgetwinsize(std::io::stdin()) {
        // A terminal that is gone has no size.
        let _ = tcsetwinsize(master, size);
    }
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The deadline.
    Time,
    /// The command may have ended, or was stopped.
    Ended,
    /// A signal came.
    Signal,
    /// A command without a granted host asks for a name.
    Name,
}

/// The two terminals and what else is waited for.
pub(super) struct Relay<'a> {
    /// The sandbox's terminal, if it has one.
    pub(super) master: Option<&'a OwnedFd>,
    /// Readable when the command has ended or was stopped.
    pub(super) ended: BorrowedFd<'a>,
    /// Readable when a signal has come.
    pub(super) signals: BorrowedFd<'a>,
    /// Readable when a name is asked for and no name server runs yet.
    pub(super) names: Vec<OwnedFd>,
    /// Whether the caller still types.
    pub(super) typing: bool,
    /// Whether what is typed is meant for the command: not while it is in the background.
    pub(super) listening: bool,
}

impl Relay<'_> {
    /// Copies until the command may have ended, a signal came, or the time is over.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> std::io::Result<Woken> {
        loop {
            let timeout = until.map(remaining);
            if timeout.is_some_and(|left| left == Timespec::default()) {
                return Ok(Woken::Time); // also of a command that never stops printing
            }
            let stdin = std::io::stdin();
            let mut asked =
                vec![PollFd::new(&self.ended, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            asked.extend(self.names.iter().map(|name| PollFd::new(name, PollFlags::IN)));
            let first_of_terminal = asked.len();
            if let Some(master) = self.master {
                asked.push(PollFd::new(master, PollFlags::IN));
                if self.typing && self.listening {
                    asked.push(PollFd::new(&stdin, PollFlags::IN));
                }
            }
            match poll(&mut asked, timeout.as_ref()) {
                Ok(0) => return Ok(Woken::Time),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(fault) => return Err(fault.into()),
            }
            let ready: Vec<bool> = asked.iter().map(|one| !one.revents().is_empty()).collect();
            let is_ready = |at: usize| ready.get(at).copied().unwrap_or(false);
            if is_ready(first_of_terminal) {
                self.show();
            }
            if is_ready(first_of_terminal + 1) {
                self.pass_keys();
            }
            if is_ready(1) {
                return Ok(Woken::Signal);
            }
            if is_ready(0) {
                return Ok(Woken::Ended);
            }
            if (2..first_of_terminal).any(is_ready) {
                return Ok(Woken::Name);
            }
        }
    }

    /// Shows what the command has printed; false if there is nothing more.
    pub(super) fn show(&mut self) -> bool {
        let Some(master) = self.master else { return false };
        let mut bytes = [0; 16 * 1024];
        match rustix::io::read(master, &mut bytes) {
            Ok(count) if count > 0 => {
                let mut stdout = std::io::stdout().lock();
                let shown = stdout.write_all(bytes.get(..count).unwrap_or_default());
                shown.and_then(|()| stdout.flush()).is_ok()
            }
            Ok(_) | Err(_) => {
                self.master = None;
                false
            }
        }
    }

    /// Shows what is still there after the command has ended.
    pub(super) fn drain(&mut self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while let Some(master) = self.master {
            let mut asked = [PollFd::new(master, PollFlags::IN)];
            let more = poll(&mut asked, Some(&now)).is_ok_and(|count| count > 0);
            if !more || !self.show() {
                return;
            }
        }
    }

    fn pass_keys(&mut self) {
        let Some(master) = self.master else { return };
        let mut bytes = [0; 4096];
        match rustix::io::read(std::io::stdin().as_fd(), &mut bytes) {
            Ok(count) if count > 0 => write_all(master, bytes.get(..count).unwrap_or_default()),
            Ok(_) | Err(_) => self.typing = false,
        }
    }
}

fn remaining(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    }
}

fn write_all(to: &OwnedFd, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(to, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
