//! The program's variables: a fixed few, and those that the plan names. The caller's are never inherited.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bailiwick_policy::plan::{Environment, PROGRAM_DIRECTORIES};

use crate::refusal::Refusal;
use crate::weakened;

/// What a sandbox says of itself in variables.
pub struct Own<'a> {
    /// The program's home.
    pub home: &'a Path,
    /// Where it keeps what is temporary.
    pub temporary: &'a Path,
    /// The user's name.
    pub user: Option<&'a str>,
    /// Directories outside of the system's that its programs lie in.
    pub program_directories: &'a [PathBuf],
    /// Whether it has a terminal.
    pub terminal: bool,
}

/// The variables as execve takes them.
pub fn assignments(
    plan: &Environment,
    (values, placeholders): (&BTreeMap<OsString, OsString>, &BTreeMap<OsString, OsString>),
    own: &Own<'_>,
) -> Result<Vec<CString>, Refusal> {
    let mut variables: BTreeMap<&OsStr, &OsStr> = BTreeMap::new();
    let path = search_path(own.program_directories);
    variables.insert(OsStr::new("PATH"), OsStr::new(&path));
    variables.insert(OsStr::new("HOME"), own.home.as_os_str());
    variables.insert(OsStr::new("LANG"), OsStr::new("C.UTF-8"));
    variables.insert(OsStr::new("TERM"), OsStr::new(if own.terminal { "xterm-256color" } else { "dumb" }));
    variables.extend(own.user.map(|user| (OsStr::new("USER"), OsStr::new(user))));
    if own.temporary != Path::new("/tmp") {
        variables.insert(OsStr::new("TMPDIR"), own.temporary.as_os_str());
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
    // Last: whatever is granted besides, the value of a brokered secret is not there.
    for secret in &plan.brokered {
        let name = OsStr::new(&*secret.value.name);
        match placeholders.get(name) {
            Some(placeholder) => drop(variables.insert(name, placeholder)),
            None => drop(variables.remove(name)),
        }
    }
    variables.into_iter().map(|(name, value)| assignment(name, value)).collect()
}

/// The programs' own directories, then the system's: a toolchain finds its other programs there, as it would outside.
fn search_path(own: &[PathBuf]) -> String {
    let own = own.iter().filter_map(|directory| directory.to_str());
    let own = own.filter(|own| !PROGRAM_DIRECTORIES.contains(own) && !own.contains(':'));
    own.chain(PROGRAM_DIRECTORIES).collect::<Vec<_>>().join(":")
}

fn assignment(name: &OsStr, value: &OsStr) -> Result<CString, Refusal> {
    let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let what = || OsString::from_vec(name.as_bytes().to_vec()).to_string_lossy().into_owned();
    CString::new(bytes).map_err(|_| Refusal::Nul { what: what() })
}
