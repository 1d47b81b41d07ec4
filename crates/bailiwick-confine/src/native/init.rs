//! Pid 1: starts the program, reaps, passes signals on, and ends with the program or with the supervisor.
//!
//! It runs under the same rules as the program and cannot be dumped. Where it decides what the program writes, or tells
//! what it was refused (see `desk`), it is not under the net, its filter lets it read the arguments of calls, and it
//! keeps the one capability for that; else it has the program's filter and no capability. When it ends, the kernel ends
//! every process of the sandbox.
//!
//! On a terminal it leads the session, and the program is a process group of its own in the foreground: the kernel stops
//! no group whose parents are all in other sessions, so Ctrl-Z would do nothing. The supervisor is told of a stop.

use std::cell::Cell;
use std::convert::Infallible;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bailiwick_layout::fault::Step;
use bailiwick_layout::weakened;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use super::desk::Desk;
use super::image::{DeskSetup, Image};
use crate::control::{self, Message, recv, send};
use crate::landlock::Ruleset;
use crate::stdio::Handed;
use crate::sys::{clone, descriptors, privileges, seccomp, signals};

/// Starts the program and watches it until the end of the sandbox.
pub(crate) fn run(image: &Image, terminal: Option<&OwnedFd>) -> Result<Infallible, (Step, Errno)> {
    let control = image.control.as_fd();
    let ends = signals::child_ends().map_err(|errno| (Step::Supervise, errno))?;
    let line = image.desk.as_ref().map(|_| control::pair()).transpose();
    let line = line.map_err(|errno| (Step::Seccomp, errno))?;
    terminal.map_or(Ok(()), lead_session).map_err(|errno| (Step::Terminal, errno))?;
    let launch = Launch {
        image,
        terminal: terminal.map(AsFd::as_fd),
        line: line.as_ref().map(|(_, theirs)| theirs.as_fd()),
        failure: Cell::new(None),
    };
    let started = clone::start_sharing(&image.stack, start_program, &launch);
    if let Some(failure) = launch.failure.get() {
        return Err(failure);
    }
    let program = started.map_err(|errno| (Step::Exec, errno))?;
    let line = line.as_ref().map(|(own, _)| own.as_fd());
    let mut desk = open_desk(image, line).map_err(|errno| (Step::Seccomp, errno))?;
    send(control, Message::Running, &[]).map_err(|errno| (Step::Handshake, errno))?;
    keep_descriptors([control, ends.as_fd()], image, desk.as_ref());
    watch(control, ends.as_fd(), program, desk.as_mut())
}

/// Takes the terminal for a session of its own.
fn lead_session(terminal: &OwnedFd) -> Result<(), Errno> {
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(terminal)
}

/// Said in place of a listener where there is none.
const ABSENT: [u8; 1] = [1];

/// Takes over the listener of the program's second filter, and takes on a filter of its own.
fn open_desk<'a>(image: &'a Image, line: Option<BorrowedFd<'_>>) -> Result<Option<Desk<'a>>, Errno> {
    let (Some(asked), Some(line)) = (&image.desk, line) else { return Ok(None) };
    let mut absent = [0];
    let listener = control::recv_bytes(line, &mut absent)?.ok_or(Errno::PIPE)?;
    if asked.supervisor.is_some() {
        send(image.control.as_fd(), Message::Listener, &[listener.as_fd()])?;
    }
    let desk = if absent == ABSENT { None } else { Some(Desk::open(asked, listener)?) };
    if !weakened::SECCOMP {
        seccomp::install(asked.own_filter, false)?;
    }
    Ok(desk)
}

/// Closes all but what is still used.
fn keep_descriptors(own: [BorrowedFd<'_>; 2], image: &Image, desk: Option<&Desk<'_>>) {
    let [control, ends] = own.map(|descriptor| descriptor.as_raw_fd().cast_unsigned());
    let mut kept = [control; 8];
    let lines = image.desk.as_ref().map(|asked| [&asked.supervisor, &asked.tells]).into_iter().flatten();
    let lines = lines.filter_map(|line| line.as_ref().map(AsFd::as_fd));
    let more = desk.map(Desk::descriptors).into_iter().flatten().chain(lines);
    let more = more.map(|descriptor| descriptor.as_raw_fd().cast_unsigned());
    for (room, number) in kept.iter_mut().zip([ends].into_iter().chain(more)) {
        *room = number;
    }
    kept.sort_unstable();
    descriptors::keep_only(&kept);
}

/// What the program's starter needs, and where it says what failed: it shares pid 1's memory.
struct Launch<'a> {
    image: &'a Image,
    terminal: Option<BorrowedFd<'a>>,
    /// Where the listener of the second filter goes.
    line: Option<BorrowedFd<'a>>,
    failure: Cell<Option<(Step, Errno)>>,
}

fn start_program(launch: &Launch<'_>) -> ! {
    launch.failure.set(Some(become_program(launch)));
    clone::exit(125)
}

/// Returns only on failure.
fn become_program(launch: &Launch<'_>) -> (Step, Errno) {
    if let Err(errno) = take_descriptors(launch).and_then(|()| leave_group(launch.terminal)) {
        return (Step::Terminal, errno);
    }
    if let Err(errno) = rustix::process::chdir(&launch.image.directory) {
        return (Step::WorkingDirectory, errno);
    }
    if let Some((asked, line)) = launch.image.desk.as_ref().zip(launch.line)
        && let Err(failure) = take_on(launch.image, asked, line)
    {
        return failure;
    }
    if !weakened::DESCRIPTORS {
        descriptors::close(3..u32::MAX);
    }
    signals::unblock_all();
    (Step::Exec, clone::execute(&launch.image.program))
}

