//! One module for each command that this program runs itself.

#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod hold;
mod hook;
#[cfg(target_os = "linux")]
pub(crate) mod learn;
#[cfg(target_os = "linux")]
pub(crate) mod run;
#[cfg(target_os = "linux")]
pub(crate) mod serve;
#[cfg(target_os = "linux")]
mod wrap;

use bailiwick_command::answer::Answer;

#[cfg(target_os = "linux")]
use self::run::LookedAhead;
use crate::line::{Command, ServeCommand};

/// Nothing is looked at before it is needed.
#[cfg(not(target_os = "linux"))]
pub(crate) type LookedAhead = ();

/// Runs a command, with what was looked at while the command line was read. An error is a fault: ours or the system's, never the author's.
#[cfg(target_os = "linux")]
pub(crate) fn run(command: Command, ahead: LookedAhead) -> anyhow::Result<Answer> {
    refuse_own_ports();
    match command {
        Command::Hook(args) => Ok(hook::run(&args)),
        Command::Run(args) => run::run(&args, ahead),
        Command::Wrap(args) => wrap::run(&args),
        Command::Hold => hold::run(),
        Command::RefreshFleet => {
            use bailiwick_command::answer::Exit;
            bailiwick_command::fleet_rules::refresh_once()?;
            Ok(Answer::result(Exit::Fine, String::new()))
        }
    }
}

/// The same of `bailiwick-serve`.
#[cfg(target_os = "linux")]
pub(crate) fn serve_or_show(command: ServeCommand) -> anyhow::Result<Answer> {
    refuse_own_ports();
    match command {
        ServeCommand::Demo(args) => demo::run(&args),
        ServeCommand::Serve(args) => serve::run(&args),
        ServeCommand::Hold => hold::run(),
    }
}

#[cfg(target_os = "linux")]
fn refuse_own_ports() {
    if let Some(ports) = bailiwick_command::facts::ports_dir() {
        bailiwick_egress::refuse_ports_in(ports);
    }
}

/// The same on a system that cannot confine.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(command: Command, (): LookedAhead) -> anyhow::Result<Answer> {
    match command {
        Command::Hook(args) => Ok(hook::run(&args)),
        Command::Run(_) | Command::Wrap(_) | Command::Hold | Command::RefreshFleet => {
            Ok(bailiwick_command::answer::needs_linux())
        }
    }
}

/// The same of `bailiwick-serve`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn serve_or_show(_: ServeCommand) -> anyhow::Result<Answer> {
    Ok(bailiwick_command::answer::needs_linux())
}
