//! What stays closed inside a writable folder: files that run code later, and the product's own.
//!
//! An existing one is mounted read-only over itself, and so is every folder on the way to it, writable: a mount
//! point cannot be renamed or removed, so nothing can be put in its place. A missing one is covered by a
//! placeholder, an empty folder on the host that is there as long as a sandbox needs it.
//!
//! Fails closed when: a placeholder cannot be made for another reason than that the sandbox could not either.
//! Residual: a link in the place of a protected name cannot be covered, and the status says so; a file that the
//! host replaces meanwhile is the new file, no longer covered.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use bailiwick_policy::plan::{Plan, run_later};

use super::grants::{self, to_path};
use super::image::Identity;
use super::layout::{Host, Kind, Layout, Node};
use super::placeholder::{self, Placeholder};
use crate::fault::{Fault, Step};
use crate::refusal::Refusal;
use crate::weakened;

/// What was covered, and how.
#[derive(Default)]
pub(crate) struct Protection {
    /// Names that do not exist, kept from coming into being.
    pub(crate) placeholders: Vec<Placeholder>,
    /// Names that could not be covered.
    pub(crate) open: Vec<PathBuf>,
}

/// Closes what must stay closed in every writable tree of the layout.
pub(crate) fn put(layout: &mut Layout, plan: &Plan, opened: &[PathBuf]) -> Result<Protection, Refusal> {
    let mut protection = Protection::default();
    // Where all of the host may be written, names that do not exist are not kept from coming into being: that would
    // put placeholders into every folder at the top of it.
    let everywhere =
        plan.files().iter().any(|grant| grant.writable() && to_path(&grant.path()) == Path::new("/"));
    let trees: Vec<(PathBuf, Host)> =
        layout.trees().map(|(path, host)| (path.to_owned(), host.clone())).collect();
    for (path, host) in trees.iter().filter(|(_, host)| host.writable && host.kind == Kind::Folder) {
        let folder = [path, &host.source].map(|path| path.to_str().unwrap_or_default());
        for rest in run_later(folder).map(Path::new).filter(|_| !weakened::PROTECTED) {
            let target = path.join(rest);
            if names(opened, &target) || is_granted(plan, &target) {
                continue;
            }
            if everywhere && host.source.join(rest).symlink_metadata().is_err() {
                protection.open.push(target);
            } else {
                protection.close(layout, &Tree { path, host }, rest, Closing::ReadOnly)?;
            }
        }
    }
    for locked in plan.locked().iter().map(to_path).filter(|_| !weakened::OWN_STATE) {
        for (path, host) in trees.iter().filter(|(_, host)| host.writable) {
            let Ok(rest) = locked.strip_prefix(&host.source) else { continue };
            protection.close(layout, &Tree { path, host }, rest, Closing::ReadOnly)?;
        }
    }
    for own in plan.protected().iter().map(to_path).filter(|_| !weakened::OWN_STATE) {
        for (path, host) in &trees {
            let Ok(rest) = own.strip_prefix(&host.source) else { continue };
            protection.close(layout, &Tree { path, host }, rest, Closing::Hidden)?;
        }
    }
    Ok(protection)
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

fn names(opened: &[PathBuf], target: &Path) -> bool {
    opened.iter().any(|path| path == target)
}

/// Whether a grant of its own names the path or something below it.
fn is_granted(plan: &Plan, target: &Path) -> bool {
    plan.files().iter().any(|grant| grant.writable() && to_path(&grant.path()).starts_with(target))
}

impl Protection {
    fn close(
        &mut self,
        layout: &mut Layout,
        tree: &Tree<'_>,
        rest: &Path,
        closing: Closing,
    ) -> Result<(), Refusal> {
        let (mut path, mut source) = (tree.path.to_owned(), tree.host.source.clone());
        let parts: Vec<&OsStr> = rest.iter().collect();
        for (index, part) in parts.iter().enumerate() {
            path.push(part);
            source.push(part);
            let last = index + 1 == parts.len();
            match std::fs::symlink_metadata(&source).ok().filter(|found| !placeholder::is_one(found)) {
                None => return self.cover(layout, tree, &path, &source, closing),
                Some(found) if found.is_symlink() => {
                    self.open.push(path);
                    return Ok(());
                }
                Some(found) if found.is_dir() && !last => {
                    pin(
                        layout,
                        tree,
                        &path,
                        Host {
                            source: source.clone(),
                            identity: Some(Identity::of_metadata(&found)),
                            ..tree.host.clone()
                        },
                    );
                }
                Some(found) => {
                    lock(layout, &path, &source, &found, closing)?;
                    return Ok(());
                }
            }
        }
        // The tree itself is what must not be seen, or not be changed.
        if closing == Closing::ReadOnly {
            layout.replace(tree.path, Node::Host(Host { writable: false, ..tree.host.clone() }));
            return Ok(());
        }
        layout.put_over(tree.path, Node::Hidden { folder: tree.host.kind == Kind::Folder });
        Ok(())
    }

    /// Keeps a missing name from coming into being.
    fn cover(
        &mut self,
        layout: &mut Layout,
        tree: &Tree<'_>,
        path: &Path,
        source: &Path,
        closing: Closing,
    ) -> Result<(), Refusal> {
        if weakened::PLACEHOLDERS
            || !tree.host.writable
            || matches!(layout.at(path), Some(Node::Host(_) | Node::Hidden { .. }))
        {
            return Ok(());
        }
        let made = Placeholder::make(source)
            .map_err(|errno| Fault::new(Step::Placeholders, errno).at(source.display()))?;
        let Some(made) = made else { return Ok(()) };
        let host = Host { identity: Some(made.identity()), ..Host::system(source, Kind::Folder) };
        let node = if closing == Closing::Hidden { Node::Hidden { folder: true } } else { Node::Host(host) };
        layout.replace(path, node);
        self.placeholders.push(made);
        Ok(())
    }
}

/// Makes a folder on the way to a protected name a mount of its own.
fn pin(layout: &mut Layout, tree: &Tree<'_>, path: &Path, host: Host) {
    if tree.host.writable && layout.at(path).is_none() && !weakened::WAY {
        layout.put(path, Node::Host(host));
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
        layout.put_over(path, Node::Hidden { folder: found.is_dir() });
        return Ok(());
    }
    let faulty = |errno| Fault::new(Step::Placeholders, errno).at(source.display());
    let opened = grants::open(source).map_err(faulty)?;
    let stat = rustix::fs::fstat(&opened).map_err(faulty)?;
    let kind = if found.is_dir() { Kind::Folder } else { Kind::File };
    let host = Host { identity: Some(Identity::of(&stat)), ..Host::system(source, kind) };
    layout.replace(path, Node::Host(host));
    Ok(())
}
