//! What the new root holds, as a map from path to what is there; then the same as entries, outer before inner.
//!
//! Everything is put in by its own rule: what is not put in does not exist inside. Where two rules meet at one
//! path, or one path lies below another, the map's order settles it: a path comes after all that it lies below.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::entries::{Attributes, Identity, LayerPlace, LayoutEntry, Mount};
use crate::refusal::Refusal;
use crate::weakened;

/// What is at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory in memory.
    Directory {
        /// Its mode.
        mode: u32,
    },
    /// A link.
    Link(PathBuf),
    /// A file in memory.
    Text(Vec<u8>),
    /// A tree or file of the host.
    Host(Host),
    /// A writable directory in memory.
    Private {
        /// Its mode.
        mode: u32,
        /// Whether code may be mapped from it.
        executable: bool,
    },
    /// Something that is there but must not be seen.
    Hidden {
        /// Whether it is a directory.
        directory: bool,
    },
    /// The file system of terminals.
    Terminals,
    /// The file system of processes.
    Processes,
}

/// A tree or file of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Where it lies, links resolved.
    pub source: PathBuf,
    /// What it is and allows.
    pub kind: HostKind,
    /// Whether it can be changed.
    pub writable: bool,
    /// Whether its files can be started and mapped as code.
    pub executable: bool,
    /// Which inode was looked at; `None` for the system's own places.
    pub identity: Option<Identity>,
    /// Whether what is written to it goes to a copy-on-write layer.
    pub layered: bool,
}

/// What lies at a path of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A device.
    Device,
}

impl Host {
    /// A place of the system, read-only and without code.
    pub fn system(source: &Path, kind: HostKind) -> Self {
        Self {
            source: source.to_owned(),
            kind,
            writable: false,
            executable: false,
            identity: None,
            layered: false,
        }
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::NO_SUID;
        if self.kind != HostKind::Device {
            attributes = attributes.and(Attributes::NO_DEVICES);
        }
        if !self.executable && !weakened::NOEXEC {
            attributes = attributes.and(Attributes::NO_EXEC);
        }
        // A device is written to through its node; the node itself stays as it is.
        if (!self.writable || self.kind == HostKind::Device) && !weakened::READ_ONLY {
            attributes = attributes.and(Attributes::READ_ONLY);
        }
        attributes
    }
}

/// The whole of the new root.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    nodes: BTreeMap<Key, Placed>,
    over: BTreeMap<Key, Placed>,
    /// Every path that a link was ever put at; few, and nearly no path leads through one.
    links: Vec<PathBuf>,
}

/// A clean absolute path with a zero for every slash: its bytes are ordered as its parts are, so that whatever lies below
/// a path follows it at once. Comparing paths part by part took a quarter of the time that preparing a sandbox takes.
type Key = Vec<u8>;

/// What is put at a path.
#[derive(Debug, Clone)]
struct Placed {
    path: PathBuf,
    node: Node,
}

fn key(path: &Path) -> Key {
    let mut key = path.as_os_str().as_bytes().to_vec();
    key.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = 0);
    key
}

/// The keys of a path and of everything above it, from the inside out.
fn upwards(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = key.iter().enumerate().rev().filter(|(_, byte)| **byte == 0).map(|(at, _)| at.max(1));
    let whole = (key.len() > 1).then_some(key.len());
    whole.into_iter().chain(ends).filter_map(|end| key.get(..end))
}

/// Where the store is mounted in the new root while copies are made; gone before the program starts.
pub const LAYERS: &str = ".bailiwick-layers";

/// The source of covers over directories and files that must not be seen.
const NOTHING: (&str, &str) = ("/run/.nothing", "/dev/null");

impl Layout {
    /// Puts something at a path; links of this root on the way are followed. What is there or below already stays.
    pub fn put(&mut self, path: &Path, node: Node) {
        let path = self.resolve(path);
        let taken = self.has_at_or_below(&path) || self.tree_around(&path).is_some();
        let is_link = matches!(node, Node::Link(_));
        if is_link && taken {
            return;
        }
        if is_link {
            self.links.push(path.clone());
        }
        self.nodes.entry(key(&path)).or_insert(Placed { path, node });
    }

    fn has_at_or_below(&self, path: &Path) -> bool {
        let from = key(path);
        let next = self.nodes.range::<[u8], _>((Bound::Included(from.as_slice()), Bound::Unbounded)).next();
        next.is_some_and(|(_, next)| lies_in(&next.path, path))
    }

    /// Puts something at a path in place of what was there.
    pub fn replace(&mut self, path: &Path, node: Node) {
        let path = self.resolve(path);
        if matches!(node, Node::Link(_)) {
            self.links.push(path.clone());
        }
        self.nodes.insert(key(&path), Placed { path, node });
    }

