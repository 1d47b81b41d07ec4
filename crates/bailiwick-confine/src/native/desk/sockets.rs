//! Unix sockets of the program's own: made in the sandbox's private directories, and connected to there.
//!
//! Where `ipc:connect:private` is granted, a connect to a path is first looked at here. The path is copied once and what it
//! leads to is opened. That counts only if it is a socket on a file system of the private directories: those are made for
//! this sandbox and hold nothing of the host, nothing can be linked or moved to them from elsewhere, nor from them. The
//! caller's socket is then connected to the opened file, not to its name once more. Every other connect goes to the supervisor,
//! which knows the granted names of the host.
//!
//! The kernel itself makes a name where Landlock allows sockets: in private directories alone. Where a tree of the host lies
//! below one, the net allows the program nothing there, and the name is made here, in the opened directory.
//!
//! Fails closed when: an address cannot be read, names nothing, or is abstract (the supervisor refuses it), a descriptor is no
//! Unix socket.
//! Residual: the other end sees the sandbox's first process as its peer; a socket that got its name here knows only the last
//! component of it.

use std::os::fd::{AsFd as _, OwnedFd};

use bailiwick_layout::weakened;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, bind, connect, sockopt};
use rustix::path::DecInt;

use super::call::{Addressed, Named};
use super::spot::{Spot, descriptor_of, work_in};
use super::text::{Text, lies_in, split};
use super::{Desk, Pending, Turn, Waiting};
use crate::native::guarded::PRIVATE;
use crate::sys::notify::{self, TrappedCall};

/// The longest address of a Unix socket.
const LONGEST: usize = 110;

impl Desk<'_> {
    /// Connects to a socket of the program's own; `None` for every other connect.
    pub(super) fn connect_private(&self, asked: &TrappedCall, to: &Addressed) -> Option<Turn> {
        let (socket, what) = self.private_address(asked, to)?;
        let target = match self.target(asked, &what, false) {
            Ok(target) => target,
            // A program that finds no server of its own there starts one.
            Err(Errno::NOENT) if !self.host_sockets && self.is_in_private(asked, &what) => {
                return Some(Errno::NOENT.into());
            }
            Err(_) => return None,
        };
        let found = fstat(&target).ok()?;
        let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
        if !is_socket || !(self.is_private(found.st_dev) || weakened::SOCKETS) {
            return None;
        }
        let waits = self.ensure_waiting(asked);
        Some(waits.map_or_else(Turn::from, |()| connect_to(asked.id, socket, target)))
    }

    /// Whether the directory of a path is a private one.
    fn is_in_private(&self, asked: &TrappedCall, what: &Named) -> bool {
        let opened = || {
            let parent = split(what.path.as_bytes())?.parent;
            let parent = if parent.is_empty() { b"." } else { parent };
            let parent = Named { at: what.at, path: Text::from_bytes(parent).ok()? };
            fstat(&self.target(asked, &parent, false).ok()?).ok()
        };
        opened().is_some_and(|found| self.is_private(found.st_dev))
    }

    /// Makes the name of a socket in a private directory that the program does not write by itself. The kernel goes on with
    /// every other bind, under the net.
    pub(super) fn bind_private(&self, asked: &TrappedCall, to: &Addressed) -> Turn {
        self.try_bind(asked, to).unwrap_or(Turn::Proceed)
    }

    fn try_bind(&self, asked: &TrappedCall, to: &Addressed) -> Option<Turn> {
        let (socket, what) = self.private_address(asked, to)?;
        let spot = self.spot(asked, &what)?;
        let is_private =
            lies_in(spot.real.as_bytes(), PRIVATE) && self.is_private(fstat(&spot.parent).ok()?.st_dev);
        if !is_private || spot.slash {
            return None;
        }
        let bound = self.ensure_waiting(asked).and_then(|()| {
            self.with_mask(asked, || {
                work_in(spot.parent.as_fd())?;
                let bound = bind_here(&socket, &spot);
                work_in(self.root.as_fd())?;
                bound
            })
        });
        Some(Turn::Answer(bound))
    }

    /// The Unix socket of a call and the path that it names, where sockets of the program's own are granted.
    fn private_address(&self, asked: &TrappedCall, to: &Addressed) -> Option<(OwnedFd, Named)> {
        if self.private.iter().all(Option::is_none) {
            return None;
        }
        let path = read_path(asked, to)?;
        let socket = descriptor_of(asked.thread, to.descriptor).ok()?;
        let is_unix = sockopt::socket_domain(&socket).is_ok_and(|family| family == AddressFamily::UNIX);
        is_unix.then_some((socket, Named { at: libc::AT_FDCWD, path }))
    }

    fn is_private(&self, device: u64) -> bool {
        self.private.contains(&Some(device))
    }
}

fn bind_here(socket: &OwnedFd, spot: &Spot<'_>) -> Result<(), Errno> {
    bind(socket, &SocketAddrUnix::new(spot.name.as_c()?)?)
}

/// The path in the address of a call; none in one of another family, nor in an abstract one.
fn read_path(asked: &TrappedCall, to: &Addressed) -> Option<Text> {
    let mut room = [0; LONGEST];
    let bytes = room.get_mut(..usize::try_from(to.length).ok()?)?;
    notify::read_memory(asked.thread, to.address, bytes).ok()?;
    let (family, name) = bytes.split_first_chunk::<2>()?;
    let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    let is_unix = u16::from_ne_bytes(*family) == AddressFamily::UNIX.as_raw();
    Text::from_bytes(name).ok().filter(|_| is_unix)
}

/// Connects a caller's socket to an opened one, without waiting for it here.
pub(super) fn connect_to(id: u64, socket: OwnedFd, target: OwnedFd) -> Turn {
    match try_connect(&socket, &target) {
        Ok(Some(())) => Turn::Answer(Ok(())),
        Ok(None) => Turn::Wait(Waiting { id, what: Pending::Listener { socket, target } }),
        Err(errno) => errno.into(),
    }
}

/// `None` if the listener's queue is full and the caller waits for it.
fn try_connect(socket: &OwnedFd, target: &OwnedFd) -> Result<Option<()>, Errno> {
    let mut path = Text::from_bytes(b"/proc/self/fd/")?;
    path.push(DecInt::from_fd(target.as_fd()).as_bytes())?;
    let opened = SocketAddrUnix::new(path.as_c()?)?;
    let flags = fcntl_getfl(socket)?;
    // The flag belongs to the caller's socket as well; its caller waits, and nothing can be read from it yet.
    fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
    let done = connect(socket, &opened);
    fcntl_setfl(socket, flags)?;
    match done {
        Err(Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => Ok(None),
        done => done.map(Some),
    }
}
