//! What a program wrote to directories of the host, kept apart from them: the supervisor's side of a copy-on-write layer.
//!
//! Here are only descriptors and names. Who lists it or carries it over to the host does so with the caller's own rights.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::fault::{Fault, Step};
use crate::native::grants;
use crate::native::layout::{Layout, upper_name};
use crate::refusal::Refusal;

/// What was written, tree by tree.
#[derive(Debug)]
pub struct Layer {
    /// The trees, in order.
    pub trees: Vec<LayeredTree>,
    /// The directory that holds what was written to each, under [`LayeredTree::upper`].
    pub store: Option<OwnedFd>,
    /// When the host was looked at.
    pub since: SystemTime,
}

impl Default for Layer {
    fn default() -> Self {
        Self { trees: Vec::new(), store: None, since: SystemTime::UNIX_EPOCH }
    }
}

/// One directory of the host whose writes were kept apart.
#[derive(Debug)]
pub struct LayeredTree {
    /// Where it lies on the host.
    pub path: PathBuf,
    /// The directory itself, opened for its path alone.
    pub lower: OwnedFd,
    /// What the directory is called that holds what was written.
    pub upper: String,
}

impl Layer {
    /// The trees of a layout that are seen through a layer.
    pub(crate) fn of(layout: &Layout) -> Result<Self, Refusal> {
        let since = SystemTime::now();
        let open = |(number, (_, host)): (usize, (_, &crate::native::layout::Host))| {
            let opened = |errno| Fault::new(Step::Layer, errno).at(host.source.display());
            let lower = grants::open(&host.source).map_err(opened)?;
            Ok(LayeredTree { path: host.source.clone(), lower, upper: upper_name(number) })
        };
        let trees: Result<Vec<_>, Fault> = layout.layered().enumerate().map(open).collect();
        Ok(Self { trees: trees?, store: None, since })
    }

    pub(crate) const fn is_there(&self) -> bool {
        self.store.is_some()
    }
}