    /// Puts a tree or file of the host at a path. One that is there already becomes as permissive as both.
    pub fn mount(&mut self, path: &Path, host: Host) {
        let path = self.resolve(path);
        let key = key(&path);
        match self.nodes.get_mut(&key) {
            Some(Placed { node: Node::Host(known), .. }) if known.source == host.source => {
                known.writable |= host.writable;
                known.executable |= host.executable;
                known.layered |= host.layered;
                known.identity = known.identity.or(host.identity);
            }
            _ => {
                self.nodes.insert(key, Placed { path, node: Node::Host(host) });
            }
        }
    }

    /// What is put at this very path.
    pub fn at(&self, path: &Path) -> Option<&Node> {
        self.node(&key(&self.resolve(path)))
    }

    fn node(&self, key: &[u8]) -> Option<&Node> {
        self.nodes.get(key).map(|placed| &placed.node)
    }

    /// A path with all links of this root followed.
    pub fn follow(&self, path: &Path) -> PathBuf {
        let nothing = std::ffi::OsStr::new(".");
        self.walk(path.iter().chain([nothing]))
    }

    /// The host's tree that a path lies in, if it does, and where the tree is.
    pub fn tree_around(&self, path: &Path) -> Option<(&Path, &Host)> {
        upwards(&key(&self.resolve(path))).find_map(|above| match self.nodes.get(above)? {
            Placed { path, node: Node::Host(host) } => Some((path.as_path(), host)),
            Placed { .. } => None,
        })
    }

    /// Whether a tree of the host is put at this very path, read-only, with nothing writable in it.
    pub fn is_closed_tree(&self, path: &Path) -> bool {
        let open = |placed: &Placed| match &placed.node {
            Node::Host(host) => host.writable,
            Node::Private { .. } => true,
            Node::Directory { .. }
            | Node::Link(_)
            | Node::Text(_)
            | Node::Hidden { .. }
            | Node::Terminals
            | Node::Processes => false,
        };
        matches!(self.at(path), Some(Node::Host(host)) if host.kind == HostKind::Directory)
            && !self.nodes.values().any(|placed| lies_in(&placed.path, path) && open(placed))
    }

    /// Whether the sandbox sees anything at a path.
    pub fn shows(&self, path: &Path) -> bool {
        let path = self.resolve(path);
        if self.has_at_or_below(&path) {
            return true;
        }
        match self.tree_around(&path) {
            Some((at, host)) => path.strip_prefix(at).is_ok_and(|rest| host.source.join(rest).exists()),
            None => false,
        }
    }

    /// Hides something, whatever else is put there; it is done after everything else.
    pub fn put_over(&mut self, path: &Path, node: Node) {
        let path = self.resolve(path);
        self.over.insert(key(&path), Placed { path, node });
    }

    /// Everything but directories in memory that was put below a directory.
    pub fn placed_below<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a Path> {
        let is_made =
            |placed: &&Placed| !matches!(placed.node, Node::Directory { .. } | Node::Private { .. });
        let all = self.nodes.values().chain(self.over.values()).filter(is_made);
        all.map(|placed| placed.path.as_path()).filter(move |path| lies_in(path, directory))
    }

    /// The trees and files of the host that are the caller's, not the system's.
    pub fn trees(&self) -> impl Iterator<Item = (&Path, &Host)> {
        let hosts = self.nodes.values().filter_map(|Placed { path, node }| match node {
            Node::Host(host) => Some((path.as_path(), host)),
            Node::Directory { .. }
            | Node::Link(_)
            | Node::Text(_)
            | Node::Private { .. }
            | Node::Hidden { .. }
            | Node::Terminals
            | Node::Processes => None,
        });
        hosts.filter(|(_, host)| host.identity.is_some())
    }

    /// The trees whose writes go to a layer, in the order of their layers.
    pub fn layered(&self) -> impl Iterator<Item = (&Path, &Host)> {
        self.trees().filter(|(_, host)| host.layered)
    }

    /// A path with the links of this root on the way to it followed; the last part is not.
    fn resolve(&self, path: &Path) -> PathBuf {
        let through_link = |link: &PathBuf| lies_in(path, link) && path != link;
        if is_clean(path) && !self.links.iter().any(through_link) {
            return path.to_owned();
        }
        self.walk(path.iter())
    }

