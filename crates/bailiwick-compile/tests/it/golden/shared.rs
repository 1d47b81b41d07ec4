//! Parts that many artifacts hold word for word, stored once in `golden/shared` and compared there byte by byte:
//! the system calls that an OCI runtime refuses, in four variants, and the files of a writable directory that run code
//! later, as three targets list them. In the golden file of a case their name stands for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_compile::Target;
use bailiwick_policy::plan::Plan;

use super::case::Texts;
use super::{diff, directory, plan, said_of};

/// What stands before the refused system calls, and how their last line begins.
const OPENING: &str = "\n    \"seccomp\": ";
const CLOSING: &str = "\n    }";

/// The variants of the system calls, each with the lines that ask for it. Those after the first are stored as
/// what differs from it.
const VARIANTS: [(&str, &str); 4] = [
    ("seccomp.json", ""),
    ("seccomp-ipc.json", "'ipc:connect:unix:/srv/a.sock'"),
    ("seccomp-nested.json", "'exec:spawn:chromium?nestedSandbox=true'"),
    ("seccomp-nested-ipc.json", "'ipc:connect:x11', 'exec:spawn:chromium?nestedSandbox=true'"),
];

/// The files that list what runs code later. The stored part is that of [`DIRECTORY`].
const LISTS: [&str; 3] = ["bwrap.args", "bwrap.sh", "firejail.profile"];
const DIRECTORY: &str = "/DIRECTORY";

/// The shared parts as they are stored, by name.
pub(super) struct Shared(BTreeMap<String, String>);

impl Shared {
    /// Reads the stored parts.
    pub(super) fn stored() -> Self {
        let base = read(&at(VARIANTS[0].0));
        let mut parts = BTreeMap::from([(VARIANTS[0].0.to_owned(), base.clone())]);
        for (name, _) in &VARIANTS[1..] {
            let text = diff::apply(&base, &read(&at_diff(name)));
            parts.insert((*name).to_owned(), text.unwrap_or_else(|wrong| panic!("{name}: {wrong}")));
        }
        parts.extend(LISTS.map(list_name).map(|name| (name.clone(), read(&at(&name)))));
        Self(parts)
    }

    /// A file with the names of shared parts in their places; what is not word for word the stored part stays.
    pub(super) fn folded(&self, file: &str, text: &str, plan: &Plan) -> String {
        let mut text = text.to_owned();
        if let Some(own) = calls_in(&text) {
            let same = VARIANTS.iter().find(|(name, _)| self.0[*name] == own);
            text = same.map_or(text.clone(), |(name, _)| text.replacen(own, &format!("shared/{name}"), 1));
        }
        let Some(list) = self.0.get(&list_name(file)) else { return text };
        for mount in plan.mounts().iter().filter(|mount| mount.writable) {
            let directory = mount.path.to_string();
            let (own, name) =
                (list.replace(DIRECTORY, &directory), format!("shared/{} of {directory}\n", list_name(file)));
            text = text.replacen(&format!("\n{own}"), &format!("\n{name}"), 1);
        }
        text
    }
}

/// Writes the parts as they are now.
pub(super) fn rewrite() {
    std::fs::create_dir_all(directory().join("shared")).unwrap();
    let now = emitted();
    let base = &now[VARIANTS[0].0];
    for (name, text) in &now {
        let varies = VARIANTS[1..].iter().any(|(own, _)| own == name);
        let (path, text) =
            if varies { (at_diff(name), diff::between(base, text)) } else { (at(name), text.clone()) };
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn shared_parts_are_stored_as_they_are_emitted() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return;
    }
    let (stored, emitted) = (Shared::stored().0, emitted());
    assert!(stored.keys().eq(emitted.keys()));
    for (name, text) in &emitted {
        let differs = diff::between(&stored[name], text);
        assert!(differs.is_empty(), "{name} is out of date; rewrite with UPDATE_GOLDEN=1:\n{differs}");
    }
    for entry in std::fs::read_dir(directory().join("shared")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = stored.contains_key(name.trim_end_matches(".diff"));
        assert!(known, "{name} belongs to no shared part");
    }
}

/// The parts that the compiler writes, from plans that ask for each.
fn emitted() -> BTreeMap<String, String> {
    let texts = |lines: &str, targets: &[Target]| -> Texts {
        let manifest = format!("name = 's'\nversion = '1'\ncommand = 's'\nserver_capabilities = [{lines}]\n");
        let plan = plan(&manifest).unwrap_or_else(|findings| panic!("{findings:?}"));
        said_of(&plan, targets, &[])
    };
    let calls = |(name, lines): (&str, &str)| {
        let config = texts(lines, &[Target::Oci]).remove("config.json").unwrap();
        (name.to_owned(), calls_in(&config).expect("a runtime is told which calls to refuse").to_owned())
    };
    let lists = texts(&format!("'fs:read,write:{DIRECTORY}'"), &[Target::Bwrap, Target::Firejail]);
    let list = |file: &str| {
        let lines = lists[file].lines().filter(|line| line.contains(&format!("{DIRECTORY}/")));
        (list_name(file), lines.map(|line| format!("{line}\n")).collect())
    };
    VARIANTS.map(calls).into_iter().chain(LISTS.map(list)).collect()
}

/// The refused system calls of a runtime's configuration.
fn calls_in(text: &str) -> Option<&str> {
    let start = text.find(OPENING)? + OPENING.len();
    let end = text[start..].find(CLOSING)? + CLOSING.len();
    Some(&text[start..start + end])
}

fn list_name(file: &str) -> String {
    format!("run-later.{file}")
}

fn at(name: &str) -> PathBuf {
    directory().join("shared").join(name)
}

fn at_diff(name: &str) -> PathBuf {
    at(&format!("{name}.diff"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()))
}
