//! Which environment variables a program reads: its runtime says so, where that is node or Python.
//!
//! A file that the runtime loads first asks for a path that names the variable. Nothing is there; the sandbox's first process tells of
//! the look, as of every other. Names alone are told, never values, and nothing is granted by them: a program can name what it
//! likes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_launch::{Access, AccessKind, BrokeredInside};
use bailiwick_learn::{Evidence, Seen};

/// Where the files lie inside.
const PLACE: &str = "/run/.bailiwick-names";
/// What is asked for, before the name of a variable.
const READ: &str = "/run/.bailiwick-names/read";

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
pub(super) fn manifest_lines(handed_over: &[String]) -> String {
    let all = [("NODE_OPTIONS", format!("--require {PLACE}/names.cjs")), ("PYTHONPATH", PLACE.to_owned())];
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

/// Takes in an access to the place, which says nothing else of the program; false for every other.
pub(super) fn take(evidence: &mut Evidence, access: &Access) -> bool {
    if !access.path.starts_with(PLACE) {
        return false;
    }
    let name = access.path.strip_prefix(READ).ok().and_then(Path::to_str);
    if let (Some(name), AccessKind::Look) = (name, access.kind) {
        evidence.reads_variable(name, Seen::Observed);
    }
    true
}
