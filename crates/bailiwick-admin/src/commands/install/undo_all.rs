//! Every entry that `install` ever made, taken out again: the user's and those of projects.
//!
//! Fails closed when: one file cannot be changed. Who would remove what undoes the rest is told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bailiwick_clients::CLIENTS;
use bailiwick_command::answer::{Answer, Exit, Out};
use bailiwick_command::facts;
use serde::Deserialize;

use super::known_settings;
use crate::args::guard::Install;

/// What `install` keeps of a file, as far as it is needed to find the file.
#[derive(Deserialize)]
struct KeptFile {
    #[serde(default)]
    file: PathBuf,
}

/// Undoes everything, or with `dry_run` shows how. What was done, or why that stopped.
pub(in crate::commands) fn undo_all(dry_run: bool) -> anyhow::Result<Result<String, String>> {
    let kept = kept_files()?;
    if kept.is_empty() {
        return Ok(Ok(String::new()));
    }
    let of_servers = CLIENTS.iter().flat_map(|client| client.project).map(|place| place.path);
    let of_hooks = known_settings().map(|(_, settings)| settings.project);
    let suffixes: BTreeSet<&str> = of_servers.chain(of_hooks).collect();
    let projects = kept.iter().flat_map(|file| suffixes.iter().filter_map(|suffix| project_of(file, suffix)));
    let projects: BTreeSet<PathBuf> = projects.collect();
    let mut done = String::new();
    for project in std::iter::once(None).chain(projects.into_iter().map(Some)) {
        for servers in [true, false] {
            let Answer { exit, out, complaint } = super::run(&undo(servers, project.clone(), dry_run))?;
            match (exit, out) {
                (Exit::Fine, Out::Text(text)) => done += &text,
                // There are no such settings.
                (Exit::Found, _) => {}
                (_, _) => return Ok(Err(complaint)),
            }
        }
    }
    Ok(Ok(done))
}

/// Every settings file with entries of ours.
fn kept_files() -> anyhow::Result<Vec<PathBuf>> {
    let state = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    let entries = std::fs::read_dir(state.join("install")).into_iter().flatten().flatten();
    let kept = entries.filter_map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok());
    Ok(kept.map(|KeptFile { file }| file).collect())
}

/// The project that a file is the settings of, if its path ends so.
fn project_of(file: &Path, suffix: &str) -> Option<PathBuf> {
    let depth = Path::new(suffix).components().count();
    file.ends_with(suffix).then(|| file.ancestors().nth(depth).map(Path::to_owned)).flatten()
}

fn undo(servers: bool, project: Option<PathBuf>, dry_run: bool) -> Install {
    Install {
        hooks: !servers,
        servers,
        agents: Vec::new(),
        client: "all".to_owned(),
        manifest_dir: None,
        project,
        undo: true,
        dry_run,
    }
}
