//! What the commands of `bailiwick` share: their arguments, answers, exit codes, and the edges to the host.
//!
//! Commands are functions from arguments to an answer. [`terminal`] alone prints, [`facts`] alone looks at the environment,
//! [`input`] alone reads files that a user names, [`output`] alone writes them. The commands themselves are in
//! `bailiwick-cli` (those that run something) and in `bailiwick-admin` (all others), which are programs of their own.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the commands that confine use it"))]

pub mod answer;
pub mod args;
pub mod companion;
#[cfg(target_os = "linux")]
pub mod console_presence;
pub mod facts;
#[cfg(target_os = "linux")]
pub mod fleet_rules;
pub mod grant_file;
pub mod hook_records;
pub mod input;
pub mod installed;
#[cfg(target_os = "linux")]
pub mod listening;
#[cfg(target_os = "linux")]
pub mod logins;
#[cfg(target_os = "linux")]
pub mod member_link;
pub mod moment;
#[cfg(target_os = "linux")]
pub mod output;
#[cfg(not(target_os = "linux"))]
#[path = "output/elsewhere.rs"]
pub mod output;
#[cfg(target_os = "linux")]
pub mod packages;
pub mod pin_store;
#[cfg(target_os = "linux")]
pub mod pinned_files;
pub mod render;
#[cfg(target_os = "linux")]
pub mod running;
#[cfg(target_os = "linux")]
pub mod secret_sources;
#[cfg(target_os = "linux")]
pub mod server_logs;
#[cfg(target_os = "linux")]
pub mod started;
pub mod terminal;
pub mod user_state;
#[cfg(target_os = "linux")]
pub mod verified;
#[cfg(target_os = "linux")]
pub mod written_trees;

use std::process::ExitCode;

use self::answer::{Answer, Exit};

/// This program with its version, as what it compiles says.
pub const COMPILER: &str = concat!("bailiwick ", env!("CARGO_PKG_VERSION"));

/// What `--version` prints.
#[must_use]
pub fn version_line() -> String {
    format!("{COMPILER}\n")
}

/// Runs the command of a line, shows what it answers, and says how this process ends.
pub fn run_and_show<C>(
    line: Result<(C, clap::ColorChoice), clap::Error>,
    run: impl FnOnce(C) -> anyhow::Result<Answer>,
) -> ExitCode {
    let (command, colour) = match line {
        Ok(line) => line,
        Err(refusal) => return terminal::show_usage(&refusal),
    };
    match run(command) {
        Ok(answer) => terminal::show(answer, colour),
        Err(fault) => terminal::show_fault(&fault, colour),
    }
}

/// Shows what `--version` prints.
#[must_use]
pub fn show_version() -> ExitCode {
    terminal::show(Answer::result(Exit::Fine, version_line()), clap::ColorChoice::Never)
}
