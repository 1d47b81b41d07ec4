//! Everything that a program touches, told by the sandbox's first process as it happens.
//!
//! The program waits in each call until the first process has told of it, and that one waits until the supervisor has room:
//! nothing is lost while the supervisor reads. Nothing is decided by it; what a program changes while it is read may be told
//! wrongly.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use bailiwick_layout::programs::Programs;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::watched::{internet_address, path_of};

/// The longest packet.
const LONGEST: usize = 4098;

/// What a program did, or tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AccessKind {
    /// Started a program.
    Execute = 1,
    /// Opened a file for reading.
    Read,
    /// Opened a directory to list it.
    List,
    /// Asked what is there.
    Look,
    /// Changed a file that was there.
    Write,
    /// Made something that was not there.
    Make,
    /// Removed something, or moved it away.
    Remove,
    /// Connected to an address.
    Connect,
    /// Listened on a port.
    Listen,
    /// Wanted to change a name that runs code later, which stayed closed.
    Protected,
    /// Asked for a Unix socket, which was refused before it could say where it leads.
    Socket,
    /// Something that could not be told.
    Lost,
}

impl AccessKind {
    const ALL: [Self; 12] = [
        Self::Execute,
        Self::Read,
        Self::List,
        Self::Look,
        Self::Write,
        Self::Make,
        Self::Remove,
        Self::Connect,
        Self::Listen,
        Self::Protected,
        Self::Socket,
        Self::Lost,
    ];
}

/// One access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// What was done.
    pub kind: AccessKind,
    /// Whether the sandbox lets it be done: what the path leads to is there, and may be changed where that was wanted.
    pub is_there: bool,
    /// The real path inside, which is the host's; empty for addresses.
    pub path: PathBuf,
    /// The address of a connection.
    pub address: Option<SocketAddr>,
}

/// What is to be read from the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// An access.
    Access(Access),
    /// Nothing at the moment.
    Nothing,
    /// Nothing any more: every process of the sandbox has ended.
    End,
}

/// The supervisor's end of the line on which accesses are told. Dropped before the program has ended, the program goes on
/// and nothing more is told.
#[derive(Debug)]
pub struct Accesses {
    line: OwnedFd,
    programs: Programs,
}

impl Accesses {
    pub(crate) const fn new(line: OwnedFd, programs: Programs) -> Self {
        Self { line, programs }
    }

    /// What the command itself brings, whatever is granted: its files, and the directories of its code.
    pub fn brought_along(&self) -> impl Iterator<Item = &PathBuf> {
        let Programs { files, directories, code, data, .. } = &self.programs;
        files.iter().chain(directories).chain(code).chain(data)
    }

    /// The next access, if one was told already.
    #[must_use]
    pub fn next_told(&self) -> Told {
        let mut room = [0; LONGEST];
        match rustix::io::retry_on_intr(|| recv(&self.line, &mut room[..], RecvFlags::DONTWAIT)) {
            Ok((0, _)) => Told::End,
            Ok((length, _)) => Told::Access(read(room.get(..length).unwrap_or_default())),
            Err(Errno::AGAIN) => Told::Nothing,
            Err(_) => Told::End,
        }
    }
}

/// Readable when an access was told, or the sandbox has ended.
impl AsFd for Accesses {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

/// What a packet tells. One that cannot be read is something that was lost.
fn read(packet: &[u8]) -> Access {
    let lost = Access { kind: AccessKind::Lost, is_there: false, path: PathBuf::new(), address: None };
    let [kind, errno, bytes @ ..] = packet else { return lost };
    let Some(kind) = AccessKind::ALL.into_iter().find(|known| *known as u8 == *kind) else { return lost };
    match kind {
        AccessKind::Connect => {
            Access { kind, is_there: true, path: PathBuf::new(), address: internet_address(bytes) }
        }
        AccessKind::Listen => {
            let port = bytes.try_into().map_or(0, u16::from_ne_bytes);
            let any = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), port);
            Access { kind, is_there: true, path: PathBuf::new(), address: Some(any) }
        }
        AccessKind::Socket => Access { kind, is_there: false, path: PathBuf::new(), address: None },
        AccessKind::Execute
        | AccessKind::Read
        | AccessKind::List
        | AccessKind::Look
        | AccessKind::Write
        | AccessKind::Make
        | AccessKind::Remove
        | AccessKind::Protected
        | AccessKind::Lost => Access { kind, is_there: *errno == 0, path: path_of(bytes), address: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_counts_as_lost() {
        for packet in [&b""[..], &[1], &[0, 0, b'/'], &[99, 0, b'/']] {
            assert_eq!(read(packet).kind, AccessKind::Lost, "{packet:?}");
        }
        let seen = read(&[AccessKind::Read as u8, 2, b'/', b'a', b'/', b'.', b'.', b'/', b'b']);
        assert_eq!((seen.kind, seen.is_there, seen.path), (AccessKind::Read, false, PathBuf::from("/b")));
    }
}
