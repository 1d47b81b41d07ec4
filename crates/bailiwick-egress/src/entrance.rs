//! Connections from outside, handed in to a server of the sandbox.
//!
//! The listeners outside are bound before the sandbox starts, so that a port that is taken starts nothing. For each
//! connection a socket of the sandbox's own namespace is made and connected to its loopback address: the server there
//! needs no change. Nothing else outside can reach the sandbox, and no other port of it is reached this way.
//!
//! A socket of that namespace is made without being there: of a pair that was made inside, the unconnected socket is
//! connected to the listener, and what the listener accepts is disconnected and used anew.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailiwick_policy::net::{Host, Listen, canonical_ip};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::code::Code;
use crate::copy::Pulse;
use crate::decide::Refusal;
use crate::event::{EgressOutcome, Event};
use crate::session::{Session, copy_both};
use crate::stream::Stream;

const BACKLOG: i32 = 1024;
/// How long making a socket may take: it is a connection within one namespace.
const MAKING: Duration = Duration::from_secs(1);
/// How many strangers' connections are dropped until our own is accepted.
const STRANGERS: usize = 4096;
/// How long nothing is accepted after the process ran out of descriptors.
const BREATH: Duration = Duration::from_millis(20);

/// A pair of sockets from inside a sandbox's network namespace, of one family: see [`Entrance::new`].
#[derive(Debug)]
pub struct Entrance {
    seed: Socket,
    listener: TcpListener,
}

/// The ports that are listened on outside.
#[derive(Debug, Default)]
pub struct Listeners(Vec<TcpListener>);

/// A port could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {source}")]
pub struct ListenError {
    place: SocketAddr,
    source: io::Error,
}

impl Listeners {
    /// Binds every port. Only these addresses, and shared with no other process.
    ///
    /// # Errors
    /// If one is taken, is not this host's or needs a privilege.
    pub fn bind(listens: impl IntoIterator<Item = Listen>) -> Result<Self, ListenError> {
        let mut bound = Vec::new();
        for listen in listens {
            for place in listen.places() {
                match bind(place) {
                    Ok(listener) => bound.push(listener),
                    // Loopback on a host without IPv6 is IPv4 alone.
                    Err(fault) if listen.address().is_none() && place.is_ipv6() && is_absent(&fault) => {}
                    Err(source) => return Err(ListenError { place, source }),
                }
            }
        }
        Ok(Self(bound))
    }

    /// Whether nothing is listened on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_absent(fault: &io::Error) -> bool {
    let codes = [nix::libc::EAFNOSUPPORT, nix::libc::EADDRNOTAVAIL];
    fault.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn bind(place: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(place), Type::STREAM, Some(Protocol::TCP))?;
    if place.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of an earlier run that are still closing do not hold the port; a listener does.
    socket.set_reuse_address(true)?;
    socket.bind(&place.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

impl Entrance {
    /// An unconnected TCP socket and a listener of the same family, bound to no address, both made inside.
    #[must_use]
    pub fn new(seed: OwnedFd, listener: TcpListener) -> Self {
        Self { seed: Socket::from(seed), listener }
    }

    /// A new unconnected socket in the namespace of the pair.
    fn make_socket(&self) -> io::Result<Socket> {
        let port = self.listener.local_addr()?.port();
        self.listener.set_nonblocking(false)?;
        socket2::SockRef::from(&self.listener).set_read_timeout(Some(MAKING))?;
        self.seed.set_write_timeout(Some(MAKING))?;
        self.seed.connect(&SocketAddr::new(self.loopback()?, port).into())?;
        let own = self.seed.local_addr()?.as_socket();
        let made = (0..STRANGERS).find_map(|_| match self.listener.accept() {
            Ok((made, peer)) if Some(peer) == own => Some(Ok(made)),
            Ok(_) => None,
            Err(fault) => Some(Err(fault)),
        });
        rustix::net::connect_unspec(&self.seed)?;
        let made = made.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
        rustix::net::connect_unspec(&made)?;
        Ok(Socket::from(made))
    }

    fn loopback(&self) -> io::Result<IpAddr> {
        let v4 = self.listener.local_addr()?.is_ipv4();
        Ok(if v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() })
    }
}

/// The pairs of a sandbox, shared by all connections.
type Entrances = Arc<[Mutex<Entrance>]>;

/// Hands connections in for ever.
pub(crate) fn serve(
    session: &Arc<Session>,
    listeners: Listeners,
    entrances: Vec<Entrance>,
    tasks: &mut JoinSet<()>,
) -> io::Result<()> {
    let entrances: Entrances = entrances.into_iter().map(Mutex::new).collect();
    for listener in listeners.0 {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tasks.spawn(accept_all(Arc::clone(session), listener, Arc::clone(&entrances)));
    }
    Ok(())
}

async fn accept_all(session: Arc<Session>, listener: tokio::net::TcpListener, entrances: Entrances) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, peer)) => {
                    let (session, entrances) = (Arc::clone(&session), Arc::clone(&entrances));
                    tasks.spawn(async move { hand_in(&session, client, peer.ip(), entrances).await });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

/// Takes one connection from its acceptance to its end.
async fn hand_in(session: &Session, client: TcpStream, peer: IpAddr, entrances: Entrances) {
    let Some(_place) = session.admit() else { return };
    let Ok(at) = client.local_addr() else { return };
    let host = Host::Ip(canonical_ip(at.ip())).to_string();
    let event = |outcome| Event::new(&host, Some(at.port()), outcome);
    match timeout(session.limits.dial, connect_inside(at.port(), entrances)).await {
        Ok(Some(server)) => {
            session.tell(event(EgressOutcome::Accepted(canonical_ip(peer))));
            let (client, server) = (Stream::from(client), Stream::from(server));
            copy(session, &client, &server).await;
        }
        Ok(None) | Err(_) => {
            let refusal = Refusal::new(Code::NoServer);
            if session.is_news(&format!("listen {at}")) {
                session.tell(event(EgressOutcome::Refused(refusal)));
            }
            // A reset, as a closed port answers.
            drop(socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)));
        }
    }
}

async fn copy(session: &Session, client: &Stream, server: &Stream) {
    let pulse = Pulse::new();
    let still = pin!(pulse.stops(session.limits.idle, session.limits.half_closed));
    let back = pin!(session.copier.copy(server, client, &pulse));
    let forth = pin!(session.copier.copy(client, server, &pulse));
    // Either side may go away at any time.
    drop(copy_both(forth, back, still).await);
}

/// A connection to the sandbox's own server on this port, by whichever loopback address it listens on.
async fn connect_inside(port: u16, entrances: Entrances) -> Option<TcpStream> {
    for index in 0..entrances.len() {
        let shared = Arc::clone(&entrances);
        let made = spawn_blocking(move || {
            let entrance = shared.get(index)?.lock().unwrap_or_else(PoisonError::into_inner);
            Some((entrance.make_socket().ok()?, entrance.loopback().ok()?))
        });
        let Ok(Some((socket, loopback))) = made.await else { continue };
        if socket.set_nonblocking(true).is_err() {
            continue;
        }
        let socket = TcpSocket::from_std_stream(socket.into());
        if let Ok(stream) = socket.connect(SocketAddr::new(loopback, port)).await {
            return Some(stream);
        }
    }
    None
}
