//! A running sandbox: its end, its signals, what it holds. Dropping it ends every process of it.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::control::{Word, hear_with, say};
use crate::fault::{Fault, Step};
use crate::ipc::Mediator;
use crate::limits::Applied;
use crate::native::child;
use crate::native::image::Image;
use crate::status::Status;
use crate::stdio::Relays;
use crate::sys::clone;
use crate::sys::signals;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// The sockets of the sandbox's own network, for the supervisor to serve.
#[derive(Debug)]
pub struct EgressSockets {
    /// For names, over UDP.
    pub dns_udp: Vec<UdpSocket>,
    /// For names, over TCP.
    pub dns_tcp: Vec<TcpListener>,
    /// For connections.
    pub relays: Vec<TcpListener>,
    /// Whether connections are redirected to the relays, so that the kernel knows where they were meant to go.
    pub redirected: bool,
}

/// A running sandbox.
#[derive(Debug)]
pub struct Confined {
    first: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
    status: Status,
    terminal: Option<OwnedFd>,
    egress: Option<EgressSockets>,
    ended: Option<Exit>,
    sockets: Vec<PathBuf>,
    asks: Option<OwnedFd>,
    relays: Relays,
    mediator: Option<Mediator>,
    limits: Applied,
}

/// The supervisor's part of a sandbox that is to start.
pub(crate) struct Confining {
    pub(crate) control: OwnedFd,
    pub(crate) status: Status,
    pub(crate) sockets: Vec<PathBuf>,
    /// The line on which the first process passes connects on.
    pub(crate) asks: Option<OwnedFd>,
    pub(crate) relays: Relays,
    pub(crate) limits: Applied,
}

pub(crate) fn start(image: Image, with: Confining) -> Result<Confined, Fault> {
    let Confining { control, status, sockets, asks, limits, relays } = with;
    let mask = signals::block_all();
    let started = clone::start(child::run, &image);
    mask.restore();
    let started = started.map_err(|errno| Fault::new(Step::Clone, errno))?;
    let mut confined = Confined {
        first: started.pid,
        pidfd: started.pidfd,
        control,
        status,
        terminal: None,
        egress: None,
        ended: None,
        sockets,
        asks,
        relays,
        mediator: None,
        limits,
    };
    confined.limits.enter(confined.pid()).map_err(|errno| Fault::new(Step::Group, errno))?;
    let Image { control: inner, entries, desk, stdio, .. } = image;
    drop((inner, desk, stdio));
    let named = |entry: i32| {
        entries.get(usize::try_from(entry).ok()?).map(|entry| entry.path().to_string_lossy().into_owned())
    };
    confined.await_program(named)?;
    Ok(confined)
}

impl Confined {
    /// The sandbox's first process, as the host numbers it.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.first.as_raw_nonzero().get().unsigned_abs()
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

    /// The sockets of the network, once.
    pub const fn take_egress(&mut self) -> Option<EgressSockets> {
        self.egress.take()
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, number: i32) -> Result<(), Fault> {
        say(self.control.as_fd(), Word::Signal { number }, &[])
            .map_err(|errno| Fault::new(Step::Supervise, errno))
    }

    /// Ends every process of the sandbox and waits until they are gone.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL); // gone already is as good
            self.limits.kill();
            let _ = self.reap();
        }
    }

    /// Waits for the program to end; then no process of the sandbox is left.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Result<Exit, Fault> {
        match self.ended {
            Some(exit) => Ok(exit),
            None => self.hear_end(),
        }
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
            let mut ready = [PollFd::new(&self.control, PollFlags::IN)];
            match rustix::event::poll(&mut ready, timeout.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => return self.hear_end().map(Some),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::new(Step::Supervise, errno)),
            }
        }
    }

    fn hear_end(&mut self) -> Result<Exit, Fault> {
        loop {
            match hear_with(self.control.as_fd()) {
                Ok(Some((Word::Ended { status }, _))) => {
                    self.reap()?;
                    return Ok(*self.ended.insert(exit_of(status)));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(Errno::CONNRESET) => return self.reap(),
                Err(errno) => return Err(Fault::new(Step::Supervise, errno)),
            }
        }
    }

    /// Waits until pid 1, and with it every other process, is gone.
    fn reap(&mut self) -> Result<Exit, Fault> {
        let waited = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
        });
        let status = waited.map_err(|errno| Fault::new(Step::Supervise, errno))?;
        let signal = status.and_then(|status| status.terminating_signal());
        let code = status.and_then(|status| status.exit_status()).unwrap_or(125);
        if let Some(mediator) = self.mediator.take() {
            mediator.join();
        }
        Ok(*self.ended.insert(signal.map_or(Exit::Code(code), Exit::Signal)))
    }

    /// Starts to answer what the filter asks.
    fn mediate(&mut self, descriptors: Vec<OwnedFd>) -> Result<(), Fault> {
        let failed = |errno| Fault::new(Step::Seccomp, errno);
        let listener = descriptors.into_iter().next().ok_or(Errno::BADF).map_err(failed)?;
        let asks = self.asks.take().ok_or(Errno::BADF).map_err(failed)?;
        let started = Mediator::start(listener, asks, std::mem::take(&mut self.sockets));
        let errno = |fault: std::io::Error| Errno::from_io_error(&fault).unwrap_or(Errno::AGAIN);
        self.mediator = Some(started.map_err(|fault| failed(errno(fault)))?);
        Ok(())
    }

    /// Hears what the child says until the program runs.
    fn await_program(&mut self, named: impl Fn(i32) -> Option<String>) -> Result<(), Fault> {
        let unheard = |errno| Fault::new(Step::Handshake, errno);
        loop {
            let heard = hear_with(self.control.as_fd()).map_err(unheard)?;
            let Some((word, descriptors)) = heard else {
                return Err(Fault::new(Step::Handshake, Errno::PIPE));
            };
            match word {
                Word::Failed { step, errno, entry } => {
                    let step = Step::of_code(step).unwrap_or(Step::Handshake);
                    return Err(Fault { step, at: named(entry).map(|path| format!("/{path}")), errno });
                }
                Word::Terminal => self.terminal = descriptors.into_iter().next(),
                Word::Sockets { udp, tcp, redirected } => {
                    self.egress = Some(EgressSockets::of(descriptors, udp, tcp, redirected));
                }
                Word::Listener => self.mediate(descriptors)?,
                Word::Ready => say(self.control.as_fd(), Word::Go, &[]).map_err(unheard)?,
                Word::Running => return Ok(()),
                Word::Ended { .. } | Word::Go | Word::Signal { .. } => {
                    return Err(Fault::new(Step::Handshake, Errno::PROTO));
                }
            }
        }
    }
}

impl EgressSockets {
    fn of(mut descriptors: Vec<OwnedFd>, udp: i32, tcp: i32, redirected: bool) -> Self {
        let count = |number: i32, most: usize| usize::try_from(number).unwrap_or(0).min(most);
        let mut others = descriptors.split_off(count(udp, descriptors.len()));
        let relays = others.split_off(count(tcp, others.len()));
        Self {
            dns_udp: descriptors.into_iter().map(UdpSocket::from).collect(),
            dns_tcp: others.into_iter().map(TcpListener::from).collect(),
            relays: relays.into_iter().map(TcpListener::from).collect(),
            redirected,
        }
    }
}

/// Readable when the program has ended.
impl AsFd for Confined {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A wait status as an exit.
const fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
