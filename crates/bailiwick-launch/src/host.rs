//! Planning on this host: where granted paths really lie, what is Bailiwick's own, what governs the sandbox.
//!
//! A plan is built once. The host is asked about its paths afterwards, and the answers are put into that same plan. What git
//! runs or reads as configuration in a writable tree, because its configuration names it, is locked unless a line grants it by
//! name.
//!
//! Fails closed when: a granted path cannot be looked at, or is a link that leads nowhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bailiwick_confine::host::{Unseen, located, located_to_mount, with_locked, with_own};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::Finding;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::{FileGrant, Plan};

use crate::git_names::paths_named_by_git;

/// What is known of this host before a plan is made for it.
///
/// # Examples
///
/// A directory of Bailiwick's own is never visible, whatever is granted:
///
/// ```
/// use bailiwick_launch::HostPlanner;
/// use bailiwick_policy::capability::CapabilitySet;
///
/// let granted = CapabilitySet::new(["fs:read,write:/tmp/**"])?;
/// let planner = HostPlanner::default().hiding("/tmp/journal".as_ref())?;
/// let plan = planner.authority_plan("demo", granted.authority())?;
/// assert_eq!(plan.protected().first().map(ToString::to_string).as_deref(), Some("/tmp/journal"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct HostPlanner {
    facts: HostFacts,
    by_mounts: bool,
    home: Option<PathBuf>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The grants themselves are wrong.
    #[error("{0}")]
    Wrong(Finding),
    /// The host does not say what a granted path is.
    #[error("cannot look at `{path}`: {source}")]
    Unseen {
        /// The path.
        path: String,
        /// What the host said.
        source: std::io::Error,
    },
    /// A path of Bailiwick's own is not text, so no plan can name it.
    #[error("`{path}` is not a clean absolute path in UTF-8")]
    NotText {
        /// The path.
        path: String,
    },
}

impl HostPlanner {
    /// With facts that are known already, such as the values of a manifest's path variables.
    #[must_use]
    pub const fn new(facts: HostFacts) -> Self {
        Self { facts, by_mounts: false, home: None }
    }

    /// With the home of the user whose git may run in the writable trees later.
    #[must_use]
    pub fn with_home(self, home: Option<&Path>) -> Self {
        Self { home: home.map(Path::to_owned), ..self }
    }

    /// For a sandbox that mounts by name (bubblewrap, an OCI runtime, firejail): also looks at what the system has, and
    /// at files that run code later.
    #[must_use]
    pub const fn for_mounts(mut self) -> Self {
        self.by_mounts = true;
        self
    }

    /// A directory of Bailiwick's own: no sandbox shows it, wherever it really lies.
    ///
    /// # Errors
    /// The path, if no plan can name it.
    pub fn hiding(self, directory: &Path) -> Result<Self, PlanError> {
        Ok(Self { facts: with_own(self.facts, clean(directory)?), ..self })
    }

    /// A file that governs the sandbox: readable where it is granted, never writable.
    ///
    /// # Errors
    /// The path, if no plan can name it.
    pub fn locking(self, file: &Path) -> Result<Self, PlanError> {
        Ok(Self { facts: with_locked(self.facts, clean(file)?), ..self })
    }

    /// The plan of an authority on this host.
    ///
    /// # Errors
    /// Why there is none.
    pub fn authority_plan(self, name: &str, authority: &Authority) -> Result<Plan, PlanError> {
        self.plan(|facts| Plan::for_authority(name, authority, facts))
    }

    /// The plan that `make` builds, with what this host has at its paths.
    ///
    /// # Errors
    /// Why there is none.
    pub fn plan(self, make: impl FnOnce(&HostFacts) -> Result<Plan, Finding>) -> Result<Plan, PlanError> {
        let plan = make(&self.facts).map_err(PlanError::Wrong)?;
        let known = if self.by_mounts {
            located_to_mount(self.facts, &plan)
        } else {
            located(self.facts, plan.files().iter().map(FileGrant::path))
        };
        let mut known = known.map_err(PlanError::from)?;
        for path in later_by_git(&plan, self.home.as_deref()) {
            // What does not exist cannot be mounted.
            if !self.by_mounts || path.exists() {
                // A link is locked as well as what it leads to: another one in its place would lead elsewhere.
                let path = clean(&path)?;
                known = with_locked(known.with_locked(path.clone()), path);
            }
        }
        Ok(plan.located(&known))
    }
}

/// What git runs or reads as configuration in the writable trees of a plan, and no line grants by name.
fn later_by_git(plan: &Plan, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let writable = plan.files().iter().filter(|grant| grant.writable());
    let found = writable.flat_map(|grant| paths_named_by_git(Path::new(&grant.path().to_string()), home));
    let named: BTreeSet<PathBuf> = plan.named().iter().map(|path| PathBuf::from(path.to_string())).collect();
    found.filter(|path| !named.contains(path)).collect()
}

impl From<Unseen> for PlanError {
    fn from(unseen: Unseen) -> Self {
        Self::Unseen { path: unseen.path.to_string(), source: unseen.source }
    }
}

fn clean(path: &Path) -> Result<AbsPath, PlanError> {
    let clean = path.to_str().and_then(|text| AbsPath::new(text).ok());
    clean.ok_or_else(|| PlanError::NotText { path: path.display().to_string() })
}
