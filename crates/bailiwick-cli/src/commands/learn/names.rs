//! Which environment variables a program reads: its runtime says so, where that is node, Python or the C library.
//!
//! A file that the runtime loads first asks for a path that names the variable. Nothing is there; the sandbox's first process tells of
//! the look, as of every other. Names alone are told, never values, and nothing is granted by them: a program can name what it
//! likes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_command::facts;
use bailiwick_launch::{Access, AccessKind, BrokeredInside, GETENV_HOOK};
use bailiwick_learn::{Evidence, Seen};
use rustix::fs::{StatVfsMountFlags, statvfs};

/// Where the files lie inside.
const PLACE: &str = "/run/.bailiwick-names";
/// What is asked for, before the name of a variable.
const READ: &str = "/run/.bailiwick-names/read";
/// The same where the C library is asked.
const READ_NATIVELY: &str = "/run/.bailiwick-names/native";
/// What the library is called that the loader puts before the C library.
const LIBRARY: &str = "bailiwick-getenv.so";
/// What shells and the C library look for in every program.
const OF_EVERY_PROGRAM: [&str; 7] = ["PWD", "OLDPWD", "SHLVL", "SHELL", "LOGNAME", "COLUMNS", "LINES"];

const NODE: &str = r"'use strict';
const fs = require('fs');
const told = new Set();
const tell = (name) => {
  if (typeof name !== 'string' || told.has(name)) return;
  told.add(name);
  try { fs.accessSync('/run/.bailiwick-names/read/' + encodeURIComponent(name)); } catch {}
};
process.env = new Proxy(process.env, {
  get(all, name) { tell(name); return all[name]; },
  has(all, name) { tell(name); return name in all; },
  ownKeys(all) { tell('*'); return Reflect.ownKeys(all); },
});
";

const PYTHON: &str = r#"import os


def _tell_names():
    told, kind = set(), type(os.environ)
    get, names = kind.__getitem__, kind.__iter__

    def tell(name):
        if isinstance(name, str) and name not in told and "/" not in name:
            told.add(name)
            try:
                os.stat("/run/.bailiwick-names/read/" + name)
            except (OSError, ValueError):
                pass

    def tell_and_get(self, name):
        tell(name)
        return get(self, name)

    def tell_and_list(self):
        tell("*")
        return names(self)

    kind.__getitem__, kind.__iter__ = tell_and_get, tell_and_list


_tell_names()
"#;

/// Variables that have the runtimes load the files, unless the caller hands over variables of the same names: lines of a manifest.
pub(super) fn manifest_lines(handed_over: &[String], library: Option<&NamesLibrary>) -> String {
    let node = ("NODE_OPTIONS", format!("--require {PLACE}/names.cjs"));
    let native = library.map(|library| ("LD_PRELOAD", library.path.display().to_string()));
    let all = [Some(node), Some(("PYTHONPATH", PLACE.to_owned())), native]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let free = all.iter().filter(|(name, _)| !handed_over.iter().any(|own| own == name));
    let (mut granted, mut set) = (String::new(), String::new());
    for (name, value) in free {
        granted += &format!("\"env:inject:{name}?loader=true\", ");
        set += &format!("{name} = {value:?}\n");
    }
    format!("server_capabilities = [{granted}]\n[env]\n{set}")
}

/// The files.
pub(super) fn inside() -> BrokeredInside {
    let file = |name: &str, text: &str| (Path::new(PLACE).join(name), text.as_bytes().to_vec());
    let files: BTreeMap<PathBuf, Vec<u8>> =
        [file("names.cjs", NODE), file("sitecustomize.py", PYTHON)].into_iter().collect();
    BrokeredInside { files, ..BrokeredInside::default() }
}

/// The library on the host, as long as it is needed: what is mapped as code has to be a file of the host.
pub(super) struct NamesLibrary {
    pub(super) path: PathBuf,
    _dir: tempfile::TempDir,
}

impl NamesLibrary {
    /// Nothing where it was not built, cannot be written, or the loader would misread its path.
    pub(super) fn write() -> Option<Self> {
        if GETENV_HOOK.is_empty() {
            return None;
        }
        let cache = facts::cache_dir().filter(|dir| dir.is_dir()).and_then(|dir| dir.canonicalize().ok());
        let base = cache.unwrap_or_else(|| PathBuf::from("/tmp"));
        let dir = tempfile::Builder::new().prefix("bailiwick-names-").tempdir_in(base).ok()?;
        if statvfs(dir.path()).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
            return None;
        }
        let path = dir.path().join(LIBRARY);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
        std::fs::write(&path, GETENV_HOOK).ok()?;
        path.to_str().is_some_and(|text| text.chars().all(is_plain)).then_some(Self { path, _dir: dir })
    }
}

/// Takes in an access to the place, which says nothing else of the program; false for every other.
pub(super) fn take(evidence: &mut Evidence, access: &Access) -> bool {
    if access.path.file_name().is_some_and(|name| name == LIBRARY) {
        return true;
    }
    if !access.path.starts_with(PLACE) {
        return false;
    }
    let asked = access.path.strip_prefix(READ_NATIVELY).ok().and_then(Path::to_str);
    if let Some(name) = asked.filter(|name| is_worth_asking(evidence, name)) {
        evidence.reads_variable(name, Seen::Observed, true);
    }
    let name = access.path.strip_prefix(READ).ok().and_then(Path::to_str);
    if let (Some(name), AccessKind::Look) = (name, access.kind) {
        evidence.reads_variable(name, Seen::Observed, facts::variable_of_caller(name).is_some());
    }
    true
}

/// Programs ask for dozens of variables: those that the caller has or handed over are worth knowing.
fn is_worth_asking(evidence: &Evidence, name: &str) -> bool {
    evidence.handed_over.iter().any(|own| own == name)
        || (!OF_EVERY_PROGRAM.contains(&name) && facts::variable_of_caller(name).is_some())
}
