//! Names to what they stand for, across the files of a package.
//!
//! Flow is not followed: a name that is given several values stands for the first that can be told, and for no text
//! if they differ. Whatever cannot be told is [`AbstractValue::Unknown`], never a guess.

mod abstract_value;
mod eval;
mod modules;
mod text;

pub(crate) use abstract_value::{AbstractValue, Args};
pub(crate) use eval::{Evaluator, Found, Frame};
pub(crate) use text::text_of;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::model::{Import, Language, ScopeKind, Unit, Value};

/// A scope of a unit.
pub(crate) type ScopeId = (usize, usize);

/// What names stand for in a scope.
type Names<'a, T> = HashMap<usize, HashMap<&'a str, Vec<T>>>;

fn named<'p, T>(of: &'p [Names<'_, T>], unit: usize, scope: usize, name: &str) -> &'p [T] {
    of.get(unit).and_then(|own| own.get(&scope)?.get(name)).map_or(&[], Vec::as_slice)
}

/// All files that were read, and where to find what in them.
pub(crate) struct Package<'a> {
    units: &'a [Unit],
    paths: &'a [PathBuf],
    /// Units by their path without its ending.
    by_stem: HashMap<PathBuf, Vec<usize>>,
    /// Kotlin units by package.
    by_package: HashMap<&'a str, Vec<usize>>,
    /// For each unit: functions by the scope they stand in and their name.
    functions: Vec<HashMap<(usize, &'a str), usize>>,
    /// For each unit: what a name is given, by the scope and the name.
    bindings: Vec<Names<'a, &'a Value>>,
    /// For each unit: imports by the scope and the local name.
    imports: Vec<Names<'a, &'a Import>>,
    /// For each unit: classes by the scope and the name.
    classes: Vec<Names<'a, usize>>,
    /// For each unit: methods by class and name.
    methods: Vec<HashMap<(usize, &'a str), usize>>,
    /// Lambdas and functions by where they begin.
    starts: Vec<HashMap<usize, usize>>,
    /// Scopes by the scope around them.
    inner: Vec<HashMap<usize, Vec<usize>>>,
    /// Methods of any class by name.
    by_method: HashMap<&'a str, Vec<ScopeId>>,
}

impl<'a> Package<'a> {
    /// Indexes units; `paths` are theirs, in the same order.
    pub(crate) fn new(units: &'a [Unit], paths: &'a [PathBuf]) -> Self {
        let mut package = Self {
            units,
            paths,
            by_stem: HashMap::new(),
            by_package: HashMap::new(),
            functions: Vec::new(),
            bindings: Vec::new(),
            imports: Vec::new(),
            classes: Vec::new(),
            methods: Vec::new(),
            starts: Vec::new(),
            inner: Vec::new(),
            by_method: HashMap::new(),
        };
        for (index, (unit, path)) in units.iter().zip(paths).enumerate() {
            package.by_stem.entry(path.with_extension("")).or_default().push(index);
            if unit.language == Language::Kotlin {
                package.by_package.entry(&unit.package).or_default().push(index);
            }
            package.index(index, unit);
        }
        package
    }

    fn index(&mut self, index: usize, unit: &'a Unit) {
        let (mut functions, mut methods) = (HashMap::new(), HashMap::new());
        let (mut starts, mut inner) = (HashMap::new(), HashMap::<usize, Vec<usize>>::new());
        for (at, scope) in unit.scopes.iter().enumerate().skip(1) {
            inner.entry(scope.parent).or_default().push(at);
            starts.entry(scope.extent.0).or_insert(at);
            if scope.kind != ScopeKind::Function || scope.name.is_empty() {
                continue;
            }
            let class = scope
                .class
                .filter(|class| unit.classes.get(*class).is_some_and(|class| class.scope == scope.parent));
            match class {
                Some(class) => {
                    methods.entry((class, &*scope.name)).or_insert(at);
                    self.by_method.entry(&scope.name).or_default().push((index, at));
                }
                None => {
                    functions.insert((scope.parent, &*scope.name), at);
                }
            }
        }
        self.functions.push(functions);
        self.index_names(unit);
        self.methods.push(methods);
        self.starts.push(starts);
        self.inner.push(inner);
    }

    fn index_names(&mut self, unit: &'a Unit) {
        let mut bindings = Names::new();
        for (at, scope) in unit.scopes.iter().enumerate() {
            for (name, value) in &scope.bindings {
                bindings.entry(at).or_default().entry(name.as_str()).or_default().push(value);
            }
        }
        let mut imports = Names::new();
        for import in &unit.imports {
            if let Some(local) = &import.local {
                imports.entry(import.scope).or_default().entry(local.as_str()).or_default().push(import);
            }
        }
        let mut classes = Names::new();
        for (at, class) in unit.classes.iter().enumerate() {
            classes.entry(class.scope).or_default().entry(class.name.as_str()).or_default().push(at);
        }
        self.bindings.push(bindings);
        self.imports.push(imports);
        self.classes.push(classes);
    }

    /// The values that a scope gives a name.
    fn bindings(&self, (unit, scope): ScopeId, name: &str) -> &[&'a Value] {
        named(&self.bindings, unit, scope, name)
    }

    /// The imports of a scope under a name.
    fn imports(&self, (unit, scope): ScopeId, name: &str) -> &[&'a Import] {
        named(&self.imports, unit, scope, name)
    }

    /// The classes of a scope that have a name.
    fn classes(&self, (unit, scope): ScopeId, name: &str) -> &[usize] {
        named(&self.classes, unit, scope, name)
    }

    pub(crate) const fn units(&self) -> &'a [Unit] {
        self.units
    }

    pub(crate) fn unit(&self, index: usize) -> Option<&'a Unit> {
        self.units.get(index)
    }

    pub(crate) fn path(&self, index: usize) -> &'a Path {
        self.paths.get(index).map_or(Path::new(""), PathBuf::as_path)
    }

    pub(crate) fn scope(&self, (unit, scope): ScopeId) -> Option<&'a crate::model::Scope> {
        self.units.get(unit)?.scopes.get(scope)
    }

    fn function(&self, unit: usize, scope: usize, name: &str) -> Option<usize> {
        self.functions.get(unit)?.get(&(scope, name)).copied()
    }

    fn method(&self, unit: usize, class: usize, name: &str) -> Option<usize> {
        self.methods.get(unit)?.get(&(class, name)).copied()
    }

    /// The lambda or function that begins at a byte.
    pub(crate) fn starting(&self, unit: usize, byte: usize) -> Option<usize> {
        self.starts.get(unit)?.get(&byte).copied()
    }

    /// The scopes directly inside of one.
    pub(crate) fn inside(&self, (unit, scope): ScopeId) -> &[usize] {
        self.inner.get(unit).and_then(|inner| inner.get(&scope)).map_or(&[], Vec::as_slice)
    }

    /// The methods of that name in any class of the language.
    pub(crate) fn methods_named(&self, name: &str, language: Language) -> impl Iterator<Item = ScopeId> {
        let own = move |(unit, _): &&ScopeId| {
            self.units.get(*unit).is_some_and(|unit| {
                unit.language == language || unit.language.is_ecma() && language.is_ecma()
            })
        };
        self.by_method.get(name).map_or(&[][..], Vec::as_slice).iter().filter(own).copied()
    }

    /// Whether one scope stands in another, or is it.
    fn is_within(&self, unit: usize, inner: usize, outer: usize) -> bool {
        let mut scope = inner;
        loop {
            if scope == outer {
                return true;
            }
            match self.scope((unit, scope)) {
                Some(found) if scope != 0 => scope = found.parent,
                _ => return false,
            }
        }
    }
}
