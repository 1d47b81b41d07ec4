//! Copying bytes from one stream to another, in the kernel where it can.
//!
//! A pipe or a buffer is borrowed while bytes are under way and given back when they have arrived, so that a thousand
//! idle connections hold none.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;

use crate::serve::Copying;
use crate::stream::Stream;

/// How much is moved at a time.
const PIECE: usize = 256 * 1024;
const BUFFER: usize = 64 * 1024;
/// How many pipes and buffers are kept for the next.
const KEPT: usize = 16;

/// Pipes and buffers.
#[derive(Debug)]
pub(crate) struct Copier {
    how: Copying,
    pipes: Mutex<Vec<Pipe>>,
    buffers: Mutex<Vec<Box<[u8]>>>,
}

#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

/// When bytes last moved, shared by both directions of a connection.
#[derive(Debug)]
pub(crate) struct Pulse {
    start: Instant,
    last: AtomicU64,
    half: std::sync::atomic::AtomicBool,
}

impl Copier {
    pub(crate) const fn new(how: Copying) -> Self {
        Self { how, pipes: Mutex::new(Vec::new()), buffers: Mutex::new(Vec::new()) }
    }

    /// Copies until `from` ends, and tells `to`.
    pub(crate) async fn copy(&self, from: &Stream, to: &Stream, pulse: &Pulse) -> io::Result<()> {
        loop {
            from.ready(Interest::READABLE).await?;
            let moved = match self.how {
                Copying::Splice => self.splice_once(from, to, pulse).await?,
                Copying::Buffer => self.buffer_once(from, to, pulse).await?,
            };
            if moved == Some(0) {
                pulse.half_closed();
                return to.finish();
            }
        }
    }

    /// Moves what is there; `None` if nothing was, 0 at the end.
    async fn splice_once(&self, from: &Stream, to: &Stream, pulse: &Pulse) -> io::Result<Option<usize>> {
        let kept = self.pipes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pipe = match kept {
            Some(pipe) => pipe,
            None => match Pipe::new() {
                Ok(pipe) => pipe,
                // Out of descriptors or of what the kernel lets a user put into pipes.
                Err(_) => return self.buffer_once(from, to, pulse).await,
            },
        };
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let take = || splice(from, None, &pipe.into, None, PIECE, flags).map_err(io::Error::from);
        let moved = match from.try_io(Interest::READABLE, take) {
            Ok(moved) => moved,
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {
                self.keep_pipe(pipe);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let mut left = moved;
        while left > 0 {
            let give = || splice(&pipe.out, None, to, None, left, flags).map_err(io::Error::from);
            match to.try_io(Interest::WRITABLE, give) {
                Ok(given) => left = left.saturating_sub(given),
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {
                    to.ready(Interest::WRITABLE).await?
                }
                Err(fault) => return Err(fault),
            }
            pulse.beat();
        }
        self.keep_pipe(pipe);
        Ok(Some(moved))
    }

    async fn buffer_once(&self, from: &Stream, to: &Stream, pulse: &Pulse) -> io::Result<Option<usize>> {
        let kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = kept.unwrap_or_else(|| vec![0; BUFFER].into_boxed_slice());
        let moved = match from.try_read(&mut buffer) {
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read?),
        };
        if let Some(bytes) = moved.and_then(|moved| buffer.get(..moved)) {
            to.write_all(bytes).await?;
            pulse.beat();
        }
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
        Ok(moved)
    }

    /// Only an empty pipe comes back: bytes of one connection must never meet another.
    fn keep_pipe(&self, pipe: Pipe) {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        if pipes.len() < KEPT {
            pipes.push(pipe);
        }
    }
}

impl Pipe {
    fn new() -> rustix::io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller pipe copies as well, only slower.
        fcntl_setpipe_size(&into, PIECE).ok();
        Ok(Self { out, into })
    }
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0), half: false.into() }
    }

    pub(crate) fn beat(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn half_closed(&self) {
        self.half.store(true, Ordering::Relaxed);
    }

    /// Returns once nothing has moved for `idle`, or for `half_closed` after one side has ended.
    pub(crate) async fn stops(&self, idle: Duration, half_closed: Duration) {
        loop {
            let limit = if self.half.load(Ordering::Relaxed) { half_closed } else { idle };
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let still = self.start.elapsed().saturating_sub(last);
            if still >= limit {
                return;
            }
            // An end of one side must not wait for the longer limit to be noticed.
            tokio::time::sleep((limit - still).min(half_closed)).await;
        }
    }
}