    fn walk<'a>(&self, parts: impl Iterator<Item = &'a std::ffi::OsStr>) -> PathBuf {
        let mut done = PathBuf::from("/");
        let mut rest: Vec<_> = parts.filter(|part| *part != "/").map(ToOwned::to_owned).collect();
        rest.reverse();
        let mut follows = 40;
        while let Some(part) = rest.pop() {
            if part == "." {
                continue;
            }
            if part == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            match self.node(&key(&next)) {
                Some(Node::Link(target)) if !rest.is_empty() && follows > 0 => {
                    follows -= 1;
                    if target.is_absolute() {
                        done = PathBuf::from("/");
                    }
                    rest.extend(target.iter().filter(|part| *part != "/").rev().map(ToOwned::to_owned));
                }
                _ => done = next,
            }
        }
        done
    }

    /// The entries that make this root, in their order.
    pub fn entries(mut self) -> Result<Vec<LayoutEntry>, Refusal> {
        let mut all = self.nodes.values().chain(self.over.values());
        if all.any(|placed| matches!(placed.node, Node::Hidden { directory: true })) {
            let (path, node) = (PathBuf::from(NOTHING.0), Node::Directory { mode: 0o555 });
            self.nodes.entry(key(&path)).or_insert(Placed { path, node });
        }
        self.drop_redundant();
        let mut writer = Writer::default();
        for Placed { path, node } in self.nodes.into_values().chain(self.over.into_values()) {
            writer.write(&path, node)?;
        }
        writer.entries.append(&mut writer.last);
        Ok(writer.entries)
    }

    /// Leaves out mounts that show what the tree around them shows just so.
    fn drop_redundant(&mut self) {
        let mut redundant = Vec::new();
        for (key, Placed { path, node }) in &self.nodes {
            let Node::Host(host) = node else { continue };
            let around = upwards(key).skip(1).find_map(|above| self.nodes.get(above));
            let Some(Placed { path: at, node: Node::Host(outer) }) = around else { continue };
            let same_place = path.strip_prefix(at).is_ok_and(|rest| outer.source.join(rest) == host.source);
            let same_rights = outer.writable == host.writable && outer.executable == host.executable;
            if same_place && same_rights && !host.pinned() {
                redundant.push(key.clone());
            }
        }
        for key in redundant {
            self.nodes.remove(&key);
        }
    }
}

impl Host {
    /// Whether it must be a mount even if it changes nothing: so that a writable directory cannot be moved away.
    fn pinned(&self) -> bool {
        self.writable
    }
}

/// Turns nodes into entries, with the directories that they need.
#[derive(Default)]
struct Writer {
    entries: Vec<LayoutEntry>,
    last: Vec<LayoutEntry>,
    made: std::collections::BTreeSet<Key>,
    mounted: Vec<PathBuf>,
    covers: usize,
    layers: usize,
}

impl Writer {
    fn write(&mut self, path: &Path, node: Node) -> Result<(), Refusal> {
        let inside = self.is_inside_host(path);
        let to = relative(path)?;
        match node {
            Node::Directory { mode } if !inside => self.directory(path, mode)?,
            Node::Directory { .. } => {}
            Node::Link(_) if inside => {}
            Node::Link(target) => {
                self.parents(path)?;
                self.entries.push(LayoutEntry::Link { path: to, target: text(target.as_os_str())? });
            }
            Node::Text(bytes) if inside => self.cover_with_text(to, bytes)?,
            Node::Text(bytes) => self.text(path, bytes)?,
            Node::Host(host) => self.host(path, &host, inside)?,
            Node::Private { mode, executable } => {
                self.point(path, HostKind::Directory, inside, mode)?;
                let mut attributes = Attributes::NO_SUID.and(Attributes::NO_DEVICES);
                if !executable && !weakened::NOEXEC {
                    attributes = attributes.and(Attributes::NO_EXEC);
                }
                self.entries.push(LayoutEntry::Writable { path: to, attributes });
            }
            Node::Hidden { directory } => {
                let (attributes, source) = if directory {
                    (Attributes::READ_ONLY.and(Attributes::NO_EXEC), NOTHING.0)
                } else {
                    (Attributes::NONE, NOTHING.1)
                };
                // Last of all: nothing that is mounted later shows it again.
                self.last.push(LayoutEntry::Cover {
                    source: relative(Path::new(source))?,
                    path: to,
                    attributes,
                });
            }
            Node::Terminals => {
                self.point(path, HostKind::Directory, inside, 0o755)?;
                self.entries.push(LayoutEntry::Terminals { path: to });
            }
            Node::Processes => {
                self.point(path, HostKind::Directory, inside, 0o555)?;
                self.entries.push(LayoutEntry::Processes { path: to });
                self.mounted.push(path.to_owned());
            }
        }
        Ok(())
    }

