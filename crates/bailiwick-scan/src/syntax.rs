//! From the tree of a file to its facts: one front end for each language, all of the same shape.
//!
//! `role` says which kinds of nodes matter, `enter` and `leave` what they mean, `lower` what an expression is. The
//! walk keeps no stack of calls, so nesting costs memory and nothing else; `lower` stops at a fixed depth.

mod builder;
mod ecma;
mod kotlin;
mod python;
mod rust;

use std::sync::OnceLock;

use tree_sitter::{Node, Tree};

use crate::model::{Extent, Language, Oddity, Reason, Unit};
use crate::parse::{self, Grammar};

/// What a node is to a front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Nothing,
    Access,
    Assign,
    Branch,
    Call,
    Class,
    Declare,
    Export,
    Field,
    Foreign,
    Function,
    Import,
    Lambda,
    Macro,
    Module,
    Package,
    Record,
    Return,
    With,
}

/// A language's reading of nodes.
trait Front<'t> {
    /// Enters a node; true if `leave` is to be called for it.
    fn enter(&mut self, role: Role, node: Node<'t>) -> bool;
    /// Leaves a node that was entered.
    fn leave(&mut self, role: Role, node: Node<'t>);
}

/// Reads a text of the language.
pub(crate) fn read(grammar: Grammar, text: &str) -> Unit {
    let tree = match parse::parse(grammar, text) {
        Ok(tree) => tree,
        Err(why) => {
            let mut unit = nothing(grammar.language());
            unit.oddities.push(unparsed(why.to_string(), (0, 0)));
            return unit;
        }
    };
    let mut unit = match grammar.language() {
        Language::Python => python::read(text, &tree),
        Language::JavaScript | Language::TypeScript => ecma::read(grammar, text, &tree),
        Language::Rust => rust::read(text, &tree),
        Language::Kotlin => kotlin::read(text, &tree),
    };
    if let Some(at) = parse::first_large_error(&tree) {
        unit.oddities.push(unparsed("part of the file is not valid source".to_owned(), at));
    }
    unit
}

const fn unparsed(what: String, extent: Extent) -> Oddity {
    Oddity { reason: Reason::Unparsed, what, scope: 0, extent }
}

/// A file without facts.
pub(crate) fn nothing(language: Language) -> Unit {
    builder::Builder::new(language, "").unit
}

/// The roles of a grammar's nodes by their number.
fn roles(grammar: Grammar, role: fn(&str) -> Role) -> &'static [Role] {
    static TABLES: [OnceLock<Vec<Role>>; Grammar::COUNT] = [const { OnceLock::new() }; Grammar::COUNT];
    let Some(table) = TABLES.get(grammar.index()) else { return &[] };
    table.get_or_init(|| {
        let language = grammar.tree_sitter();
        let count = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
        let named = |id: u16| language.node_kind_is_named(id);
        (0..count)
            .map(|id| match language.node_kind_for_id(id) {
                Some(kind) if named(id) => role(kind),
                _ => Role::Nothing,
            })
            .collect()
    })
}

/// Walks a tree in the order of the text.
fn walk<'t>(tree: &'t Tree, roles: &[Role], front: &mut impl Front<'t>) {
    let mut cursor = tree.walk();
    let mut opened: Vec<Role> = Vec::new();
    loop {
        let node = cursor.node();
        let role = roles.get(usize::from(node.kind_id())).copied().unwrap_or(Role::Nothing);
        let entered = role != Role::Nothing && front.enter(role, node);
        let mark = if entered { role } else { Role::Nothing };
        if cursor.goto_first_child() {
            opened.push(mark);
            continue;
        }
        if entered {
            front.leave(role, node);
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            if let Some(role) = opened.pop()
                && role != Role::Nothing
            {
                front.leave(role, cursor.node());
            }
        }
    }
}
