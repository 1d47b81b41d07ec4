//! A running sandbox: its end, its signals, what it holds. Dropping it ends every process of it.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Instant;

use bailiwick_layout::fault::{Fault, Step};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::accesses::Accesses;
use crate::control::{Message, recv_with_descriptors, send};
use crate::ipc::Mediator;
use crate::layer::Layer;
use crate::limits::Applied;
use crate::lost::{LostFiles, PrivateDirectories};
use crate::moment::Moment;
use crate::native::child;
use crate::native::image::Image;
use crate::status::Status;
use crate::stdio::Relays;
use crate::sys::clone;
use crate::sys::signals;
use crate::watched::{Observation, Observations, Watched};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    /// `exit code 3`, `signal 9`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What became of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It ended, and so did every other process of its sandbox but the first, which takes the sandbox with it.
    Ended(Exit),
    /// It was stopped, by Ctrl-Z or a signal, and goes on when it is sent `SIGCONT`.
    Stopped,
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
    /// For connections from outside: an unconnected socket and a listener of each family. See
    /// `bailiwick_egress::Entrance`.
    pub entrances: Vec<(OwnedFd, TcpListener)>,
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
    /// Whether every process is known to be gone.
    is_gone: bool,
    sockets: Vec<PathBuf>,
    asks: Option<OwnedFd>,
    relays: Relays,
    mediator: Option<Mediator>,
    limits: Applied,
    watched: Option<Watched>,
    accesses: Option<Accesses>,
    layer: Layer,
    private: PrivateDirectories,
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
    pub(crate) watched: Option<Watched>,
    pub(crate) accesses: Option<Accesses>,
    pub(crate) layer: Layer,
    pub(crate) private: PrivateDirectories,
}

