//! What this host has at the paths of a plan: links followed, what is missing marked so.
//!
//! Fails closed when a path cannot be looked at, or is a link that leads nowhere: it may lead anywhere later.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;

use bailiwick_policy::facts::{HostFacts, PathKind};
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{BASE, FileGrant, Plan};
use bailiwick_policy::run_later::fixed_names;

/// A path that cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot look at `{path}`")]
pub struct Unseen {
    /// The path.
    pub path: AbsPath,
    /// Why not.
    pub source: Error,
}

/// The same facts, and where each path really lies on this host.
///
/// # Errors
/// The first path that cannot be looked at.
pub fn located(facts: HostFacts, paths: impl IntoIterator<Item = AbsPath>) -> Result<HostFacts, Unseen> {
    paths.into_iter().try_fold(facts, |facts, path| {
        let (source, place) = locate(&path)?;
        Ok(facts.with_place(path, source, place))
    })
}

/// The same for a plan that goes to another sandbox, which mounts by name: also which of the base this host has, and
/// which files that run code later its writable directories hold.
///
/// # Errors
/// The first granted path that cannot be looked at.
pub fn located_to_mount(facts: HostFacts, plan: &Plan) -> Result<HostFacts, Unseen> {
    let mut facts = located(facts, plan.files().iter().map(FileGrant::path))?;
    for path in BASE.iter().filter_map(|entry| AbsPath::new(entry.path).ok()) {
        // Every plan has the base: what cannot be seen of it is left out, which opens nothing.
        let (source, place) = locate(&path).unwrap_or_else(|_| (path.clone(), PathKind::Missing));
        facts = facts.with_place(path, source, place);
    }
    for grant in plan.files().iter().filter(|grant| grant.writable()) {
        let path = grant.path();
        let (directory, place) = locate(&path)?;
        if place == PathKind::Directory {
            facts = located(facts, late(&path.to_string(), &directory.to_string()))?;
        }
    }
    Ok(facts)
}

/// The same facts, where a directory is the product's own: never visible in a sandbox, wherever it really lies.
#[must_use]
pub fn with_own(facts: HostFacts, directory: AbsPath) -> HostFacts {
    match locate(&directory) {
        Ok((source, place)) => facts.with_place(source.clone(), source.clone(), place).with_protected(source),
        Err(_) => facts.with_protected(directory),
    }
}

/// The same facts, where a file governs the sandbox: never writable inside, wherever it really lies. Its directories
/// are looked at too, for sandboxes that mount each of them so that it cannot be moved away.
#[must_use]
pub fn with_locked(mut facts: HostFacts, file: AbsPath) -> HostFacts {
    let Ok((source, place)) = locate(&file) else { return facts.with_locked(file) };
    let mut above = PathBuf::from(source.to_string());
    while above.pop() {
        if let Some(directory) = above.to_str().and_then(|text| AbsPath::new(text).ok()) {
            facts = facts.with_place(directory.clone(), directory, PathKind::Directory);
        }
    }
    facts.with_place(source.clone(), source.clone(), place).with_locked(source)
}

/// Files in a directory that run code later, and the directories on the way to them.
fn late(path: &str, directory: &str) -> Vec<AbsPath> {
    let directory = directory.trim_end_matches('/');
    let mut names: Vec<&str> = fixed_names([path, directory])
        .flat_map(|name| {
            name.match_indices('/').map(|(at, _)| at).chain([name.len()]).filter_map(|end| name.get(..end))
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.iter().filter_map(|name| AbsPath::new(&format!("{directory}/{name}")).ok()).collect()
}

fn locate(path: &AbsPath) -> Result<(AbsPath, PathKind), Unseen> {
    let unseen = |source: Error| Unseen { path: path.clone(), source };
    let (mut there, mut missing) = (PathBuf::from(path.to_string()), Vec::new());
    let real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            Err(fault) if there.symlink_metadata().is_ok() => return Err(unseen(fault)),
            Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                missing.extend(there.file_name().map(ToOwned::to_owned));
                if !there.pop() {
                    return Err(unseen(fault));
                }
            }
            Err(fault) => return Err(unseen(fault)),
        }
    };
    let place = match (missing.is_empty(), real.is_dir()) {
        (false, _) => PathKind::Missing,
        (true, true) => PathKind::Directory,
        (true, false) => PathKind::File,
    };
    let whole = missing.into_iter().rev().fold(real, |real, name| real.join(name));
    let source = whole.to_str().and_then(|text| AbsPath::new(text).ok());
    let source = source.ok_or_else(|| unseen(Error::other("its real path is not UTF-8")))?;
    Ok((source, place))
}
