//! Path patterns: sets of absolute paths, matched by whole components and never by string prefix.
//!
//! A component is literal, a glob (`*`, `?`, `[a-z]`, `[!a-z]`) or `**` (zero or more components). A pattern
//! without globs covers its path and everything below it; one with globs covers exactly what it matches.
//! `[c]` with a single character *is* that character: it is how a literal `*`, `?` or `[` is written.
//!
//! Internally a path is a *key*: its components, each preceded by NUL, so that the order of bytes is the order
//! of components and a component prefix is a byte prefix that ends at NUL or at the end. The root is empty.

mod contain;
mod glob;
mod parse;
mod scope;
mod set;
#[cfg(test)]
mod tests;

pub use glob::{Class, Glob, Token};
pub use scope::PathScope;
pub use set::PathSet;

pub use parse::parse_pattern;

pub(crate) use parse::parse_absolute;

use std::fmt;

use crate::finding::{Code, Finding};

/// The longest path or pattern, in bytes: the kernel's own limit.
pub const MAX_PATH: usize = 4096;
/// The most components a pattern may have from its first glob on.
pub const MAX_GLOB_PARTS: usize = 60;

/// Marks a component that stands for a variable. Control characters are in no pattern's text.
const SYMBOL: char = '\u{1}';

/// One component of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Exactly this name.
    Literal(Box<str>),
    /// A name that the glob matches.
    Glob(Glob),
    /// `**`: zero or more components.
    Deep,
}

/// Where a pattern starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// `/`
    Slash,
    /// `$NAME`, `${NAME}` or `~` (which is `$HOME`); only in manifests, until host facts resolve it.
    Variable(Box<str>),
}

/// A set of absolute paths as an author writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern {
    root: Root,
    parts: Box<[Part]>,
}

impl PathPattern {
    /// Every path: `/**`.
    #[must_use]
    pub fn everything() -> Self {
        Self { root: Root::Slash, parts: Box::new([Part::Deep]) }
    }

    /// The pattern that covers `path` and everything below it.
    #[must_use]
    pub fn below(path: &AbsPath) -> Self {
        Self { root: Root::Slash, parts: path.components().map(|name| Part::Literal(name.into())).collect() }
    }

    /// Where the pattern starts.
    #[must_use]
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// The components, as written but for repeated `**`.
    #[must_use]
    pub const fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether the pattern has no variable left.
    #[must_use]
    pub fn is_resolved(&self) -> bool {
        self.root == Root::Slash
    }

    /// Whether the pattern covers a path and everything below it, and nothing else.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.literal_prefix().len() == self.parts.len()
            || (self.literal_prefix().len() + 1 == self.parts.len() && self.ends_deep())
    }

    /// Whether the pattern covers every path: `/` or `/**`.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.is_resolved() && self.parts.iter().all(|part| *part == Part::Deep)
    }

    /// Whether the last component is `**`.
    #[must_use]
    pub fn ends_deep(&self) -> bool {
        self.parts.last() == Some(&Part::Deep)
    }

    /// The components before the first glob.
    #[must_use]
    pub fn literal_prefix(&self) -> &[Part] {
        let literals = self.parts.iter().take_while(|part| matches!(part, Part::Literal(_))).count();
        self.parts.get(..literals).unwrap_or_default()
    }

    /// The path that every match of the pattern lies at or below.
    #[must_use]
    pub fn base(&self) -> AbsPath {
        AbsPath(self.prefix_key())
    }

    /// Replaces a variable by its value, component by component, so that nothing in it acts as a glob.
    pub(crate) fn resolve(&self, value: impl Fn(&str) -> Option<AbsPath>) -> Result<Self, Finding> {
        let Root::Variable(name) = &self.root else { return Ok(self.clone()) };
        let Some(base) = value(name) else {
            let text = format!("`${name}` has no value here");
            return Err(Finding::new(Code::PathVariableUnresolved, text)
                .help(format!("set it with `--set {name}=/absolute/path`, or write the path out")));
        };
        let literals = base.components().map(|component| Part::Literal(component.into()));
        Ok(Self { root: Root::Slash, parts: literals.chain(self.parts.iter().cloned()).collect() })
    }

    /// The key of the literal prefix.
    pub(crate) fn prefix_key(&self) -> Box<str> {
        let mut key = String::new();
        for part in self.literal_prefix() {
            if let Part::Literal(name) = part {
                key.push('\0');
                key.push_str(name);
            }
        }
        key.into_boxed_str()
    }

    /// Whether the pattern covers `path`.
    #[must_use]
    pub fn covers(&self, path: &AbsPath) -> bool {
        if !self.is_resolved() {
            return false;
        }
        if !is_at_or_below(path.key(), &self.prefix_key()) {
            return false;
        }
        let literals = self.literal_prefix().len();
        let globs = self.parts.get(literals..).unwrap_or_default();
        self.is_tree() || glob::matches_parts(globs, path.components().skip(literals))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Slash if self.parts.is_empty() => return f.write_str("/"),
            Root::Slash => {}
            Root::Variable(name) => write!(f, "${name}")?,
        }
        for part in &self.parts {
            f.write_str("/")?;
            match part {
                Part::Literal(name) => glob::write_literal(f, name)?,
                Part::Glob(glob) => write!(f, "{glob}")?,
                Part::Deep => f.write_str("**")?,
            }
        }
        Ok(())
    }
}

/// One absolute path without `.`, `..` or empty components.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(Box<str>);

impl AbsPath {
    /// Reads a clean absolute path; one trailing slash is forgiven.
    ///
    /// # Errors
    /// A finding if the path is relative, too long, or has `.`, `..`, empty components or NUL.
    pub fn new(path: &str) -> Result<Self, Finding> {
        parse_absolute(path)
    }

    /// The place a variable stands for before any host gives it a value. No text can name it, so it is apart
    /// from every real path; only `/**` covers it.
    #[must_use]
    pub fn symbolic(variable: &str) -> Self {
        Self(format!("\0{SYMBOL}{variable}").into())
    }

    /// Its components, from the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('\0').skip(1)
    }

    /// Whether it is `tree` or lies below it.
    #[must_use]
    pub fn is_within(&self, tree: &Self) -> bool {
        is_at_or_below(self.key(), tree.key())
    }

    pub(crate) const fn key(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_key(key: impl Into<Box<str>>) -> Self {
        Self(key.into())
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.components().try_for_each(|name| match name.strip_prefix(SYMBOL) {
            Some(variable) => write!(f, "${variable}"),
            None => write!(f, "/{name}"),
        })
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AbsPath({self})")
    }
}

/// Whether the path with `key` is `tree` or lies below it.
pub(crate) fn is_at_or_below(key: &str, tree: &str) -> bool {
    key.strip_prefix(tree).is_some_and(|rest| rest.is_empty() || rest.starts_with('\0'))
}
