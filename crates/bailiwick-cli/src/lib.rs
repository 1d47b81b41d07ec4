//! The commands that run programs. `bailiwick` itself is `run`, `wrap` and `hook`: what starts with each command, each server and each
//! call of an agent stays small. It becomes `bailiwick-serve` for `serve` and `demo`, which bring the tools along, and
//! `bailiwick-admin` for all others, of which those that watch a program (`learn`, `replay`, `audit`) are here too.
//!
//! Also the entry of `bailiwick-fixture`, which serves what a test suite asks for.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the commands that confine use it"))]

mod commands;
mod line;

use std::ffi::OsString;
use std::process::ExitCode;

use bailiwick_command::answer::Answer;
use bailiwick_command::args::learn::{Audit, Learn, Replay};
use bailiwick_command::{companion, run_and_show, show_version, terminal};

use self::line::{Command, Read, ServeCommand, asks_for_version, command_first};

/// The `bailiwick` command.
#[must_use]
pub fn bailiwick() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if asks_for_version(&words) {
        return show_version();
    }
    #[cfg(target_os = "linux")]
    let ahead = commands::run::look_ahead(&words);
    #[cfg(not(target_os = "linux"))]
    let ahead = ();
    match Read::<Command>::new(command_first(&words)) {
        Read::Here(command, colour) => {
            run_and_show(Ok((command, colour)), |command| commands::run(command, ahead))
        }
        Read::Elsewhere(program, wrong) => hand_on(program, words.into_iter().skip(1), wrong),
    }
}

/// The program of `bailiwick serve` and `bailiwick demo`, with the tools that are served. It holds secrets for itself.
#[must_use]
pub fn bailiwick_serve() -> ExitCode {
    let own: Vec<OsString> = std::env::args_os().collect();
    let line = match Read::<ServeCommand>::new(own) {
        held @ Read::Here(ServeCommand::Hold, _) => Ok(held),
        Read::Here(..) | Read::Elsewhere(..) => {
            companion::words(companion::SERVE).map(|words| Read::<ServeCommand>::new(command_first(&words)))
        }
    };
    match line {
        Ok(Read::Here(command, colour)) => run_and_show(Ok((command, colour)), commands::serve_or_show),
        Ok(Read::Elsewhere(program, wrong)) => hand_on(program, companion::own_words(), wrong),
        Err(refusal) => terminal::show_usage(&refusal),
    }
}

/// Becomes the program of another command, which also says what is wrong with a line of ours. Where it is not there, that is
/// said here, and not less strictly.
fn hand_on(program: &str, words: impl Iterator<Item = OsString>, wrong: Option<clap::Error>) -> ExitCode {
    let Err(fault) = companion::become_one(program, words);
    match wrong {
        Some(wrong) => terminal::show_usage(&wrong),
        None => terminal::show_fault(&fault, clap::ColorChoice::Auto),
    }
}

/// The program that serves the conformance fixture for `bailiwick serve --fixture conformance`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn bailiwick_fixture() -> ExitCode {
    let line = companion::words(companion::FIXTURE);
    let line = line.map(|words| match Read::<ServeCommand>::new(command_first(&words)) {
        Read::Here(command, colour) => (Some(command), colour),
        Read::Elsewhere(..) => (None, clap::ColorChoice::Auto),
    });
    run_and_show(line, |command| {
        let Some(ServeCommand::Serve(args)) = command else {
            anyhow::bail!("it serves the fixture alone: `bailiwick serve --fixture conformance`")
        };
        commands::serve::fixture::run(&args)
    })
}

/// `bailiwick learn`, for `bailiwick-admin`.
///
/// # Errors
/// A fault: ours or the system's.
#[cfg(target_os = "linux")]
pub fn learn(args: &Learn) -> anyhow::Result<Answer> {
    commands::learn::run(args)
}

/// `bailiwick replay`, for `bailiwick-admin`.
///
/// # Errors
/// A fault: ours or the system's.
#[cfg(target_os = "linux")]
pub fn replay(args: &Replay) -> anyhow::Result<Answer> {
    commands::learn::replay(args)
}

/// `bailiwick audit`, for `bailiwick-admin`.
///
/// # Errors
/// A fault: ours or the system's.
#[cfg(target_os = "linux")]
pub fn audit(args: &Audit) -> anyhow::Result<Answer> {
    commands::learn::audit(args)
}

/// `bailiwick learn`, where nothing can be watched.
#[cfg(not(target_os = "linux"))]
pub fn learn(_: &Learn) -> anyhow::Result<Answer> {
    Ok(bailiwick_command::answer::needs_linux())
}

/// `bailiwick replay`, where nothing can be watched.
#[cfg(not(target_os = "linux"))]
pub fn replay(_: &Replay) -> anyhow::Result<Answer> {
    Ok(bailiwick_command::answer::needs_linux())
}

/// `bailiwick audit`, where nothing can be watched.
#[cfg(not(target_os = "linux"))]
pub fn audit(_: &Audit) -> anyhow::Result<Answer> {
    Ok(bailiwick_command::answer::needs_linux())
}
