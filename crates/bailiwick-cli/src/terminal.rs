//! Where answers meet the terminal. The only place that prints.
//!
//! Colours are kept on a terminal and dropped elsewhere, or as `--color` and `NO_COLOR` say. A reader that goes
//! away (`bailiwick … | head -1`) is no error and changes no exit code.

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};

use crate::answer::{Answer, Exit, Out};
use crate::render::{escape, style};

/// Prints an answer and gives its exit code.
pub(crate) fn show(answer: &Answer, colour: clap::ColorChoice) -> ExitCode {
    let stdout = std::io::stdout();
    let shown = match &answer.out {
        Out::Text(text) => write(AutoStream::new(stdout, choice(colour)), text),
        Out::Bytes(text) if stdout.is_terminal() => write(stdout, &escape::json(text)),
        Out::Bytes(text) => write(stdout, text),
    };
    let complained = write(AutoStream::new(std::io::stderr(), choice(colour)), &answer.complaint);
    match shown.and(complained) {
        Ok(()) => answer.exit.into(),
        Err(gone) if gone.kind() == std::io::ErrorKind::BrokenPipe => answer.exit.into(),
        Err(fault) => show_fault(&anyhow::Error::new(fault).context("cannot print the answer"), colour),
    }
}

/// Prints what went wrong on our side.
pub(crate) fn show_fault(fault: &anyhow::Error, colour: clap::ColorChoice) -> ExitCode {
    let text = format!("{}: {}\n", style::error("fault"), escape::line(&format!("{fault:#}")));
    // Nobody is left to tell if this fails too.
    drop(write(AutoStream::new(std::io::stderr(), choice(colour)), &text));
    Exit::Fault.into()
}

/// Prints help, or what is wrong with the command line.
pub(crate) fn show_usage(refusal: &clap::Error) -> ExitCode {
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
