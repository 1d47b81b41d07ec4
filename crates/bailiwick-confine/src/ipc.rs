//! Mediated Unix sockets: every `connect` inside is passed on to this supervisor, outside, and waits for its answer.
//!
//! A connect to a granted name is made here, from a socket of our own, which then takes the place of the child's
//! descriptor; the child never names a path to the kernel. Everything is decided on a copy of the address that is
//! read once. A connect is never *continued*: between the check and the kernel's own reading, another thread could
//! change the address or put a Unix socket in the descriptor's place. So a socket of the Internet is connected here
//! too, through a duplicate of the child's own: it stays in the child's network namespace, where it can reach what it
//! could anyway, and whatever the descriptor is swapped for later is not connected.
//!
//! Only exact absolute names count; a name is opened without following a link anywhere in it, so a directory the child
//! can write cannot redirect it.
//!
//! Fails closed when: anything is odd (`EACCES`), this thread ends (`ENOSYS`, by the kernel).
//! Residual: the service sees this process as its peer (same user); options set on the child's socket before connect
//! are lost but for non-blocking and close-on-exec; a granted service can hand in any descriptor it likes.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use bailiwick_layout::weakened;
use bailiwick_policy::capability::Endpoint;
use bailiwick_policy::plan::Ipc;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fcntl_setfl, fstat, openat2};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, getpeername, socket_with, sockopt,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::control;
use crate::moment::Moment;
use crate::sys::notify::{self, TrappedCall};
use crate::watched::{Hearer, Observation};

#[cfg(test)]
mod tests;

/// Connects that may wait for their end at one time; each holds a descriptor of this process.
const WAITING: usize = 256;
/// How often a connect that waits is looked at again, in nanoseconds.
const TICK: i64 = 20_000_000;
/// The largest address the kernel takes.
const LONGEST: u64 = 128;

/// The names that a plan grants: sockets by their path, services by where this host has them. The second list is
/// what was granted and is not there.
pub(crate) fn names(ipc: &Ipc, host: &[(Endpoint, PathBuf)]) -> (Vec<PathBuf>, Vec<Endpoint>) {
    if ipc.any {
        return (host.iter().map(|(_, path)| path.clone()).collect(), Vec::new());
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for endpoint in ipc.endpoints.iter().map(|endpoint| &endpoint.value) {
        let known = host.iter().find(|(own, _)| own == endpoint).map(|(_, path)| path.clone());
        match (endpoint, known) {
            (_, Some(path)) => found.push(path),
            (Endpoint::Unix(path), None) => found.push(PathBuf::from(path.to_string())),
            (Endpoint::Private, None) => {} // the first process connects to those
            (other, None) => missing.push(other.clone()),
        }
    }
    (found, missing)
}

/// The supervisor of a sandbox's connects: a thread that ends with the sandbox.
#[derive(Debug)]
pub(crate) struct Mediator {
    thread: JoinHandle<()>,
}

impl Mediator {
    /// Answers the calls of `listener` that the sandbox's first process passes on by `asks`. A name in `allowed` is
    /// compared byte by byte with what is asked for.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(crate) fn start(
        listener: OwnedFd,
        asks: OwnedFd,
        allowed: Vec<PathBuf>,
        hearer: Arc<Hearer>,
    ) -> io::Result<Self> {
        let desk = Desk { listener, asks, allowed, waiting: Vec::new(), hearer, told: Vec::new() };
        let thread = std::thread::Builder::new().name("unix-sockets".to_owned());
        Ok(Self { thread: thread.spawn(move || desk.serve())? })
    }

    /// Waits until the last process under the filter is gone.
    pub(crate) fn join(self) {
        let _ = self.thread.join();
    }
}

struct Desk {
    listener: OwnedFd,
    asks: OwnedFd,
    allowed: Vec<PathBuf>,
    waiting: Vec<Waiting>,
    /// Who hears of refused names, and those that were told, each once.
    hearer: Arc<Hearer>,
    told: Vec<PathBuf>,
}

/// A connect that has no answer yet.
struct Waiting {
    id: u64,
    what: Attempt,
}

enum Attempt {
    /// The child's own socket is connecting.
    Internet(OwnedFd),
    /// A service whose queue is full.
    Service(Service),
}

/// What a connect to a service needs.
struct Service {
    path: PathBuf,
    socket: OwnedFd,
    descriptor: u32,
    close_on_exec: bool,
    blocking: bool,
}

/// What becomes of a connect.
enum Turn {
    Answer(Result<(), Errno>),
    Wait(Attempt),
}

impl Desk {
    fn serve(mut self) {
        while let Ok(open) = self.step() {
            if !open {
                return;
            }
        }
    }

