//! What a sandbox that mounts trees shows: the base that programs need to start, and on it the plan's trees,
//! in an order that never widens.
//!
//! Fails closed when a glob could only be mounted as `/`. What no grant shows (the host's `/proc`, `/sys`,
//! `/dev`, `/run` and the product's own paths) is left out or covered last, and every omission is a note.

use std::collections::{BTreeMap, HashSet};

use bailiwick_policy::capability::Endpoint;
use bailiwick_policy::enforcement::Aspect;
use bailiwick_policy::facts::PathKind;
use bailiwick_policy::plan::{MASKED, Mount, Plan, STUBS};
use bailiwick_policy::run_later::fixed_names;

use crate::{Refusal, Target};

/// Endings that directories usually have.
const DIRECTORY_ENDINGS: [&str; 2] = ["d", "git"];

/// The trees that a sandbox shows, beside its own `/dev`, `/proc` and `/tmp`.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Whether the root of the host is shown, and if so, whether it is writable.
    pub(crate) root: Option<Tree>,
    /// What programs need to start, read-only; places that a grant shows anyway are not among them.
    pub(crate) base: Vec<&'static str>,
    /// Files with a fixed content; not those that a grant shows.
    pub(crate) stubs: Vec<(&'static str, &'static str)>,
    /// What was granted, outer before inner, without the root.
    pub(crate) trees: Vec<Tree>,
    /// Sockets, each to be shown as what it is and never as a directory.
    pub(crate) sockets: Vec<String>,
    /// Directories that many sockets share.
    pub(crate) socket_directories: Vec<&'static str>,
    /// Directories to cover with an empty one, last.
    pub(crate) covered: Vec<String>,
    /// What was left out or is more than was said.
    pub(crate) notes: Vec<String>,
}

/// One tree of the host.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where it appears.
    pub(crate) path: String,
    /// Where it lies on the host.
    pub(crate) source: String,
    /// Whether it is writable.
    pub(crate) writable: bool,
    /// What the host has there, if it was asked.
    pub(crate) place: Option<PathKind>,
}

impl View {
    /// What the plan says for a target.
    ///
    /// # Errors
    /// A refusal if a glob starts at the root: mounting its directory would show everything.
    pub(crate) fn for_target(plan: &Plan, target: Target) -> Result<Self, Refusal> {
        refuse_rootless_globs(plan, target)?;
        let mut view = Self::default();
        let own: Vec<String> = plan.protected().iter().map(ToString::to_string).collect();
        let mut outermost = None;
        for mount in plan.mounts() {
            view.add(mount, &own, &mut outermost);
        }
        let bare = view.root.is_none();
        view.base = plan.base().map(|entry| entry.path).filter(|path| bare && !view.shows(path)).collect();
        view.stubs = STUBS.into_iter().filter(|(path, _)| bare && !view.shows(path)).collect();
        view.add_endpoints(plan);
        view.cover(plan, own);
        Ok(view)
    }

    /// Whether `/tmp` is the sandbox's own: it is, unless a grant names it.
    pub(crate) fn own_tmp(&self) -> bool {
        !self.trees.iter().any(|tree| tree.path == "/tmp")
    }

    /// The trees that can be changed, the root among them.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Tree> {
        self.root.iter().chain(&self.trees).filter(|tree| tree.writable)
    }

    /// Whether a granted tree other than the root shows `path`.
    fn shows(&self, path: &str) -> bool {
        self.trees.iter().any(|tree| is_within(path, &tree.path))
    }

    /// Adds one mount; `outermost` is the last one that lies in no other.
    fn add(&mut self, mount: Mount, own: &[String], outermost: &mut Option<String>) {
        let (path, source) = (mount.path.to_string(), mount.source.to_string());
        if let Some(note) = omission(&path, &source, mount.place, own) {
            self.notes.push(note);
            return;
        }
        let tree = Tree { path, source, writable: mount.writable, place: mount.place };
        if tree.path == "/" {
            self.root = Some(tree);
        } else if self.root.is_some() || outermost.as_ref().is_some_and(|outer| is_within(&tree.path, outer))
        {
            // Within a tree that is shown already, a link is still a link: what it leads to is mounted.
            self.trees.push(Tree { path: tree.source.clone(), ..tree });
        } else {
            *outermost = Some(tree.path.clone());
            self.trees.push(tree);
        }
    }

    fn add_endpoints(&mut self, plan: &Plan) {
        if plan.ipc().any {
            let note =
                "`ipc:connect:*` gives no socket: name each one, as in `ipc:connect:unix:/run/app.sock`";
            self.notes.push(note.to_owned());
        }
        for endpoint in &plan.ipc().endpoints {
            match &endpoint.value {
                Endpoint::X11 => {
                    self.socket_directories.push("/tmp/.X11-unix");
                    self.notes.push("`ipc:connect:x11` shows the sockets of all X11 displays".to_owned());
                }
                Endpoint::DbusSystem => self.sockets.push("/run/dbus/system_bus_socket".to_owned()),
                Endpoint::Unix(path) => {
                    let path = path.to_string();
                    if !self.shows(&path) {
                        self.sockets.push(path);
                    }
                }
                Endpoint::Private => {} // nothing of the host
                user @ (Endpoint::Wayland | Endpoint::DbusSession) => self.notes.push(format!(
                    "`ipc:connect:{user}` gives no socket: its path is each user's own; \
                     write it out, as in `ipc:connect:unix:/run/user/1000/bus`"
                )),
            }
        }
    }

    /// Covers the product's own paths wherever a tree shows them. One that is missing is covered only where it
    /// could be made: nothing can be mounted on it elsewhere.
    fn cover(&mut self, plan: &Plan, own: Vec<String>) {
        for own in own {
            let missing = plan.place(&own) == Some(PathKind::Missing);
            let base = self.base.iter().filter(|path| is_within(&own, path)).map(|_| (own.clone(), false));
            let trees = self.root.iter().chain(&self.trees);
            let trees = trees.filter_map(|tree| Some((tree.shown(&own)?, tree.writable)));
            let shown = base.chain(trees);
            let shown = shown.filter(|(path, _)| !MASKED.iter().any(|masked| is_within(path, masked)));
            let (closed, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
                shown.partition(|(_, writable)| *writable || !missing);
            if closed.is_empty() && !open.is_empty() {
                self.notes.push(format!("`{own}` does not exist: made later, it can be read inside"));
            }
            self.covered.extend(closed.into_keys());
        }
    }
}

