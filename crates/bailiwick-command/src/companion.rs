//! The programs beside this one: `bailiwick-admin`, `bailiwick-serve`, `bailiwick-page`, `bailiwick-scan`, `bailiwick-export` and
//! `bailiwick-fixture`. Each is told the version that starts it and serves no other.
//!
//! `cargo build` and `cargo install` make all of them. `cargo run` makes one program only, so a companion that is missing
//! then is built when it is first needed, by the same cargo, in the same target directory and profile.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::{facts, terminal};

/// The program that starts the others.
pub const BAILIWICK: &str = "bailiwick";
/// Runs every command that runs no tool.
pub const ADMIN: &str = "bailiwick-admin";
/// Serves tools.
pub const SERVE: &str = "bailiwick-serve";
/// Reads pages of the web.
pub const PAGE: &str = "bailiwick-page";
/// Reads source.
pub const SCAN: &str = "bailiwick-scan";
/// Exports the journal.
pub const EXPORT: &str = "bailiwick-export";
/// Serves the conformance fixture.
pub const FIXTURE: &str = "bailiwick-fixture";
/// All that `bailiwick` starts with a command line.
pub(crate) const COMPANIONS: [&str; 5] = [ADMIN, SERVE, SCAN, EXPORT, FIXTURE];
/// What comes before the version of the program that starts a companion.
pub const FOR: &str = "--for";
/// The version of this program and of its companions.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A program beside this one, if it is there or `cargo run` can make it.
pub fn find(name: &str) -> Option<PathBuf> {
    let program = beside(&facts::own_program()?, name);
    if !program.is_file()
        && let Some(mut cargo) = facts::cargo_run().and_then(|cargo| build_command(cargo.as_ref(), &program))
    {
        terminal::remark(&format!(
            "building {name} with cargo: it is not there yet, and a release build takes minutes\n"
        ));
        let _ = cargo.stdin(Stdio::null()).stdout(Stdio::null()).status(); // whether it is there says enough
    }
    program.is_file().then_some(program)
}

/// Where another program of ours is.
pub(crate) fn beside(own: &Path, name: &str) -> PathBuf {
    own.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION)
}

/// How cargo makes a program where this one lies: `TARGET_DIR[/TRIPLE]/PROFILE/NAME`. None if it does not lie so.
fn build_command(cargo: &Path, program: &Path) -> Option<Command> {
    let (profile_dir, name) = (program.parent()?, program.file_stem()?);
    let above = profile_dir.parent().filter(|_| profile_dir.join("deps").is_dir())?;
    // The first is only in a directory that cargo made itself.
    let is_target_dir =
        |dir: &Path| ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|name| dir.join(name).is_file());
    let (target_dir, triple) = match above.parent() {
        _ if is_target_dir(above) => (above, None),
        Some(target_dir) if is_target_dir(target_dir) => (target_dir, above.file_name()),
        _ => return None,
    };
    let profile = profile_dir.file_name()?;
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--quiet",
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../bailiwick-cli/Cargo.toml"),
    ]);
    command.arg("--bin").arg(name).arg("--target-dir").arg(target_dir);
    command.arg("--profile").arg(if profile == "debug" { "dev".as_ref() } else { profile });
    if let Some(triple) = triple {
        command.arg("--target").arg(triple);
    }
    Some(command)
}

/// Becomes a companion, with these words of a command line.
///
/// # Errors
/// It is not there, or cannot be started.
pub fn become_one(
    name: &str,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> anyhow::Result<std::convert::Infallible> {
    let program = find(name).with_context(|| {
        format!("{name} is not beside this program: install all of them (in a source tree: `cargo build --release`)")
    })?;
    let mut command = Command::new(&program);
    let fault = replace(command.args([FOR, VERSION]).args(words));
    Err(fault).with_context(|| format!("cannot start {}", program.display()))
}

/// Runs a program in the place of this one; returns only if that fails.
#[cfg(unix)]
fn replace(command: &mut Command) -> std::io::Error {
    use std::os::unix::process::CommandExt as _;
    // What it says of the command line calls the program as the user did.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.exec()
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

/// The words that a companion was started with, the program's name first.
///
/// # Errors
/// Another version started it, or none.
pub fn words(name: &str) -> Result<Vec<OsString>, clap::Error> {
    let mut words = std::env::args_os();
    let program = words.next();
    let version = words.next().filter(|word| word == FOR).and_then(|_| words.next());
    if version.as_ref().is_some_and(|version| version == VERSION) {
        return Ok(program.into_iter().chain(words).collect());
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

/// What comes behind the version in the words that this companion was started with.
pub fn own_words() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(3)
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
        // One that was there before cargo has no tag.
        std::fs::rename(dir.path().join("CACHEDIR.TAG"), dir.path().join(".rustc_info.json")).unwrap();
        assert_eq!(built("debug").unwrap(), format!("{line} dev"));
    }
}
