//! One module for each command that runs no tool.

mod allows;
mod approve;
mod check;
mod compile;
#[cfg(target_os = "linux")]
mod console;
mod coverage;
mod diff;
mod doctor;
#[cfg(target_os = "linux")]
mod enroll;
#[cfg(target_os = "linux")]
pub(crate) mod export;
#[cfg(target_os = "linux")]
mod fleet;
mod guard;
mod import;
mod init;
mod install;
mod log;
#[cfg(target_os = "linux")]
mod login;
#[cfg(target_os = "linux")]
mod logs;
mod pins;
#[cfg(target_os = "linux")]
mod ps;
#[cfg(target_os = "linux")]
mod purge;
pub(crate) mod scan;
#[cfg(target_os = "linux")]
mod secret;
mod snapshot;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
mod top;
mod trust;

#[cfg(not(target_os = "linux"))]
use bailiwick_command::answer::needs_linux;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::companion;
use bailiwick_guardrails::Consent;
use bailiwick_manifest::SCHEMA;
use clap::CommandFactory as _;

use crate::Watchers;
use crate::args::{Command, Line};
use crate::render::markdown;

/// Runs a command. An error is a fault: ours or the system's, never the author's.
pub(crate) fn run(command: Command, watchers: &Watchers) -> anyhow::Result<Answer> {
    #[cfg(target_os = "linux")]
    if let Some(ports) = bailiwick_command::facts::ports_dir() {
        bailiwick_egress::refuse_ports_in(ports);
    }
    match command {
        Command::Check(args) => Ok(check::run(&args)),
        Command::Diff(args) => Ok(diff::run(&args)),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Allows(args) => Ok(allows::run(&args)),
        Command::Doctor(args) => doctor::run(&args),
        Command::Learn(args) => (watchers.learn)(&args),
        Command::Replay(args) => (watchers.replay)(&args),
        Command::Audit(args) => (watchers.audit)(&args),
        #[cfg(target_os = "linux")]
        Command::Secret(args) => secret::run(&args),
        #[cfg(target_os = "linux")]
        Command::Store(args) => store::run(&args),
        #[cfg(target_os = "linux")]
        Command::Login(args) => login::run(&args),
        #[cfg(target_os = "linux")]
        Command::Logout(args) => login::forget(&args),
        #[cfg(target_os = "linux")]
        Command::Ps(args) => ps::run(&args),
        #[cfg(target_os = "linux")]
        Command::Console(args) => console::run(&args),
        #[cfg(target_os = "linux")]
        Command::Top(args) => top::run(&args),
        #[cfg(target_os = "linux")]
        Command::Logs(args) => logs::run(&args),
        #[cfg(target_os = "linux")]
        Command::Purge(args) => purge::run(&args),
        #[cfg(target_os = "linux")]
        Command::Enroll(args) => enroll::run(&args),
        #[cfg(target_os = "linux")]
        Command::Fleet(args) => fleet::run(&args),
        #[cfg(target_os = "linux")]
        Command::Export(_) => match companion::become_one(companion::EXPORT, companion::own_words())? {},
        Command::Demo(_)
        | Command::Hook(_)
        | Command::Run(_)
        | Command::Serve(_)
        | Command::Wrap(_)
        | Command::RefreshFleet => anyhow::bail!("`bailiwick` runs this command itself"),
        #[cfg(not(target_os = "linux"))]
        Command::Secret(_)
        | Command::Store(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Console(_)
        | Command::Enroll(_)
        | Command::Export(_)
        | Command::Fleet(_)
        | Command::Top(_)
        | Command::Ps(_)
        | Command::Purge(_)
        | Command::Logs(_) => Ok(needs_linux()),
        Command::Compile(args) => compile::run(&args),
        Command::Coverage(args) => coverage::run(&args),
        Command::Log(args) => log::run(args),
        Command::Scan(_) => match companion::become_one(companion::SCAN, companion::own_words())? {},
        Command::Guard(args) => guard::run(args),
        Command::Trust(args) => trust::run(&args),
        Command::Approve(args) => approve::run(&args, Consent::Given),
        Command::Deny(args) => approve::run(&args, Consent::Refused),
        Command::Pending(args) => approve::pending(&args),
        Command::Pins(args) => pins::run(&args),
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