    /// One round; false once no process that could ask is left.
    fn step(&mut self) -> Result<bool, Errno> {
        let events = self.wait()?;
        if events.contains(PollFlags::IN) {
            match receive(self.asks.as_fd())? {
                Some(asked) => self.ask(&asked),
                None => return Ok(false),
            }
        } else if !events.is_empty() {
            return Ok(false);
        }
        self.look_again();
        Ok(true)
    }

    fn wait(&self) -> Result<PollFlags, Errno> {
        let mut descriptors = vec![PollFd::new(&self.asks, PollFlags::IN)];
        for Waiting { what, .. } in &self.waiting {
            if let Attempt::Internet(socket) = what {
                descriptors.push(PollFd::new(socket, PollFlags::OUT));
            }
        }
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK };
        match poll(&mut descriptors, (!self.waiting.is_empty()).then_some(&tick)) {
            Ok(_) => Ok(descriptors.first().map_or(PollFlags::NVAL, PollFd::revents)),
            Err(Errno::INTR) => Ok(PollFlags::empty()),
            Err(errno) => Err(errno),
        }
    }

    fn ask(&mut self, asked: &TrappedCall) {
        let turn = self.judge(asked).unwrap_or_else(|errno| Turn::Answer(Err(errno)));
        match turn {
            Turn::Answer(answer) => self.answer(asked.id, answer),
            Turn::Wait(_) if self.waiting.len() >= WAITING => self.answer(asked.id, Err(Errno::AGAIN)),
            Turn::Wait(what) => self.waiting.push(Waiting { id: asked.id, what }),
        }
    }

    /// A caller that is gone needs no answer, so a failure to give one means nothing.
    fn answer(&self, id: u64, answer: Result<(), Errno>) {
        let _ = notify::answer(self.listener.as_fd(), id, answer);
    }

    fn judge(&mut self, asked: &TrappedCall) -> Result<Turn, Errno> {
        let call = Call::read(asked)?;
        if !notify::still_waits(self.listener.as_fd(), asked.id) {
            return Err(Errno::ACCESS);
        }
        match sockopt::socket_domain(&call.socket)? {
            AddressFamily::UNIX => self.connect_service(asked, call),
            AddressFamily::INET | AddressFamily::INET6 => connect_internet(call),
            _ => Err(Errno::ACCESS),
        }
    }

    fn connect_service(&mut self, asked: &TrappedCall, call: Call) -> Result<Turn, Errno> {
        let path = name_in(&call.address).ok_or(Errno::ACCESS)?;
        let is_allowed = self.allowed.iter().any(|allowed| allowed.as_os_str() == path.as_os_str());
        if !is_allowed && !weakened::MEDIATOR {
            self.tell(path);
            return Err(Errno::ACCESS);
        }
        if getpeername(&call.socket).is_ok() {
            return Err(Errno::ISCONN);
        }
        let kind = sockopt::socket_type(&call.socket)?;
        if kind != SocketType::STREAM && kind != SocketType::SEQPACKET {
            return Err(Errno::ACCESS);
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let service = Service {
            path: path.to_owned(),
            socket: socket_with(AddressFamily::UNIX, kind, flags, None)?,
            descriptor: call.descriptor,
            close_on_exec: closes_on_exec(asked.thread, call.descriptor),
            blocking: !fcntl_getfl(&call.socket)?.contains(OFlags::NONBLOCK),
        };
        Ok(self.try_service(asked.id, service))
    }

    fn tell(&mut self, refused: &Path) {
        if self.told.len() < WAITING && !self.told.iter().any(|told| told == refused) {
            self.told.push(refused.to_owned());
            self.hearer.hear(&Observation::SocketRefused(Some(refused.to_owned())), Moment::now());
        }
    }

    fn try_service(&self, id: u64, service: Service) -> Turn {
        match connect_without_links(service.socket.as_fd(), &service.path) {
            Err(Errno::AGAIN) if service.blocking => Turn::Wait(Attempt::Service(service)),
            Err(errno) => Turn::Answer(Err(errno)),
            Ok(()) => Turn::Answer(self.hand_over(id, &service)),
        }
    }

    fn hand_over(&self, id: u64, service: &Service) -> Result<(), Errno> {
        let Service { socket, descriptor, close_on_exec, blocking, .. } = service;
        if *blocking {
            fcntl_setfl(socket, fcntl_getfl(socket)? - OFlags::NONBLOCK)?;
        }
        notify::replace_descriptor(self.listener.as_fd(), id, socket.as_fd(), *descriptor, *close_on_exec)
    }

    /// Answers the connects that have come to an end and forgets those whose caller is gone.
    fn look_again(&mut self) {
        for Waiting { id, what } in std::mem::take(&mut self.waiting) {
            if !notify::still_waits(self.listener.as_fd(), id) {
                continue;
            }
            let turn = match what {
                Attempt::Internet(socket) => ended(socket),
                Attempt::Service(service) => self.try_service(id, service),
            };
            match turn {
                Turn::Answer(answer) => self.answer(id, answer),
                Turn::Wait(what) => self.waiting.push(Waiting { id, what }),
            }
        }
    }
}

