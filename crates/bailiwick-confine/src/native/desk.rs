//! The desk: where the sandbox's first process decides calls that make, move, remove or change a file by its name.
//!
//! The program is under a second layer of Landlock (the net) that lets it do none of this in a writable tree by
//! itself. A second filter stops such a call and asks here; this process, which is not under the net but under every
//! other rule of the sandbox, copies the path once, opens the directory it leads to, compares the last component with
//! the list of names that run code later, and does the call on the open directory. So nothing that another thread
//! swaps meanwhile counts, and no file appears on the host for a name that must not be made.
//!
//! A call that leads to no guarded tree is let through to the kernel, which reads its arguments again: that is safe
//! because the net holds whatever they are by then. Modes are the exception, Landlock does not know them: those calls
//! are always done here.
//!
//! Nothing here allocates. Calls are served one after the other, so two calls of the program do not race.
//!
//! Fails closed when: a path cannot be read or is too long, a directory cannot be named, anything is odd (the kernel
//! goes on under the net, or `EACCES`), this process ends (the sandbox ends).
//! Residual: two sandboxes on one tree that race each other can have a protected name there for microseconds, until one
//! of them takes it away. A caller on a kernel before 5.19 that is interrupted by a signal makes its call twice.

mod act;
mod call;
mod observe;
mod sockets;
mod spot;
mod tell;
pub(super) mod text;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bailiwick_layout::entries::Identity;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;

use self::call::Call;
use self::tell::Teller;
pub(crate) use self::tell::room_for_told;
use super::guarded::Guarded;
use super::image;
use crate::control;
use crate::sys::notify::{self, TrappedCall};

/// How many opens of a FIFO may wait for its other end at one time.
const WAITING: usize = 32;
/// How many private directories there are at most.
const PRIVATE_PLACES: usize = 2;
/// How many repositories made by the program are remembered.
const FRESH: usize = 64;

/// The desk.
pub(crate) struct Desk<'a> {
    guarded: &'a Guarded,
    listener: OwnedFd,
    /// Where connects are decided.
    supervisor: Option<BorrowedFd<'a>>,
    root: OwnedFd,
    proc: OwnedFd,
    /// This process' own descriptors, by number.
    own: OwnedFd,
    /// Whether programs may have roots of their own.
    nested: bool,
    /// Whether a program ever set a mask of its own.
    masked: bool,
    /// Who is told what was seen.
    teller: Option<Teller<'a>>,
    /// Whether sockets of the host are granted: one may have a name that is not there inside.
    host_sockets: bool,
    /// The file systems on which sockets are the program's own.
    private: [Option<u64>; PRIVATE_PLACES],
    waiting: [Option<Waiting>; WAITING],
    fresh: [Option<Identity>; FRESH],
}

/// A call that waits for another process.
struct Waiting {
    id: u64,
    what: Pending,
}

/// What it waits for.
enum Pending {
    /// A reader of a FIFO.
    Fifo { fifo: OwnedFd, flags: OFlags },
    /// A socket whose listener has a full queue.
    Listener { socket: OwnedFd, target: OwnedFd },
}

/// What becomes of a call.
enum Turn {
    Answer(Result<(), Errno>),
    Descriptor {
        file: OwnedFd,
        close_on_exec: bool,
    },
    Proceed,
    Wait(Waiting),
    /// Another thread or process answers.
    Passed,
}

impl From<Errno> for Turn {
    fn from(errno: Errno) -> Self {
        Self::Answer(Err(errno))
    }
}

