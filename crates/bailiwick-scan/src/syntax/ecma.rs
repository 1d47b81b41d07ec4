//! JavaScript and TypeScript, with and without tags.

mod environment;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree};

use super::builder::{Builder, DEPTH, child, children, joined, unescaped};
use super::{Front, Role, roles, walk};
use crate::model::{Arg, Param, ScopeKind, Unit, Value};
use crate::parse::Grammar;

/// Names of what a dispatcher compares with the names of tools.
const TOOL_NAMES: [&str; 3] = ["name", "tool", "toolName"];
/// Types that stand for what is inside them.
const WRAPPERS: [&str; 3] = ["Promise", "Readonly", "Required"];

pub(super) fn read(grammar: Grammar, text: &str, tree: &Tree) -> Unit {
    let builder = Builder::new(grammar.language(), text);
    let mut front = Ecma {
        builder,
        labels: BTreeMap::new(),
        targets: BTreeSet::new(),
        names: Vec::new(),
        registered: BTreeSet::new(),
    };
    walk(tree, roles(grammar, role), &mut front);
    front.builder.unit
}

fn role(kind: &str) -> Role {
    match kind {
        "member_expression" | "subscript_expression" => Role::Access,
        "assignment_expression" => Role::Assign,
        "if_statement" | "switch_case" | "statement_block" => Role::Branch,
        "call_expression" | "new_expression" => Role::Call,
        "class_declaration" | "class" | "abstract_class_declaration" => Role::Class,
        "variable_declarator" | "for_in_statement" => Role::Declare,
        "export_statement" => Role::Export,
        "field_definition" | "public_field_definition" => Role::Field,
        "function_declaration"
        | "generator_function_declaration"
        | "method_definition"
        | "function_signature" => Role::Function,
        "import_statement" => Role::Import,
        "object" => Role::Record,
        "arrow_function" | "function_expression" | "generator_function" => Role::Lambda,
        "return_statement" => Role::Return,
        _ => Role::Nothing,
    }
}

struct Ecma<'t> {
    builder: Builder<'t>,
    /// Blocks that are for one tool, by their node.
    labels: BTreeMap<usize, String>,
    /// Left sides, which are not read.
    targets: BTreeSet<usize>,
    /// The names of lambdas that are given to a variable at once, by their node.
    names: Vec<(usize, &'t str)>,
    /// Objects that are handed to what registers tools, by their node.
    registered: BTreeSet<usize>,
}

impl<'t> Front<'t> for Ecma<'t> {
    fn enter(&mut self, role: Role, node: Node<'t>) -> bool {
        match role {
            Role::Access => self.access(node),
            Role::Assign => self.assign(node),
            Role::Branch => return self.branch(node),
            Role::Call => self.call(node),
            Role::Class => return self.class(node),
            Role::Declare => self.declare(node),
            Role::Export => self.export(node),
            Role::Field => self.field(node),
            Role::Function => return self.function(node),
            Role::Import => self.import(node),
            Role::Lambda => return self.lambda(node),
            Role::Record => self.record(node),
            Role::Return => {
                if let Some(value) = children(node).next() {
                    let value = self.lower(value, 0);
                    self.builder.returned(value);
                }
            }
            Role::Nothing | Role::Foreign | Role::Macro | Role::Module | Role::Package | Role::With => {}
        }
        false
    }

    fn leave(&mut self, role: Role, _: Node<'t>) {
        if role == Role::Class { self.builder.close_class() } else { self.builder.close() }
    }
}

