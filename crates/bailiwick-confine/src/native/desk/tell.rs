//! What the desk tells the supervisor: what a program looked for, started or offered. Nothing is decided by it.
//!
//! Each thing is told once. What the program changes while it is read may be told wrongly; a hint is then wrong, and
//! nothing else. The supervisor compares with what the host has: see `watched`.

use std::cell::RefCell;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, accessat, fstat, openat};
use rustix::io::Errno;
use rustix::path::DecInt;

use super::Desk;
use super::call::{Call, Named, read_text};
use super::spot::descriptor_of;
use super::text::{Text, split};
use crate::accesses::AccessKind;
use crate::command::Watch;
use crate::moment::Moment;
use crate::sys::notify::{self, TrappedCall};
use crate::watched::Seen;

/// How many things are told.
const MOST: usize = 2048;
/// The shells whose commands are told: they look for programs without starting them.
const SHELLS: [&[u8]; 3] = [b"sh", b"bash", b"dash"];
/// How many arguments of a shell are looked at.
const ARGUMENTS: u64 = 6;

/// The line to the supervisor, and what was said on it.
pub(super) struct Teller<'a> {
    pub(super) line: BorrowedFd<'a>,
    /// Of what is told.
    watch: Watch,
    /// With room for all that is told: nothing is allocated for it.
    told: &'a RefCell<Vec<u64>>,
}

/// Room for what is told, to be made before the first process is.
pub(crate) fn room_for_told() -> RefCell<Vec<u64>> {
    RefCell::new(Vec::with_capacity(MOST))
}

impl<'a> Teller<'a> {
    pub(super) const fn new(line: BorrowedFd<'a>, watch: Watch, told: &'a RefCell<Vec<u64>>) -> Self {
        Self { line, watch, told }
    }

    /// Sends each time, and waits until the supervisor has room for it: nothing that it asked for is lost.
    pub(super) fn send(&self, kind: AccessKind, errno: i32, bytes: &[u8]) {
        let mut packet = [0; 4098];
        if let Some(packet) = filled(&mut packet, kind as u8, errno, bytes) {
            // A supervisor that is gone ends this process.
            let _ = rustix::io::retry_on_intr(|| {
                rustix::net::send(self.line, packet, rustix::net::SendFlags::NOSIGNAL)
            });
        }
    }

    /// Sends a thing once; a supervisor that does not read gets less.
    fn send_once(&self, seen: Seen, errno: i32, bytes: &[u8]) {
        let mut packet = [0; 4098];
        let Some(packet) = filled(&mut packet, seen as u8, errno, bytes) else { return };
        if self.is_new(packet) {
            // Before the call is answered: the refusal lies before all that its caller does next.
            let moment = Moment::now().to_bytes();
            let parts = [std::io::IoSlice::new(&moment), std::io::IoSlice::new(packet)];
            let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
            let mut nothing = rustix::net::SendAncillaryBuffer::default();
            let _ = rustix::net::sendmsg(self.line, &parts, &mut nothing, flags);
        }
    }

    fn is_new(&self, packet: &[u8]) -> bool {
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let sum = packet.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        let Ok(mut told) = self.told.try_borrow_mut() else { return false };
        if told.len() == told.capacity() || told.contains(&sum) {
            return false;
        }
        told.push(sum);
        true
    }
}

/// Whether a Unix socket is one that the C library makes to ask a service, or to log, and does without.
fn may_be_optional(asked: &TrappedCall) -> bool {
    const FLAGS: u64 = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK).cast_unsigned() as u64;
    const STREAM: u64 = libc::SOCK_STREAM.cast_unsigned() as u64;
    let [_, kind, ..] = asked.arguments;
    kind & 0xf != STREAM || kind & FLAGS == FLAGS
}

/// A packet: what it is about, the error, and the rest.
fn filled<'p>(packet: &'p mut [u8; 4098], kind: u8, errno: i32, bytes: &[u8]) -> Option<&'p [u8]> {
    let length = bytes.len() + 2;
    let (head, room) = packet.get_mut(..length)?.split_at_mut_checked(2)?;
    head.copy_from_slice(&[kind, u8::try_from(errno).unwrap_or(u8::MAX)]);
    room.copy_from_slice(bytes);
    packet.get(..length)
}

