//! Rust.
//!
//! What stands between the brackets of a macro is read as the arguments of a call, as far as it can be.

use tree_sitter::{Node, Tree};

use super::builder::{self, Builder, DEPTH, child, children, joined, unescaped};
use super::{Front, Role, roles, walk};
use crate::model::{Arg, Language, Param, ScopeKind, Unit, Value};
use crate::parse::{self, Grammar};

/// Types that stand for what is inside them.
const WRAPPERS: [&str; 12] = [
    "Arc", "AsRef", "Box", "Cow", "Into", "Mutex", "OnceLock", "Option", "Rc", "RefCell", "Result", "RwLock",
];
/// How deep macros inside of macros are read.
const MACROS: usize = 4;
/// What makes the inside of a macro a text of its own.
const OPENING: &str = "fn m(){m(";

pub(super) fn read(text: &str, tree: &Tree) -> Unit {
    let mut front = Rust { builder: Builder::new(Language::Rust, text), attributes: Vec::new(), macros: 0 };
    walk(tree, roles(Grammar::Rust, role), &mut front);
    front.builder.unit
}

fn role(kind: &str) -> Role {
    match kind {
        "assignment_expression" => Role::Assign,
        "call_expression" => Role::Call,
        "impl_item" | "struct_item" | "trait_item" | "enum_item" => Role::Class,
        "let_declaration" | "const_item" | "static_item" => Role::Declare,
        "attribute_item" => Role::Export,
        "foreign_mod_item" => Role::Foreign,
        "function_item" => Role::Function,
        "use_declaration" => Role::Import,
        "closure_expression" => Role::Lambda,
        "macro_invocation" => Role::Macro,
        "mod_item" => Role::Module,
        "return_expression" => Role::Return,
        _ => Role::Nothing,
    }
}

struct Rust<'t> {
    builder: Builder<'t>,
    /// Attributes of the item that comes next: their name and their text.
    attributes: Vec<(&'t str, &'t str)>,
    macros: usize,
}

impl<'t> Front<'t> for Rust<'t> {
    fn enter(&mut self, role: Role, node: Node<'t>) -> bool {
        match role {
            Role::Assign => self.assign(node),
            Role::Call => self.call(node),
            Role::Class => return self.class(node),
            Role::Declare => self.declare(node),
            Role::Export => self.attribute(node),
            Role::Foreign => self.foreign(node),
            Role::Function => return self.function(node),
            Role::Import => {
                if let Some(argument) = node.child_by_field_name("argument") {
                    self.import("", argument, 0);
                }
            }
            Role::Lambda => return self.lambda(node),
            Role::Macro => self.inside_macro(node),
            Role::Module => return self.module(node),
            Role::Return => {
                if let Some(value) = children(node).next() {
                    let value = self.lower(value, 0);
                    self.builder.returned(value);
                }
            }
            Role::Nothing
            | Role::Access
            | Role::Branch
            | Role::Field
            | Role::Package
            | Role::Record
            | Role::With => {}
        }
        false
    }

    fn leave(&mut self, role: Role, _: Node<'t>) {
        match role {
            Role::Class | Role::Module => self.builder.close_class(),
            _ => self.builder.close(),
        }
    }
}

impl<'t> Rust<'t> {
    fn assign(&mut self, node: Node<'t>) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        let value = self.lower(right, 0);
        match left.kind() {
            "identifier" => {
                let name = self.builder.text_of(left);
                self.builder.rebind(name, value);
            }
            "field_expression" if self.builder.text_of(left).starts_with("self.") => {
                let name = left.child_by_field_name("field").map_or("", |name| self.builder.text_of(name));
                self.builder.field(name, value);
            }
            _ => {}
        }
    }

    fn call(&mut self, node: Node<'t>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let (callee, args) = (self.lower(function, 0), self.args(node, 0));
        self.builder.call(callee, args, node);
    }

