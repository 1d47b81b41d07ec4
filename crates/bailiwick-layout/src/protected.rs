//! What stays closed in every tree of the layout by a mount of its own: the product's own files, which are hidden,
//! those that govern the sandbox, which are read-only, and, where the kernel has no Landlock to guard names with, files that run code later, read-only.
//!
//! A file that runs code later is mounted read-only over itself, and so is every directory on the way to it, writable:
//! a mount point cannot be renamed or removed, so nothing can be put in its place.
//!
//! Residual, of the second part: a link in the place of a name cannot be covered, a name that does not exist can be
//! made, and a file that the host replaces meanwhile is the new file, no longer covered. The status says so.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use bailiwick_policy::plan::Plan;
use bailiwick_policy::run_later::fixed_names;

use crate::entries::Identity;
use crate::fault::{Fault, Step};
use crate::grants::{self, to_path};
use crate::layout::{Host, HostKind, Layout, Node};
use crate::refusal::Refusal;
use crate::weakened;

/// Hides the product's own files wherever a tree would show them.
pub fn hide_own(layout: &mut Layout, plan: &Plan) -> Result<(), Refusal> {
    for own in plan.protected().iter().map(to_path).filter(|_| !weakened::OWN_STATE) {
        for (path, host) in trees(layout) {
            let Ok(rest) = own.strip_prefix(&host.source) else { continue };
            close(layout, &Tree { path: &path, host: &host }, rest, Closing::Hidden)?;
        }
    }
    Ok(())
}

/// Makes the files that govern the sandbox read-only, also where they were granted for writing by name.
pub fn lock_governing(layout: &mut Layout, plan: &Plan) -> Result<(), Refusal> {
    for locked in plan.locked().iter().map(to_path).filter(|_| !weakened::OWN_STATE) {
        for (path, host) in trees(layout).into_iter().filter(|(_, host)| host.writable) {
            let Ok(rest) = locked.strip_prefix(&host.source) else { continue };
            close(layout, &Tree { path: &path, host: &host }, rest, Closing::ReadOnly)?;
        }
    }
    Ok(())
}

/// Covers what exists of the names that run code later.
pub fn cover_existing(layout: &mut Layout, plan: &Plan) -> Result<(), Refusal> {
    let opened: Vec<PathBuf> = plan.named().iter().map(to_path).collect();
    for (path, host) in
        trees(layout).into_iter().filter(|(_, host)| host.writable && host.kind == HostKind::Directory)
    {
        let directory = [&path, &host.source].map(|path| path.to_str().unwrap_or_default());
        for rest in fixed_names(directory).map(Path::new) {
            let target = path.join(rest);
            if !opened.contains(&target) && !is_granted(plan, &target) {
                close(layout, &Tree { path: &path, host: &host }, rest, Closing::ReadOnly)?;
            }
        }
    }
    Ok(())
}

fn trees(layout: &Layout) -> Vec<(PathBuf, Host)> {
    layout.trees().map(|(path, host)| (path.to_owned(), host.clone())).collect()
}

/// How a name is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    ReadOnly,
    Hidden,
}

/// A tree of the host, and where it appears.
struct Tree<'a> {
    path: &'a Path,
    host: &'a Host,
}

/// Whether a grant of its own names the path or something below it.
fn is_granted(plan: &Plan, target: &Path) -> bool {
    plan.files().iter().any(|grant| grant.writable() && to_path(&grant.path()).starts_with(target))
}

fn close(layout: &mut Layout, tree: &Tree<'_>, rest: &Path, closing: Closing) -> Result<(), Refusal> {
    let (mut path, mut source) = (tree.path.to_owned(), tree.host.source.clone());
    let parts: Vec<&OsStr> = rest.iter().collect();
    for (index, part) in parts.iter().enumerate() {
        path.push(part);
        source.push(part);
        let last = index + 1 == parts.len();
        let around = layout.tree_around(&path).map(|(_, host)| host.writable);
        if closing == Closing::ReadOnly && around == Some(false) {
            return Ok(()); // all of it is closed already: a directory on the way would open it again
        }
        match std::fs::symlink_metadata(&source).ok() {
            None => return Ok(()),
            Some(found) if found.is_symlink() => return Ok(()),
            Some(found) if found.is_dir() && !last => {
                if closing == Closing::ReadOnly {
                    pin(layout, tree, &path, &source, &found);
                }
            }
            Some(found) => return lock(layout, &path, &source, &found, closing),
        }
    }
    // The tree itself is what must not be seen, or not be changed.
    if closing == Closing::ReadOnly {
        layout.replace(tree.path, Node::Host(Host { writable: false, ..tree.host.clone() }));
        return Ok(());
    }
    layout.put_over(tree.path, Node::Hidden { directory: tree.host.kind == HostKind::Directory });
    Ok(())
}

/// Makes a directory on the way to a name a mount of its own.
fn pin(layout: &mut Layout, tree: &Tree<'_>, path: &Path, source: &Path, found: &Metadata) {
    let identity = Some(Identity::of_metadata(found));
    if layout.at(path).is_none() {
        layout.put(path, Node::Host(Host { source: source.to_owned(), identity, ..tree.host.clone() }));
    }
}

/// Closes a name that exists.
fn lock(
    layout: &mut Layout,
    path: &Path,
    source: &Path,
    found: &Metadata,
    closing: Closing,
) -> Result<(), Refusal> {
    if closing == Closing::Hidden {
        layout.put_over(path, Node::Hidden { directory: found.is_dir() });
        return Ok(());
    }
    let faulty = |errno| Fault::new(Step::Layout, errno).at(source.display());
    let opened = grants::open(source).map_err(faulty)?;
    let stat = rustix::fs::fstat(&opened).map_err(faulty)?;
    let kind = if found.is_dir() { HostKind::Directory } else { HostKind::File };
    let host = Host { identity: Some(Identity::from_stat(&stat)), ..Host::system(source, kind) };
    layout.replace(path, Node::Host(host));
    Ok(())
}
