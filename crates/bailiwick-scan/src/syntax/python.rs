//! Python.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree};

use super::builder::{self, Builder, DEPTH, child, children, joined, unescaped};
use super::{Front, Role, roles, walk};
use crate::model::{Arg, Language, Param, ScopeKind, Unit, Value};
use crate::parse::Grammar;

/// Names of what a dispatcher compares with the names of tools.
const TOOL_NAMES: [&str; 3] = ["name", "tool", "tool_name"];
/// Types that stand for what is inside them.
const WRAPPERS: [&str; 7] = ["Annotated", "Awaitable", "ClassVar", "Final", "Optional", "Required", "Union"];

pub(super) fn read(text: &str, tree: &Tree) -> Unit {
    let builder = Builder::new(Language::Python, text);
    let mut front =
        Python { builder, decorators: Vec::new(), labels: BTreeMap::new(), targets: BTreeSet::new() };
    walk(tree, roles(Grammar::Python, role), &mut front);
    front.builder.unit
}

fn role(kind: &str) -> Role {
    match kind {
        "subscript" => Role::Access,
        "assignment" => Role::Assign,
        "if_statement" | "elif_clause" | "case_clause" | "block" => Role::Branch,
        "call" => Role::Call,
        "class_definition" => Role::Class,
        "for_statement" | "for_in_clause" => Role::Declare,
        "decorated_definition" => Role::Export,
        "function_definition" => Role::Function,
        "import_statement" | "import_from_statement" => Role::Import,
        "lambda" => Role::Lambda,
        "dictionary_splat" => Role::Record,
        "return_statement" => Role::Return,
        "as_pattern" => Role::With,
        _ => Role::Nothing,
    }
}

struct Python<'t> {
    builder: Builder<'t>,
    /// Of the definition that comes next.
    decorators: Vec<Value>,
    /// Blocks that are for one tool, by their node.
    labels: BTreeMap<usize, String>,
    /// Left sides, which are not read.
    targets: BTreeSet<usize>,
}

impl<'t> Front<'t> for Python<'t> {
    fn enter(&mut self, role: Role, node: Node<'t>) -> bool {
        match role {
            Role::Access => self.access(node),
            Role::Assign => self.assign(node),
            Role::Branch => return self.branch(node),
            Role::Call => self.call(node),
            Role::Class => return self.class(node),
            Role::Declare => self.loop_variable(node),
            Role::Export => self.decorators = self.decorators_of(node),
            Role::Function => return self.function(node),
            Role::Import => self.import(node),
            Role::Lambda => return self.lambda(node),
            Role::Return => {
                if let Some(value) = children(node).next() {
                    let value = self.lower(value, 0);
                    self.builder.returned(value);
                }
            }
            Role::Record => children(node).for_each(|inner| self.whole_environment(inner)),
            Role::With => self.with(node),
            Role::Nothing | Role::Field | Role::Foreign | Role::Macro | Role::Module | Role::Package => {}
        }
        false
    }

    fn leave(&mut self, role: Role, _: Node<'t>) {
        if role == Role::Class { self.builder.close_class() } else { self.builder.close() }
    }
}

impl<'t> Python<'t> {
    fn access(&mut self, node: Node<'t>) {
        let (Some(object), Some(index)) =
            (node.child_by_field_name("value"), node.child_by_field_name("subscript"))
        else {
            return;
        };
        if self.builder.text_of(object).ends_with("environ") && !self.targets.contains(&node.id()) {
            let (object, index) = (self.lower(object, 0), self.lower(index, 0));
            self.builder.call(object.member("[]"), vec![Arg { name: None, value: index }], node);
        }
    }