impl Desk<'_> {
    /// Tells what a call is about.
    pub(super) fn tell(&self, asked: &TrappedCall, call: &Call) {
        let Some(teller) = &self.teller else { return };
        if teller.watch == Watch::Everything {
            self.observe(teller, asked, call);
            return;
        }
        let files = teller.watch == Watch::Files;
        // What cannot be read is not told.
        let _ = match call {
            Call::Execute { what, arguments } => self.tell_program(teller, asked, what, *arguments),
            Call::Socket => {
                let sure: &[u8] = if may_be_optional(asked) { &[] } else { b"sure" };
                teller.send_once(Seen::Socket, Errno::PERM.raw_os_error(), sure);
                Ok(())
            }
            Call::Namespace => {
                let program = self.program_of(asked.thread).unwrap_or_else(|_| Text::new());
                teller.send_once(Seen::Namespace, Errno::PERM.raw_os_error(), program.as_bytes());
                Ok(())
            }
            Call::Listen { descriptor } => tell_port(teller, asked, *descriptor),
            Call::Connect(to) => tell_address(teller, asked, to.address, to.length),
            Call::Look { what } => self.tell_file(teller, asked, what, OFlags::PATH),
            Call::Open { .. } if !files => Ok(()),
            Call::Open { what, flags, .. } if flags.contains(OFlags::RDWR) => {
                let changed = self.tell_file(teller, asked, what, *flags);
                changed.and_then(|()| self.tell_file(teller, asked, what, *flags - OFlags::RDWR))
            }
            Call::Open { what, flags, .. } => self.tell_file(teller, asked, what, *flags),
            Call::MakeDirectory { what, .. }
            | Call::MakeNode { what, .. }
            | Call::MakeLink { what, .. }
            | Call::Link { to: what, .. }
            | Call::Rename { to: what, .. }
                if files =>
            {
                self.tell_making(teller, asked, what)
            }
            Call::MakeDirectory { .. }
            | Call::MakeNode { .. }
            | Call::MakeLink { .. }
            | Call::Link { .. }
            | Call::Rename { .. }
            | Call::Remove { .. }
            | Call::Truncate { .. }
            | Call::ChangeMode { .. }
            | Call::ChangeModeOf { .. }
            | Call::Bind(_)
            | Call::Umask => Ok(()),
        };
    }

    /// Tells that a name stays closed because it runs code later.
    pub(super) fn tell_protected(&self, real: &[u8]) {
        match &self.teller {
            Some(teller) if teller.watch == Watch::Everything => {
                teller.send(AccessKind::Protected, 0, real);
            }
            Some(teller) => teller.send_once(Seen::Protected, 0, real),
            None => {}
        }
    }

    fn tell_program(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        what: &Named,
        arguments: u64,
    ) -> Result<(), Errno> {
        let may = self.target(asked, what, false).and_then(|file| self.may(&file, Access::EXEC_OK));
        let path = self.absolute(asked, what)?;
        teller.send_once(Seen::Program, may.map_or_else(Errno::raw_os_error, |()| 0), path.as_bytes());
        let name = path.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if SHELLS.contains(&name) { self.tell_shell(teller, asked, arguments) } else { Ok(()) }
    }

    /// Tells what a shell was given to do: a text, or a file with one.
    fn tell_shell(&self, teller: &Teller<'_>, asked: &TrappedCall, arguments: u64) -> Result<(), Errno> {
        let mut is_text = false;
        for index in 1..ARGUMENTS {
            let mut pointer = [0; 8];
            let at = arguments.checked_add(8 * index).ok_or(Errno::FAULT)?;
            notify::read_memory(asked.thread, at, &mut pointer)?;
            let text = read_text(asked, u64::from_ne_bytes(pointer))?;
            match text.as_bytes() {
                [b'-', b'-', ..] => {}
                [b'-' | b'+', options @ ..] => is_text |= options.contains(&b'c'),
                script if is_text => {
                    teller.send_once(Seen::ShellText, 0, script);
                    return Ok(());
                }
                _ => {
                    let what = Named { at: libc::AT_FDCWD, path: text };
                    teller.send_once(Seen::Script, 0, self.absolute(asked, &what)?.as_bytes());
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn tell_file(
        &self,
        teller: &Teller<'_>,
        asked: &TrappedCall,
        what: &Named,
        flags: OFlags,
    ) -> Result<(), Errno> {
        let writes = writes(flags);
        let seen = match (writes, flags.contains(OFlags::PATH), flags.contains(OFlags::DIRECTORY)) {
            (true, ..) => Seen::Writing,
            (_, true, _) => Seen::Looking,
            (_, _, true) => Seen::Listing,
            _ => Seen::Reading,
        };
        let refusal = match self.target(asked, what, flags.contains(OFlags::NOFOLLOW)) {
            Ok(file) if writes => self.may(&file, Access::WRITE_OK).err(),
            Ok(file) if !flags.contains(OFlags::PATH) => self.refusal_to_read(&file),
            Ok(_) => None,
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                return self.tell_making(teller, asked, what);
            }
            Err(errno) => Some(errno),
        };
        let is_refusal =
            |errno: &Errno| [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::ROFS].contains(errno);
        if let Some(errno) = refusal.filter(is_refusal) {
            teller.send_once(seen, errno.raw_os_error(), self.absolute(asked, what)?.as_bytes());
        }
        Ok(())
    }

    /// Tells that something cannot be made: its directory is not there, or cannot be written.
    fn tell_making(&self, teller: &Teller<'_>, asked: &TrappedCall, what: &Named) -> Result<(), Errno> {
        if self.target(asked, what, true).is_ok() {
            return Ok(());
        }
        let directory = self.directory_of(asked, what);
        let writable = directory.and_then(|directory| self.may(&directory, Access::WRITE_OK));
        if let Err(errno) = writable {
            teller.send_once(Seen::Making, errno.raw_os_error(), self.absolute(asked, what)?.as_bytes());
        }
        Ok(())
    }

    /// Whether this process, which is under the same rules of files, may do it.
    pub(super) fn may(&self, file: &OwnedFd, access: Access) -> Result<(), Errno> {
        accessat(&self.own, DecInt::from_fd(file), access, AtFlags::empty())
    }

    /// The directory that an entry lies in or is to be made in; the entry may not be there.
    pub(super) fn directory_of(&self, asked: &TrappedCall, what: &Named) -> Result<OwnedFd, Errno> {
        let path = what.path.as_bytes();
        let parent = split(path).map_or(path, |split| split.parent);
        let parent = Text::from_bytes(if parent.is_empty() { b"." } else { parent })?;
        self.target(asked, &Named { at: what.at, path: parent }, false)
    }

    /// Why a file cannot be opened for reading; only of files and directories, whose opening does nothing.
    fn refusal_to_read(&self, file: &OwnedFd) -> Option<Errno> {
        let kind = FileType::from_raw_mode(fstat(file).ok()?.st_mode);
        if kind != FileType::RegularFile && kind != FileType::Directory {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&self.own, DecInt::from_fd(file), flags, Mode::empty()).err()
    }

    /// A caller's path from the root.
    pub(super) fn absolute(&self, asked: &TrappedCall, what: &Named) -> Result<Text, Errno> {
        let path = what.path.as_bytes();
        if path.first() == Some(&b'/') {
            return Text::from_bytes(path);
        }
        let base = self.base(asked, what.at, path).flatten().ok_or(Errno::NOENT)?;
        let mut whole = self.path_of(base.as_fd())?;
        if !path.is_empty() {
            whole.push(b"/")?;
            whole.push(path)?;
        }
        Ok(whole)
    }
}

/// Whether a file that is opened with these flags can be changed.
pub(super) const fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY.union(OFlags::RDWR).union(OFlags::TRUNC))
}