impl Tree {
    /// Whether this is one writable file by its name alone: the host was not asked, and the last component ends as
    /// files do. A target that then leaves out what a directory may hold has to stop where it is a directory after all.
    pub(crate) fn is_file_by_name(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
        let is_files = |ending: &str| {
            ending.starts_with(|c: char| c.is_ascii_alphabetic()) && !DIRECTORY_ENDINGS.contains(&ending)
        };
        self.writable && self.place.is_none() && ending.is_some_and(is_files)
    }

    /// Where the tree shows a path of the host, if it does.
    fn shown(&self, host: &str) -> Option<String> {
        is_within(host, &self.source).then(|| {
            let rest = host.strip_prefix(&*self.source).unwrap_or_default();
            join(&self.path, rest.strip_prefix('/').unwrap_or(rest))
        })
    }
}

/// A file or directory that runs code later, below a writable tree.
#[derive(Debug)]
pub(crate) struct RunLater {
    /// Where it appears.
    pub(crate) path: String,
    /// Where it lies on the host.
    pub(crate) source: String,
    /// Whether it stays writable: a directory on the way, mounted only so that it cannot be moved away.
    pub(crate) writable: bool,
    /// Whether the host is known to have it.
    pub(crate) exists: bool,
}

/// What runs code later in the writable trees, directories before what they hold. Not what a line names, and not
/// what the host is known not to have.
pub(crate) fn run_later(plan: &Plan, view: &View) -> Vec<RunLater> {
    let mut named: Vec<String> = plan.named().iter().map(ToString::to_string).collect();
    named.sort_unstable();
    let is_named = |path: &str| {
        let at = named.partition_point(|own| &**own < path);
        named.get(at).is_some_and(|own| is_within(own, path))
    };
    let mut found = Vec::new();
    for tree in view.writable().filter(|tree| tree.place != Some(PathKind::File)) {
        let later = |name: &str, writable| {
            let (path, source) = (join(&tree.path, name), join(&tree.source, name));
            let place = plan.place(&source);
            let wanted = place != Some(PathKind::Missing) && !is_named(&path);
            wanted.then(|| RunLater { path, source, writable, exists: place.is_some() })
        };
        let mut entered: BTreeMap<&str, bool> = BTreeMap::new();
        for name in fixed_names([&tree.path, &tree.source]) {
            let mut below = true;
            for parent in name.match_indices('/').filter_map(|(at, _)| name.get(..at)) {
                below = below
                    && *entered.entry(parent).or_insert_with(|| {
                        // In a git worktree `.git` is a file, and says where the configuration is.
                        let file = plan.place(&join(&tree.source, parent)) == Some(PathKind::File);
                        let own = later(parent, !file);
                        let is_entered = own.is_some() && !file;
                        found.extend(own);
                        is_entered
                    });
            }
            if below {
                found.extend(later(name, false));
            }
        }
    }
    found.extend(view.writable().flat_map(|tree| locked(plan, tree)));
    outer_first(found)
}

