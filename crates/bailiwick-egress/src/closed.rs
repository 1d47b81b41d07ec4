//! The names of a sandbox without a granted host: none exists, and each query is reported.
//!
//! Without an answer a client waits, or takes the failure for one that passes. A thread and no runtime, as most sandboxes without a network never ask.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::relay::{receive, send};
use crate::session::Session;

const MAX_QUERY: usize = crate::dns::MAX_QUERY as usize;

/// Answers until the stream that is returned is dropped.
pub(crate) fn serve(
    session: Arc<Session>,
    sockets: Vec<UdpSocket>,
) -> io::Result<(UnixStream, JoinHandle<()>)> {
    let (stop, stopped) = UnixStream::pair()?;
    let answer = move || {
        while let Some(ready) = wait(&sockets, &stopped) {
            for socket in ready {
                answer_one(&session, socket);
            }
        }
    };
    let thread = std::thread::Builder::new().name("names".to_owned()).stack_size(256 << 10).spawn(answer)?;
    Ok((stop, thread))
}

/// The sockets on which queries are waiting; `None` when it is over.
fn wait<'a>(sockets: &'a [UdpSocket], stopped: &UnixStream) -> Option<Vec<&'a UdpSocket>> {
    let mut all: Vec<PollFd<'_>> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    all.push(PollFd::new(stopped, PollFlags::IN));
    while let Err(errno) = poll(&mut all, None) {
        if errno != Errno::INTR {
            return None;
        }
    }
    let is_ready = |one: &PollFd<'_>| !one.revents().is_empty();
    if all.last().is_none_or(is_ready) {
        return None;
    }
    Some(sockets.iter().zip(&all).filter(|(_, one)| is_ready(one)).map(|(socket, _)| socket).collect())
}

fn answer_one(session: &Session, socket: &UdpSocket) {
    let mut query = vec![0; MAX_QUERY];
    let Ok(datagram) = receive(socket, &mut query) else { return };
    if let Some(reply) = query.get(..datagram.length).and_then(|query| session.answer(query)) {
        // A full buffer loses the reply, as networks do; the client asks again.
        drop(send(socket, &reply, &datagram));
    }
}
