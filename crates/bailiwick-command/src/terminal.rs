//! Where answers meet the terminal. The only place that prints.
//!
//! Colours are kept on a terminal and dropped elsewhere, or as `--color` and `NO_COLOR` say. A reader that goes
//! away (`bailiwick … | head -1`) is no error and changes no exit code.

#[cfg(target_os = "linux")]
mod screen;

use std::io::{BufRead as _, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;

use crate::answer::{Answer, Chunk, Exit, Flow, Out};
use crate::render::{escape, style};
#[cfg(target_os = "linux")]
pub use screen::{Drawing, ScreenSize};

/// How long something takes before people are told how far it is, and how often they are told anew.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
const PROGRESS_PACE: Duration = Duration::from_millis(200);

/// Prints an answer and gives its exit code.
pub fn show(answer: Answer, colour: clap::ColorChoice) -> ExitCode {
    let stdout = std::io::stdout();
    let shown = match answer.out {
        Out::Text(text) => write(AutoStream::new(stdout, choice(colour)), &text),
        Out::Bytes(text) if stdout.is_terminal() => write(stdout, &escape::json(&text)),
        Out::Bytes(text) => write(stdout, &text),
        Out::Flow(flow) => return show_flow(flow, answer.exit, colour),
        #[cfg(target_os = "linux")]
        Out::Screen(drawing) => {
            let shown = screen::show(drawing.0, colour);
            return shown.map_or_else(|fault| show_fault(&fault, colour), |()| answer.exit.into());
        }
    };
    // Where nothing is to be said, who does not read stderr holds up nothing.
    let complained = if answer.complaint.is_empty() {
        Ok(())
    } else {
        write(AutoStream::new(std::io::stderr(), choice(colour)), &answer.complaint)
    };
    match shown.and(complained) {
        Ok(()) => answer.exit.into(),
        Err(gone) if gone.kind() == std::io::ErrorKind::BrokenPipe => answer.exit.into(),
        Err(fault) => show_fault(&anyhow::Error::new(fault).context("cannot print the answer"), colour),
    }
}

/// Prints pieces as they come, until there are no more or the output is closed.
fn show_flow(flow: Flow, exit: Exit, colour: clap::ColorChoice) -> ExitCode {
    let mut exit = exit;
    let escapes = flow.is_json && is_terminal();
    for chunk in flow.chunks {
        let shown = match chunk {
            Ok(chunk) if chunk.is_empty() && reader_is_gone() => return exit.into(),
            Ok(Chunk::Out(text)) if escapes => write(std::io::stdout(), &escape::json(&text)),
            Ok(Chunk::Out(text)) if flow.is_json => write(std::io::stdout(), &text),
            Ok(Chunk::Out(text)) => write(AutoStream::new(std::io::stdout(), choice(colour)), &text),
            Ok(Chunk::Complaint(text)) => {
                exit = exit.max(Exit::Invalid);
                write(AutoStream::new(std::io::stderr(), choice(colour)), &text)
            }
            Err(fault) => return show_fault(&fault, colour),
        };
        match shown {
            Ok(()) => {}
            Err(gone) if gone.kind() == std::io::ErrorKind::BrokenPipe => return exit.into(),
            Err(fault) => {
                return show_fault(&anyhow::Error::new(fault).context("cannot print the answer"), colour);
            }
        }
    }
    exit.into()
}

/// Whether the reader of a pipe has gone: found out without writing to it.
#[cfg(unix)]
fn reader_is_gone() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut asked, Some(&now)).is_ok();
    polled && asked.iter().any(|one| one.revents().contains(PollFlags::ERR))
}

/// Elsewhere the next write finds out.
#[cfg(not(unix))]
const fn reader_is_gone() -> bool {
    false
}

/// A line on stderr, beside what a program prints.
pub fn remark(text: &str) {
    // The output may be closed; that changes nothing.
    drop(write(AutoStream::auto(std::io::stderr()), text));
}

/// Whether people see what is printed.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Becomes true when the person at the terminal interrupts; the process then ends by itself.
pub fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag))
        .context("cannot wait for an interrupt")?;
    Ok(flag)
}

/// Asks a person; `None` if there is none to ask.
pub fn confirm(question: &str) -> anyhow::Result<Option<bool>> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(None);
    }
    write(stderr, &format!("{question} [y/N] "))?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// One line on a terminal that says how far something is. What takes less than a second shows none.
pub struct Progress {
    state: Arc<(Mutex<ProgressState>, Condvar)>,
    shower: JoinHandle<()>,
}

#[derive(Default)]
struct ProgressState {
    text: String,
    is_over: bool,
}

impl Progress {
    /// Nothing where there is no terminal.
    pub fn begin() -> Option<Self> {
        let state: Arc<(Mutex<ProgressState>, Condvar)> = Arc::default();
        let own = Arc::clone(&state);
        let is_seen = std::io::stderr().is_terminal();
        is_seen.then(|| Self { state, shower: std::thread::spawn(move || show_progress(&own)) })
    }

    /// Says how far it is now.
    pub fn set(&self, text: String) {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).text = text;
    }

    /// Takes the line away.
    pub fn end(self) {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.state.1.notify_all();
        drop(self.shower.join());
    }
}

/// Shows the line after a while, again whenever it may have changed, and clears it in the end.
fn show_progress((state, changed): &(Mutex<ProgressState>, Condvar)) {
    let mut is_shown = false;
    let mut wait = PROGRESS_DELAY;
    let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let waited = changed.wait_timeout_while(locked, wait, |state| !state.is_over);
        locked = waited.unwrap_or_else(PoisonError::into_inner).0;
        if locked.is_over {
            break;
        }
        is_shown = true;
        wait = PROGRESS_PACE;
        drop(write(std::io::stderr(), &format!("\r\x1b[K{}", locked.text)));
    }
    if is_shown {
        drop(write(std::io::stderr(), "\r\x1b[K"));
    }
}

/// Prints what went wrong on our side.
pub fn show_fault(fault: &anyhow::Error, colour: clap::ColorChoice) -> ExitCode {
    let text = format!("{}: {}\n", style::error("fault"), escape::line(&format!("{fault:#}")));
    // If this fails too, it cannot be reported.
    drop(write(AutoStream::new(std::io::stderr(), choice(colour)), &text));
    Exit::Fault.into()
}

/// Prints help, or what is wrong with the command line.
pub fn show_usage(refusal: &clap::Error) -> ExitCode {
    drop(refusal.print());
    if refusal.use_stderr() { Exit::Usage.into() } else { Exit::Fine.into() }
}

fn write(mut to: impl Write, text: &str) -> std::io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

const fn choice(colour: clap::ColorChoice) -> ColorChoice {
    match colour {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
}
