//! The process's own input and output, read without a thread where they are pipes or sockets: a thread that waits for
//! input keeps the process from ending.

use std::fs::File;
use std::io::{Result, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdStream;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

/// Something that can be read.
type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Something that can be written.
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The process's own input and output. Must be called inside a runtime.
#[must_use]
pub fn standard() -> (Input, Output) {
    if let (Ok(input), Ok(output)) = (socket(stdin()), socket(stdout())) {
        return (Box::new(input), Box::new(output));
    }
    let (input, output) = rmcp::transport::stdio_pipes();
    (Box::new(input), Box::new(output))
}

/// A socket as a stream. Reading and writing are the same calls for every kind of stream socket.
fn socket(stream: impl AsFd) -> Result<UnixStream> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    if !file.metadata()?.file_type().is_socket() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let stream = StdStream::from(OwnedFd::from(file));
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
