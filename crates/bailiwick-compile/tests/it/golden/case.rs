//! One case: its manifest, what it is for, and its golden files.
//!
//! `why.txt` says in one or two lines what the case is for; its last line may name a case that it is `like`. Then
//! the case holds what differs from that one and nothing else: `NAME.diff` where a file differs, `NAME` where the
//! other has none, and a line in `absent.txt` where only the other has it. Without `like` every file is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{diff, directory};

/// Texts by the names of their files.
pub(super) type Texts = BTreeMap<String, String>;

/// Files that are no golden files.
const OWN: [&str; 2] = ["manifest.toml", "why.txt"];
const ABSENT: &str = "absent.txt";

/// A directory of `golden`.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    directory: PathBuf,
}

impl Case {
    pub(super) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), directory: directory().join(name) }
    }

    /// The manifest; a line `# repeat N: TEXT` stands for N lines with a number for `{}`.
    pub(crate) fn manifest(&self) -> String {
        let text = self.read("manifest.toml");
        let mut lines = String::new();
        for line in text.split_inclusive('\n') {
            match line.trim_end().strip_prefix("# repeat ").and_then(|rest| rest.split_once(": ")) {
                None => lines += line,
                Some((count, text)) => {
                    let count: usize = count.parse().expect("how often");
                    lines.extend((0..count).map(|at| text.replacen("{}", &format!("{at:04}"), 1) + "\n"));
                }
            }
        }
        lines
    }

    /// What the case is for, and the case that it is like.
    pub(super) fn why(&self) -> (String, Option<Self>) {
        let text = self.read("why.txt");
        let (why, like): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.starts_with("like: "));
        assert!((1..=2).contains(&why.len()) && like.len() <= 1, "{}: one or two lines say why", self.name);
        (why.join(" "), like.first().map(|line| Self::named(&line["like: ".len()..])))
    }

    /// What the golden files say.
    pub(super) fn expected(&self) -> Texts {
        let (mut stored, like) = (self.stored(), self.why().1);
        let Some(like) = like else { return stored };
        let mut expected = like.expected();
        for name in stored.remove(ABSENT).unwrap_or_default().lines() {
            assert!(expected.remove(name).is_some(), "{}: {} has no {name} either", self.name, like.name);
        }
        for (name, text) in stored {
            let Some(changed) = name.strip_suffix(".diff") else {
                expected.insert(name, text);
                continue;
            };
            let old =
                expected.get(changed).unwrap_or_else(|| panic!("{}: no {changed} to change", self.name));
            let new = diff::apply(old, &text).unwrap_or_else(|wrong| panic!("{}/{name}: {wrong}", self.name));
            expected.insert(changed.to_owned(), new);
        }
        expected
    }

    /// Writes what is said now.
    pub(super) fn rewrite(&self, said: &Texts) {
        for name in self.stored().keys() {
            std::fs::remove_file(self.directory.join(name)).unwrap();
        }
        let like = self.why().1.map(|like| like.expected());
        for (name, text) in said {
            match like.as_ref().and_then(|like| like.get(name)) {
                None => self.write(name, text),
                Some(same) if same == text => {}
                Some(old) => self.write(&format!("{name}.diff"), &diff::between(old, text)),
            }
        }
        let absent: String = like
            .iter()
            .flat_map(BTreeMap::keys)
            .filter(|name| !said.contains_key(*name))
            .map(|name| format!("{name}\n"))
            .collect();
        if !absent.is_empty() {
            self.write(ABSENT, &absent);
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        let path = self.directory.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()))
    }

    /// The golden files, directories included.
    fn stored(&self) -> Texts {
        let mut texts = Texts::new();
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    texts.insert(self.relative(&path), std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        texts.retain(|name, _| !OWN.contains(&&**name));
        texts
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap().to_string_lossy().into_owned()
    }
}
