//! One module for each command.

mod allows;
mod approve;
mod check;
mod compile;
mod coverage;
mod demo;
mod diff;
mod doctor;
mod guard;
mod hook;
mod init;
mod install;
mod log;
mod run;
pub(crate) mod scan;
mod serve;
mod snapshot;
mod trust;

use bailiwick_guard::Consent;
use bailiwick_policy::manifest::SCHEMA;
use clap::CommandFactory as _;

use crate::answer::{Answer, Exit};
use crate::args::{Command, Line};
use crate::companion;
use crate::render::markdown;

/// Runs a command. An error is a fault: ours or the system's, never the author's.
pub(crate) fn run(command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Check(args) => Ok(check::run(&args)),
        Command::Diff(args) => Ok(diff::run(&args)),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Allows(args) => Ok(allows::run(&args)),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Coverage(args) => coverage::run(&args),
        Command::Log(args) => log::run(args),
        Command::Scan(_) => match companion::become_one("bailiwick-scan")? {},
        Command::Guard(args) => guard::run(args),
        Command::Hook(args) => Ok(hook::run(&args)),
        Command::Trust(args) => trust::run(&args),
        Command::Approve(args) => approve::run(&args, Consent::Given),
        Command::Deny(args) => approve::run(&args, Consent::Refused),
        Command::Pending(args) => approve::pending(&args),
        Command::Install(args) => install::run(&args),
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
