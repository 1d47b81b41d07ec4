//! The host as the store of packages sees it, and the fetch of a package that is not there.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use bailiwick_journal::SharedJournal;
use bailiwick_launch::{NameSources, Recorder, Search};
use bailiwick_policy::facts::HostFacts;
use bailiwick_store::{PackageCall, Registry, ResolveOptions, Store, StoreHost};

use crate::args::run::NameOptions;
use crate::render::{escape, style};
use crate::{facts, input, terminal};

/// The caller's host.
pub fn host(names: NameOptions, is_unrecorded: bool) -> anyhow::Result<StoreHost> {
    host_without(names, is_unrecorded, &[])
}

/// The same, without these variables of the caller: no copy of them is made.
pub fn host_without(names: NameOptions, is_unrecorded: bool, hidden: &[String]) -> anyhow::Result<StoreHost> {
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
pub fn fetch(
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