    fn class(&mut self, node: Node<'t>) -> bool {
        self.attributes.clear();
        let Some(name) = node.child_by_field_name("name").or_else(|| node.child_by_field_name("type")) else {
            return false;
        };
        let name = bare_type(self.builder.text_of(name));
        let name = name.rsplit('.').next().unwrap_or(&name).to_owned();
        self.builder.open_class(&name);
        let fields = node.child_by_field_name("body").filter(|_| node.kind() == "struct_item");
        for field in fields.into_iter().flat_map(children) {
            let part = |name| field.child_by_field_name(name);
            if let (Some(name), Some(kind)) = (part("name"), part("type")) {
                self.builder.field_type(self.builder.text_of(name), self.kind(kind));
            }
        }
        let of_trait =
            node.child_by_field_name("trait").map_or("", |of_trait| self.builder.text_of(of_trait));
        if of_trait.rsplit("::").next() == Some("Tool") {
            self.tool_trait(&name, node);
        }
        true
    }

    /// `impl Tool for X`: the name, the handler and the policy are methods.
    fn tool_trait(&mut self, class: &str, node: Node<'t>) {
        let method = |name: &str| Value::name(class).member(name);
        let (here, extent) = (self.builder.here(), self.builder.extent(node));
        let mut tool = builder::tool(Value::Call(Box::new(method("name")), Vec::new()), class, here, extent);
        tool.handlers.push(method("invoke"));
        let items = node.child_by_field_name("body").into_iter().flat_map(children);
        let mut required = items.filter(|item| {
            item.child_by_field_name("name").is_some_and(|name| self.builder.text_of(name) == "required")
        });
        tool.declared = required.next().and_then(|item| self.required_lines(item));
        self.builder.tool(tool);
    }

    /// The capability strings of a `required` method; `None` if it says it in another way.
    fn required_lines(&self, item: Node<'t>) -> Option<Vec<String>> {
        let text = self.builder.text_of(item);
        if !text.contains("demand_lines(") && !text.contains("CapabilitySet::new(") {
            return None;
        }
        let mut lines = Vec::new();
        let mut cursor = item.walk();
        loop {
            let node = cursor.node();
            if node.kind() == "string_literal"
                && let Value::Text(line) = self.lower(node, 0)
            {
                lines.push(line);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() || cursor.node() == item {
                    return Some(lines);
                }
            }
        }
    }

    fn declare(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("pattern").or_else(|| node.child_by_field_name("name"))
        else {
            return;
        };
        let value = node.child_by_field_name("value").map_or(Value::Opaque, |value| self.lower(value, 0));
        let kind = node.child_by_field_name("type").map(|kind| self.kind(kind));
        let names: Vec<Node<'t>> =
            if name.kind() == "identifier" { vec![name] } else { children(name).collect() };
        let whole = names.len() == 1 && name.kind() != "tuple_pattern";
        for name in names.into_iter().filter(|name| name.kind() == "identifier") {
            let name = self.builder.text_of(name);
            if self.builder.in_class_body() {
                self.builder.field(name, value.clone());
                continue;
            }
            self.builder.bind(name, if whole { value.clone() } else { Value::Opaque });
            if let Some(kind) = kind.clone() {
                self.builder.declare(name, kind);
            }
        }
    }

    fn attribute(&mut self, node: Node<'t>) {
        let Some(attribute) = children(node).next() else { return };
        let name = children(attribute).next().map_or("", |name| self.builder.text_of(name));
        self.attributes.push((name.rsplit("::").next().unwrap_or(name), self.builder.text_of(attribute)));
    }

    fn foreign(&mut self, node: Node<'t>) {
        for item in node.child_by_field_name("body").into_iter().flat_map(children) {
            let Some(name) = item.child_by_field_name("name") else { continue };
            let index = self.builder.open(ScopeKind::Function, self.builder.text_of(name), Vec::new(), item);
            if let Some(scope) = self.builder.scope(index) {
                scope.foreign = true;
            }
            self.builder.close();
        }
    }

    fn function(&mut self, node: Node<'t>) -> bool {
        if self.macros > 0 && node.start_byte() == 0 {
            // The one that was put around the inside of a macro.
            return false;
        }
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let params = self.params(node);
        let return_type = node.child_by_field_name("return_type").map(|kind| self.kind(kind));
        let attributes = std::mem::take(&mut self.attributes);
        let (outer, extent) = (self.builder.here(), self.builder.extent(node));
        let index = self.builder.open(ScopeKind::Function, name, params, node);
        if let Some(scope) = self.builder.scope(index) {
            scope.return_type = return_type;
        }
        if let Some((_, text)) = attributes.iter().find(|(name, _)| *name == "tool") {
            let named = attribute_name(text).unwrap_or(name);
            let mut tool = builder::tool(Value::Text(named.to_owned()), name, outer, extent);
            tool.scopes.push(index);
            self.builder.tool(tool);
        }
        let last = node.child_by_field_name("body").and_then(|body| children(body).last());
        if let Some(last) = last.filter(|last| !last.kind().ends_with("_statement")) {
            let value = self.lower(last, 0);
            self.builder.returned(value);
        }
        true
    }

