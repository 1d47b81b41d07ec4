//! Connections that are not copied but handed to what ends TLS for a few hosts, and what must not leave in the clear.
//!
//! This crate still decides: only a connection that may go on, to an address that was judged, is handed over. Everything
//! that is said to such a host outside of TLS is refused. Nothing in here knows what a secret is.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::decide::{Rules, Target};
use crate::event::Event;
use crate::session::first_to_answer;
use crate::stream::Stream;

/// Ends TLS for some hosts of a sandbox.
pub trait TlsEnd: Send + Sync {
    /// Whether TLS to this host and port ends here.
    fn ends(&self, target: &Target) -> bool;

    /// Looks at what a client sends in the clear: at one stream of bytes, or one name.
    fn watch(&self) -> Box<dyn ClearText>;

    /// Takes a connection to its end.
    fn take(&self, connection: Handover) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Looks at bytes that are about to leave in the clear.
pub trait ClearText: Send {
    /// Whether they, with what came before, hold what must not be sent there.
    fn is_forbidden(&mut self, bytes: &[u8]) -> bool;
}

/// Told of every decision.
pub type Teller = Arc<dyn Fn(Event) + Send + Sync>;

/// A connection that may go on, and all that is needed to take it to its end.
pub struct Handover {
    /// Whom it is for.
    pub target: Target,
    /// The client, from its first byte on.
    pub client: Replayed,
    /// The server, connected and nothing said yet.
    pub server: TcpStream,
    /// Its address.
    pub address: IpAddr,
    /// For connecting again.
    pub dialler: Dialler,
    /// What may be requested.
    pub rules: Rules,
    /// Who is told.
    pub tell: Teller,
    /// How long nothing may move.
    pub idle: Duration,
}

/// Dials the addresses that were judged, and no others.
#[derive(Debug, Clone)]
pub struct Dialler {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) patience: Duration,
}

impl Dialler {
    /// For addresses that were judged elsewhere: by the process that hands this one its connections.
    #[must_use]
    pub const fn new(addresses: Vec<SocketAddr>, patience: Duration) -> Self {
        Self { addresses, patience }
    }

    /// The addresses with their port.
    #[must_use]
    pub fn sockets(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How long a connection may take to be made.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// The addresses that were judged.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.iter().map(SocketAddr::ip).collect()
    }

    /// Another connection.
    ///
    /// # Errors
    /// If none of the addresses answers in time.
    pub async fn dial(&self) -> io::Result<TcpStream> {
        let dialled = timeout(self.patience, first_to_answer(self.addresses.iter().copied())).await;
        let stream = dialled.ok().flatten().ok_or(io::ErrorKind::TimedOut)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A client whose first words, which were read already, are read once more.
pub struct Replayed {
    said: Vec<u8>,
    read: usize,
    stream: Either,
}

enum Either {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Replayed {
    pub(crate) fn new(said: Vec<u8>, stream: Stream) -> Self {
        let stream = match stream {
            Stream::Tcp(stream) => Either::Tcp(stream),
            Stream::Unix(stream) => Either::Unix(stream),
        };
        Self { said, read: 0, stream }
    }

    /// What was said and not read again yet, and the socket: for another process.
    ///
    /// # Errors
    /// If the socket cannot be taken from the runtime.
    pub fn into_parts(self) -> io::Result<(Vec<u8>, OwnedFd)> {
        let said = self.said.get(self.read..).unwrap_or_default().to_vec();
        let socket = match self.stream {
            Either::Tcp(stream) => stream.into_std()?.into(),
            Either::Unix(stream) => stream.into_std()?.into(),
        };
        Ok((said, socket))
    }

    /// The same, in the other process.
    ///
    /// # Errors
    /// If this is no socket of a client.
    pub fn from_parts(said: Vec<u8>, socket: OwnedFd) -> io::Result<Self> {
        let domain = socket2::SockRef::from(&socket).domain()?;
        let stream = if domain == socket2::Domain::UNIX {
            let stream = std::os::unix::net::UnixStream::from(socket);
            stream.set_nonblocking(true)?;
            Either::Unix(UnixStream::from_std(stream)?)
        } else {
            let stream = std::net::TcpStream::from(socket);
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Either::Tcp(TcpStream::from_std(stream)?)
        };
        Ok(Self { said, read: 0, stream })
    }
}

impl AsyncRead for Replayed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.said.get(this.read..).unwrap_or_default();
        if !left.is_empty() {
            let length = left.len().min(into.remaining());
            into.put_slice(left.get(..length).unwrap_or_default());
            this.read += length;
            return Poll::Ready(Ok(()));
        }
        match &mut this.stream {
            Either::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Either::Unix(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Replayed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Either::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Either::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Either::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Either::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Either::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Either::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
