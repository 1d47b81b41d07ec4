//! The commands of `bailiwick` that run no tool: they check, compile, explain, list and change what is kept. `bailiwick` becomes the
//! program `bailiwick-admin` for them, and for everything that is said of a command line.
//!
//! `bailiwick-scan` and `bailiwick-export` are programs of their own for what they bring along: grammars, and a collector's protocol.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the commands that confine use it"))]

mod additions;
mod args;
mod commands;
mod planned;
mod render;

use std::process::ExitCode;

use bailiwick_command::answer::Answer;
use bailiwick_command::args::learn::{Audit, Learn, Replay};
use bailiwick_command::{companion, run_and_show};

use self::args::{Command, Line};

/// The commands that watch a program: they run it, so what they do is not here.
#[derive(Debug)]
pub struct Watchers {
    /// `bailiwick learn`.
    pub learn: fn(&Learn) -> anyhow::Result<Answer>,
    /// `bailiwick replay`.
    pub replay: fn(&Replay) -> anyhow::Result<Answer>,
    /// `bailiwick audit`.
    pub audit: fn(&Audit) -> anyhow::Result<Answer>,
}

/// The program of every command that is awaited by nothing but a person.
#[must_use]
pub fn bailiwick_admin(watchers: &Watchers) -> ExitCode {
    let line = companion::words(companion::ADMIN).and_then(Line::read);
    run_and_show(line, |command| commands::run(command, watchers))
}

/// The program that reads source for `bailiwick scan`: the grammars are larger than all else.
#[must_use]
pub fn bailiwick_scan() -> ExitCode {
    run_and_show(companion::words(companion::SCAN).and_then(Line::read), |command| {
        let Command::Scan(args) = command else { anyhow::bail!("it reads source alone: `bailiwick scan`") };
        Ok(commands::scan::run(&args))
    })
}

/// The program that exports the journal for `bailiwick export`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn bailiwick_export() -> ExitCode {
    run_and_show(companion::words(companion::EXPORT).and_then(Line::read), |command| {
        let Command::Export(args) = command else { anyhow::bail!("it exports alone: `bailiwick export`") };
        commands::export::run(&args)
    })
}
