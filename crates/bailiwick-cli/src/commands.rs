//! One module for each command.

mod allows;
mod approve;
mod check;
mod compile;
#[cfg(target_os = "linux")]
mod console;
mod coverage;
#[cfg(target_os = "linux")]
mod demo;
mod diff;
mod doctor;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod enroll;
#[cfg(target_os = "linux")]
pub(crate) mod export;
#[cfg(target_os = "linux")]
mod fleet;
mod guard;
mod hook;
mod import;
mod init;
mod install;
#[cfg(target_os = "linux")]
mod learn;
mod log;
#[cfg(target_os = "linux")]
mod login;
#[cfg(target_os = "linux")]
mod logs;
#[cfg(target_os = "linux")]
mod pinned_files;
mod pins;
#[cfg(target_os = "linux")]
mod ps;
#[cfg(target_os = "linux")]
mod purge;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod scan;
#[cfg(target_os = "linux")]
mod secret;
#[cfg(target_os = "linux")]
pub(crate) mod serve;
mod snapshot;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
mod top;
mod trust;
#[cfg(target_os = "linux")]
mod verified;
#[cfg(target_os = "linux")]
mod wrap;

pub(crate) use self::hook::act;

use bailiwick_guardrails::Consent;
use bailiwick_manifest::SCHEMA;
use clap::CommandFactory as _;

#[cfg(target_os = "linux")]
use self::run::LookedAhead;
use crate::answer::{Answer, Exit};
use crate::args::{Command, Line};
use crate::companion;
use crate::render::markdown;

/// Nothing is looked at before it is needed.
#[cfg(not(target_os = "linux"))]
pub(crate) type LookedAhead = ();

/// Runs a command, with what was looked at while the command line was read. An error is a fault: ours or the system's, never the author's.
#[expect(clippy::too_many_lines, reason = "a line for each command")]
pub(crate) fn run(command: Command, ahead: LookedAhead) -> anyhow::Result<Answer> {
    #[cfg(target_os = "linux")]
    if let Some(ports) = crate::facts::ports_dir() {
        bailiwick_egress::refuse_ports_in(ports);
    }
    match command {
        Command::Check(args) => Ok(check::run(&args)),
        Command::Diff(args) => Ok(diff::run(&args)),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Allows(args) => Ok(allows::run(&args)),
        #[cfg(target_os = "linux")]
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        #[cfg(target_os = "linux")]
        Command::Run(args) => run::run(&args, ahead),
        #[cfg(target_os = "linux")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(target_os = "linux")]
        Command::Wrap(args) => wrap::run(&args),
        #[cfg(target_os = "linux")]
        Command::Learn(args) => learn::run(&args),
        #[cfg(target_os = "linux")]
        Command::Replay(args) => learn::replay(&args),
        #[cfg(target_os = "linux")]
        Command::Audit(args) => learn::audit(&args),
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
        Command::Export(_) => match companion::become_one(companion::EXPORT)? {},
        #[cfg(target_os = "linux")]
        Command::RefreshFleet => {
            crate::fleet_rules::refresh_once().map(|()| Answer::result(Exit::Fine, String::new()))
        }
        #[cfg(not(target_os = "linux"))]
        Command::RefreshFleet
        | Command::Demo(_)
        | Command::Run(_)
        | Command::Learn(_)
        | Command::Replay(_)
        | Command::Audit(_)
        | Command::Secret(_)
        | Command::Serve(_)
        | Command::Store(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Wrap(_)
        | Command::Console(_)
        | Command::Enroll(_)
        | Command::Export(_)
        | Command::Fleet(_)
        | Command::Top(_)
        | Command::Ps(_)
        | Command::Purge(_)
        | Command::Logs(_) => Ok(elsewhere::refuse()),
        Command::Compile(args) => compile::run(&args),
        Command::Coverage(args) => coverage::run(&args),
        Command::Log(args) => log::run(args),
        Command::Scan(_) => match companion::become_one(companion::SCAN)? {},
        Command::Guard(args) => guard::run(args),
        Command::Hook(args) => Ok(hook::run(&args)),
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
