//! What stays closed to every tool whatever is granted, as it does inside the sandbox: the host's own trees, the
//! folders of Bailiwick itself, and, for changes, files that run code later unless they are granted by name.
//!
//! Residual: names that the sandbox only protects at the top of a writable folder are protected at any depth here.

use std::path::Path;

use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::path::{AbsPath, PathPattern};
use bailiwick_policy::plan::{FileGrant, MASKED, PROTECTED, Plan};

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
        let late = PROTECTED.iter().filter(|_| usage == Use::Change);
        let late = late.filter_map(|name| lies_at(path, Path::new(name))).next()?;
        if self.is_named(late) {
            return None;
        }
        let message =
            format!("write of \"{}\", which runs code later, must be granted by name", text.escape_debug());
        let smallest = Capability::Fs { actions: FsActions::WRITE, path: PathPattern::below(real) };
        Some(Denial::new(code, message).smallest(smallest.to_string()))
    }

    /// Whether a path is of the host's own trees or of Bailiwick's own folders.
    pub(crate) fn is_never_granted(&self, path: &Path) -> bool {
        MASKED.iter().any(|tree| path.starts_with(tree))
            || self.shared.own.iter().any(|own| path.starts_with(own))
    }

    /// Whether a grant of its own names a path or something below it.
    fn is_named(&self, path: &Path) -> bool {
        let names =
            |grant: &FileGrant| grant.writable() && Path::new(&grant.path().to_string()).starts_with(path);
        Plan::of("tool", &self.authority, &HostFacts::unknown())
            .is_ok_and(|plan| plan.files().iter().any(names))
    }
}

/// The part of a path that is a protected name, if one is on the way.
fn lies_at<'p>(path: &'p Path, name: &Path) -> Option<&'p Path> {
    path.ancestors().find(|above| above.ends_with(name))
}
