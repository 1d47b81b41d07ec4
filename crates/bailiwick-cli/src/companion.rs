//! The programs beside this one: `bailiwick-page` and `bailiwick-scan`. Each is told the version that starts it and
//! serves no other.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::Line;
use crate::facts;

/// What comes before the version of the program that starts a companion.
pub(crate) const FOR: &str = "--for";
/// The version of this program and of its companions.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A program beside this one, if it is there.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let program = facts::own_program()?.with_file_name(name);
    program.is_file().then_some(program)
}

/// Becomes a companion, with the arguments of this process.
///
/// # Errors
/// It is not there, or cannot be started.
pub(crate) fn become_one(name: &str) -> anyhow::Result<std::convert::Infallible> {
    let program = find(name).with_context(|| {
        format!("{name} is not beside this program: install both (in a source tree: `cargo build --release`)")
    })?;
    let fault = Command::new(&program).args([FOR, VERSION]).args(std::env::args_os().skip(1)).exec();
    Err(fault).with_context(|| format!("cannot start {}", program.display()))
}

/// The line that a companion was started with.
///
/// # Errors
/// Another version started it, or the line is wrong.
pub(crate) fn line(name: &str) -> Result<Line, clap::Error> {
    let mut words = std::env::args_os();
    let program = words.next();
    let version = words.next().filter(|word| word == FOR).and_then(|_| words.next());
    if version.as_ref().is_some_and(|version| version == VERSION) {
        return Line::try_parse_from(program.into_iter().chain(words));
    }
    let started = version.map_or_else(
        || format!("{name} is started by `bailiwick`\n"),
        |version| {
            format!(
                "{name} is of version {VERSION}, the program that started it of {}: install both anew\n",
                version.display()
            )
        },
    );
    Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, started))
}