/// Each path once, read-only if anything says so: a directory that is mounted again after what it holds would show it anew.
fn outer_first(all: Vec<RunLater>) -> Vec<RunLater> {
    let mut by_path: BTreeMap<String, RunLater> = BTreeMap::new();
    for one in all {
        let writable = one.writable;
        by_path.entry(one.path.clone()).or_insert(one).writable &= writable;
    }
    // Below a read-only directory nothing is opened again. Not every neighbour in the order is its content:
    // `.claude.json` comes between `.claude` and what that holds.
    let closed: HashSet<String> =
        by_path.values().filter(|one| !one.writable).map(|one| one.path.clone()).collect();
    let is_closed = |one: &RunLater| {
        one.path
            .match_indices('/')
            .filter_map(|(at, _)| one.path.get(..at))
            .any(|outer| closed.contains(outer))
    };
    by_path.into_values().filter(|one| !is_closed(one)).collect()
}

/// What governs the sandbox and lies in a writable tree, behind the directories on the way to it.
fn locked(plan: &Plan, tree: &Tree) -> Vec<RunLater> {
    let mut found = Vec::new();
    for file in plan.locked().iter().map(ToString::to_string) {
        if tree.shown(&file).is_none() {
            continue;
        }
        let rest = file.strip_prefix(&*tree.source).unwrap_or_default().trim_start_matches('/');
        let directories = rest.match_indices('/').filter_map(|(at, _)| rest.get(..at));
        let each = directories.map(|directory| (directory, true)).chain([(rest, false)]);
        found.extend(each.map(|(name, writable)| RunLater {
            path: join(&tree.path, name),
            source: join(&tree.source, name),
            writable,
            exists: true,
        }));
    }
    found
}

/// Whether `path` is `tree` or lies below it.
pub(crate) fn is_within(path: &str, tree: &str) -> bool {
    tree == "/" || path.strip_prefix(tree).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a mount is left out, if it is.
fn omission(path: &str, source: &str, place: Option<PathKind>, own: &[String]) -> Option<String> {
    let within = |tree: &str| is_within(path, tree) || is_within(source, tree);
    if let Some(masked) = MASKED.iter().find(|masked| within(masked)) {
        return Some(format!("`{path}` is not shown: the sandbox has its own `{masked}` or none"));
    }
    if own.iter().any(|own| within(own)) {
        return Some(format!("`{path}` is not shown: it is part of what governs the sandbox"));
    }
    (place == Some(PathKind::Missing))
        .then(|| format!("`{path}` does not exist on this host: nothing is shown there"))
}

fn join(directory: &str, rest: &str) -> String {
    match (directory, rest) {
        (directory, "") => directory.to_owned(),
        ("/", rest) => format!("/{rest}"),
        (directory, rest) => format!("{directory}/{rest}"),
    }
}

fn refuse_rootless_globs(plan: &Plan, target: Target) -> Result<(), Refusal> {
    let wide =
        plan.files().iter().find(|grant| !grant.is_tree() && grant.path().components().next().is_none());
    let Some(grant) = wide else { return Ok(()) };
    Err(Refusal::Inexpressible {
        target,
        aspect: Aspect::Files,
        rule: format!("fs:{}:{}", grant.actions, grant.pattern.value),
        why: "it mounts whole directories, and this glob has none but `/`; write the directories out"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::authority::Authority;
    use bailiwick_policy::facts::HostFacts;
    use bailiwick_policy::path::AbsPath;

    use super::*;

    #[test]
    fn what_governs_the_sandbox_is_read_only_behind_pinned_directories() {
        let path = |text: &str| AbsPath::new(text).unwrap();
        let caps = ["fs:read,write:/w", "fs:read:/r"].map(|cap| cap.parse().unwrap());
        let facts = ["/w/.git/deep/m.toml", "/w/.agents/rules/m.toml", "/r/m.toml", "/elsewhere/m.toml"]
            .into_iter()
            .fold(HostFacts::unknown(), |facts, file| facts.with_locked(path(file)));
        let plan =
            Plan::for_authority("probe", &Authority::from_capabilities(&caps).unwrap(), &facts).unwrap();
        let view = View::for_target(&plan, Target::Bwrap).unwrap();
        let later = run_later(&plan, &view);
        let writable = |path: &str| {
            let found: Vec<bool> =
                later.iter().filter(|one| one.path == path).map(|one| one.writable).collect();
            assert!(
                found.len() <= 1,
                "{path} is mounted once: a second mount would show what the first covers"
            );
            found.first().copied()
        };
        assert_eq!(writable("/w/.git"), Some(true), "it cannot be moved away");
        assert_eq!(writable("/w/.git/deep"), Some(true));
        assert_eq!(writable("/w/.git/deep/m.toml"), Some(false));
        assert_eq!(writable("/w/.git/hooks"), Some(false), "and what was closed stays closed");
        assert_eq!(writable("/w/.agents"), Some(false), "read-only as a whole");
        assert_eq!(writable("/w/.agents/rules"), None, "and nothing in it is opened again");
        assert_eq!((writable("/r/m.toml"), writable("/elsewhere/m.toml")), (None, None));
        let paths: Vec<&str> = later.iter().map(|one| &*one.path).collect();
        assert!(paths.is_sorted(), "outer before inner: {paths:?}");
    }
}