    fn import(&mut self, prefix: &str, node: Node<'t>, depth: usize) {
        if depth > DEPTH {
            return;
        }
        let text =
            |node: Option<Node<'t>>| node.map(|node| dotted(self.builder.text_of(node))).unwrap_or_default();
        let full = |path: &str| match (prefix, path) {
            ("", path) => path.to_owned(),
            (prefix, "self") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        match node.kind() {
            "use_list" => children(node).for_each(|part| self.import(prefix, part, depth + 1)),
            "scoped_use_list" => {
                let path = full(&text(node.child_by_field_name("path")));
                if let Some(list) = node.child_by_field_name("list") {
                    self.import(&path, list, depth + 1);
                }
            }
            "use_as_clause" => {
                let path = full(&text(node.child_by_field_name("path")));
                let alias = node.child_by_field_name("alias").map(|alias| self.builder.text_of(alias));
                self.used(alias, &path);
            }
            "use_wildcard" => {
                let path = full(&text(children(node).next()));
                self.builder.import(None, &path, None);
            }
            _ => {
                let path = full(&text(Some(node)));
                let local = path.rsplit('.').next().map(str::to_owned);
                self.used(local.as_deref(), &path);
            }
        }
    }

    fn used(&mut self, local: Option<&str>, path: &str) {
        match path.rsplit_once('.') {
            Some((module, name)) => self.builder.import(local, module, Some(name)),
            None => self.builder.import(local, path, None),
        }
    }

    fn lambda(&mut self, node: Node<'t>) -> bool {
        let list = node.child_by_field_name("parameters");
        let param = |node: Node<'t>| Param {
            name: self.builder.text_of(node.child_by_field_name("pattern").unwrap_or(node)).to_owned(),
            kind: node.child_by_field_name("type").map(|kind| self.kind(kind)),
            default: None,
        };
        let params = list.into_iter().flat_map(children).map(param).collect();
        self.builder.open(ScopeKind::Lambda, "", params, node);
        if let Some(body) = node.child_by_field_name("body") {
            let body = self.lower(body, 0);
            self.builder.returned(body);
        }
        true
    }

    fn inside_macro(&mut self, node: Node<'t>) {
        let Some(tokens) = child(node, "token_tree").filter(|_| self.macros < MACROS) else { return };
        let inner = self.builder.text_of(tokens);
        let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
        if !inner.contains('(') {
            return;
        }
        let text = format!("{OPENING}{inner})}}");
        let Ok(tree) = parse::parse(Grammar::Rust, &text) else { return };
        let start = isize::try_from(self.builder.extent(tokens).0 + 1).unwrap_or(isize::MAX);
        let shift = start.saturating_sub_unsigned(OPENING.len());
        let inside = self.builder.continued(&text, shift);
        let mut front = Rust { builder: inside, attributes: Vec::new(), macros: self.macros + 1 };
        walk(&tree, roles(Grammar::Rust, role), &mut front);
        self.builder.resume(front.builder);
    }

    fn module(&mut self, node: Node<'t>) -> bool {
        self.attributes.clear();
        let Some(name) = node.child_by_field_name("name") else { return false };
        if node.child_by_field_name("body").is_none() {
            return false;
        }
        self.builder.open_class(self.builder.text_of(name));
        true
    }

