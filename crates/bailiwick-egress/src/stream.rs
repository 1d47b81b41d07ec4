//! Streams and where they come from, TCP or Unix, read and written through a shared reference.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Where streams come from.
pub(crate) enum Source {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

impl Source {
    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::from(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

/// A connected stream.
pub(crate) enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket, from a client that has no network at all.
    Unix(UnixStream),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        // Small writes are passed on as they come; waiting is not for us to add.
        drop(stream.set_nodelay(true));
        Self::Tcp(stream)
    }
}

impl Stream {
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await.map(drop),
            Self::Unix(stream) => stream.ready(interest).await.map(drop),
        }
    }

    pub(crate) fn try_io<T>(&self, interest: Interest, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Tcp(stream) => stream.try_io(interest, act),
            Self::Unix(stream) => stream.try_io(interest, act),
        }
    }

    /// Reads what is there, without waiting.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Unix(stream) => stream.try_read(buffer),
        }
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Reads what is there, waiting for the first of it; 0 at the end.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(Interest::READABLE).await?;
            match self.try_read(buffer) {
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Reads as much as fits.
    pub(crate) async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        let mut had = 0;
        while had < buffer.len() {
            match self.read(buffer.get_mut(had..).unwrap_or_default()).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => had += more,
            }
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {
                    self.ready(Interest::WRITABLE).await?
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Says that nothing more will be written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        socket2::SockRef::from(self).shutdown(Shutdown::Write)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
