//! The sockets that were made inside, answered: connections, and queries over UDP and TCP.

use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use tokio::io::Interest;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::code::Code;
use crate::dns::MAX_QUERY;
use crate::session::{Opening, Session};
use crate::stream::{Source, Stream};

/// How long nothing is accepted after the process ran out of descriptors.
const BREATH: Duration = Duration::from_millis(20);
/// How long a query over TCP may take.
const QUERY: Duration = Duration::from_secs(10);

/// Accepts for ever; every connection runs by itself.
pub(crate) async fn accept_all<S, F>(source: Source, serve: S)
where
    S: Fn(Stream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = source.accept() => match accepted {
                Ok(connection) => drop(tasks.spawn(serve(connection))),
                Err(_) => tokio::time::sleep(BREATH).await,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

/// Connections to whatever address: each is for the name that its address stands for.
pub(crate) async fn relay(session: Arc<Session>, listener: TcpListener, redirected: bool) {
    let serve = |stream: Stream| {
        let session = Arc::clone(&session);
        async move {
            let Some(_place) = session.admit() else { return };
            let Some(address) = destination(&stream, redirected) else { return };
            let target = session.target(address);
            if session.is_reserved(&target) {
                return session.turn_away(&stream, &target, Code::AddressReserved).await;
            }
            session.relay_client(stream, target, Opening::default()).await;
        }
    };
    accept_all(Source::Tcp(listener), serve).await;
}

/// Where the client meant to go.
fn destination(stream: &Stream, redirected: bool) -> Option<SocketAddr> {
    let socket = socket2::SockRef::from(stream);
    let own = socket.local_addr().ok()?.as_socket()?;
    if !redirected {
        return Some(own);
    }
    let meant = if own.is_ipv4() { socket.original_dst_v4() } else { socket.original_dst_v6() };
    meant.ok()?.as_socket()
}

/// Queries over TCP, each behind its length.
pub(crate) async fn queries(session: Arc<Session>, listener: TcpListener) {
    let serve = |stream: Stream| {
        let session = Arc::clone(&session);
        async move {
            let Some(_place) = session.admit() else { return };
            while let Ok(Ok(true)) = timeout(QUERY, one_query(&session, &stream)).await {}
        }
    };
    accept_all(Source::Tcp(listener), serve).await;
}

/// Answers one query; false if it deserves no answer.
async fn one_query(session: &Session, stream: &Stream) -> io::Result<bool> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let length = u16::from_be_bytes(length);
    if length > MAX_QUERY {
        return Ok(false);
    }
    let mut query = vec![0; usize::from(length)];
    stream.read_exact(&mut query).await?;
    let Some(reply) = session.answer(&query) else { return Ok(false) };
    let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &reply].concat()).await?;
    Ok(true)
}

/// Queries over UDP. A reply comes from the address that was asked, whichever that is.
pub(crate) async fn datagrams(session: Arc<Session>, socket: UdpSocket) {
    // One of them is refused, as the socket is of one family.
    setsockopt(&socket, sockopt::Ipv4PacketInfo, &true).ok();
    setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true).ok();
    let mut query = vec![0; usize::from(MAX_QUERY)];
    loop {
        let received = socket.async_io(Interest::READABLE, || receive(&socket, &mut query)).await;
        let Ok(datagram) = received else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        if let Some(reply) = query.get(..datagram.length).and_then(|query| session.answer(query)) {
            // A full buffer loses the reply, as networks do; the client asks again.
            drop(send(&socket, &reply, &datagram));
        }
    }
}

pub(crate) struct Datagram {
    pub(crate) length: usize,
    from: Option<SockaddrStorage>,
    asked: Option<ControlMessageOwned>,
}

pub(crate) fn receive(socket: &impl AsRawFd, query: &mut [u8]) -> io::Result<Datagram> {
    let mut space = nix::cmsg_space!(nix::libc::in6_pktinfo, nix::libc::in_pktinfo);
    let mut slices = [IoSliceMut::new(query)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let asked = received.cmsgs().ok().and_then(|mut all| all.next());
    Ok(Datagram { length: received.bytes, from: received.address, asked })
}

pub(crate) fn send(socket: &impl AsRawFd, reply: &[u8], to: &Datagram) -> io::Result<()> {
    let (v4, v6);
    let control = match &to.asked {
        Some(ControlMessageOwned::Ipv4PacketInfo(info)) => {
            v4 = nix::libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: info.ipi_addr,
                ipi_addr: info.ipi_addr,
            };
            Some(ControlMessage::Ipv4PacketInfo(&v4))
        }
        Some(ControlMessageOwned::Ipv6PacketInfo(info)) => {
            v6 = nix::libc::in6_pktinfo { ipi6_ifindex: 0, ipi6_addr: info.ipi6_addr };
            Some(ControlMessage::Ipv6PacketInfo(&v6))
        }
        Some(_) | None => None,
    };
    let slices = [IoSlice::new(reply)];
    sendmsg(socket.as_raw_fd(), &slices, control.as_slice(), MsgFlags::MSG_DONTWAIT, to.from.as_ref())?;
    Ok(())
}
