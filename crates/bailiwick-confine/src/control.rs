//! The words that the supervisor and pid 1 exchange: fixed size, one packet each, descriptors beside them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// One word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// A step failed; at which entry of the layout, if at one.
    Failed { step: i32, errno: i32, entry: i32 },
    /// The network's sockets are beside: how many are for names by UDP, by TCP, how many for connections from outside,
    /// and whether ports are redirected.
    Sockets { udp: i32, tcp: i32, entrance: i32, redirected: bool },
    /// The terminal's master is beside.
    Terminal,
    /// The listener of the filter is beside.
    Listener,
    /// The private directories are beside.
    Private,
    /// Everything is set up; waits to be let go.
    Ready,
    /// The program runs.
    Running,
    /// The program ended, with this wait status.
    Ended { status: i32 },
    /// The program was stopped, by this signal.
    Stopped { signal: i32 },
    /// To pid 1: go on.
    Go,
    /// To pid 1: pass this signal on.
    Signal { number: i32 },
}

/// The most descriptors in one packet.
pub(crate) const MOST_DESCRIPTORS: usize = 250;

const LENGTH: usize = 16;

impl Message {
    const fn numbers(self) -> [i32; 4] {
        match self {
            Self::Failed { step, errno, entry } => [1, step, errno, entry],
            Self::Sockets { udp, tcp, entrance, redirected } => {
                [2, udp, tcp, entrance << 1 | redirected as i32]
            }
            Self::Terminal => [3, 0, 0, 0],
            Self::Listener => [4, 0, 0, 0],
            Self::Ready => [5, 0, 0, 0],
            Self::Running => [6, 0, 0, 0],
            Self::Ended { status } => [7, status, 0, 0],
            Self::Go => [8, 0, 0, 0],
            Self::Signal { number } => [9, number, 0, 0],
            Self::Stopped { signal } => [10, signal, 0, 0],
            Self::Private => [11, 0, 0, 0],
        }
    }

    const fn from_numbers(numbers: [i32; 4]) -> Option<Self> {
        Some(match numbers {
            [1, step, errno, entry] => Self::Failed { step, errno, entry },
            [2, udp, tcp, more] => Self::Sockets { udp, tcp, entrance: more >> 1, redirected: more & 1 != 0 },
            [3, ..] => Self::Terminal,
            [4, ..] => Self::Listener,
            [5, ..] => Self::Ready,
            [6, ..] => Self::Running,
            [7, status, ..] => Self::Ended { status },
            [8, ..] => Self::Go,
            [9, number, ..] => Self::Signal { number },
            [10, signal, ..] => Self::Stopped { signal },
            [11, ..] => Self::Private,
            _ => return None,
        })
    }

    fn encode(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        for (room, number) in bytes.chunks_exact_mut(4).zip(self.numbers()) {
            room.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: [u8; LENGTH]) -> Option<Self> {
        let mut numbers = [0; 4];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
            *number = i32::from_ne_bytes(bytes.try_into().ok()?);
        }
        Self::from_numbers(numbers)
    }
}

/// The two ends: the supervisor's, the sandbox's.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends bytes and one descriptor. Does not allocate.
pub(crate) fn send_bytes(to: BorrowedFd<'_>, bytes: &[u8], with: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    let with = [with];
    if !beside.push(SendAncillaryMessage::ScmRights(&with)) {
        return Err(Errno::TOOBIG);
    }
    sendmsg(to, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// Receives bytes, all of them, and one descriptor. Does not allocate; `None` is the other end's death.
pub(crate) fn recv_bytes(from: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<Option<OwnedFd>, Errno> {
    let wanted = bytes.len();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptor = beside.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut received) = message { received.next() } else { None }
    });
    match received.bytes {
        0 => Ok(None),
        length if length == wanted => descriptor.ok_or(Errno::PROTO).map(Some),
        _ => Err(Errno::PROTO),
    }
}

/// Says a word. Does not allocate.
pub(crate) fn send(to: BorrowedFd<'_>, message: Message, with: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let bytes = message.encode();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    if !with.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(with)) {
        return Err(Errno::TOOBIG);
    }
    sendmsg(to, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Hears a word that has no descriptors; `None` is the other end's death. Does not allocate.
pub(crate) fn recv(from: BorrowedFd<'_>) -> Result<Option<Message>, Errno> {
    let mut bytes = [0; LENGTH];
    let (length, _) = rustix::net::recv(from, &mut bytes[..], RecvFlags::empty())?;
    match length {
        0 => Ok(None),
        LENGTH => Message::decode(bytes).map(Some).ok_or(Errno::PROTO),
        _ => Err(Errno::PROTO),
    }
}

/// Hears a word and takes the descriptors beside it.
pub(crate) fn recv_with_descriptors(from: BorrowedFd<'_>) -> Result<Option<(Message, Vec<OwnedFd>)>, Errno> {
    let mut bytes = [0; LENGTH];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(from.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    match received.bytes {
        0 => Ok(None),
        LENGTH => Message::decode(bytes).map(|message| Some((message, descriptors))).ok_or(Errno::PROTO),
        _ => Err(Errno::PROTO),
    }
}