/// A call that was passed on, as a call of a thread that this process knows; `None` if none can come any more. A thread
/// that has ended meanwhile is called 0.
fn receive(asks: BorrowedFd<'_>) -> Result<Option<TrappedCall>, Errno> {
    let mut bytes = [0; notify::TRAPPED_CALL_LENGTH];
    let Some(thread) = control::recv_bytes(asks, &mut bytes)? else { return Ok(None) };
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", thread.as_raw_fd())).unwrap_or_default();
    let number = about.lines().find_map(|line| line.strip_prefix("Pid:"));
    let number = number.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
    Ok(Some(TrappedCall::from_bytes(&bytes, number)))
}

/// The arguments of a connect, copied once.
struct Call {
    descriptor: u32,
    /// The caller's socket itself, under a number of ours.
    socket: OwnedFd,
    address: Vec<u8>,
}

impl Call {
    fn read(asked: &TrappedCall) -> Result<Self, Errno> {
        let [descriptor, address, length, ..] = asked.arguments;
        let low = |argument: u64| u32::try_from(argument & 0xffff_ffff).map_err(|_| Errno::INVAL);
        let length = low(length)?;
        if u64::from(length) > LONGEST {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::INVAL)?];
        notify::read_memory(asked.thread, address, &mut bytes)?;
        let descriptor = low(descriptor)?;
        let socket = descriptor_of(asked.thread, descriptor)?;
        Ok(Self { descriptor, socket, address: bytes })
    }
}

/// Another thread's descriptor, duplicated.
fn descriptor_of(thread: u32, descriptor: u32) -> Result<OwnedFd, Errno> {
    /// `PIDFD_THREAD`, from 6.9.
    const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
    let open = |number: u32, flags| {
        let number = i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        pidfd_open(number, flags)
    };
    let process = match open(thread, THREAD) {
        Err(Errno::INVAL) => open(process_of(thread).ok_or(Errno::SRCH)?, PidfdFlags::empty())?,
        opened => opened?,
    };
    let descriptor = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
    pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())
}

/// The process of a thread. They share their descriptors unless the program took pains; then the wrong socket, still
/// one of the program's own, is connected.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether a descriptor of another thread is closed by exec; yes if that cannot be seen.
fn closes_on_exec(thread: u32, descriptor: u32) -> bool {
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_CLOEXEC != 0)
}

/// The absolute name in a Unix address. Relative, abstract and missing names are none.
fn name_in(address: &[u8]) -> Option<&Path> {
    let (family, name) = address.split_first_chunk::<2>()?;
    if u16::from_ne_bytes(*family) != AddressFamily::UNIX.as_raw() {
        return None;
    }
    let name = name.split(|byte| *byte == 0).next()?;
    name.starts_with(b"/").then(|| Path::new(OsStr::from_bytes(name)))
}

/// Connects to a socket file, refusing a link anywhere in its path.
fn connect_without_links(socket: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(Errno::ACCESS),
        opened => opened?,
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Socket {
        return Err(Errno::ACCESS);
    }
    // By the opened file, not by its name once more.
    let opened = SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    rustix::net::connect(socket, &opened)
}

/// Connects the caller's own socket, without making this thread wait for it.
fn connect_internet(call: Call) -> Result<Turn, Errno> {
    let flags = fcntl_getfl(&call.socket)?;
    if flags.contains(OFlags::NONBLOCK) {
        return Ok(Turn::Answer(notify::connect(call.socket.as_fd(), &call.address)));
    }
    // The flag belongs to the child's socket as well; its caller waits, and nothing can be read from it yet.
    fcntl_setfl(&call.socket, flags | OFlags::NONBLOCK)?;
    let begun = notify::connect(call.socket.as_fd(), &call.address);
    fcntl_setfl(&call.socket, flags)?;
    match begun {
        Err(Errno::INPROGRESS | Errno::ALREADY) => Ok(Turn::Wait(Attempt::Internet(call.socket))),
        done => Ok(Turn::Answer(done)),
    }
}

/// Whether a connect has come to its end, and which.
fn ended(socket: OwnedFd) -> Turn {
    let mut descriptors = [PollFd::new(&socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut descriptors, Some(&now)) {
        Ok(0) | Err(Errno::INTR) => Turn::Wait(Attempt::Internet(socket)),
        Ok(_) => Turn::Answer(sockopt::socket_error(&socket).unwrap_or_else(Err)),
        Err(errno) => Turn::Answer(Err(errno)),
    }
}
