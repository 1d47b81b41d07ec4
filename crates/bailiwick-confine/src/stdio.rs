//! Descriptors 0 to 2 of a program: nothing that reaches further than its peer is handed in.
//!
//! A pipe and an unnamed, connected pair of stream sockets reach their other end and nothing else, so they are handed
//! in as they are. Everything else (files, terminals, devices, sockets that could be connected elsewhere, that listen,
//! or that have a name) stays outside: the program gets a pipe, and this process copies between the two.
//!
//! Fails closed when: what a descriptor is cannot be seen (it is relayed), a directory is given (refused).
//! Residual: a pipe that is handed in can be opened anew from inside, for reading too: what others write into the same
//! pipe can be read there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use bailiwick_layout::fault::{Fault, Step};
use bailiwick_layout::refusal::Refusal;
use bailiwick_layout::weakened;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getpeername, getsockname, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::Stdio;
use crate::sys::descriptors::inherited;

/// The file system of pipes without a name.
const PIPES: u32 = 0x5049_5045;
/// `/dev/null`.
const NULL: u64 = 0x103;

/// What a program gets as descriptors 0 to 2.
pub(crate) enum Handed {
    /// A terminal of its own.
    Terminal,
    /// These; `None` is the null device.
    Given([Option<OwnedFd>; 3]),
}

/// The copying between a program's pipes and what stays outside. Dropped, it goes on by itself.
#[derive(Debug, Default)]
pub struct Relays {
    outputs: Vec<JoinHandle<()>>,
}

impl Relays {
    /// Waits until all that the program has printed is passed on. The program must have ended.
    pub fn finish(self) {
        for output in self.outputs {
            let _ = output.join(); // one that failed has passed on what it could
        }
    }
}

/// Makes descriptors that may be handed in.
///
/// # Errors
/// A directory, or what the kernel says.
pub(crate) fn open(stdio: Stdio) -> Result<(Handed, Relays), Refusal> {
    let opened = |errno| Refusal::from(Fault::new(Step::Open, errno));
    let three = match stdio {
        Stdio::Terminal => return Ok((Handed::Terminal, Relays::default())),
        Stdio::Descriptors { stdin, stdout, stderr } => [stdin, stdout, stderr],
        Stdio::Inherit => {
            let copy = |number| inherited(number).map_err(opened);
            [copy(0)?, copy(1)?, copy(2)?]
        }
    };
    for (descriptor, number) in three.iter().zip(0..) {
        if reach(descriptor.as_fd()) == Reach::Directory {
            return Err(Refusal::DirectoryDescriptor { number });
        }
    }
    let [stdin, stdout, stderr] = three;
    let mut relays = Relays::default();
    let same = reach(stdout.as_fd()) == Reach::Further && is_same(stdout.as_fd(), stderr.as_fd());
    let input = relays.input(stdin).map_err(opened)?;
    let output = relays.output(stdout).map_err(opened)?;
    // What goes to one file stays in one order.
    let errors = match output.as_ref().filter(|_| same) {
        Some(shared) => {
            Some(above_stdio(shared.try_clone().map_err(|_| opened(Errno::MFILE))?).map_err(opened)?)
        }
        None => relays.output(stderr).map_err(opened)?,
    };
    Ok((Handed::Given([input, output, errors]), relays))
}

/// How far a descriptor reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To its other end.
    Peer,
    /// Nowhere: the null device, of which the sandbox has its own.
    Nowhere,
    /// A directory, which nothing may be handed in of.
    Directory,
    /// Further.
    Further,
}

fn reach(own: BorrowedFd<'_>) -> Reach {
    let Ok(about) = fstat(own) else { return Reach::Further };
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => Reach::Directory,
        FileType::Fifo if is_unnamed_pipe(own) => Reach::Peer,
        FileType::Socket if is_pair(own) => Reach::Peer,
        FileType::CharacterDevice if about.st_rdev == NULL => Reach::Nowhere,
        _ if weakened::STDIO => Reach::Peer,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::RegularFile
        | FileType::Symlink
        | FileType::Unknown => Reach::Further,
    }
}

fn is_unnamed_pipe(own: BorrowedFd<'_>) -> bool {
    fstatfs(own).is_ok_and(|about| u32::try_from(about.f_type) == Ok(PIPES))
}

