//! The `bailiwick` command, and `bailiwick-scan`, `bailiwick-export` and `bailiwick-fixture` beside it: read the arguments, run one command
//! and show the answer.
//!
//! Commands are functions from arguments to an answer; only `terminal` prints, only `facts` looks at
//! the environment, only `input` reads files, only `output` writes those that a user names, and only the guard's library the journal.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the commands that confine use it"))]

mod additions;
mod answer;
mod args;
mod commands;
mod companion;
mod facts;
#[cfg(target_os = "linux")]
mod fleet_rules;
mod grant_file;
mod input;
mod moment;
#[cfg(target_os = "linux")]
mod output;
#[cfg(not(target_os = "linux"))]
#[path = "output/elsewhere.rs"]
mod output;
mod pin_store;
mod planned;
mod render;
#[cfg(target_os = "linux")]
mod running;
mod terminal;

use std::process::ExitCode;

use self::answer::{Answer, Exit};
use self::args::{Command, Line};

/// The `bailiwick` command.
#[must_use]
pub fn bailiwick() -> ExitCode {
    if args::asks_for_version(std::env::args_os()) {
        return terminal::show(Answer::result(Exit::Fine, version_line()), clap::ColorChoice::Never);
    }
    #[cfg(target_os = "linux")]
    let ahead = commands::run::look_ahead(std::env::args_os());
    #[cfg(not(target_os = "linux"))]
    let ahead = ();
    answer(Line::read(), |command| commands::run(command, ahead))
}

/// What `--version` prints.
fn version_line() -> String {
    format!("bailiwick {}\n", env!("CARGO_PKG_VERSION"))
}

/// The program that reads source for `bailiwick scan`: the grammars are larger than all else.
#[must_use]
pub fn bailiwick_scan() -> ExitCode {
    answer(companion::line(companion::SCAN), |command| {
        let Command::Scan(args) = command else { anyhow::bail!("it reads source alone: `bailiwick scan`") };
        Ok(commands::scan::run(&args))
    })
}

/// The program that exports the journal for `bailiwick export`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn bailiwick_export() -> ExitCode {
    answer(companion::line(companion::EXPORT), |command| {
        let Command::Export(args) = command else { anyhow::bail!("it exports alone: `bailiwick export`") };
        commands::export::run(&args)
    })
}

/// The program that serves the conformance fixture for `bailiwick serve --fixture conformance`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn bailiwick_fixture() -> ExitCode {
    answer(companion::line(companion::FIXTURE), |command| {
        let Command::Serve(args) = command else {
            anyhow::bail!("it serves the fixture alone: `bailiwick serve --fixture conformance`")
        };
        commands::serve::fixture::run(&args)
    })
}

fn answer(line: Result<Line, clap::Error>, run: impl FnOnce(Command) -> anyhow::Result<Answer>) -> ExitCode {
    let line = match line {
        Ok(line) => line,
        Err(refusal) => return terminal::show_usage(&refusal),
    };
    match run(line.command) {
        Ok(answer) => terminal::show(answer, line.colour),
        Err(fault) => terminal::show_fault(&fault, line.colour),
    }
}
