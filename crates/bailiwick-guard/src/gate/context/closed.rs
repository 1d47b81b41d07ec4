//! What stays closed to every tool whatever is granted, as it does inside the sandbox: the host's own trees, the
//! directories of Bailiwick itself, and, for changes, the files that govern the session, and names that run code later
//! unless they are granted by name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bailiwick_launch::paths_named_by_git;
use bailiwick_policy::authority::Request;
use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::path::{AbsPath, PathPattern};
use bailiwick_policy::plan::{MASKED, Plan};
use bailiwick_policy::run_later::{Ground, Opened, Role, is_repository, is_users_home, opened_by, role};

use super::ToolContext;
use crate::tool::ToolError;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    Read,
    Change,
}

impl ToolContext {
    /// Refuses, on the record, what stays closed. `real` has no links in it.
    pub(super) fn stay_out(&self, real: &AbsPath, usage: Use) -> Result<(), ToolError> {
        self.closed(real, usage).map_or(Ok(()), |denial| Err(self.deny(denial)))
    }

    /// Why a file stays closed whatever is granted, if it does. Records nothing.
    pub(crate) fn closed(&self, real: &AbsPath, usage: Use) -> Option<Denial> {
        let text = real.to_string();
        let path = Path::new(&text);
        let (verb, code) = match usage {
            Use::Read => ("read", DenialCode::ReadNotGranted),
            Use::Change => ("write", DenialCode::WriteNotGranted),
        };
        if self.is_never_granted(path) {
            let message = format!("{verb} of \"{}\" is never within a grant", text.escape_debug());
            return Some(Denial::new(code, message));
        }
        if usage == Use::Read {
            return None;
        }
        let governs = |locked: &PathBuf| path.starts_with(locked) || locked.starts_with(path);
        if self.session().locked().iter().any(governs) {
            let message = format!(
                "write of \"{}\", which governs this session, is never within a grant",
                text.escape_debug()
            );
            return Some(Denial::new(code, message));
        }
        let plan = Plan::for_authority("tool", &self.authority, &HostFacts::unknown()).ok();
        let around = Around { home: self.shared.session.home(), plan: plan.as_ref() };
        let is_listed = role(text.as_bytes(), &around) == Role::Protected && !self.names(real, &around);
        if !is_listed && !self.is_run_by_git(path) {
            return None;
        }
        let message =
            format!("write of \"{}\", which runs code later, must be granted by name", text.escape_debug());
        let smallest = Capability::Fs { actions: FsActions::WRITE, path: PathPattern::below(real) };
        Some(Denial::new(code, message).with_request(Request::Write(real.clone())).with_smallest([smallest]))
    }

    /// Whether git runs a file, or reads it as configuration, because its configuration names it, and the grant does not.
    fn is_run_by_git(&self, path: &Path) -> bool {
        let Some(directory) = path.ancestors().find(|above| above.is_dir()) else { return false };
        let is_named =
            |later: &PathBuf| self.authority.named().any(|own| Path::new(&own.to_string()) == later);
        let found = paths_named_by_git(directory, self.shared.session.home());
        found.iter().any(|later| path.starts_with(later) && !is_named(later))
    }

    /// Whether the grant names a protected name that the path is or lies in.
    fn names(&self, real: &AbsPath, around: &Around<'_>) -> bool {
        let mut named = self.authority.named().filter(|own| real.is_within(own));
        named.any(|own| match opened_by(own.to_string().as_bytes(), around) {
            Opened::Nothing => false,
            Opened::Itself => own == real,
            Opened::Everything => true,
        })
    }

    /// Whether a path is of the host's own trees or of Bailiwick's own directories.
    pub(crate) fn is_never_granted(&self, path: &Path) -> bool {
        MASKED.iter().any(|tree| path.starts_with(tree))
            || self.shared.own.iter().any(|own| path.starts_with(own))
    }
}

/// What is around a path: the grants of the tool, and the host.
struct Around<'a> {
    home: Option<&'a Path>,
    plan: Option<&'a Plan>,
}

impl Around<'_> {
    fn writable(&self) -> impl Iterator<Item = PathBuf> {
        let grants = self.plan.into_iter().flat_map(|plan| plan.files().iter());
        grants.filter(|grant| grant.writable()).map(|grant| PathBuf::from(grant.path().to_string()))
    }
}

impl Ground for Around<'_> {
    fn is_home(&self, directory: &[u8]) -> bool {
        is_users_home(directory, self.home.map(|home| home.as_os_str().as_bytes()))
            || self.writable().any(|own| own.as_os_str().as_bytes() == directory)
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        Path::new(OsStr::from_bytes(directory)).join(".git").symlink_metadata().is_ok()
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        is_repository(|name| Path::new(OsStr::from_bytes(directory)).join(name).symlink_metadata().is_ok())
    }
}
