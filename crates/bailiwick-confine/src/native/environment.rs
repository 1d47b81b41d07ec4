//! The program's variables: a fixed few, and those that the plan names. The caller's are never inherited.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bailiwick_policy::plan::{Environment, PROGRAM_FOLDERS};

use crate::refusal::Refusal;
use crate::weakened;

/// The variables as execve takes them.
pub(crate) fn of(
    plan: &Environment,
    values: &BTreeMap<OsString, OsString>,
    private: &Path,
    program: Option<&Path>,
    terminal: bool,
) -> Result<Vec<CString>, Refusal> {
    let mut variables: BTreeMap<&OsStr, &OsStr> = BTreeMap::new();
    let path = search_path(program);
    let home = private.join("home");
    variables.insert(OsStr::new("PATH"), OsStr::new(&path));
    variables.insert(OsStr::new("HOME"), home.as_os_str());
    variables.insert(OsStr::new("LANG"), OsStr::new("C.UTF-8"));
    variables.insert(OsStr::new("TERM"), OsStr::new(if terminal { "xterm-256color" } else { "dumb" }));
    if private != Path::new("/tmp") {
        variables.insert(OsStr::new("TMPDIR"), private.as_os_str());
    }
    for (name, value) in &plan.fixed {
        variables.insert(OsStr::new(name), OsStr::new(value));
    }
    let named = plan.read.iter().chain(&plan.injected).map(|name| OsStr::new(&*name.value));
    for name in named {
        if let Some(value) = values.get(name) {
            variables.insert(name, value);
        }
    }
    let inherited: Vec<(OsString, OsString)> =
        if weakened::ENVIRONMENT { std::env::vars_os().collect() } else { Vec::new() };
    variables.extend(inherited.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    if plan.read_all {
        variables.extend(values.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    }
    variables.into_iter().map(|(name, value)| assignment(name, value)).collect()
}

/// The system's program folders, then the program's own: a toolchain finds its other programs there.
fn search_path(program: Option<&Path>) -> String {
    let mut folders = PROGRAM_FOLDERS.to_vec();
    let own = program.and_then(Path::parent).and_then(Path::to_str);
    folders.extend(own.filter(|own| !PROGRAM_FOLDERS.contains(own) && !own.contains(':')));
    folders.join(":")
}

fn assignment(name: &OsStr, value: &OsStr) -> Result<CString, Refusal> {
    let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let what = || OsString::from_vec(name.as_bytes().to_vec()).to_string_lossy().into_owned();
    CString::new(bytes).map_err(|_| Refusal::Nul { what: what() })
}
