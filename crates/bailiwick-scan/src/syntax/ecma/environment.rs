//! What is read of the environment: one variable, several by a pattern, or all of it.

use tree_sitter::Node;

use super::Ecma;
use crate::model::{Arg, Value};
use crate::syntax::builder::children;

/// The environment as a whole, as it is written.
const WHOLE: [&str; 3] = ["process.env", "globalThis.process.env", "Bun.env"];

impl<'t> Ecma<'t> {
    /// `process.env.NAME`, `process.env[name]`, and `process.env` where all of it goes on to somewhere else.
    pub(super) fn access(&mut self, node: Node<'t>) {
        if self.targets.contains(&node.id()) {
            return;
        }
        if WHOLE.contains(&self.builder.text_of(node)) && self.goes_on(node) {
            let whole = self.lower(node, 0);
            return self.builder.call(whole.member("[*]"), Vec::new(), node);
        }
        let Some(object) = node.child_by_field_name("object") else { return };
        if !self.is_environment(Some(object)) {
            return;
        }
        let index = node.child_by_field_name("index").map(|index| self.lower(index, 0));
        let property = node.child_by_field_name("property").map(|name| self.builder.text_of(name));
        let key = index.or_else(|| Some(Value::Text(property?.to_owned()))).unwrap_or(Value::Opaque);
        let object = self.lower(object, 0);
        self.builder.call(object.member("[]"), vec![Arg { name: None, value: key }], node);
    }

    /// Whether a value is more than the object of an access, another name for itself, or a pattern that picks from it.
    fn goes_on(&self, node: Node<'t>) -> bool {
        let mut inner = node;
        while let Some(outer) = inner.parent() {
            let is =
                |field: &str| outer.child_by_field_name(field).is_some_and(|part| part.id() == inner.id());
            match outer.kind() {
                "parenthesized_expression"
                | "as_expression"
                | "satisfies_expression"
                | "non_null_expression" => {
                    inner = outer;
                }
                "member_expression" | "subscript_expression" => return !is("object"),
                "variable_declarator" => {
                    let name = outer.child_by_field_name("name");
                    return name.is_some_and(|name| children(name).any(|part| part.kind() == "rest_pattern"));
                }
                "assignment_expression" | "assignment_pattern" => return false,
                "binary_expression" => {
                    let operator = outer.child_by_field_name("operator");
                    return operator.is_none_or(|sign| self.builder.text_of(sign) != "in");
                }
                _ => return true,
            }
        }
        false
    }

    pub(super) fn is_environment(&self, value: Option<Node<'t>>) -> bool {
        value
            .map(|value| self.builder.text_of(value))
            .is_some_and(|text| text == "env" || text.ends_with(".env"))
    }

    /// The names in front of the colons of `{ a, b: c }`.
    pub(super) fn keys(&self, pattern: Node<'t>) -> Vec<&'t str> {
        let key = |node: Node<'t>| match node.kind() {
            "pair_pattern" => node.child_by_field_name("key").map(|key| self.builder.text_of(key)),
            "object_assignment_pattern" => {
                node.child_by_field_name("left").map(|key| self.builder.text_of(key))
            }
            "shorthand_property_identifier_pattern" => Some(self.builder.text_of(node)),
            _ => None,
        };
        children(pattern).filter_map(key).collect()
    }
}
