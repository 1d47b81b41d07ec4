//! File grants, merged: exact, and near-linear in the number of lines.
//!
//! Trees that lie within a tree with at least their rights are dropped; those that remain carry what the trees
//! around them grant too. So a grant says by itself all that may be done there, and one list in order, outer
//! before inner, never widens: what stands later is inside and allows more.

use std::collections::BTreeMap;

use super::Sourced;
use crate::authority::{Authority, patterns};
use crate::capability::FsActions;
use crate::facts::{HostFacts, PathKind};
use crate::path::{AbsPath, PathPattern};

/// What may be done to the files of one pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGrant {
    /// The paths as granted.
    pub pattern: Sourced<PathPattern>,
    /// What may be done there, what the trees around it grant included.
    pub actions: FsActions,
    /// Where the base of the pattern really lies; differs from it if the host has links on the way.
    pub source: AbsPath,
    /// What the host has there, if it was asked.
    pub place: Option<PathKind>,
}

/// A whole tree, for targets that can only mount trees read-only or writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it appears.
    pub path: AbsPath,
    /// Where it lies on the host.
    pub source: AbsPath,
    /// What the host has there, if it was asked.
    pub place: Option<PathKind>,
    /// Whether it is writable.
    pub writable: bool,
    /// Whether this is just what was granted: not if a glob became its directory, or a write without read or a
    /// creation alone became both.
    pub exact: bool,
}

impl FileGrant {
    /// The path that everything granted lies at or below.
    #[must_use]
    pub fn path(&self) -> AbsPath {
        self.pattern.value.base()
    }

    /// Whether the grant is of a path and all below it.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.pattern.value.is_tree()
    }

    /// Whether it may be mapped as code: never what may be changed.
    #[must_use]
    pub const fn maps_code(&self) -> bool {
        self.actions.contains(FsActions::CODE) && !self.writable()
    }

    /// Whether anything may be changed there.
    #[must_use]
    pub const fn writable(&self) -> bool {
        writes(self.actions)
    }
}

pub(super) const fn writes(actions: FsActions) -> bool {
    actions.contains(FsActions::CREATE) || actions.contains(FsActions::DELETE)
}

/// Whether a mount, read-only or writable, gives just these.
fn is_mountable(actions: FsActions) -> bool {
    let actions = actions.without_code();
    actions == FsActions::READ || actions == FsActions::READ.union(FsActions::WRITE)
}

/// Merges what an authority says of files; `None` if no list of patterns says it.
pub(super) fn merge(authority: &Authority, facts: &HostFacts) -> Option<Vec<FileGrant>> {
    // At one base the whole tree comes first: `None` sorts before any glob.
    let mut wanted: BTreeMap<(AbsPath, Option<PathPattern>), FsActions> = BTreeMap::new();
    let scopes = [
        (authority.read(), FsActions::READ),
        (authority.code(), FsActions::CODE),
        (authority.write(), FsActions::WRITE),
        (authority.create(), FsActions::CREATE),
        (authority.delete(), FsActions::DELETE),
    ];
    for (scope, action) in scopes {
        for pattern in patterns(scope)? {
            let base = pattern.base();
            let actions = wanted.entry((base, (!pattern.is_tree()).then_some(pattern))).or_insert(action);
            *actions = actions.union(action);
        }
    }
    let mut around = Around::default();
    let mut grants = Vec::with_capacity(wanted.len());
    for ((base, glob), own) in wanted {
        let outer = around.innermost(&base);
        if outer.is_some_and(|outer| outer.contains(own)) {
            continue;
        }
        // What is granted as code inside of what may be changed is not changed there: code that runs stays as it is.
        let actions = match outer {
            Some(outer) if own == FsActions::CODE && writes(outer) => own,
            Some(outer) => outer.union(own),
            None => own,
        };
        if glob.is_none() {
            around.enter(base.clone(), actions);
        }
        let (source, place) = facts.located(&base);
        let value = glob.unwrap_or_else(|| PathPattern::below(&base));
        grants.push(FileGrant { pattern: Sourced { value, origins: Vec::new() }, actions, source, place });
    }
    Some(grants)
}

/// The trees around the place where a walk in path order is.
#[derive(Default)]
struct Around(Vec<(AbsPath, FsActions)>);

impl Around {
    /// What the innermost tree around `path` grants; it has all that the outer ones do.
    fn innermost(&mut self, path: &AbsPath) -> Option<FsActions> {
        while self.0.last().is_some_and(|(tree, _)| !path.is_within(tree)) {
            self.0.pop();
        }
        self.0.last().map(|(_, actions)| *actions)
    }

    fn enter(&mut self, path: AbsPath, actions: FsActions) {
        self.0.push((path, actions));
    }
}

/// The grants as whole trees, outer before inner. Those of one path stand side by side.
pub(super) fn mounts(grants: &[FileGrant]) -> Vec<Mount> {
    let mut trees: Vec<Mount> = Vec::with_capacity(grants.len());
    for grant in grants {
        let path = grant.path();
        let exact = grant.is_tree() && is_mountable(grant.actions);
        match trees.last_mut().filter(|tree| tree.path == path) {
            Some(tree) => {
                tree.writable |= grant.writable();
                tree.exact &= exact;
            }
            None => trees.push(Mount {
                path,
                source: grant.source.clone(),
                place: grant.place,
                writable: grant.writable(),
                exact,
            }),
        }
    }
    let mut around: Vec<(AbsPath, bool)> = Vec::new();
    trees.retain(|mount| {
        while around.last().is_some_and(|(tree, _)| !mount.path.is_within(tree)) {
            around.pop();
        }
        let redundant = around.last().is_some_and(|(_, writable)| *writable || !mount.writable);
        if !redundant {
            around.push((mount.path.clone(), mount.writable));
        }
        !redundant
    });
    trees
}