impl<'a> Desk<'a> {
    /// Opens the desk in the sandbox's own root.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn open(asked: &'a image::DeskSetup, listener: OwnedFd) -> Result<Self, Errno> {
        // Where the kernel does not know it, it is only slower.
        let _ = notify::wake_in_step(listener.as_fd());
        let open = |path: &std::ffi::CStr| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty())
        };
        let (root, proc, own) = (open(c"/")?, open(c"/proc")?, open(c"/proc/self/fd")?);
        let (waiting, fresh) = ([const { None }; WAITING], [None; FRESH]);
        let mut private = [None; PRIVATE_PLACES];
        for (room, place) in private.iter_mut().zip(&asked.private_sockets) {
            *room = Some(rustix::fs::statat(&root, place.as_c_str(), AtFlags::empty())?.st_dev);
        }
        Ok(Self {
            guarded: &asked.guarded,
            listener,
            supervisor: asked.supervisor.as_ref().map(AsFd::as_fd),
            root,
            proc,
            own,
            nested: asked.nested,
            masked: false,
            teller: asked.tells.as_ref().map(|line| Teller::new(line.as_fd(), asked.watch, &asked.told)),
            host_sockets: asked.host_sockets,
            private,
            waiting,
            fresh,
        })
    }

    /// Readable when a call waits.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Its descriptors, which stay open.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [self.listener.as_fd(), self.root.as_fd(), self.proc.as_fd(), self.own.as_fd()]
    }

    /// Whether calls wait for something that has to be looked at again from time to time.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(Option::is_some)
    }

    /// Serves one call. By itself: a call takes a hundred kilobytes of stack, which no start should touch.
    #[inline(never)]
    pub(crate) fn serve(&mut self) {
        let Ok(asked) = notify::receive(self.listener.as_fd()) else { return };
        let turn = self.decide(&asked);
        self.settle(asked.id, turn);
    }

    fn decide(&mut self, asked: &TrappedCall) -> Turn {
        match Call::read(asked) {
            Ok(Some(Call::Bind(to))) => self.bind_private(asked, &to),
            Ok(Some(call @ Call::Connect(to))) => {
                self.tell(asked, &call);
                if let Some(turn) = self.connect_private(asked, &to) {
                    return turn;
                }
                // Without a supervisor there is no Unix socket that a connect could be of.
                self.supervisor.map_or(Turn::Proceed, |supervisor| pass_on(supervisor, asked))
            }
            Ok(Some(call @ (Call::Socket | Call::Namespace))) => {
                self.tell(asked, &call);
                Errno::PERM.into()
            }
            Ok(Some(Call::Umask)) => {
                self.masked = true;
                Turn::Proceed
            }
            Ok(Some(call)) => {
                self.tell(asked, &call);
                if call.changes_nothing() {
                    return Turn::Proceed;
                }
                self.act(asked, call).unwrap_or_else(|turn| turn)
            }
            // The kernel says what is wrong with such a path; it is held by the net.
            Err(Errno::FAULT | Errno::NAMETOOLONG) => Turn::Proceed,
            Ok(None) | Err(_) => Errno::ACCESS.into(),
        }
    }

    /// A caller that is gone needs no answer, so a failure to give one means nothing.
    fn settle(&mut self, id: u64, turn: Turn) {
        let listener = self.listener.as_fd();
        let _ = match turn {
            Turn::Answer(answer) => notify::answer(listener, id, answer),
            Turn::Proceed => notify::proceed(listener, id),
            Turn::Passed => Ok(()),
            Turn::Descriptor { file, close_on_exec } => {
                match notify::give_descriptor(listener, id, file.as_fd(), close_on_exec) {
                    Err(errno) => notify::answer(listener, id, Err(errno)), // the caller has no number left
                    given => given,
                }
            }
            Turn::Wait(waiting) => match self.waiting.iter_mut().find(|room| room.is_none()) {
                Some(room) => {
                    *room = Some(waiting);
                    Ok(())
                }
                None => notify::answer(listener, id, Err(Errno::AGAIN)),
            },
        };
    }

    /// Looks again at calls that wait for another process.
    pub(crate) fn look_again(&mut self) {
        for at in 0..WAITING {
            let Some(waiting) = self.waiting.get_mut(at).and_then(Option::take) else { continue };
            let Waiting { id, what } = waiting;
            if !notify::still_waits(self.listener.as_fd(), id) {
                continue;
            }
            let turn = match what {
                Pending::Fifo { fifo, flags } => self.open_fifo(id, fifo, flags),
                Pending::Listener { socket, target } => sockets::connect_to(id, socket, target),
            };
            self.settle(id, turn);
        }
    }

    fn open_fifo(&self, id: u64, fifo: OwnedFd, flags: OFlags) -> Turn {
        let number = DecInt::from_fd(&fifo);
        match rustix::fs::openat(&self.own, number, act::passed_on(flags), Mode::empty()) {
            Ok(file) => act::given(file, flags),
            Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => {
                Turn::Wait(Waiting { id, what: Pending::Fifo { fifo, flags } })
            }
            Err(errno) => Turn::Answer(Err(errno)),
        }
    }
}

/// Passes a connect on to the supervisor, with the thread that makes it.
fn pass_on(supervisor: BorrowedFd<'_>, asked: &TrappedCall) -> Turn {
    let thread = spot::thread_descriptor(asked.thread);
    let passed = thread.and_then(|thread| control::send_bytes(supervisor, &asked.to_bytes(), thread.as_fd()));
    passed.map_or(Errno::ACCESS.into(), |()| Turn::Passed)
}
