//! Writable trees whose names are judged one by one, and the net: the rules that the program is under besides.
//!
//! Every writable tree is guarded, and so is the private directory where a tree of the host lies below it: rights on a
//! directory hold for everything below it, across mounts.
//!
//! Residual: without Landlock there is no net; then what exists is covered by mounts (see `protected`) and names that
//! do not exist can be made, which the status says.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bailiwick_layout::base::Private;
use bailiwick_layout::grants::{self, to_path};
use bailiwick_layout::ground::HostGround;
use bailiwick_layout::layout::{HostKind, Layout, relative};
use bailiwick_layout::refusal::Refusal;
use bailiwick_policy::plan::Plan;
use bailiwick_policy::run_later::{self, Ground, Opened, is_users_home};
use rustix::io::Errno;

use super::desk::text::{Text, lies_in};
use crate::landlock::{self, Access, Rule, Ruleset};

/// Where private directories are said to lie: nothing of the host does, and no name is judged there.
pub(super) const PRIVATE: &[u8] = b"/\x01private";

/// The guarded trees of a sandbox.
#[derive(Debug)]
pub(crate) struct Guarded {
    trees: Vec<Tree>,
    /// What must never be made or changed, where it lies on the host: the product's own, and what governs the sandbox.
    closed: Vec<Vec<u8>>,
    /// What was granted by name, where it lies on the host.
    lifted: Vec<(Opened, Vec<u8>)>,
    home: Option<Vec<u8>>,
    /// The net; `None` if nothing is guarded, or the kernel has no Landlock.
    pub(crate) net: Option<Ruleset>,
    /// Its rules for what exists only inside.
    pub(crate) inner_rules: Vec<(CString, Access)>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where it appears.
    path: Vec<u8>,
    /// Where it lies on the host.
    pub(crate) source: Vec<u8>,
    /// Whether files that are there may be changed: not if only making or removing them is granted.
    pub(crate) changeable: bool,
    /// Whether a directory above it on the host holds a `.git`.
    pub(crate) in_work_tree: bool,
}

/// What a sandbox has that the program may write without being asked.
pub(crate) struct Unasked<'a> {
    /// The private directories.
    pub(crate) private: &'a Private,
    /// Devices.
    pub(crate) devices: Access,
    /// Whether the files of its own processes in `/proc` are among it.
    pub(crate) proc: bool,
    /// Whether it may make sockets in the private directories.
    pub(crate) sockets: bool,
}

impl Guarded {
    /// The guarded trees of a layout.
    pub(crate) fn from_layout(
        layout: &Layout,
        plan: &Plan,
        home: Option<&Path>,
        unasked: &Unasked<'_>,
    ) -> Result<Self, Refusal> {
        run_later::prepare();
        let mut net = Net { rules: Vec::new(), inner: vec![(relative(Path::new("/dev"))?, unasked.devices)] };
        if unasked.proc {
            net.inner.push((relative(Path::new("/proc"))?, landlock::MODIFY));
        }
        let mut trees = Vec::new();
        for (path, host) in layout.trees().filter(|(_, host)| host.writable) {
            match host.kind {
                HostKind::Directory => trees.push(Tree::of_host(plan, path, &host.source)),
                HostKind::File | HostKind::Device => net.open_file(&host.source)?,
            }
        }
        for private in unasked.private.places() {
            let is_below = |path: &Path| path.starts_with(private) && path != private;
            if layout.trees().any(|(path, _)| is_below(path)) {
                trees.push(Tree::private(private));
            } else {
                let sockets = if unasked.sockets { landlock::MAKE_SOCKET } else { 0 };
                let everything = landlock::READ | landlock::WRITE | sockets;
                net.inner.push((relative(private)?, everything));
            }
        }
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let named = plan.named().iter().map(to_path);
        let lifted = named.flat_map(|path| [path.canonicalize().ok(), Some(path)]);
        let is_guarded = !trees.is_empty();
        let mut guarded = Self {
            trees,
            closed: plan.protected().iter().chain(plan.locked()).map(|own| bytes(&to_path(own))).collect(),
            lifted: Vec::new(),
            home: home.map(|home| bytes(&home.canonicalize().unwrap_or_else(|_| home.to_owned()))),
            net: if is_guarded { Ruleset::net(&net.rules).ok() } else { None },
            inner_rules: net.inner,
        };
        guarded.lifted = lifted
            .flatten()
            .map(|path| bytes(&path))
            .map(|path| (run_later::opened_by(&path, &OnHost(&guarded)), path))
            .filter(|(opened, _)| *opened != Opened::Nothing)
            .collect();
        Ok(guarded)
    }

