//! One module for each command.

mod allows;
mod check;
mod diff;
mod init;
mod log;
mod snapshot;

use bailiwick_policy::manifest::SCHEMA;
use clap::CommandFactory as _;

use crate::answer::{Answer, Exit};
use crate::args::{Command, Line};
use crate::render::markdown;

/// Runs a command. An error is a fault: ours or the system's, never the author's.
pub(crate) fn run(command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Check(args) => Ok(check::run(&args)),
        Command::Diff(args) => Ok(diff::run(&args)),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Allows(args) => Ok(allows::run(&args)),
        Command::Log(args) => log::run(args),
        Command::Schema => Ok(Answer::result(Exit::Fine, SCHEMA.to_owned())),
        Command::Completions { shell } => completions(shell),
        Command::Codes => Ok(Answer::result(Exit::Fine, markdown::codes())),
    }
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "bailiwick", &mut script);
    Ok(Answer::result(Exit::Fine, String::from_utf8(script)?))
}