impl<'t> Ecma<'t> {
    fn assign(&mut self, node: Node<'t>) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        if left.kind() != "identifier" {
            self.targets.insert(left.id());
        }
        let value = self.lower(right, 0);
        match left.kind() {
            "identifier" => {
                let name = self.builder.text_of(left);
                self.builder.rebind(name, value);
            }
            "member_expression" => {
                let object =
                    left.child_by_field_name("object").map_or("", |object| self.builder.text_of(object));
                let name = left.child_by_field_name("property").map_or("", |name| self.builder.text_of(name));
                match object {
                    "this" => self.builder.field(name, value),
                    "exports" | "module.exports" => self.builder.rebind(name, value),
                    "module" if name == "exports" => self.exported(value),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// `module.exports = …`
    fn exported(&mut self, value: Value) {
        if let Value::Map(pairs) = value {
            for (name, value) in pairs.into_iter().filter(|(name, value)| *value != Value::name(&**name)) {
                self.builder.rebind(&name, value);
            }
        } else {
            self.builder.rebind("default", value);
        }
    }

    fn branch(&mut self, node: Node<'t>) -> bool {
        let label = match node.kind() {
            "if_statement" => {
                let label = node.child_by_field_name("condition").and_then(|node| self.compared(node));
                if let (Some(label), Some(then)) = (label, node.child_by_field_name("consequence")) {
                    self.labels.insert(then.id(), label);
                }
                return false;
            }
            "switch_case" => {
                let value = node.child_by_field_name("value").map(|value| self.lower(value, 0));
                value.as_ref().and_then(Value::as_text).map(str::to_owned)
            }
            _ => self.labels.remove(&node.id()),
        };
        let Some(label) = label else { return false };
        self.builder.open(ScopeKind::Branch(label), "", Vec::new(), node);
        true
    }

    /// The name that `name === "…"` is about.
    fn compared(&self, node: Node<'t>) -> Option<String> {
        let test = if node.kind() == "parenthesized_expression" { children(node).next()? } else { node };
        let operator = self.builder.text_of(test.child_by_field_name("operator")?);
        if !matches!(operator, "===" | "==") {
            return None;
        }
        let left = self.lower(test.child_by_field_name("left")?, 0);
        let right = self.lower(test.child_by_field_name("right")?, 0);
        let named = left.last_name().is_some_and(|name| TOOL_NAMES.contains(&name));
        named.then(|| right.as_text().map(str::to_owned)).flatten()
    }

    fn call(&mut self, node: Node<'t>) {
        let Some(function) =
            node.child_by_field_name("function").or_else(|| node.child_by_field_name("constructor"))
        else {
            return;
        };
        let (callee, args) = (self.lower(function, 0), self.args(node, 0));
        self.tool(&callee, &args, node);
        self.builder.call(callee, args, node);
    }

    fn class(&mut self, node: Node<'t>) -> bool {
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let index = self.builder.open_class(name);
        if let Some(heritage) = child(node, "class_heritage") {
            let base = child(heritage, "extends_clause").unwrap_or(heritage);
            let bases: Vec<Value> = children(base).take(1).map(|base| self.lower(base, 0)).collect();
            self.builder.class_mut(index).into_iter().for_each(|class| class.bases = bases.clone());
        }
        true
    }

    fn declare(&mut self, node: Node<'t>) {
        if node.kind() == "for_in_statement" {
            if let Some(left) = node.child_by_field_name("left") {
                self.pattern(left, &Value::Opaque);
            }
            return;
        }
        let Some(name) = node.child_by_field_name("name") else { return };
        let value = node.child_by_field_name("value");
        if let Some(kind) = node.child_by_field_name("type")
            && name.kind() == "identifier"
        {
            let (name, kind) = (self.builder.text_of(name), self.kind(kind));
            self.builder.declare(name, kind);
        }
        if let Some(value) = value.filter(|value| is_function(*value))
            && name.kind() == "identifier"
        {
            self.names.push((value.id(), self.builder.text_of(name)));
        }
        let lowered = value.map_or(Value::Opaque, |value| self.lower(value, 0));
        if name.kind() == "object_pattern" && self.is_environment(value) {
            for key in self.keys(name) {
                let args = vec![Arg { name: None, value: Value::Text(key.to_owned()) }];
                self.builder.call(lowered.clone().member("[]"), args, node);
            }
        }
        self.pattern(name, &lowered);
    }

    /// Gives the names of a pattern their values.
    fn pattern(&mut self, pattern: Node<'t>, value: &Value) {
        match pattern.kind() {
            "identifier" => {
                let name = self.builder.text_of(pattern);
                self.builder.bind(name, value.clone());
            }
            "object_pattern" => {
                for part in children(pattern) {
                    let (key, local) = match part.kind() {
                        "pair_pattern" => {
                            (part.child_by_field_name("key"), part.child_by_field_name("value"))
                        }
                        "object_assignment_pattern" => {
                            (part.child_by_field_name("left"), part.child_by_field_name("left"))
                        }
                        _ => (Some(part), Some(part)),
                    };
                    let (Some(key), Some(local)) = (key, local) else { continue };
                    let (key, local) = (self.builder.text_of(key), self.builder.text_of(local));
                    let local = local.split('=').next().unwrap_or(local).trim();
                    self.builder.bind(local, value.clone().member(key));
                }
            }
            "array_pattern" => {
                for name in children(pattern).filter(|name| name.kind() == "identifier") {
                    let name = self.builder.text_of(name);
                    self.builder.bind(name, Value::Opaque);
                }
            }
            _ => {}
        }
    }

    /// `export … from` is an import under the name it is exported by.
    fn export(&mut self, node: Node<'t>) {
        let module = node.child_by_field_name("source").map(|source| self.lower(source, 0));
        let module = module.as_ref().and_then(Value::as_text);
        let clause = child(node, "export_clause");
        for part in clause.into_iter().flat_map(children) {
            let name = part.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
            let alias = part.child_by_field_name("alias").map_or(name, |alias| self.builder.text_of(alias));
            match module {
                Some(module) => self.builder.import(Some(alias), module, Some(name)),
                None if alias != name => self.builder.bind(alias, Value::name(name)),
                None => {}
            }
        }
        let space = child(node, "namespace_export").and_then(|space| children(space).next());
        match (module, clause, space) {
            (Some(module), None, Some(name)) => {
                self.builder.import(Some(self.builder.text_of(name)), module, None);
            }
            (Some(module), None, None) => self.builder.import(None, module, None),
            _ => {}
        }
        if let Some(value) = node.child_by_field_name("value") {
            let value = self.lower(value, 0);
            self.builder.bind("default", value);
        }
        let named = node.child_by_field_name("declaration").and_then(|node| node.child_by_field_name("name"));
        if let Some(name) = named
            && self.builder.text_of(node).starts_with("export default")
        {
            let name = Value::name(self.builder.text_of(name));
            self.builder.bind("default", name);
        }
    }

    fn field(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("name").or_else(|| node.child_by_field_name("property"))
        else {
            return;
        };
        let name = self.builder.text_of(name);
        if let Some(kind) = node.child_by_field_name("type") {
            self.builder.field_type(name, self.kind(kind));
        }
        if let Some(value) = node.child_by_field_name("value") {
            let value = self.lower(value, 0);
            self.builder.field(name, value);
        }
    }

    fn function(&mut self, node: Node<'t>) -> bool {
        if node.kind() == "function_signature" {
            return false;
        }
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let params = self.params(node);
        let return_type = node.child_by_field_name("return_type").map(|kind| self.kind(kind));
        let class = self.builder.class().filter(|_| node.kind() == "method_definition");
        let index = self.builder.open(ScopeKind::Function, name, params, node);
        if let Some(scope) = self.builder.scope(index) {
            scope.return_type = return_type;
        }
        if let Some(class) = class.filter(|_| name == "constructor") {
            if let Some(class) = self.builder.class_mut(class) {
                class.maker = Some(index);
            }
            self.parameter_fields(node);
        }
        true
    }

    /// `constructor(private file: string)` makes a field.
    fn parameter_fields(&mut self, node: Node<'t>) {
        let list = node.child_by_field_name("parameters");
        for param in list.into_iter().flat_map(children) {
            let shown = child(param, "accessibility_modifier").is_some()
                || self.builder.text_of(param).starts_with("readonly");
            if let (true, Some(name)) = (shown, param.child_by_field_name("pattern")) {
                let name = self.builder.text_of(name);
                self.builder.field(name, Value::name(name));
            }
        }
    }

    fn import(&mut self, node: Node<'t>) {
        if let Some(clause) = child(node, "import_require_clause") {
            let local = child(clause, "identifier").map(|name| self.builder.text_of(name));
            let module = clause.child_by_field_name("source").map(|source| self.lower(source, 0));
            if let Some(module) = module.as_ref().and_then(Value::as_text) {
                self.builder.import(local, module, None);
            }
            return;
        }
        let module = node.child_by_field_name("source").map(|source| self.lower(source, 0));
        let Some(module) = module.as_ref().and_then(Value::as_text) else { return };
        for part in child(node, "import_clause").into_iter().flat_map(children) {
            match part.kind() {
                "identifier" => {
                    self.builder.import(Some(self.builder.text_of(part)), module, Some("default"))
                }
                "namespace_import" => {
                    let local = children(part).next().map(|name| self.builder.text_of(name));
                    self.builder.import(local, module, None);
                }
                "named_imports" => {
                    for one in children(part) {
                        let name =
                            one.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
                        let alias =
                            one.child_by_field_name("alias").map_or(name, |name| self.builder.text_of(name));
                        self.builder.import(Some(alias), module, Some(name));
                    }
                }
                _ => {}
            }
        }
    }

    fn lambda(&mut self, node: Node<'t>) -> bool {
        let params = self.params(node);
        let at = self.names.iter().position(|(id, _)| *id == node.id());
        let name = at.map_or("", |at| self.names.swap_remove(at).1);
        let return_type = node.child_by_field_name("return_type").map(|kind| self.kind(kind));
        let index = self.builder.open(ScopeKind::Lambda, name, params, node);
        if let Some(scope) = self.builder.scope(index) {
            scope.return_type = return_type;
        }
        if let Some(body) = node.child_by_field_name("body").filter(|body| body.kind() != "statement_block") {
            let body = self.lower(body, 0);
            self.builder.returned(body);
        }
        true
    }

    fn params(&self, node: Node<'t>) -> Vec<Param> {
        if let Some(name) = node.child_by_field_name("parameter") {
            return vec![Param { name: self.builder.text_of(name).to_owned(), ..Param::default() }];
        }
        let list = node.child_by_field_name("parameters");
        let param = |node: Node<'t>| {
            let pattern = match node.kind() {
                "assignment_pattern" => node.child_by_field_name("left"),
                "identifier" => Some(node),
                _ => node.child_by_field_name("pattern"),
            };
            let default = node.child_by_field_name("value").or_else(|| node.child_by_field_name("right"));
            Param {
                name: pattern.map_or("", |pattern| self.builder.text_of(pattern)).to_owned(),
                kind: node.child_by_field_name("type").map(|kind| self.kind(kind)),
                default: default.map(|value| self.lower(value, 0)),
            }
        };
        list.into_iter().flat_map(children).map(param).collect()
    }

    /// A type as a path, without what only wraps it.
    fn kind(&self, node: Node<'t>) -> Value {
        let mut text = self.builder.text_of(node).trim_start_matches(':').trim();
        for _ in 0..4 {
            text = text.split('|').next().unwrap_or(text).trim();
            let Some((outer, inner)) = text.split_once('<') else { break };
            if !WRAPPERS.contains(&outer) {
                text = outer;
                break;
            }
            text = inner.strip_suffix('>').unwrap_or(inner);
        }
        Value::path(text)
    }

    fn args(&self, node: Node<'t>, depth: usize) -> Vec<Arg> {
        let list = node.child_by_field_name("arguments");
        let plain = |node: Node<'t>| Arg { name: None, value: self.lower(node, depth + 1) };
        list.into_iter().flat_map(children).map(plain).collect()
    }

    fn lower(&self, node: Node<'t>, depth: usize) -> Value {
        if depth > DEPTH {
            return Value::Opaque;
        }
        let field = |name| node.child_by_field_name(name);
        let lower = |node: Node<'t>| self.lower(node, depth + 1);
        let part = |name| field(name).map_or(Value::Opaque, lower);
        match node.kind() {
            "identifier" | "this" | "import" | "super" => Value::name(self.builder.text_of(node)),
            "number" | "true" | "false" => Value::Text(self.builder.text_of(node).to_owned()),
            "member_expression" => {
                part("object").member(field("property").map_or("", |name| self.builder.text_of(name)))
            }
            "subscript_expression" => match part("index") {
                Value::Text(key) => part("object").member(key),
                index => Value::Index(Box::new(part("object")), Box::new(index)),
            },
            "call_expression" => Value::Call(Box::new(part("function")), self.args(node, depth)),
            "new_expression" => Value::Call(Box::new(part("constructor")), self.args(node, depth)),
            "string" | "template_string" => self.string(node, depth),
            "array" => Value::List(children(node).map(lower).collect()),
            "object" => Value::Map(self.pairs(node, depth)),
            "binary_expression" => {
                match field("operator").map_or("", |operator| self.builder.text_of(operator)) {
                    "+" => joined(vec![part("left"), part("right")]),
                    "??" | "||" | "&&" => Value::Choice(vec![part("left"), part("right")]),
                    _ => Value::Opaque,
                }
            }
            "ternary_expression" => Value::Choice(vec![part("consequence"), part("alternative")]),
            "arrow_function" | "function_expression" | "generator_function" => {
                Value::Lambda(self.builder.extent(node).0)
            }
            "parenthesized_expression" | "await_expression" | "non_null_expression" => {
                children(node).last().map_or(Value::Opaque, lower)
            }
            "as_expression" | "satisfies_expression" => children(node).next().map_or(Value::Opaque, lower),
            "assignment_expression" => part("right"),
            _ => Value::Opaque,
        }
    }

    fn pairs(&self, node: Node<'t>, depth: usize) -> Vec<(String, Value)> {
        let pair = |node: Node<'t>| match node.kind() {
            "pair" => {
                let key = node.child_by_field_name("key")?;
                let key = match self.lower(key, depth + 1) {
                    Value::Text(text) => text,
                    _ => self.builder.text_of(key).to_owned(),
                };
                Some((key, self.lower(node.child_by_field_name("value")?, depth + 1)))
            }
            "shorthand_property_identifier" => {
                let name = self.builder.text_of(node);
                Some((name.to_owned(), Value::name(name)))
            }
            "method_definition" => {
                let name = self.builder.text_of(node.child_by_field_name("name")?);
                Some((name.to_owned(), Value::Lambda(self.builder.extent(node).0)))
            }
            _ => None,
        };
        children(node).filter_map(pair).collect()
    }

    fn string(&self, node: Node<'t>, depth: usize) -> Value {
        let part = |node: Node<'t>| match node.kind() {
            "string_fragment" => Some(Value::Text(self.builder.text_of(node).to_owned())),
            "escape_sequence" => Some(unescaped(self.builder.text_of(node))),
            "template_substitution" => {
                Some(children(node).next().map_or(Value::Opaque, |inner| self.lower(inner, depth + 1)))
            }
            _ => None,
        };
        joined(children(node).filter_map(part).collect())
    }
}

fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression" | "generator_function")
}
