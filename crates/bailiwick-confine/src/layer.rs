//! What a program wrote to directories of the host, kept apart from them: the supervisor's side of a copy-on-write layer.
//!
//! Here are only descriptors and names. Who lists it or carries it over to the host does so with the caller's own rights.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::SystemTime;

use bailiwick_layout::fault::{Fault, Step};
use bailiwick_layout::grants;
use bailiwick_layout::layout::{HostKind, Layout, copy_name, upper_name};
use bailiwick_layout::refusal::Refusal;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What was written, tree by tree.
#[derive(Debug)]
pub struct Layer {
    /// The trees, in order.
    pub trees: Vec<LayeredTree>,
    /// The directory that holds what was written to each: see [`LayeredTree::written`].
    pub store: Option<OwnedFd>,
    /// When the host was looked at.
    pub since: SystemTime,
}

impl Default for Layer {
    fn default() -> Self {
        Self { trees: Vec::new(), store: None, since: SystemTime::UNIX_EPOCH }
    }
}

/// One directory of the host whose writes were kept apart, wholly or one file of it.
#[derive(Debug)]
pub struct LayeredTree {
    /// Where it lies on the host.
    pub path: PathBuf,
    /// The directory itself, opened for its path alone.
    pub lower: OwnedFd,
    number: usize,
}

/// What was written to a tree.
#[derive(Debug)]
pub enum Written {
    /// Only what is different from the host, in the format of the kernel's overlay.
    Over(OwnedFd),
    /// Everything: the kernel refused an overlay, and the program worked on a copy.
    Copy(OwnedFd),
}

impl LayeredTree {
    /// Opens what was written, in [`Layer::store`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn written(&self, store: impl AsFd) -> Result<Written, Errno> {
        let open = |name: String| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&store, name, flags, Mode::empty())
        };
        match open(copy_name(self.number)) {
            Ok(copy) => Ok(Written::Copy(copy)),
            Err(Errno::NOENT) => open(upper_name(self.number)).map(Written::Over),
            Err(errno) => Err(errno),
        }
    }
}

impl Layer {
    /// The trees of a layout that are seen through a layer.
    pub(crate) fn from_layout(layout: &Layout) -> Result<Self, Refusal> {
        let since = SystemTime::now();
        let open = |(number, (_, host)): (usize, (_, &bailiwick_layout::layout::Host))| {
            // Of a single file, what lies around it is compared.
            let is_file = host.kind != HostKind::Directory;
            let path = host.source.parent().filter(|_| is_file).unwrap_or(&host.source);
            let opened = |errno| Fault::new(Step::Layer, errno).at(path.display());
            let lower = grants::open(path).map_err(opened)?;
            Ok(LayeredTree { path: path.to_owned(), lower, number })
        };
        let trees: Result<Vec<_>, Fault> = layout.layered().enumerate().map(open).collect();
        Ok(Self { trees: trees?, store: None, since })
    }

    pub(crate) const fn is_there(&self) -> bool {
        self.store.is_some()
    }
}