    fn assign(&mut self, node: Node<'t>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        if left.kind() == "subscript" {
            self.targets.insert(left.id());
        }
        let kind = node.child_by_field_name("type").map(|kind| self.kind(kind));
        let value = node.child_by_field_name("right").map(|right| self.lower(right, 0));
        let in_class = self.builder.in_class_body();
        match left.kind() {
            "identifier" if in_class => self.member_field(self.builder.text_of(left), kind, value),
            "identifier" => {
                let name = self.builder.text_of(left);
                if let Some(kind) = kind {
                    self.builder.declare(name, kind);
                }
                if let Some(value) = value {
                    self.builder.bind(name, value);
                }
            }
            "attribute" => {
                let object = left.child_by_field_name("object").map(|object| self.builder.text_of(object));
                let name = left.child_by_field_name("attribute").map(|name| self.builder.text_of(name));
                if let (Some("self" | "cls"), Some(name)) = (object, name) {
                    self.member_field(name, kind, value);
                }
            }
            _ => {
                for name in children(left).filter(|name| name.kind() == "identifier") {
                    let name = self.builder.text_of(name);
                    self.builder.bind(name, Value::Opaque);
                }
            }
        }
    }

    fn member_field(&mut self, name: &str, kind: Option<Value>, value: Option<Value>) {
        if let Some(kind) = kind {
            self.builder.field_type(name, kind);
        }
        if let Some(value) = value {
            self.builder.field(name, value);
        }
    }

    fn branch(&mut self, node: Node<'t>) -> bool {
        if node.kind() == "block" {
            let Some(label) = self.labels.remove(&node.id()) else { return false };
            self.builder.open(ScopeKind::Branch(label), "", Vec::new(), node);
            return true;
        }
        let label = match node.kind() {
            "case_clause" => children(node)
                .next()
                .and_then(|pattern| children(pattern).next())
                .and_then(|pattern| label_of(&self.lower(pattern, 0))),
            _ => node.child_by_field_name("condition").and_then(|condition| self.compared(condition)),
        };
        if let (Some(label), Some(block)) = (label, node.child_by_field_name("consequence")) {
            self.labels.insert(block.id(), label);
        }
        false
    }

    /// The name that `name == "…"` is about.
    fn compared(&self, node: Node<'t>) -> Option<String> {
        let sides: Vec<Node<'t>> = children(node).collect();
        let [left, right] = sides.as_slice() else { return None };
        if node.kind() != "comparison_operator" || !self.builder.text_of(node).contains("==") {
            return None;
        }
        let left = self.lower(*left, 0);
        let named = left.last_name().is_some_and(|name| TOOL_NAMES.contains(&name));
        let right = self.lower(*right, 0);
        named.then(|| label_of(&right)).flatten()
    }

    fn call(&mut self, node: Node<'t>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let (callee, args) = (self.lower(function, 0), self.args(node, 0));
        self.tool_by_call(&callee, &args, node);
        self.builder.call(callee, args, node);
        for arg in node.child_by_field_name("arguments").into_iter().flat_map(children) {
            self.whole_environment(arg.child_by_field_name("value").unwrap_or(arg));
        }
    }

    /// `os.environ` where all of it goes on to somewhere else: `dict(os.environ)`, `env=os.environ`, `{**os.environ}`.
    fn whole_environment(&mut self, node: Node<'t>) {
        if matches!(self.builder.text_of(node), "os.environ" | "environ") {
            let whole = self.lower(node, 0);
            self.builder.call(whole.member("[*]"), Vec::new(), node);
        }
    }

    /// `mcp.add_tool(handler)` and `mcp.tool()(handler)`.
    fn tool_by_call(&mut self, callee: &Value, args: &[Arg], node: Node<'t>) {
        let named = match callee {
            Value::Member(_, name) if name == "add_tool" => named_arg(args),
            Value::Call(inner, given) if inner.last_name() == Some("tool") => tool_name(given),
            _ => return,
        };
        let Some(handler) = args.first().map(|arg| arg.value.clone()) else { return };
        let fallback = handler.last_name().unwrap_or("tool").to_owned();
        let name = named.unwrap_or_else(|| Value::Text(fallback.clone()));
        let (here, extent) = (self.builder.here(), self.builder.extent(node));
        let mut tool = builder::tool(name, &fallback, here, extent);
        tool.handlers.push(handler);
        self.builder.tool(tool);
    }

    fn class(&mut self, node: Node<'t>) -> bool {
        self.decorators.clear();
        let Some(name) = node.child_by_field_name("name") else { return false };
        let index = self.builder.open_class(self.builder.text_of(name));
        if let Some(bases) = node.child_by_field_name("superclasses") {
            let bases: Vec<Value> = children(bases).map(|base| self.lower(base, 0)).collect();
            self.builder.class_mut(index).into_iter().for_each(|class| class.bases = bases.clone());
        }
        true
    }

    fn loop_variable(&mut self, node: Node<'t>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        let names: Vec<Node<'t>> =
            if left.kind() == "identifier" { vec![left] } else { children(left).collect() };
        for name in names.into_iter().filter(|name| name.kind() == "identifier") {
            let name = self.builder.text_of(name);
            self.builder.bind(name, Value::Opaque);
        }
    }

    fn decorators_of(&self, node: Node<'t>) -> Vec<Value> {
        let decorators = children(node).filter(|child| child.kind() == "decorator");
        decorators.filter_map(|node| children(node).next()).map(|node| self.lower(node, 0)).collect()
    }

    fn function(&mut self, node: Node<'t>) -> bool {
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let params = node.child_by_field_name("parameters").map(|list| self.params(list)).unwrap_or_default();
        let return_type = node.child_by_field_name("return_type").map(|kind| self.kind(kind));
        let decorators = std::mem::take(&mut self.decorators);
        let outer = self.builder.here();
        let class = self.builder.class().filter(|_| self.builder.in_class_body());
        let index = self.builder.open(ScopeKind::Function, name, params, node);
        if let Some(class) = class.filter(|_| name == "__init__")
            && let Some(class) = self.builder.class_mut(class)
        {
            class.maker = Some(index);
        }
        for decorator in &decorators {
            let Some(word @ ("tool" | "call_tool")) = decorator.last_name() else { continue };
            let named = if let Value::Call(_, args) = decorator { tool_name(args) } else { None };
            let named = named.unwrap_or_else(|| Value::Text(name.to_owned()));
            let mut tool = builder::tool(named, name, outer, self.builder.extent(node));
            tool.scopes.push(index);
            tool.dispatches = word == "call_tool";
            self.builder.tool(tool);
        }
        if let Some(scope) = self.builder.scope(index) {
            (scope.return_type, scope.decorators) = (return_type, decorators);
        }
        true
    }

    fn import(&mut self, node: Node<'t>) {
        let module = node.child_by_field_name("module_name").map(|module| self.builder.text_of(module));
        let mut cursor = node.walk();
        let names: Vec<Node<'t>> = node.children_by_field_name("name", &mut cursor).collect();
        for name in names {
            let (path, alias) = if name.kind() == "aliased_import" {
                let part = |field| name.child_by_field_name(field).map(|part| self.builder.text_of(part));
                (part("name").unwrap_or_default(), part("alias"))
            } else {
                (self.builder.text_of(name), None)
            };
            match module {
                Some(module) => self.builder.import(Some(alias.unwrap_or(path)), module, Some(path)),
                None => {
                    let first = path.split('.').next().unwrap_or(path);
                    let (local, module) = alias.map_or((first, first), |alias| (alias, path));
                    self.builder.import(Some(local), module, None);
                }
            }
        }
        if let (Some(module), Some(_)) = (module, child(node, "wildcard_import")) {
            self.builder.import(None, module, None);
        }
    }

    fn lambda(&mut self, node: Node<'t>) -> bool {
        let params = node.child_by_field_name("parameters").map(|list| self.params(list)).unwrap_or_default();
        self.builder.open(ScopeKind::Lambda, "", params, node);
        if let Some(body) = node.child_by_field_name("body") {
            let body = self.lower(body, 0);
            self.builder.returned(body);
        }
        true
    }

    fn with(&mut self, node: Node<'t>) {
        let (Some(value), Some(alias)) = (children(node).next(), node.child_by_field_name("alias")) else {
            return;
        };
        let value = self.lower(value, 0);
        let name = self.builder.text_of(alias);
        self.builder.bind(name, value);
    }

    fn params(&self, list: Node<'t>) -> Vec<Param> {
        let mut params = Vec::new();
        for node in children(list) {
            let name = match node.kind() {
                "identifier" => Some(node),
                "typed_parameter" => child(node, "identifier"),
                _ => node.child_by_field_name("name"),
            };
            let Some(name) = name.map(|name| self.builder.text_of(name)) else { continue };
            if matches!(name, "self" | "cls") {
                continue;
            }
            let kind = node.child_by_field_name("type").map(|kind| self.kind(kind));
            let default = node.child_by_field_name("value").map(|value| self.lower(value, 0));
            params.push(Param { name: name.to_owned(), kind, default });
        }
        params
    }

    /// A type as a path, without what only wraps it.
    fn kind(&self, node: Node<'t>) -> Value {
        let text = self.builder.text_of(node).trim_matches(['"', '\'']);
        Value::path(bare_type(text, 0))
    }

    fn lower(&self, node: Node<'t>, depth: usize) -> Value {
        if depth > DEPTH {
            return Value::Opaque;
        }
        let field = |name| node.child_by_field_name(name);
        let lower = |node: Node<'t>| self.lower(node, depth + 1);
        let part = |name| field(name).map_or(Value::Opaque, lower);
        match node.kind() {
            "identifier" if matches!(self.builder.text_of(node), "self" | "cls") => Value::name("this"),
            "identifier" => Value::name(self.builder.text_of(node)),
            "integer" | "true" | "false" => Value::Text(self.builder.text_of(node).to_owned()),
            "attribute" => {
                part("object").member(field("attribute").map_or("", |name| self.builder.text_of(name)))
            }
            "subscript" => Value::Index(Box::new(part("value")), Box::new(part("subscript"))),
            "call" => Value::Call(Box::new(part("function")), self.args(node, depth)),
            "string" => self.string(node, depth),
            "concatenated_string" => joined(children(node).map(lower).collect()),
            "list" | "tuple" | "set" => Value::List(children(node).map(lower).collect()),
            "dictionary" => Value::Map(self.pairs(node, depth)),
            "binary_operator" => {
                let operator = field("operator").map_or("", |operator| self.builder.text_of(operator));
                match operator {
                    "+" => joined(vec![part("left"), part("right")]),
                    "/" => Value::Call(
                        Box::new(part("left").member("joinpath")),
                        vec![Arg { name: None, value: part("right") }],
                    ),
                    _ => Value::Opaque,
                }
            }
            "boolean_operator" => Value::Choice(vec![part("left"), part("right")]),
            "conditional_expression" => {
                let parts: Vec<Node<'t>> = children(node).collect();
                Value::Choice(
                    parts.first().into_iter().chain(parts.get(2)).map(|part| lower(*part)).collect(),
                )
            }
            "lambda" => Value::Lambda(self.builder.extent(node).0),
            "parenthesized_expression" | "await" | "as_pattern" | "expression_list" | "assignment" => {
                children(node).last().map_or(Value::Opaque, lower)
            }
            "named_expression" => part("value"),
            _ => Value::Opaque,
        }
    }

    fn args(&self, node: Node<'t>, depth: usize) -> Vec<Arg> {
        let Some(list) = node.child_by_field_name("arguments") else { return Vec::new() };
        let arg = |node: Node<'t>| {
            let is_named = node.kind() == "keyword_argument";
            let value = if is_named { node.child_by_field_name("value") } else { Some(node) };
            let name = node.child_by_field_name("name").filter(|_| is_named);
            Arg {
                name: name.map(|name| self.builder.text_of(name).to_owned()),
                value: value.map_or(Value::Opaque, |value| self.lower(value, depth + 1)),
            }
        };
        children(list).map(arg).collect()
    }

    fn pairs(&self, node: Node<'t>, depth: usize) -> Vec<(String, Value)> {
        let pair = |node: Node<'t>| {
            let key = self.lower(node.child_by_field_name("key")?, depth + 1);
            let value = self.lower(node.child_by_field_name("value")?, depth + 1);
            Some((key.as_text()?.to_owned(), value))
        };
        children(node).filter_map(pair).collect()
    }

    fn string(&self, node: Node<'t>, depth: usize) -> Value {
        let raw =
            child(node, "string_start").is_some_and(|start| self.builder.text_of(start).contains(['r', 'R']));
        let part = |node: Node<'t>| match node.kind() {
            "string_content" if raw => Some(Value::Text(self.builder.text_of(node).to_owned())),
            "string_content" => Some(unescaped(self.builder.text_of(node))),
            "interpolation" => {
                let inner = node.child_by_field_name("expression");
                Some(inner.map_or(Value::Opaque, |inner| self.lower(inner, depth + 1)))
            }
            _ => None,
        };
        joined(children(node).filter_map(part).collect())
    }
}

/// The name in `@mcp.tool("name")` or `@mcp.tool(name="name")`.
fn tool_name(args: &[Arg]) -> Option<Value> {
    named_arg(args).or_else(|| args.first().filter(|arg| arg.name.is_none()).map(|arg| arg.value.clone()))
}

fn named_arg(args: &[Arg]) -> Option<Value> {
    args.iter().find(|arg| arg.name.as_deref() == Some("name")).map(|arg| arg.value.clone())
}

fn label_of(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Member(object, name) if name == "value" => label_of(object),
        Value::Member(_, name) => Some(name.to_lowercase()),
        _ => None,
    }
}

fn bare_type(text: &str, depth: usize) -> &str {
    let text = text.split('|').next().unwrap_or(text).trim();
    let Some((outer, inner)) = text.split_once('[') else { return text };
    let outer = outer.trim();
    let last = outer.rsplit('.').next().unwrap_or(outer);
    if !WRAPPERS.contains(&last) || depth > 4 {
        return outer;
    }
    let inner = inner.strip_suffix(']').unwrap_or(inner);
    // The first of several, but not cut inside of brackets.
    let first = inner.split(',').next().unwrap_or(inner);
    bare_type(if first.contains('[') { inner } else { first }, depth + 1)
}