    /// Whether every name that runs code later is judged.
    pub(crate) fn is_complete(&self) -> bool {
        self.trees.is_empty() || self.net.is_some()
    }

    /// The guarded tree that a path inside lies in.
    pub(super) fn tree_around(&self, inside: &[u8]) -> Option<&Tree> {
        let around = self.trees.iter().filter(|tree| lies_in(inside, &tree.path));
        around.max_by_key(|tree| tree.path.len())
    }

    /// Where a path of the host is inside, if a guarded tree shows it.
    pub(super) fn inside(&self, real: &[u8]) -> Option<Text> {
        let around = self.trees.iter().filter(|tree| lies_in(real, &tree.source));
        let tree = around.max_by_key(|tree| tree.source.len())?;
        joined(&tree.path, real.get(tree.source.len()..)?).ok()
    }

    pub(super) fn is_closed(&self, real: &[u8]) -> bool {
        self.closed.iter().any(|own| lies_in(real, own))
    }

    pub(super) fn leads_to_closed(&self, real: &[u8]) -> bool {
        self.closed.iter().any(|own| lies_in(own, real))
    }

    pub(super) fn is_lifted(&self, real: &[u8]) -> bool {
        self.lifted.iter().any(|(opened, own)| match opened {
            Opened::Everything => lies_in(real, own),
            Opened::Itself | Opened::Nothing => real == own,
        })
    }

    /// Whether a directory of the host is a home, or the top of a writable tree.
    pub(super) fn is_home(&self, directory: &[u8]) -> bool {
        is_users_home(directory, self.home.as_deref())
            || self.trees.iter().any(|tree| tree.source == directory)
    }
}

impl Tree {
    fn of_host(plan: &Plan, path: &Path, source: &Path) -> Self {
        use bailiwick_policy::capability::FsActions;
        let granted = |actions| {
            let grants = plan.files().iter().filter(|grant| path.starts_with(to_path(&grant.path())));
            grants.into_iter().any(|grant| grant.actions.contains(actions))
        };
        Self {
            path: path.as_os_str().as_bytes().to_vec(),
            source: source.as_os_str().as_bytes().to_vec(),
            changeable: granted(FsActions::WRITE),
            in_work_tree: source
                .ancestors()
                .skip(1)
                .any(|above| above.join(".git").symlink_metadata().is_ok()),
        }
    }

    fn private(path: &Path) -> Self {
        let path = path.as_os_str().as_bytes().to_vec();
        Self { source: [PRIVATE, &path].concat(), path, changeable: true, in_work_tree: false }
    }

    /// Where a path inside lies on the host.
    pub(super) fn real(&self, inside: &[u8]) -> Result<Text, Errno> {
        joined(&self.source, inside.get(self.path.len()..).ok_or(Errno::INVAL)?)
    }
}

/// A tree's path and what follows it.
fn joined(tree: &[u8], rest: &[u8]) -> Result<Text, Errno> {
    let mut whole = Text::from_bytes(tree)?;
    whole.push(rest)?;
    Ok(whole)
}

/// The net while it is made.
struct Net {
    rules: Vec<Rule>,
    inner: Vec<(CString, Access)>,
}

impl Net {
    /// A file that was granted by itself has no name that could be judged.
    fn open_file(&mut self, source: &Path) -> Result<(), Refusal> {
        let fd = grants::open(source).map_err(|errno| grants::unopened(source, errno))?;
        self.rules.push(Rule { fd, access: landlock::WRITE });
        Ok(())
    }
}

/// What is around a path, seen from the host.
struct OnHost<'a>(&'a Guarded);

impl Ground for OnHost<'_> {
    fn is_home(&self, directory: &[u8]) -> bool {
        self.0.is_home(directory)
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        HostGround::default().holds_git(directory)
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        HostGround::default().is_git_directory(directory)
    }
}
