//! The command's three descriptors. No terminal and no file of the caller enters the sandbox.

use std::io::{IsTerminal as _, Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use bailiwick_confine::Stdio;
use rustix::fs::FileType;
use rustix::pipe::{PipeFlags, pipe_with};

use super::relay;

/// What goes on between the caller's terminal or files and the command's pipes.
#[derive(Default)]
pub(super) struct Channels {
    shown: Vec<JoinHandle<()>>,
}

impl Channels {
    /// Waits until all that was printed has been shown.
    pub(super) fn finish(self) {
        for thread in self.shown {
            // A thread that failed has shown what it could.
            let _ = thread.join();
        }
    }
}

/// The caller's descriptors as they may be handed over: a terminal of the sandbox's own if all three are one, and
/// whatever is neither a terminal nor a file as it is. Single terminals and files are on the other side of a pipe: a
/// file lies on the host's own mount, from which code could be loaded.
pub(super) fn open() -> anyhow::Result<(Stdio, Channels)> {
    if relay::on_a_terminal() {
        return Ok((Stdio::Terminal, Channels::default()));
    }
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    if ![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()].into_iter().any(stays_outside) {
        return Ok((Stdio::Inherit, Channels::default()));
    }
    let mut channels = Channels::default();
    let input = if stays_outside(stdin.as_fd()) { typed()? } else { stdin.as_fd().try_clone_to_owned()? };
    let output = channels.shown_on(stdout.as_fd(), std::io::stdout)?;
    // What goes to one file stays in one order.
    let errors = if same_file(stdout.as_fd(), stderr.as_fd()) {
        output.try_clone()?
    } else {
        channels.shown_on(stderr.as_fd(), std::io::stderr)?
    };
    Ok((Stdio::Descriptors { stdin: input, stdout: output, stderr: errors }, channels))
}

fn stays_outside(own: BorrowedFd<'_>) -> bool {
    own.is_terminal() || is_file(own)
}

fn is_file(own: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(own).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::RegularFile)
}

fn same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |own| rustix::fs::fstat(own).ok().map(|about| (about.st_dev, about.st_ino));
    is_file(one) && place(one) == place(other)
}

impl Channels {
    fn shown_on<W: Write + 'static>(
        &mut self,
        own: BorrowedFd<'_>,
        to: fn() -> W,
    ) -> std::io::Result<OwnedFd> {
        if !stays_outside(own) {
            return own.try_clone_to_owned();
        }
        let (from, into) = pipe_with(PipeFlags::CLOEXEC)?;
        self.shown.push(std::thread::spawn(move || copy(std::fs::File::from(from), to())));
        Ok(into)
    }
}

/// A pipe that what is typed, or in a file, goes into. The thread ends with the process.
fn typed() -> std::io::Result<OwnedFd> {
    let (from, into) = pipe_with(PipeFlags::CLOEXEC)?;
    std::thread::spawn(move || copy(std::io::stdin(), std::fs::File::from(into)));
    Ok(from)
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
    {
        let passed = to.write_all(bytes.get(..count).unwrap_or_default()).and_then(|()| to.flush());
        if passed.is_err() {
            return;
        }
    }
}
