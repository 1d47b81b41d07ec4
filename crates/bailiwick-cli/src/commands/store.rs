//! `bailiwick store`: the packages that `wrap` starts servers from.

use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use bailiwick_journal::SharedJournal;
use bailiwick_launch::{NameSources, Recorder, Search};
use bailiwick_policy::facts::HostFacts;
use bailiwick_store::{
    PackageCall, Registry, ResolveOptions, ServerCommand, Store, StoreHost, foreign_source, split_command,
};

use super::trust::refused;
use crate::answer::{Answer, Exit};
use crate::args::run::NameOptions;
use crate::args::store::{Store as Args, StoreCommand};
use crate::render::{escape, style};
use crate::{facts, input, terminal};

pub(super) fn run(args: &Args) -> anyhow::Result<Answer> {
    match &args.command {
        StoreCommand::List => list(&host(NameOptions::default(), true)?),
        StoreCommand::Fetch { refresh, install_scripts, no_journal, names, server } => {
            let host = host(names.clone(), *no_journal)?;
            let options = ResolveOptions { refresh: *refresh, install_scripts: *install_scripts };
            let call = match split_command(server) {
                Ok(ServerCommand::Package(call)) => call,
                Ok(ServerCommand::Program) => {
                    return Ok(refused(Exit::Usage, "the command names no launcher such as `npx` or `uvx`"));
                }
                Err(why) => return Ok(refused(Exit::Found, &why.to_string())),
            };
            if let Some(why) = foreign_source(&call, &host) {
                return Ok(refused(Exit::Found, &why));
            }
            match Store::new(&host).package(&call, options) {
                Ok(package) => {
                    let (name, version) = (escape::line(&package.identity), escape::line(&package.version));
                    Ok(Answer::result(Exit::Fine, format!("{}: {name} {version}\n", style::good("ok"))))
                }
                Err(why) => Ok(refused(Exit::Found, &why.to_string())),
            }
        }
        StoreCommand::Prune { all } => {
            let removed = Store::new(&host(NameOptions::default(), true)?).prune(*all)?;
            let removed = style::count(removed, "directory", "directories");
            Ok(Answer::result(Exit::Fine, format!("{}: removed {removed}\n", style::good("ok"))))
        }
        StoreCommand::Confirm { path, yes } => confirm(path, *yes),
    }
}

fn list(host: &StoreHost) -> anyhow::Result<Answer> {
    let mut text = String::new();
    for (package, directory) in Store::new(host).list()? {
        let (identity, asked) = (escape::line(&package.identity), escape::line(&package.asked));
        let asked = if asked.is_empty() { String::new() } else { format!("@{asked}") };
        let (version, directory) =
            (escape::line(&package.version), escape::line(&directory.to_string_lossy()));
        let _ = writeln!(text, "{identity}{asked}  {version}  {directory}");
    }
    let text = if text.is_empty() { "no package was fetched\n".to_owned() } else { text };
    Ok(Answer::result(Exit::Fine, text))
}

fn confirm(path: &Path, yes: bool) -> anyhow::Result<Answer> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(fault) => {
            return Ok(refused(Exit::Invalid, &format!("cannot use `{}`: {fault}", path.display())));
        }
    };
    let shown = escape::line(&real.to_string_lossy());
    let question = format!("Hand variables of yours to {shown}, as the manifest of its package says?");
    if !yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not confirmed: confirm at a terminal, or say --yes"));
    }
    bailiwick_store::confirm(&host(NameOptions::default(), true)?.records, &real)?;
    Ok(Answer::result(Exit::Fine, format!("{}: confirmed {shown}\n", style::good("ok"))))
}

/// The caller's host.
pub(super) fn host(names: NameOptions, is_unrecorded: bool) -> anyhow::Result<StoreHost> {
    host_without(names, is_unrecorded, &[])
}

/// The same, without these variables of the caller: no copy of them is made.
pub(super) fn host_without(
    names: NameOptions,
    is_unrecorded: bool,
    hidden: &[String],
) -> anyhow::Result<StoreHost> {
    let cache = facts::cache_dir().context("neither XDG_CACHE_HOME nor HOME says where packages are kept")?;
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where records are kept")?;
    let named =
        input::program_directories().map_err(|useless| anyhow::Error::msg(useless.refusal().complaint))?;
    Ok(StoreHost {
        home: facts::home(),
        cwd: facts::here().context("there is no current directory")?,
        packages: cache.join("store"),
        records: state.join("store"),
        variables: facts::environment_without(hidden)?.into_iter().collect(),
        search: Search { callers: facts::search_path(), named, variables: facts::tool_variables() },
        facts: facts::with_own_paths(HostFacts::unknown()),
        recorder: Box::new(move || {
            if is_unrecorded {
                return Ok(Recorder::unrecorded("resolve"));
            }
            let dir =
                facts::journal_dir().ok_or("neither XDG_STATE_HOME nor HOME says where the journal is")?;
            let journal = SharedJournal::open(&dir).map_err(|fault| fault.to_string())?;
            Ok(Recorder::shared("resolve", journal))
        }),
        names: NameSources { resolver: names.resolver(), hosts: names.hosts() },
    })
}

/// Fetches a package that is not there, by a process of its own: a client that waits no longer ends this one, and the
/// next start finds the package.
///
/// # Errors
/// Why it cannot be fetched.
pub(super) fn fetch(
    call: &PackageCall,
    options: ResolveOptions,
    host: &StoreHost,
    is_unrecorded: bool,
) -> anyhow::Result<()> {
    let kept = ResolveOptions { refresh: false, ..options };
    if !options.refresh && Store::new(host).has(call, kept)? {
        return Ok(());
    }
    terminal::remark(&format!("{}: fetching {}\n", style::warning("note"), escape::line(&call.identity())));
    let own = facts::own_program().context("cannot find the program that runs now")?;
    let mut command = Command::new(own);
    command.args(["store", "fetch"]);
    for (flag, is_set) in [
        ("--refresh", options.refresh),
        ("--install-scripts", options.install_scripts),
        ("--no-journal", is_unrecorded),
    ] {
        command.args(is_set.then_some(flag));
    }
    let launcher: &[&str] = match call.registry {
        Registry::Npm => &["npx", "-y"],
        Registry::Pypi => &["uvx"],
    };
    let version = if call.version.is_empty() { String::new() } else { format!("@{}", call.version) };
    command.arg("--").args(launcher).arg(format!("{}{version}", call.name));
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start the fetch of the package")?;
    let mut said = String::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut said)?;
    }
    let ended = child.wait()?;
    anyhow::ensure!(
        ended.success(),
        "{}",
        anstream::adapter::strip_str(said.trim().trim_start_matches("error: "))
    );
    Ok(())
}