fn tell_port(teller: &Teller<'_>, asked: &TrappedCall, descriptor: i32) -> Result<(), Errno> {
    if let Some(port) = port_of(asked, descriptor)? {
        teller.send_once(Seen::Port, 0, &port.to_ne_bytes());
    }
    Ok(())
}

/// The port of a socket of the Internet.
pub(super) fn port_of(asked: &TrappedCall, descriptor: i32) -> Result<Option<u16>, Errno> {
    let socket = descriptor_of(asked.thread, descriptor)?;
    let address = rustix::net::getsockname(&socket)?;
    Ok(match address.address_family() {
        rustix::net::AddressFamily::INET => Some(rustix::net::SocketAddrV4::try_from(address)?.port()),
        rustix::net::AddressFamily::INET6 => Some(rustix::net::SocketAddrV6::try_from(address)?.port()),
        _ => None,
    })
}

/// As long as an IPv6 address with its port and scope.
const LONGEST_ADDRESS: usize = 28;

/// Tells an address of the Internet as the kernel has it.
fn tell_address(teller: &Teller<'_>, asked: &TrappedCall, address: u64, length: u64) -> Result<(), Errno> {
    let (bytes, length) = address_of(asked, address, length)?;
    teller.send_once(Seen::Address, 0, bytes.get(..length).unwrap_or_default());
    Ok(())
}

/// An address of a caller, and how much of the room it takes.
pub(super) fn address_of(
    asked: &TrappedCall,
    address: u64,
    length: u64,
) -> Result<([u8; LONGEST_ADDRESS], usize), Errno> {
    let mut bytes = [0; LONGEST_ADDRESS];
    let length = usize::try_from(length).map_or(LONGEST_ADDRESS, |length| length.min(LONGEST_ADDRESS));
    notify::read_memory(asked.thread, address, bytes.get_mut(..length).unwrap_or_default())?;
    Ok((bytes, length))
}