    fn params(&self, node: Node<'t>) -> Vec<Param> {
        let list = node.child_by_field_name("parameters");
        let param = |node: Node<'t>| {
            let pattern = node.child_by_field_name("pattern")?;
            let name = self.builder.text_of(pattern).trim_start_matches("mut ").to_owned();
            let kind = node.child_by_field_name("type").map(|kind| self.kind(kind));
            Some(Param { name, kind, default: None })
        };
        list.into_iter().flat_map(children).filter_map(param).collect()
    }

    fn kind(&self, node: Node<'t>) -> Value {
        marked_path(&bare_type(self.builder.text_of(node)).replace('.', "::"))
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
            "self" => Value::name("this"),
            "identifier" | "type_identifier" => Value::name(self.builder.text_of(node)),
            "scoped_identifier" | "scoped_type_identifier" => marked_path(self.builder.text_of(node)),
            "integer_literal" => Value::Text(self.builder.text_of(node).to_owned()),
            "field_expression" => {
                part("value").member(field("field").map_or("", |name| self.builder.text_of(name)))
            }
            "index_expression" => Value::Index(
                Box::new(children(node).next().map_or(Value::Opaque, lower)),
                Box::new(children(node).nth(1).map_or(Value::Opaque, lower)),
            ),
            "call_expression" => Value::Call(Box::new(part("function")), self.args(node, depth)),
            "generic_function" => part("function"),
            "boolean_literal" => Value::Text(self.builder.text_of(node).to_owned()),
            "struct_expression" => Value::Call(Box::new(part("name")), Vec::new()),
            "string_literal" | "raw_string_literal" => self.string(node),
            "array_expression" | "tuple_expression" => Value::List(children(node).map(lower).collect()),
            "reference_expression" => part("value"),
            "try_expression" | "await_expression" | "parenthesized_expression" | "unsafe_block" | "block" => {
                children(node).last().map_or(Value::Opaque, lower)
            }
            "closure_expression" => Value::Lambda(self.builder.extent(node).0),
            "macro_invocation" => self.formatted(node),
            _ => Value::Opaque,
        }
    }

    /// `format!("…{name}…")` as its parts; other macros are opaque.
    fn formatted(&self, node: Node<'t>) -> Value {
        let is_format =
            node.child_by_field_name("macro").is_some_and(|name| self.builder.text_of(name) == "format");
        let tokens = child(node, "token_tree").filter(|_| is_format);
        let Some(Value::Text(text)) =
            tokens.and_then(|tokens| child(tokens, "string_literal")).map(|text| self.string(text))
        else {
            return Value::Opaque;
        };
        let mut parts = Vec::new();
        for (at, piece) in text.split('{').enumerate() {
            let (name, rest) = if at == 0 { ("", piece) } else { piece.split_once('}').unwrap_or(("", "")) };
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if at > 0 {
                parts.push(if is_name { Value::name(name) } else { Value::Opaque });
            }
            parts.push(Value::Text(rest.to_owned()));
        }
        joined(parts)
    }

    fn string(&self, node: Node<'t>) -> Value {
        let part = |part: Node<'t>| match part.kind() {
            "escape_sequence" => unescaped(self.builder.text_of(part)),
            _ => Value::Text(self.builder.text_of(part).to_owned()),
        };
        joined(children(node).map(part).collect())
    }
}

/// A path of names; the mark says that it may begin with a crate.
fn marked_path(text: &str) -> Value {
    Value::path(&format!("::{}", dotted(text)))
}

/// `a::b::<T>::c` as `a.b.c`.
fn dotted(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0_usize;
    for c in path.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain.split("::").filter(|name| !name.is_empty()).collect::<Vec<_>>().join(".")
}

/// The path of a type, without references and without what only wraps it.
fn bare_type(text: &str) -> String {
    let mut text = text.trim();
    for _ in 0..8 {
        let bare = ["&", "mut ", "dyn ", "impl ", "'static ", "'a ", "'_ "]
            .iter()
            .fold(text, |text, mark| text.trim_start_matches(mark).trim_start());
        let Some((outer, inner)) = bare.split_once('<') else { return dotted(bare) };
        let last = outer.rsplit("::").next().unwrap_or(outer).trim();
        if !WRAPPERS.contains(&last) {
            return dotted(outer);
        }
        let inner = inner.strip_suffix('>').unwrap_or(inner);
        text = if inner.split(',').next().unwrap_or(inner).contains('<') {
            inner
        } else {
            inner.split(',').next().unwrap_or(inner)
        };
    }
    dotted(text)
}

/// The name in `tool(name = "…")`.
fn attribute_name(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("name")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(name, _)| name)
}
