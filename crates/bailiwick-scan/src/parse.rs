//! Text to a syntax tree, within limits.
//!
//! Fails closed when the parser needs longer than a bound that grows with the text: the file is then unknown, never
//! taken for empty. Trees are freed and walked without recursion.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::model::{Extent, Language};

/// Why there is no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The parser does not take the grammar.
    Grammar,
    /// It took too long.
    TooSlow,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Grammar => "the parser does not take the grammar",
            Self::TooSlow => "the file takes too long to parse",
        })
    }
}

/// A grammar: a language, or one with tags in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    JavaScript,
    Kotlin,
    Python,
    Rust,
    TypeScript,
    Tsx,
}

impl Grammar {
    pub(crate) const COUNT: usize = 6;

    /// By a file's extension.
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "kt" | "kts" => Self::Kotlin,
            "py" => Self::Python,
            "rs" => Self::Rust,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            _ => return None,
        })
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::JavaScript => 0,
            Self::Kotlin => 1,
            Self::Python => 2,
            Self::Rust => 3,
            Self::TypeScript => 4,
            Self::Tsx => 5,
        }
    }

    pub(crate) const fn language(self) -> Language {
        match self {
            Self::JavaScript => Language::JavaScript,
            Self::Kotlin => Language::Kotlin,
            Self::Python => Language::Python,
            Self::Rust => Language::Rust,
            Self::TypeScript | Self::Tsx => Language::TypeScript,
        }
    }

    pub(crate) fn tree_sitter(self) -> tree_sitter::Language {
        match self {
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Kotlin => tree_sitter_kotlin_ng::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        }
    }
}

/// Parses a text. Faulty source still has a tree, with errors in it.
pub(crate) fn parse(grammar: Grammar, text: &str) -> Result<Tree, Failure> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.tree_sitter()).map_err(|_| Failure::Grammar)?;
    let kilobytes = u64::try_from(text.len() / 1024).unwrap_or(u64::MAX);
    let limit = Duration::from_secs(2) + Duration::from_millis(kilobytes.saturating_mul(10));
    let started = Instant::now();
    let mut watch = |_: &ParseState| {
        if started.elapsed() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let bytes = text.as_bytes();
    let mut rest = |at: usize, _| bytes.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options)).ok_or(Failure::TooSlow)
}

/// The first part of any size that the parser could make nothing of.
pub(crate) fn first_large_error(tree: &Tree) -> Option<Extent> {
    /// Smaller ones are grammar quirks: a new operator, an odd pattern.
    const LARGE: usize = 200;
    if !tree.root_node().has_error() {
        return None;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() && node.end_byte() - node.start_byte() >= LARGE {
            return Some((node.start_byte(), node.end_byte()));
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}
