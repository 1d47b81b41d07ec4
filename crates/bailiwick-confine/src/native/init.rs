//! Pid 1: starts the program, reaps, passes signals on, and ends with the program or with the supervisor.
//!
//! It runs under the same rules, filter and empty capabilities as the program, keeps one descriptor, and cannot
//! be dumped. When it ends, the kernel ends every process of the sandbox.

use std::cell::Cell;
use std::convert::Infallible;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use super::image::{Descriptors, Image};
use crate::control::{Word, hear, say};
use crate::fault::Step;
use crate::sys::{clone, descriptors, signals};
use crate::weakened;

/// Starts the program and watches it until the end of the sandbox.
pub(crate) fn run(image: &Image, terminal: Option<&OwnedFd>) -> Result<Infallible, (Step, Errno)> {
    let control = image.control.as_fd();
    let ends = signals::child_ends().map_err(|errno| (Step::Supervise, errno))?;
    let launch = Launch { image, terminal: terminal.map(AsFd::as_fd), failure: Cell::new(None) };
    let started = clone::start_sharing(&image.stack, start_program, &launch);
    if let Some(failure) = launch.failure.get() {
        return Err(failure);
    }
    let program = started.map_err(|errno| (Step::Exec, errno))?;
    say(control, Word::Running, &[]).map_err(|errno| (Step::Handshake, errno))?;
    let mut kept = [control, ends.as_fd()].map(|descriptor| descriptor.as_raw_fd().cast_unsigned());
    kept.sort_unstable();
    descriptors::keep_only(&kept);
    watch(control, ends.as_fd(), program)
}

/// What the program's starter needs, and where it says what failed: it shares pid 1's memory.
struct Launch<'a> {
    image: &'a Image,
    terminal: Option<BorrowedFd<'a>>,
    failure: Cell<Option<(Step, Errno)>>,
}

fn start_program(launch: &Launch<'_>) -> ! {
    launch.failure.set(Some(become_program(launch)));
    clone::exit(125)
}

/// Returns only on failure.
fn become_program(launch: &Launch<'_>) -> (Step, Errno) {
    let _ = rustix::process::setsid(); // cannot fail in a new process
    if let Err(errno) = take_descriptors(launch) {
        return (Step::Terminal, errno);
    }
    if let Err(errno) = rustix::process::chdir(&launch.image.folder) {
        return (Step::WorkingFolder, errno);
    }
    if !weakened::DESCRIPTORS {
        descriptors::close(3..u32::MAX);
    }
    signals::unblock_all();
    (Step::Exec, clone::execute(&launch.image.program))
}

fn take_descriptors(launch: &Launch<'_>) -> Result<(), Errno> {
    let given = match (&launch.image.stdio, launch.terminal) {
        (Descriptors::Given(three), _) => three.each_ref().map(AsFd::as_fd),
        (Descriptors::Terminal, Some(terminal)) => [terminal; 3],
        (Descriptors::Terminal, None) => return Err(Errno::BADF),
    };
    let [input, output, error] = given;
    rustix::stdio::dup2_stdin(input)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(error)?;
    launch.terminal.map_or(Ok(()), rustix::process::ioctl_tiocsctty)
}

fn watch(control: BorrowedFd<'_>, ends: BorrowedFd<'_>, program: Pid) -> ! {
    loop {
        let mut ready =
            [PollFd::from_borrowed_fd(control, PollFlags::IN), PollFd::from_borrowed_fd(ends, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut ready, None), Ok(_) | Err(Errno::INTR)) {
            break;
        }
        let [from_control, from_children] = ready;
        if !from_children.revents().is_empty() {
            forget_signal(ends);
            if let Some(status) = reap(program) {
                let _ = say(control, Word::Ended { status }, &[]);
                break;
            }
        }
        if !from_control.revents().is_empty() && !obey(control, program) {
            break;
        }
    }
    clone::exit(0)
}

/// Does what the supervisor says; false once it is gone.
fn obey(control: BorrowedFd<'_>, program: Pid) -> bool {
    match hear(control) {
        Ok(Some(Word::Signal { number })) => {
            signals::send(program, number);
            true
        }
        Ok(Some(_)) | Err(Errno::INTR | Errno::AGAIN) => true,
        Ok(None) | Err(_) => false,
    }
}

fn forget_signal(ends: BorrowedFd<'_>) {
    let mut room = [0_u8; 128];
    let _ = rustix::io::read(ends, &mut room);
}

/// Reaps every process that has ended; the status of the program if it is among them.
fn reap(program: Pid) -> Option<i32> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == program {
            return Some(status.as_raw());
        }
    }
    None
}
