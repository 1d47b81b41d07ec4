//! What is known about APIs, read once from the files in `data/`.
//!
//! A file that does not read is a bug of this crate, not of whoever is scanned: a test reads them all, and until
//! then the language knows nothing, so that every call in it is unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::model::{Language, Reason};
use crate::report::UseKind;

/// One line of the data.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    name: String,
    #[serde(default)]
    read: Option<String>,
    #[serde(default)]
    write: Option<String>,
    #[serde(default)]
    create: Option<String>,
    #[serde(default)]
    delete: Option<String>,
    #[serde(default)]
    net: Option<String>,
    #[serde(default)]
    env: Option<String>,
    #[serde(default)]
    exec: Option<String>,
    #[serde(default)]
    tzdata: Option<String>,
    #[serde(default)]
    pub(crate) unknown: Option<Reason>,
    #[serde(default)]
    pub(crate) unless: Option<String>,
    #[serde(default)]
    pub(crate) port: Option<String>,
    #[serde(default)]
    pub(crate) scheme: Option<String>,
    #[serde(default)]
    pub(crate) mode: Option<String>,
    #[serde(default)]
    pub(crate) chain: bool,
    #[serde(default)]
    pub(crate) shell: Option<String>,
    #[serde(default)]
    pub(crate) latent: bool,
    #[serde(default)]
    distinct: bool,
    /// The whole path, filled in when the file is read.
    #[serde(skip)]
    pub(crate) path: String,
    /// The module it is in, likewise.
    #[serde(skip)]
    module: String,
}

impl Rule {
    /// The capabilities, each with where its target is.
    pub(crate) fn effects(&self) -> impl Iterator<Item = (UseKind, &str)> {
        [
            (UseKind::Read, self.read.as_deref()),
            (UseKind::Write, self.write.as_deref()),
            (UseKind::Create, self.create.as_deref()),
            (UseKind::Delete, self.delete.as_deref()),
            (UseKind::Net, self.net.as_deref()),
            (UseKind::Env, self.env.as_deref()),
            (UseKind::Exec, self.exec.as_deref()),
            (UseKind::Tzdata, self.tzdata.as_deref()),
        ]
        .into_iter()
        .filter_map(|(kind, place)| Some((kind, place?)))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    path: String,
    calls: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    prelude: Vec<String>,
    pure: Vec<String>,
    text: Vec<String>,
    same: Vec<String>,
    join: Vec<String>,
    steps: Vec<String>,
    keeps: Vec<String>,
    wraps: Vec<String>,
    lists: Vec<String>,
    aliases: BTreeMap<String, String>,
    results: BTreeMap<String, String>,
    #[serde(default)]
    module: Vec<Module>,
}

/// What becomes of a value that a function is given or made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An object that is the text it was made of.
    Text,
    /// It returns its first argument.
    Same,
    /// It joins paths.
    Join,
    /// It goes deeper into the path it is called on.
    Step,
    /// It returns the function it is given.
    Wrap,
    /// It returns its arguments.
    List,
}

/// How much is known of where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It touches nothing.
    Pure,
    /// The module is known, the name is not.
    Known,
    /// Nothing is known.
    Foreign,
}

/// All that is known about one language.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    pub(crate) prelude: Vec<String>,
    rules: HashMap<String, Vec<Rule>>,
    /// Rules for any method of a class.
    families: HashMap<String, Vec<Rule>>,
    /// Rules by the method's name alone.
    distinct: HashMap<String, Vec<String>>,
    pure: Vec<String>,
    modules: Vec<String>,
    shapes: HashMap<String, Shape>,
    keeps: Vec<String>,
    aliases: BTreeMap<String, String>,
    results: BTreeMap<String, String>,
    /// Every beginning of a path that something is known about.
    beginnings: std::collections::HashSet<String>,
}

const PYTHON: &str = include_str!("../data/python.toml");
const ECMA: &str = include_str!("../data/ecma.toml");
const RUST: &str = include_str!("../data/rust.toml");
const KOTLIN: &str = include_str!("../data/kotlin.toml");

/// The files themselves, for the cache's key.
pub(crate) const FILES: [&str; 4] = [PYTHON, ECMA, RUST, KOTLIN];

/// What is known about a language.
pub(crate) fn for_language(language: Language) -> &'static Knowledge {
    static ALL: [OnceLock<Knowledge>; 4] = [const { OnceLock::new() }; 4];
    static NOTHING: OnceLock<Knowledge> = OnceLock::new();
    let (index, text) = match language {
        Language::Python => (0, PYTHON),
        Language::JavaScript | Language::TypeScript => (1, ECMA),
        Language::Rust => (2, RUST),
        Language::Kotlin => (3, KOTLIN),
    };
    let read = || Knowledge::read(text).unwrap_or_default();
    ALL.get(index).map_or_else(|| NOTHING.get_or_init(Knowledge::default), |slot| slot.get_or_init(read))
}