/// Starts a sandbox, and its program once `permit` has succeeded. It is called while the sandbox is being made.
pub(crate) fn start<T, E: From<Fault>>(
    image: Image,
    with: Confining,
    permit: impl FnOnce() -> Result<T, E>,
) -> Result<(Confined, T), E> {
    let Confining { control, status, sockets, asks, limits, relays, watched, accesses, layer, private } =
        with;
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
        is_gone: false,
        sockets,
        asks,
        relays,
        mediator: None,
        limits,
        watched,
        accesses,
        layer,
        private,
    };
    confined.limits.enter(confined.pid()).map_err(|errno| Fault::new(Step::Group, errno))?;
    let Image { control: inner, entries, desk, stdio, says_ready, .. } = image;
    drop((inner, desk, stdio));
    // If it fails, dropping the sandbox ends it: its program was not let go.
    let permitted = permit()?;
    if !says_ready {
        confined.let_go()?;
    }
    let named = |entry: i32| {
        entries.get(usize::try_from(entry).ok()?).map(|entry| entry.path().to_string_lossy().into_owned())
    };
    confined.await_program(named)?;
    Ok((confined, permitted))
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

    /// Tells `hear` of what is seen of the program as it is seen, and when that was, from a thread of its own.
    pub fn tell_live(&mut self, hear: impl Fn(&Observation, Moment) + Send + Sync + 'static) {
        if let Some(watched) = &mut self.watched {
            watched.tell_live(hear);
        }
    }

    /// Whether everything was told that [`tell_live`](Self::tell_live) will ever tell, because every process has ended.
    pub fn has_told_all(&self) -> bool {
        self.watched.as_ref().is_none_or(Watched::is_heard)
    }

    /// What was seen of the program, once it has ended: what it was refused, as far as [`Watch`](crate::Watch) says.
    pub fn observations(&mut self) -> Observations {
        let has_ended = self.is_over();
        let watched = self.watched.as_mut().filter(|_| has_ended);
        watched.map(Watched::observations).unwrap_or_default()
    }

    /// What is told of everything that the program touches, once: where [`Watch::Everything`](crate::Watch::Everything)
    /// asked for it. It has to be read while the program runs, which waits for the reader.
    pub const fn take_accesses(&mut self) -> Option<Accesses> {
        self.accesses.take()
    }

    /// What the program wrote to directories of the host, once: nothing before the end, or if
    /// [`layered`](crate::Options::layered) did not ask for it.
    pub fn take_layer(&mut self) -> Option<Layer> {
        if self.is_over() && self.layer.is_there() { Some(std::mem::take(&mut self.layer)) } else { None }
    }

    /// What was written in the sandbox's own directories and is gone with them, once: nothing before the end, or if
    /// [`counts_lost`](crate::Options::counts_lost) did not ask for it.
    pub fn take_lost(&mut self) -> LostFiles {
        if self.is_over() { self.private.take_lost() } else { LostFiles::default() }
    }

    /// Whether every process is gone that could write or be refused something; what was asked of us is answered then.
    fn is_over(&mut self) -> bool {
        if self.ended.is_some()
            && let Some(mediator) = self.mediator.take()
        {
            mediator.join();
        }
        self.ended.is_some()
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, number: i32) -> Result<(), Fault> {
        send(self.control.as_fd(), Message::Signal { number }, &[])
            .map_err(|errno| Fault::new(Step::Supervise, errno))
    }

    /// Ends every process of the sandbox and waits until they are gone.
    pub fn kill(&mut self) {
        if !self.is_gone {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL); // gone already is as good
            self.limits.kill();
            let _ = self.reap();
        }
    }

    /// The same, for a process that ends now: where the program has ended it does not wait until the kernel has taken the
    /// namespaces apart, and leaves the first process, the only one that is left, as an orphan.
    pub fn leave(&mut self) {
        if self.is_over() && !self.limits.has_groups() {
            self.is_gone = true;
        } else {
            self.kill();
        }
    }

    /// Waits for the program to end; then no process of the sandbox is left.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Result<Exit, Fault> {
        match self.ended {
            Some(_) => self.reap(),
            None => self.hear_end(),
        }
    }

    /// Waits for the program to end or to be stopped. Unlike [`wait`](Self::wait) it does not wait until the kernel has taken the
    /// sandbox apart: there is something to do meanwhile.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_for_change(&mut self) -> Result<Change, Fault> {
        match self.ended {
            Some(exit) => Ok(Change::Ended(exit)),
            None => self.hear_change(),
        }
    }

    /// The same until a moment; `None` if it still runs then.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<Exit>, Fault> {
        loop {
            if self.ended.is_some() {
                return self.reap().map(Some);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let mut ready = [PollFd::new(&self.control, PollFlags::IN)];
            match rustix::event::poll(&mut ready, timeout.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => match self.hear_change()? {
                    Change::Ended(_) => return self.reap().map(Some),
                    Change::Stopped => {}
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::new(Step::Supervise, errno)),
            }
        }
    }

    fn hear_end(&mut self) -> Result<Exit, Fault> {
        loop {
            if let Change::Ended(_) = self.hear_change()? {
                return self.reap();
            }
        }
    }

    fn hear_change(&mut self) -> Result<Change, Fault> {
        loop {
            match recv_with_descriptors(self.control.as_fd()) {
                Ok(Some((Message::Ended { status }, _))) => {
                    return Ok(Change::Ended(*self.ended.insert(exit_of(status))));
                }
                Ok(Some((Message::Stopped { .. }, _))) => return Ok(Change::Stopped),
                Ok(Some(_)) => {}
                Ok(None) | Err(Errno::CONNRESET) => return self.reap().map(Change::Ended),
                Err(errno) => return Err(Fault::new(Step::Supervise, errno)),
            }
        }
    }

    /// Waits until pid 1, and with it every other process, is gone. How the program ended, as far as that is known.
    fn reap(&mut self) -> Result<Exit, Fault> {
        if let Some(exit) = self.ended.filter(|_| self.is_gone) {
            return Ok(exit);
        }
        let waited = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
        });
        let status = waited.map_err(|errno| Fault::new(Step::Supervise, errno))?;
        let signal = status.and_then(|status| status.terminating_signal());
        let code = status.and_then(|status| status.exit_status()).unwrap_or(125);
        if let Some(mediator) = self.mediator.take() {
            mediator.join();
        }
        self.is_gone = true;
        Ok(*self.ended.get_or_insert(signal.map_or(Exit::Code(code), Exit::Signal)))
    }

    /// Starts to answer what the filter asks.
    fn mediate(&mut self, descriptors: Vec<OwnedFd>) -> Result<(), Fault> {
        let failed = |errno| Fault::new(Step::Seccomp, errno);
        let listener = descriptors.into_iter().next().ok_or(Errno::BADF).map_err(failed)?;
        let asks = self.asks.take().ok_or(Errno::BADF).map_err(failed)?;
        let hearer = self.watched.as_ref().map(Watched::hearer).unwrap_or_default();
        let started = Mediator::start(listener, asks, std::mem::take(&mut self.sockets), hearer);
        let errno = |fault: std::io::Error| Errno::from_io_error(&fault).unwrap_or(Errno::AGAIN);
        self.mediator = Some(started.map_err(|fault| failed(errno(fault)))?);
        Ok(())
    }

    /// Lets the program start.
    fn let_go(&self) -> Result<(), Fault> {
        match send(self.control.as_fd(), Message::Go, &[]) {
            // A sandbox that failed has said why.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(Fault::new(Step::Handshake, errno)),
        }
    }

    /// Receives the child's messages until the program runs.
    fn await_program(&mut self, named: impl Fn(i32) -> Option<String>) -> Result<(), Fault> {
        let unheard = |errno| Fault::new(Step::Handshake, errno);
        loop {
            let received = recv_with_descriptors(self.control.as_fd()).map_err(unheard)?;
            let Some((message, descriptors)) = received else {
                return Err(Fault::new(Step::Handshake, Errno::PIPE));
            };
            match message {
                Message::Failed { step, errno, entry } => {
                    let step = Step::of_code(step).unwrap_or(Step::Handshake);
                    return Err(Fault { step, at: named(entry).map(|path| format!("/{path}")), errno });
                }
                Message::Terminal => self.terminal = descriptors.into_iter().next(),
                Message::Sockets { udp, tcp, entrance, redirected } => {
                    self.egress =
                        Some(EgressSockets::from_descriptors(descriptors, [udp, tcp, entrance], redirected));
                }
                Message::Private => self.private.descriptors = descriptors,
                Message::Layer => self.layer.store = descriptors.into_iter().next(),
                Message::Listener => self.mediate(descriptors)?,
                Message::Ready => self.let_go()?,
                Message::Running => return Ok(()),
                Message::Ended { .. } | Message::Stopped { .. } | Message::Go | Message::Signal { .. } => {
                    return Err(Fault::new(Step::Handshake, Errno::PROTO));
                }
            }
        }
    }
}

impl EgressSockets {
    fn from_descriptors(
        mut descriptors: Vec<OwnedFd>,
        [udp, tcp, entrance]: [i32; 3],
        redirected: bool,
    ) -> Self {
        let count = |number: i32, most: usize| usize::try_from(number).unwrap_or(0).min(most);
        let mut others = descriptors.split_off(count(udp, descriptors.len()));
        let mut entrances = others.split_off(count(tcp, others.len()));
        let relays = entrances.split_off(count(entrance, entrances.len()));
        let (mut pairs, mut entrances) = (Vec::new(), entrances.into_iter());
        while let (Some(seed), Some(listener)) = (entrances.next(), entrances.next()) {
            pairs.push((seed, TcpListener::from(listener)));
        }
        Self {
            dns_udp: descriptors.into_iter().map(UdpSocket::from).collect(),
            dns_tcp: others.into_iter().map(TcpListener::from).collect(),
            relays: relays.into_iter().map(TcpListener::from).collect(),
            entrances: pairs,
            redirected,
        }
    }
}

/// Readable when the program has ended or was stopped: see [`Confined::wait_for_change`].
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
