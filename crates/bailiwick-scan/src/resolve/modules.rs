//! What an import leads to: a file of the package, or a name outside of it.

use std::path::{Component, Path, PathBuf};

use super::{AbstractValue, Package};
use crate::model::{Language, Unit};

impl Package<'_> {
    /// The module that `unit` means by a name.
    pub(super) fn module(&self, unit: usize, name: &str) -> AbstractValue {
        let Some(from) = self.unit(unit) else { return AbstractValue::Unknown };
        let found = match from.language {
            Language::Python => self.python(unit, name),
            Language::JavaScript | Language::TypeScript => self.ecma(unit, name),
            Language::Rust => return self.rust(unit, name),
            Language::Kotlin => None,
        };
        match found {
            Some(unit) => AbstractValue::Module(unit),
            None if from.language.is_ecma() => {
                AbstractValue::Outside(name.strip_prefix("node:").unwrap_or(name).to_owned())
            }
            None => AbstractValue::Outside(name.to_owned()),
        }
    }

    /// The Kotlin files of a package.
    pub(super) fn kotlin(&self, package: &str) -> &[usize] {
        self.by_package.get(package).map_or(&[], Vec::as_slice)
    }

    fn stem(&self, path: &Path, like: &Unit) -> Option<usize> {
        let kin = |unit: &&usize| {
            self.unit(**unit).is_some_and(|unit| {
                unit.language == like.language || unit.language.is_ecma() && like.language.is_ecma()
            })
        };
        self.by_stem.get(path)?.iter().find(kin).copied()
    }

    fn python(&self, unit: usize, name: &str) -> Option<usize> {
        let from = self.unit(unit)?;
        let directory = self.path(unit).parent()?;
        let at = |base: &Path, name: &str| {
            let path =
                name.split('.').filter(|part| !part.is_empty()).fold(base.to_owned(), |p, n| p.join(n));
            self.stem(&path, from).or_else(|| self.stem(&path.join("__init__"), from))
        };
        let dots = name.chars().take_while(|c| *c == '.').count();
        if dots > 0 {
            let base = directory.ancestors().nth(dots - 1)?;
            return at(base, name.trim_start_matches('.'));
        }
        let is_package = |directory: &Path| self.stem(&directory.join("__init__"), from).is_some();
        directory.ancestors().filter(|base| !is_package(base)).take(6).find_map(|base| at(base, name))
    }

    fn ecma(&self, unit: usize, name: &str) -> Option<usize> {
        if !name.starts_with('.') {
            return None;
        }
        let from = self.unit(unit)?;
        let path = normal(&self.path(unit).parent()?.join(name));
        let ends = path.extension().and_then(|end| end.to_str());
        let bare = match ends {
            Some("js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx") => path.with_extension(""),
            _ => path.clone(),
        };
        self.stem(&bare, from).or_else(|| self.stem(&path.join("index"), from))
    }

    /// The directory that holds the crate of a unit, and the unit's own module path in it.
    fn rust_home(&self, unit: usize) -> Option<(PathBuf, Vec<String>)> {
        let (path, from) = (self.path(unit), self.unit(unit)?);
        let directory = path.parent()?;
        let is_root =
            |base: &&Path| ["lib", "main"].iter().any(|name| self.stem(&base.join(name), from).is_some());
        let home = directory.ancestors().take(12).find(is_root).unwrap_or(directory);
        let inner = path.with_extension("");
        let inner = inner.strip_prefix(home).ok()?;
        let mut names: Vec<String> =
            inner.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        if names.last().is_some_and(|name| matches!(name.as_str(), "lib" | "main" | "mod")) {
            names.pop();
        }
        Some((home.to_owned(), names))
    }

    fn rust_unit(&self, home: &Path, names: &[String], like: &Unit) -> Option<usize> {
        let path = names.iter().fold(home.to_owned(), |path, name| path.join(name));
        let roots = ["lib", "main", "mod"].map(|name| path.join(name));
        let own = if names.is_empty() { None } else { self.stem(&path, like) };
        own.or_else(|| roots.iter().find_map(|root| self.stem(root, like)))
    }

    /// `crate.a.b`, `self.a`, `super.a`, `a.b` (a module beside, else a crate).
    fn rust(&self, unit: usize, name: &str) -> AbstractValue {
        let (Some(from), Some((home, own))) = (self.unit(unit), self.rust_home(unit)) else {
            return AbstractValue::Unknown;
        };
        let mut parts: Vec<String> = name.split('.').map(str::to_owned).collect();
        let (mut at, mut anchored) = (own, false);
        while let Some(first) = parts.first().map(String::as_str) {
            match first {
                "crate" => at.clear(),
                "super" => {
                    at.pop();
                }
                "self" => {}
                _ => break,
            }
            anchored = true;
            parts.remove(0);
        }
        // The longest beginning that is a file; what is left is looked up in it.
        for taken in (0..=parts.len()).rev() {
            let (inner, rest) = parts.split_at_checked(taken).unwrap_or((&parts, &[]));
            let path: Vec<String> = at.iter().chain(inner).cloned().collect();
            let found = self.rust_unit(&home, &path, from).or_else(|| (path == at).then_some(unit));
            match found {
                Some(_) if taken == 0 && !anchored => break,
                Some(found) => return self.below(found, rest),
                None => {}
            }
        }
        if anchored { AbstractValue::Unknown } else { AbstractValue::Outside(name.to_owned()) }
    }

    /// A module inside of a file.
    fn below(&self, unit: usize, names: &[String]) -> AbstractValue {
        let mut abstract_value = AbstractValue::Module(unit);
        let mut outer = None;
        for name in names {
            let classes = self.unit(unit).map_or(&[][..], |unit| unit.classes.as_slice());
            let found = classes.iter().position(|class| class.name == *name && class.outer == outer);
            let Some(found) = found else { return AbstractValue::Unknown };
            (abstract_value, outer) = (AbstractValue::Class(unit, found), Some(found));
        }
        abstract_value
    }
}

/// A path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => clean.push(part),
        }
    }
    clean
}
