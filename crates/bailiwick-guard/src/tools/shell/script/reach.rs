//! Files that a script's redirections and patterns may touch: no more than its programs could from inside.
//!
//! Redirections are opened by us, outside of any sandbox, so what the sandbox keeps closed is kept closed here.

use std::path::Path;

use bailiwick_policy::authority::Request;
use bailiwick_policy::path::AbsPath;

pub(super) use crate::gate::Use;

use crate::gate::ToolContext;
use crate::tool::ToolError;
use bailiwick_guardrails::resolve::real;

/// Whether the authority and the sandbox both let a file be used so. Records nothing.
pub(super) fn is_open(path: &Path, usage: Use, context: &ToolContext) -> bool {
    let Ok(real) = real(path) else { return false };
    if context.closed(&real, usage).is_some() {
        return false;
    }
    context.authority().allows(&match usage {
        Use::Read => Request::Read(real),
        Use::Change => Request::Write(real),
    })
}

/// Asks for a file, on the record.
pub(super) fn check(path: &Path, usage: Use, context: &ToolContext) -> Result<AbsPath, ToolError> {
    let text = path.to_str().ok_or_else(|| ToolError::failed("shell: a path is not text"))?;
    match usage {
        Use::Read => context.check_path_read(text),
        Use::Change => context.check_path_write(text),
    }
}