impl Knowledge {
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let file: File = toml::from_str(text)?;
        let mut known = Self {
            prelude: dotted(file.prelude),
            pure: dotted(file.pure),
            keeps: file.keeps,
            aliases: file.aliases.into_iter().map(|(from, to)| (dot(&from), dot(&to))).collect(),
            results: file.results.into_iter().map(|(from, to)| (dot(&from), dot(&to))).collect(),
            ..Self::default()
        };
        for (shape, names) in [
            (Shape::Text, file.text),
            (Shape::Same, file.same),
            (Shape::Join, file.join),
            (Shape::Step, file.steps),
            (Shape::Wrap, file.wraps),
            (Shape::List, file.lists),
        ] {
            known.shapes.extend(dotted(names).into_iter().map(|name| (name, shape)));
        }
        for module in file.module {
            let path = dot(&module.path);
            module.calls.into_iter().for_each(|rule| known.learn(&path, rule));
            known.modules.push(path);
        }
        known.remember_beginnings();
        Ok(known)
    }

    fn learn(&mut self, module: &str, mut rule: Rule) {
        let name = dot(&rule.name);
        rule.path = if name == "()" { module.to_owned() } else { format!("{module}.{name}") };
        module.clone_into(&mut rule.module);
        if let Some(class) = rule.path.strip_suffix(".*") {
            return self.families.entry(class.to_owned()).or_default().push(rule);
        }
        if rule.distinct
            && let Some((_, method)) = rule.path.rsplit_once('.')
        {
            self.distinct.entry(method.to_owned()).or_default().push(rule.path.clone());
        }
        self.rules.entry(rule.path.clone()).or_default().push(rule);
    }

    fn remember_beginnings(&mut self) {
        let rules = self.rules.keys().chain(self.families.keys());
        let names = rules.chain(self.shapes.keys()).chain(&self.pure).chain(self.aliases.keys());
        let all: Vec<String> = names.cloned().collect();
        for path in all {
            let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
            let found = ends.filter_map(|end| path.get(..end)).map(str::to_owned);
            self.beginnings.extend(found);
        }
    }

    /// The rules for a path, those for any method of its class included.
    pub(crate) fn rules(&self, path: &str) -> &[Rule] {
        if let Some(rules) = self.rules.get(path) {
            return rules;
        }
        let family = path.rsplit_once('.').and_then(|(class, _)| self.families.get(class));
        family.map_or(&[], Vec::as_slice)
    }

    /// The rules that a method's name alone gives away.
    pub(crate) fn by_method(&self, method: &str) -> impl Iterator<Item = &Rule> {
        let paths = self.distinct.get(method).map_or(&[][..], Vec::as_slice);
        paths.iter().take(1).flat_map(|path| self.rules(path))
    }

    /// Whether anything is known about the path or below it.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.beginnings.contains(path)
    }

    pub(crate) fn shape(&self, path: &str) -> Option<Shape> {
        self.shapes.get(path).copied()
    }

    /// Whether a method leaves a value what it is.
    pub(crate) fn keeps(&self, method: &str) -> bool {
        self.keeps.iter().any(|own| own == method)
    }

    /// The path by its usual name.
    pub(crate) fn usual(&self, path: String) -> String {
        if let Some(usual) = self.aliases.get(&path) {
            return usual.clone();
        }
        let mut cuts = path.match_indices('.').map(|(at, _)| at);
        let renamed = cuts.find_map(|at| {
            let usual = self.aliases.get(path.get(..at)?)?;
            Some(format!("{usual}{}", path.get(at..)?))
        });
        renamed.unwrap_or(path)
    }

    /// What calling the path returns, where that is known.
    pub(crate) fn result(&self, path: &str) -> Option<&str> {
        self.results.get(path).map(String::as_str)
    }

    /// Where a name without a rule stands.
    pub(crate) fn standing(&self, path: &str) -> Standing {
        let longest = |names: &[String]| {
            let own = names.iter().filter(|name| is_below(path, name));
            own.map(String::len).max()
        };
        match (longest(&self.pure), longest(&self.modules)) {
            (Some(pure), Some(module)) if pure < module => Standing::Known,
            (Some(_), _) => Standing::Pure,
            (None, Some(_)) => Standing::Known,
            (None, None) => Standing::Foreign,
        }
    }
}

fn is_below(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/']))
}

fn dotted(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| dot(name)).collect()
}

fn dot(name: &str) -> String {
    name.replace("::", ".")
}

#[cfg(test)]
mod tests;