    fn host(&mut self, path: &Path, host: &Host, inside: bool) -> Result<(), Refusal> {
        self.point(path, host.kind, inside, 0o755)?;
        let layer = host.layered.then(|| self.next_layer(host)).transpose()?;
        self.entries.push(LayoutEntry::Mount(Mount {
            source: text(host.source.as_os_str())?,
            path: relative(path)?,
            attributes: host.attributes(),
            identity: host.identity,
            layer,
        }));
        if host.kind == HostKind::Directory {
            self.mounted.push(path.to_owned());
        }
        Ok(())
    }

    /// Names for the next layer's two directories, in the order of [`Layout::layered`].
    fn next_layer(&mut self, host: &Host) -> Result<LayerPlace, Refusal> {
        let number = self.layers;
        self.layers += 1;
        let name = |name: String| text(std::ffi::OsStr::new(&name));
        let file = host.source.file_name().filter(|_| host.kind != HostKind::Directory);
        let store = Path::new(LAYERS).join(match file {
            Some(_) => upper_name(number),
            None => copy_name(number),
        });
        Ok(LayerPlace {
            upper: name(upper_name(number))?,
            work: name(format!("w{number}"))?,
            copy: name(copy_name(number))?,
            mounted: text(file.map_or_else(|| store.clone(), |file| store.join(file)).as_os_str())?,
            file: file.map(text).transpose()?,
        })
    }

    /// Makes something to mount on, unless the tree around already has it.
    fn point(&mut self, path: &Path, kind: HostKind, inside: bool, mode: u32) -> Result<(), Refusal> {
        match kind {
            _ if inside => Ok(()),
            HostKind::Directory => self.directory(path, mode),
            HostKind::File | HostKind::Device => self.text(path, Vec::new()),
        }
    }

    fn directory(&mut self, path: &Path, mode: u32) -> Result<(), Refusal> {
        self.parents(path)?;
        if self.made.insert(key(path)) {
            self.entries.push(LayoutEntry::Directory { path: relative(path)?, mode });
        }
        Ok(())
    }

    fn text(&mut self, path: &Path, text: Vec<u8>) -> Result<(), Refusal> {
        self.parents(path)?;
        self.entries.push(LayoutEntry::Text { path: relative(path)?, text });
        Ok(())
    }

    fn parents(&mut self, path: &Path) -> Result<(), Refusal> {
        match path.parent() {
            Some(parent) if parent != Path::new("/") && !self.made.contains(&key(parent)) => {
                self.directory(parent, 0o755)
            }
            _ => Ok(()),
        }
    }

    fn cover_with_text(&mut self, to: CString, bytes: Vec<u8>) -> Result<(), Refusal> {
        self.covers += 1;
        let hidden = PathBuf::from(format!("/.text-{}", self.covers));
        self.text(&hidden, bytes)?;
        let source = relative(&hidden)?;
        let attributes = Attributes::READ_ONLY.and(Attributes::NO_EXEC);
        self.entries.push(LayoutEntry::Cover { source: source.clone(), path: to, attributes });
        self.entries.push(LayoutEntry::Forget { path: source });
        Ok(())
    }

    fn is_inside_host(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.mounted.iter().any(|tree| lies_in(parent, tree)))
    }
}

/// What the directory is called that holds what was written to a tree.
pub fn upper_name(number: usize) -> String {
    format!("u{number}")
}

/// The same for a copy of it.
pub fn copy_name(number: usize) -> String {
    format!("c{number}")
}

/// Whether a path is a tree or lies in it. Both are absolute and clean, so that their bytes say it.
pub fn lies_in(path: &Path, tree: &Path) -> bool {
    let tree = tree.as_os_str().as_bytes();
    let rest = path.as_os_str().as_bytes().strip_prefix(tree);
    rest.is_some_and(|rest| tree == b"/" || matches!(rest.first(), None | Some(b'/')))
}

/// Whether a path is absolute and nothing in it is `.`, `..` or empty.
pub fn is_clean(path: &Path) -> bool {
    let rest = path.as_os_str().as_bytes().strip_prefix(b"/");
    let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    rest.is_some_and(|rest| rest.is_empty() || rest.split(|byte| *byte == b'/').all(plain))
}

/// A path as the kernel takes it.
pub fn text(path: &std::ffi::OsStr) -> Result<CString, Refusal> {
    CString::new(path.as_bytes()).map_err(|_| Refusal::Nul { what: path.to_string_lossy().into_owned() })
}

/// A path relative to the new root, as the kernel takes it.
pub fn relative(path: &Path) -> Result<CString, Refusal> {
    let rest = path.as_os_str().as_bytes();
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    text(std::ffi::OsStr::from_bytes(if rest.is_empty() { b"." } else { rest }))
}

#[cfg(test)]
mod tests;
