//! What the supervisor and the process that holds the secrets say to each other.
//!
//! The supervisor sends packets of one byte over a socket pair that nothing else has: what is wanted, with a stream of its
//! own for the conversation about it, and for a connection its two sockets. On the stream each message is JSON behind its
//! length. Values are in no message.
//!
//! Fails closed when: a message is longer than any of ours, or a packet has other descriptors than are due.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest message: a list of authorities has some 250 KiB.
const MOST: usize = 4 * 1024 * 1024;
/// The most descriptors of a packet.
const DESCRIPTORS: usize = 3;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Read the sources.
    Load,
    /// Make placeholders and an authority for one sandbox.
    Session,
    /// Take a connection to its end.
    Connection,
}

/// A packet that was received: its stream, and the client and server of a connection.
pub(crate) struct Packet {
    pub(crate) wanted: Wanted,
    pub(crate) stream: OwnedFd,
    pub(crate) sockets: Option<(OwnedFd, OwnedFd)>,
}

/// The two ends over which packets go.
pub(crate) fn control_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a packet; the other process has the descriptors from then on.
pub(crate) fn send_packet(
    control: impl AsFd,
    wanted: Wanted,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let kind = match wanted {
        Wanted::Load => b'L',
        Wanted::Session => b'S',
        Wanted::Connection => b'C',
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    rustix::io::retry_on_intr(|| {
        sendmsg(control.as_fd(), &[IoSlice::new(&[kind])], &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

/// Receives a packet; nothing at the end.
pub(crate) fn receive_packet(control: impl AsFd) -> io::Result<Option<Packet>> {
    let mut kind = [0_u8; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(control.as_fd(), &mut [IoSliceMut::new(&mut kind)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let wrong = || io::Error::other("a packet that is none of ours");
    let wanted = match kind {
        [b'L'] => Wanted::Load,
        [b'S'] => Wanted::Session,
        [b'C'] => Wanted::Connection,
        _ => return Err(wrong()),
    };
    let mut descriptors = descriptors.into_iter();
    let stream = descriptors.next().ok_or_else(wrong)?;
    let sockets = match (wanted, descriptors.next(), descriptors.next()) {
        (Wanted::Connection, Some(client), Some(server)) => Some((client, server)),
        (Wanted::Load | Wanted::Session, None, None) => None,
        _ => return Err(wrong()),
    };
    Ok(Some(Packet { wanted, stream, sockets }))
}

fn length_of(message: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    if message.len() > MOST {
        Err(io::Error::other("the message is too long"))
    } else {
        Ok(length.to_le_bytes())
    }
}

fn checked(length: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > MOST { Err(io::Error::other("the message is too long")) } else { Ok(length) }
}

fn framed(message: &Value) -> io::Result<Vec<u8>> {
    let text = message.to_string().into_bytes();
    Ok([&length_of(&text)?[..], &text].concat())
}

/// Sends a message and waits for its answer.
pub(crate) fn converse(stream: &UnixStream, message: &Value) -> io::Result<Value> {
    send(stream, message)?;
    receive(stream)
}

pub(crate) fn send(mut stream: &UnixStream, message: &Value) -> io::Result<()> {
    stream.write_all(&framed(message)?)
}

pub(crate) fn receive(mut stream: &UnixStream) -> io::Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut text = vec![0; checked(length)?];
    stream.read_exact(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// The same, where other things happen meanwhile.
pub(crate) async fn send_soon(stream: &mut (impl AsyncWrite + Unpin), message: &Value) -> io::Result<()> {
    stream.write_all(&framed(message)?).await
}

pub(crate) async fn receive_soon(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let mut text = vec![0; checked(length)?];
    stream.read_exact(&mut text).await?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}