/// Whether a socket is one of two stream sockets that are connected to each other and have no names: it cannot be
/// connected to anything else, nor does it listen.
fn is_pair(own: BorrowedFd<'_>) -> bool {
    // An address without a name is its family alone; the kernel's word for that may also be no address.
    let unnamed = |address: Option<SocketAddrAny>| address.is_none_or(|address| address.addr_len() <= 2);
    let peer = getpeername(own);
    sockopt::socket_domain(own) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(own) == Ok(SocketType::STREAM)
        && sockopt::socket_acceptconn(own) == Ok(false)
        && getsockname(own).is_ok_and(|own| unnamed(Some(own)))
        && peer.is_ok_and(unnamed)
}

fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |own| fstat(own).ok().map(|about| (about.st_dev, about.st_ino));
    place(one).is_some() && place(one) == place(other)
}

/// A descriptor that is none of the first three, which the program's own take the place of.
pub(crate) fn above_stdio(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd as _;
    if descriptor.as_raw_fd() > 2 {
        return Ok(descriptor);
    }
    rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)
}

impl Relays {
    /// The descriptors for a backend that has no null device of its own to open: an empty pipe, and one whose content
    /// is thrown away. The host's own device must not be handed in, root could change its mode.
    pub(crate) fn without_null(&mut self, three: [Option<OwnedFd>; 3]) -> Result<[OwnedFd; 3], Errno> {
        let [stdin, stdout, stderr] = three;
        let thrown_away = |relays: &mut Self| {
            let null = rustix::fs::open(c"/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            relays.relayed_output(null)
        };
        let input = match stdin {
            Some(stdin) => stdin,
            None => above_stdio(pipe_with(PipeFlags::CLOEXEC)?.0)?,
        };
        let output = stdout.map_or_else(|| thrown_away(self), Ok)?;
        Ok([input, output, stderr.map_or_else(|| thrown_away(self), Ok)?])
    }

    fn relayed_output(&mut self, own: OwnedFd) -> Result<OwnedFd, Errno> {
        let (from, into) = pipe_with(PipeFlags::CLOEXEC)?;
        self.outputs.push(start("output", move || copy(&from, &own))?);
        above_stdio(into)
    }

    fn input(&mut self, own: OwnedFd) -> Result<Option<OwnedFd>, Errno> {
        match reach(own.as_fd()) {
            Reach::Nowhere => Ok(None),
            Reach::Peer => above_stdio(own).map(Some),
            Reach::Further | Reach::Directory => {
                let (from, into) = pipe_with(PipeFlags::CLOEXEC)?;
                start("stdin", move || copy(&own, &into))?;
                above_stdio(from).map(Some)
            }
        }
    }

    fn output(&mut self, own: OwnedFd) -> Result<Option<OwnedFd>, Errno> {
        match reach(own.as_fd()) {
            Reach::Nowhere => Ok(None),
            Reach::Peer => above_stdio(own).map(Some),
            Reach::Further | Reach::Directory => self.relayed_output(own).map(Some),
        }
    }
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Errno> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(body).map_err(|fault| Errno::from_io_error(&fault).unwrap_or(Errno::AGAIN))
}

/// Copies until the source ends or the other side is gone.
fn copy(from: &OwnedFd, to: &OwnedFd) {
    let mut bytes = vec![0; 64 << 10];
    while is_ready(from, to) {
        match rustix::io::read(from, &mut bytes[..]) {
            Ok(0) => return,
            Ok(count) => {
                if write_all(to, bytes.get(..count).unwrap_or_default()).is_err() {
                    return;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// Waits until there is something to read; false once the reader has closed its end.
fn is_ready(from: &OwnedFd, to: &OwnedFd) -> bool {
    loop {
        let mut both = [PollFd::new(from, PollFlags::IN), PollFd::new(to, PollFlags::empty())];
        match poll(&mut both, None) {
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => {
                let [source, sink] = both.map(|one| one.revents());
                if sink.intersects(PollFlags::ERR | PollFlags::NVAL) {
                    return false;
                }
                if !source.is_empty() {
                    return true;
                }
                if sink.contains(PollFlags::HUP) {
                    return false;
                }
            }
        }
    }
}

fn write_all(to: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(to, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(to, PollFlags::OUT)], None)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
