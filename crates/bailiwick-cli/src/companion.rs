//! The programs beside this one: `bailiwick-page`, `bailiwick-scan`, `bailiwick-export` and `bailiwick-fixture`. Each is told the version that
//! starts it and serves no other.
//!
//! `cargo build` and `cargo install` make all of them. `cargo run` makes one program only, so a companion that is missing
//! then is built when it is first needed, by the same cargo, in the same target directory and profile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::Line;
use crate::facts;

/// Reads pages of the web.
pub(crate) const PAGE: &str = "bailiwick-page";
/// Reads source.
pub(crate) const SCAN: &str = "bailiwick-scan";
/// Exports the journal.
pub(crate) const EXPORT: &str = "bailiwick-export";
/// Serves the conformance fixture.
pub(crate) const FIXTURE: &str = "bailiwick-fixture";
/// What comes before the version of the program that starts a companion.
pub(crate) const FOR: &str = "--for";
/// The version of this program and of its companions.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A program beside this one, if it is there or `cargo run` can make it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let program = facts::own_program()?.with_file_name(name);
    if !program.is_file()
        && let Some(mut cargo) = facts::cargo_run().and_then(|cargo| build_command(cargo.as_ref(), &program))
    {
        let _ = cargo.stdin(Stdio::null()).stdout(Stdio::null()).status(); // whether it is there says enough
    }
    program.is_file().then_some(program)
}

/// How cargo makes a program where this one lies: `TARGET_DIR[/TRIPLE]/PROFILE/NAME`. None if it does not lie so.
fn build_command(cargo: &Path, program: &Path) -> Option<Command> {
    let (profile_dir, name) = (program.parent()?, program.file_name()?);
    let above = profile_dir.parent().filter(|_| profile_dir.join("deps").is_dir())?;
    let is_target_dir = |dir: &Path| dir.join("CACHEDIR.TAG").is_file();
    let (target_dir, triple) = match above.parent() {
        _ if is_target_dir(above) => (above, None),
        Some(target_dir) if is_target_dir(target_dir) => (target_dir, above.file_name()),
        _ => return None,
    };
    let profile = profile_dir.file_name()?;
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    command.arg("--bin").arg(name).arg("--target-dir").arg(target_dir);
    command.arg("--profile").arg(if profile == "debug" { "dev".as_ref() } else { profile });
    if let Some(triple) = triple {
        command.arg("--target").arg(triple);
    }
    Some(command)
}

/// Becomes a companion, with the arguments of this process.
///
/// # Errors
/// It is not there, or cannot be started.
pub(crate) fn become_one(name: &str) -> anyhow::Result<std::convert::Infallible> {
    let program = find(name).with_context(|| {
        format!("{name} is not beside this program: install all of them (in a source tree: `cargo build --release`)")
    })?;
    let mut command = Command::new(&program);
    let fault = replace(command.args([FOR, VERSION]).args(std::env::args_os().skip(1)));
    Err(fault).with_context(|| format!("cannot start {}", program.display()))
}

/// Runs a program in the place of this one; returns only if that fails.
#[cfg(unix)]
fn replace(command: &mut Command) -> std::io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Nothing can take this process' place there: it waits, and ends as the program did.
#[cfg(not(unix))]
#[expect(clippy::exit, reason = "what is left to do is to end as the program did")]
fn replace(command: &mut Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(5)),
        Err(fault) => fault,
    }
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
                "{name} is of version {VERSION}, the program that started it of {}: install all of them anew\n",
                version.display()
            )
        },
    );
    Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_companion_is_built_as_this_program_was() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().to_str().unwrap();
        let built = |place: &str| {
            let command = build_command(Path::new("cargo"), &dir.path().join(place).join(SCAN))?;
            let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap().to_owned()).collect();
            Some(words.get(4..).unwrap().join(" "))
        };
        assert_eq!(built("debug"), None, "no target directory of cargo's");
        std::fs::write(dir.path().join("CACHEDIR.TAG"), "").unwrap();
        assert_eq!(built("debug"), None, "no profile of it");
        for place in ["debug", "release", "x86_64-unknown-linux-musl/release", "a/b/c"] {
            std::fs::create_dir_all(dir.path().join(place).join("deps")).unwrap();
        }
        let line = format!("--bin bailiwick-scan --target-dir {target} --profile");
        assert_eq!(built("debug").unwrap(), format!("{line} dev"));
        assert_eq!(built("release").unwrap(), format!("{line} release"));
        let cross = "x86_64-unknown-linux-musl";
        assert_eq!(built(&format!("{cross}/release")).unwrap(), format!("{line} release --target {cross}"));
        assert_eq!(built("a/b/c"), None);
    }
}