/// The program's own rules and filters, which pid 1 is not under.
fn take_on(image: &Image, asked: &DeskSetup, line: BorrowedFd<'_>) -> Result<(), (Step, Errno)> {
    privileges::drop_rest().map_err(|errno| (Step::Privileges, errno))?;
    let net = asked.guarded.net.as_ref().filter(|_| !weakened::NET);
    net.map_or(Ok(()), Ruleset::restrict_self).map_err(|errno| (Step::Landlock, errno))?;
    let filter = || {
        if !weakened::SECCOMP {
            seccomp::install(image.filter, false)?;
        }
        match seccomp::install(asked.filter, true).and_then(|listener| listener.ok_or(Errno::BADF)) {
            Ok(listener) => control::send_bytes(line, &[0], descriptors::adopt(listener).as_fd()),
            // An old kernel, or a sandbox around this one that asks already: nothing is told then.
            Err(_) if asked.only_tells => {
                seccomp::install(asked.strict, false)?;
                control::send_bytes(line, &ABSENT, line)
            }
            Err(errno) => Err(errno),
        }
    };
    filter().map_err(|errno| (Step::Seccomp, errno))
}

fn take_descriptors(launch: &Launch<'_>) -> Result<(), Errno> {
    // The sandbox's own, whose node cannot be changed. A number below three is one that is taken over just now.
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null = rustix::io::fcntl_dupfd_cloexec(null, 3)?;
    let given = match (&launch.image.stdio, launch.terminal) {
        (Handed::Given(three), _) => {
            three.each_ref().map(|one| one.as_ref().map_or(null.as_fd(), AsFd::as_fd))
        }
        (Handed::Terminal, Some(terminal)) => [terminal; 3],
        (Handed::Terminal, None) => return Err(Errno::BADF),
    };
    let [input, output, error] = given;
    rustix::stdio::dup2_stdin(input)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(error)
}

/// A session of its own; on a terminal, a group in the foreground of pid 1's. Signals are blocked still, so that the
/// kernel does not stop this process for it.
fn leave_group(terminal: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let Some(terminal) = terminal else { return rustix::process::setsid().map(|_| ()) };
    rustix::process::setpgid(None, None)?;
    rustix::termios::tcsetpgrp(terminal, rustix::process::getpid())
}

fn watch(control: BorrowedFd<'_>, ends: BorrowedFd<'_>, program: Pid, mut desk: Option<&mut Desk<'_>>) -> ! {
    loop {
        let [from_control, from_children, from_program] = match wait(control, ends, desk.as_deref()) {
            Ok(ready) => ready,
            Err(Errno::INTR) => continue,
            Err(_) => break,
        };
        if let Some(desk) = desk.as_deref_mut() {
            if from_program.contains(PollFlags::IN) {
                desk.serve();
            }
            desk.look_again();
        }
        // No process that could ask is left. The descriptor would wake this loop again and again until the last one is reaped.
        if from_program.contains(PollFlags::HUP) {
            desk = None;
        }
        if !from_children.is_empty() {
            forget_signal(ends);
            match reap(program) {
                Some(Message::Ended { status }) => {
                    end_others();
                    let _ = send(control, Message::Ended { status }, &[]);
                    break;
                }
                Some(message) => drop(send(control, message, &[])),
                None => {}
            }
        }
        if !from_control.is_empty() && !obey(control, program) {
            break;
        }
    }
    clone::exit(0)
}

/// Ends every other process of the sandbox, and reaps them: the supervisor, which hears of the end after that, need not
/// wait until the kernel has taken the namespaces apart.
///
/// None escapes by starting another meanwhile: a process that has this signal starts none.
fn end_others() {
    // Without a namespace of its own it would end processes of the host.
    if weakened::PID_NAMESPACE || !rustix::process::getpid().is_init() {
        return;
    }
    signals::send_to_others(libc::SIGKILL);
    while matches!(rustix::process::wait(WaitOptions::empty()), Ok(_) | Err(Errno::INTR)) {}
}

/// Waits for the supervisor, for the end of a process, for a call to decide, or until calls that wait are looked at.
fn wait(
    control: BorrowedFd<'_>,
    ends: BorrowedFd<'_>,
    desk: Option<&Desk<'_>>,
) -> Result<[PollFlags; 3], Errno> {
    const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    let asked = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
    // Where there is no desk the last one stands for nothing.
    let mut ready = [asked(control), asked(ends), asked(desk.map_or(ends, Desk::listener))];
    let count = if desk.is_some() { 3 } else { 2 };
    let timeout = desk.filter(|desk| desk.is_waiting()).map(|_| &TICK);
    rustix::event::poll(ready.get_mut(..count).unwrap_or_default(), timeout)?;
    let [control, children, program] = ready.map(|one| one.revents());
    let program = if desk.is_some() { program } else { PollFlags::empty() };
    Ok([control, children, program])
}

/// What a terminal sends to a whole group, and a shell to a whole job.
const BY_KEY: [i32; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGSTOP, libc::SIGCONT];

/// Does what the supervisor says; false once it is gone.
fn obey(control: BorrowedFd<'_>, program: Pid) -> bool {
    match recv(control) {
        Ok(Some(Message::Signal { number })) if BY_KEY.contains(&number) => {
            signals::send_to_group(program, number);
            true
        }
        Ok(Some(Message::Signal { number })) => {
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

/// Reaps every process that has ended; what became of the program if it is among them, or was stopped.
fn reap(program: Pid) -> Option<Message> {
    let mut stopped = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        match status.stopping_signal() {
            Some(signal) if pid == program => stopped = Some(Message::Stopped { signal }),
            None if pid == program => return Some(Message::Ended { status: status.as_raw() }),
            Some(_) | None => {}
        }
    }
    stopped
}
