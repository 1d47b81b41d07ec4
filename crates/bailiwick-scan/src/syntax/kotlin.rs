//! Kotlin.

use std::collections::BTreeSet;

use tree_sitter::{Node, Tree};

use super::builder::{self, Builder, DEPTH, child, children, joined, unescaped};
use super::{Front, Role, roles, walk};
use crate::model::{Arg, Language, Param, ScopeKind, Unit, Value};
use crate::parse::Grammar;

pub(super) fn read(text: &str, tree: &Tree) -> Unit {
    let builder = Builder::new(Language::Kotlin, text);
    let mut front = Kotlin { builder, inner: BTreeSet::new(), commands: BTreeSet::new() };
    walk(tree, roles(Grammar::Kotlin, role), &mut front);
    front.builder.unit
}

fn role(kind: &str) -> Role {
    match kind {
        "assignment" => Role::Assign,
        "call_expression" => Role::Call,
        "class_declaration" | "object_declaration" | "companion_object" => Role::Class,
        "property_declaration" => Role::Declare,
        "function_declaration" => Role::Function,
        "import" => Role::Import,
        "lambda_literal" | "anonymous_function" => Role::Lambda,
        "package_header" => Role::Package,
        "return_expression" => Role::Return,
        _ => Role::Nothing,
    }
}

struct Kotlin<'t> {
    builder: Builder<'t>,
    /// Calls that are part of the call around them: `f(x)` in `f(x) { }`.
    inner: BTreeSet<usize>,
    /// Lambdas whose value is a command that is started.
    commands: BTreeSet<usize>,
}

impl<'t> Front<'t> for Kotlin<'t> {
    fn enter(&mut self, role: Role, node: Node<'t>) -> bool {
        match role {
            Role::Assign => self.assign(node),
            Role::Call => self.call(node),
            Role::Class => return self.class(node),
            Role::Declare => self.declare(node),
            Role::Function => return self.function(node),
            Role::Import => self.import(node),
            Role::Lambda => return self.lambda(node),
            Role::Package => {
                let name = children(node).next().map_or("", |name| self.builder.text_of(name));
                self.builder.unit.package = name.to_owned();
            }
            Role::Return => {
                if let Some(value) = children(node).next() {
                    let value = self.lower(value, 0);
                    self.builder.returned(value);
                }
            }
            Role::Nothing
            | Role::Access
            | Role::Branch
            | Role::Export
            | Role::Field
            | Role::Foreign
            | Role::Macro
            | Role::Module
            | Role::Record
            | Role::With => {}
        }
        false
    }

    fn leave(&mut self, role: Role, _: Node<'t>) {
        if role == Role::Class { self.builder.close_class() } else { self.builder.close() }
    }
}

impl<'t> Kotlin<'t> {
    fn assign(&mut self, node: Node<'t>) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        let value = self.lower(right, 0);
        match self.lower(left, 0) {
            Value::Name(name) => self.builder.rebind(&name, value),
            Value::Member(object, name) if *object == Value::name("this") => self.builder.field(&name, value),
            _ => {}
        }
    }

    fn call(&mut self, node: Node<'t>) {
        if self.inner.remove(&node.id()) {
            return;
        }
        let Some(first) = children(node).next() else { return };
        if first.kind() == "call_expression" && child(node, "value_arguments").is_none() {
            self.inner.insert(first.id());
        }
        let Value::Call(callee, args) = self.lower(node, 0) else { return };
        self.tool(&callee, &args, node);
        self.builder.call(*callee, args, node);
    }

    /// `tool("name") { policy { } executor { } }`, `server.addTool(name = "name") { }` and
    /// `processTool("name", policy = toolPolicy { }) { listOf("program") }`.
    fn tool(&mut self, callee: &Value, args: &[Arg], node: Node<'t>) {
        let by_name = args.iter().find(|arg| arg.name.as_deref() == Some("name")).or(args.first());
        let (Some(word @ ("tool" | "addTool" | "processTool")), Some(name), Some(Value::Lambda(body))) =
            (callee.last_name(), by_name, args.last().map(|arg| &arg.value))
        else {
            return;
        };
        let (here, extent) = (self.builder.here(), self.builder.extent(node));
        let mut tool = builder::tool(name.value.clone(), "tool", here, extent);
        let lambda = trailing_lambda(node);
        self.commands.extend(lambda.filter(|_| word == "processTool").map(|lambda| lambda.id()));
        let blocks = lambda.map(|lambda| self.blocks(lambda)).unwrap_or_default();
        let block = |wanted: &str| blocks.iter().find(|(name, _)| *name == wanted).map(|(_, node)| *node);
        let handler = block("executor").map_or(*body, |lambda| self.builder.extent(lambda).0);
        tool.handlers.push(Value::Lambda(handler));
        let policy = block("policy").or_else(|| self.policy_argument(node));
        let lists = policy.into_iter().chain(block("grants"));
        tool.declared = lists.map(|list| self.policy(list, 0)).reduce(|all, more| [all, more].concat());
        self.builder.tool(tool);
    }

    /// The lambda in `policy = toolPolicy { }`.
    fn policy_argument(&self, node: Node<'t>) -> Option<Node<'t>> {
        let call = if child(node, "value_arguments").is_some() { node } else { children(node).next()? };
        let is_policy = |arg: &Node<'t>| {
            child(*arg, "identifier").is_some_and(|name| self.builder.text_of(name) == "policy")
        };
        let arg = child(call, "value_arguments").and_then(|list| children(list).find(is_policy))?;
        children(arg).last().and_then(trailing_lambda)
    }

    /// The calls with a lambda that stand directly in a lambda: `name { }`.
    fn blocks(&self, lambda: Node<'t>) -> Vec<(&'t str, Node<'t>)> {
        let calls = children(lambda).filter(|child| child.kind() == "call_expression");
        let block = |call: Node<'t>| {
            let name = children(call).next().filter(|name| name.kind() == "identifier")?;
            Some((self.builder.text_of(name), trailing_lambda(call)?))
        };
        calls.filter_map(block).collect()
    }

    /// The lines that a `policy { }` or `grants { }` stands for; one may stand in the other.
    fn policy(&self, policy: Node<'t>, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (subject, block) in self.blocks(policy) {
            if subject == "grants" && depth < DEPTH {
                lines.extend(self.policy(block, depth + 1));
                continue;
            }
            for call in children(block).filter(|child| child.kind() == "call_expression") {
                let Value::Call(callee, args) = self.lower(call, 0) else { continue };
                let texts: Vec<&str> = args.iter().filter_map(|arg| arg.value.as_text()).collect();
                match (subject, callee.last_name().unwrap_or_default()) {
                    ("filesystem", action @ ("read" | "write")) => {
                        lines.extend(texts.iter().map(|path| format!("fs:{action}:{path}")));
                    }
                    ("network", "allow") => {
                        lines.extend(texts.iter().map(|host| format!("net:connect:{host}")));
                    }
                    ("network", "allowAll") => lines.push("net:connect:*:*".to_owned()),
                    ("environment", "allow") => {
                        lines.extend(texts.iter().map(|name| format!("env:read:{name}")));
                    }
                    ("environment", "allowAll") => lines.push("env:read:*".to_owned()),
                    ("exec" | "process", "allow" | "allowAll") if args.is_empty() => {
                        lines.push("exec:spawn:*".to_owned())
                    }
                    ("exec" | "process", "allow" | "command" | "program") => {
                        lines.extend(texts.iter().map(|program| format!("exec:spawn:{program}")));
                    }
                    _ => {}
                }
            }
        }
        lines
    }

    fn class(&mut self, node: Node<'t>) -> bool {
        if node.kind() == "companion_object" {
            // What stands in a companion is called on the class around it.
            return false;
        }
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let index = self.builder.open_class(name);
        let bases = child(node, "delegation_specifiers").into_iter().flat_map(children);
        let bases: Vec<Value> =
            bases.map(|base| Value::path(type_path(self.builder.text_of(base)))).collect();
        let params = child(node, "primary_constructor").and_then(|list| child(list, "class_parameters"));
        let made: Vec<Param> = params.into_iter().flat_map(children).map(|node| self.param(node)).collect();
        let maker = self.builder.open(ScopeKind::Function, "<init>", made.clone(), node);
        for (param, node) in made.iter().zip(params.into_iter().flat_map(children)) {
            let text = self.builder.text_of(node);
            if text.contains("val ") || text.contains("var ") {
                self.builder.field(&param.name, Value::name(&*param.name));
                param.kind.iter().for_each(|kind| self.builder.field_type(&param.name, kind.clone()));
            }
        }
        self.builder.close();
        if let Some(class) = self.builder.class_mut(index) {
            (class.maker, class.bases) = (Some(maker), bases);
        }
        true
    }

    fn declare(&mut self, node: Node<'t>) {
        let Some(variable) = child(node, "variable_declaration") else { return };
        let Some(name) = child(variable, "identifier").map(|name| self.builder.text_of(name)) else { return };
        let kind = children(variable).find(|part| part.kind().ends_with("_type"));
        let value = children(node).find(|part| is_expression(*part)).map(|value| self.lower(value, 0));
        let kind = kind.map(|kind| Value::path(type_path(self.builder.text_of(kind))));
        let in_body = self.builder.in_class_body();
        if let Some(kind) = kind {
            if in_body {
                self.builder.field_type(name, kind);
            } else {
                self.builder.declare(name, kind);
            }
        }
        match value {
            Some(value) if in_body => self.builder.field(name, value),
            Some(value) => self.builder.bind(name, value),
            None => {}
        }
    }

    fn function(&mut self, node: Node<'t>) -> bool {
        let name = node.child_by_field_name("name").map_or("", |name| self.builder.text_of(name));
        let params = self.params(child(node, "function_value_parameters"));
        let kinds = children(node).skip_while(|part| part.kind() != "function_value_parameters");
        let kind = kinds.take_while(|part| part.kind() != "function_body").find(|part| is_type(*part));
        let return_type = kind.map(|kind| Value::path(type_path(self.builder.text_of(kind))));
        let index = self.builder.open(ScopeKind::Function, name, params, node);
        if let Some(scope) = self.builder.scope(index) {
            scope.return_type = return_type;
        }
        let body = child(node, "function_body").and_then(|body| children(body).next());
        if let Some(body) = body.filter(|body| body.kind() != "block") {
            let body = self.lower(body, 0);
            self.builder.returned(body);
        }
        true
    }

    fn import(&mut self, node: Node<'t>) {
        let Some(path) = child(node, "qualified_identifier").map(|path| self.builder.text_of(path)) else {
            return;
        };
        if self.builder.text_of(node).trim_end().ends_with('*') {
            return self.builder.import(None, path, None);
        }
        let alias = child(node, "identifier").map(|alias| self.builder.text_of(alias));
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.builder.import(Some(alias.unwrap_or(name)), module, Some(name));
    }

    fn lambda(&mut self, node: Node<'t>) -> bool {
        let list = child(node, "lambda_parameters");
        let name = |node: Node<'t>| child(node, "identifier").map_or("", |name| self.builder.text_of(name));
        let param = |node: Node<'t>| Param { name: name(node).to_owned(), ..Param::default() };
        let params = list.into_iter().flat_map(children).map(param).collect();
        self.builder.open(ScopeKind::Lambda, "", params, node);
        let last = children(node).last().filter(|last| is_expression(*last)).map(|last| self.lower(last, 0));
        if self.commands.remove(&node.id()) {
            // One that ends in several places runs whatever these say.
            let one_end = !self.builder.text_of(node).contains("return@");
            let value = last.clone().filter(|_| one_end).unwrap_or(Value::Opaque);
            self.builder.call(Value::name("ProcessBuilder"), vec![Arg { name: None, value }], node);
        }
        last.into_iter().for_each(|last| self.builder.returned(last));
        true
    }

    fn params(&self, list: Option<Node<'t>>) -> Vec<Param> {
        let mut params: Vec<Param> = Vec::new();
        for node in list.into_iter().flat_map(children) {
            match node.kind() {
                "parameter" => params.push(self.param(node)),
                "parameter_modifiers" => {}
                _ => {
                    let default = self.lower(node, 0);
                    params.last_mut().into_iter().for_each(|param| param.default = Some(default.clone()));
                }
            }
        }
        params
    }

    fn param(&self, node: Node<'t>) -> Param {
        let parts: Vec<Node<'t>> = children(node).collect();
        let kind = parts.iter().position(|part| is_type(*part));
        let default = kind.and_then(|at| parts.get(at + 1));
        Param {
            name: child(node, "identifier").map_or("", |name| self.builder.text_of(name)).to_owned(),
            kind: kind
                .and_then(|at| parts.get(at))
                .map(|kind| Value::path(type_path(self.builder.text_of(*kind)))),
            default: default.map(|value| self.lower(*value, 0)),
        }
    }

    fn args(&self, node: Node<'t>, depth: usize) -> Vec<Arg> {
        let listed = child(node, "value_arguments").into_iter().flat_map(children);
        let mut args: Vec<Arg> = listed.map(|arg| self.arg(arg, depth)).collect();
        if let Some(lambda) = trailing_lambda(node) {
            args.push(Arg { name: None, value: Value::Lambda(self.builder.extent(lambda).0) });
        }
        args
    }

    fn arg(&self, node: Node<'t>, depth: usize) -> Arg {
        let parts: Vec<Node<'t>> = children(node).collect();
        match parts.as_slice() {
            [name, value] if name.kind() == "identifier" => Arg {
                name: Some(self.builder.text_of(*name).to_owned()),
                value: self.lower(*value, depth + 1),
            },
            parts => {
                let value = parts.last().map_or(Value::Opaque, |value| self.lower(*value, depth + 1));
                Arg { name: None, value }
            }
        }
    }

    fn lower(&self, node: Node<'t>, depth: usize) -> Value {
        if depth > DEPTH {
            return Value::Opaque;
        }
        let lower = |node: Node<'t>| self.lower(node, depth + 1);
        let first = || children(node).next().map_or(Value::Opaque, lower);
        match node.kind() {
            "identifier" => Value::name(self.builder.text_of(node)),
            "this_expression" => Value::name("this"),
            "number_literal" | "boolean_literal" => Value::Text(self.builder.text_of(node).to_owned()),
            "navigation_expression" => {
                let name = children(node).last().map_or("", |name| self.builder.text_of(name));
                first().member(name)
            }
            "index_expression" => {
                Value::Index(Box::new(first()), Box::new(children(node).nth(1).map_or(Value::Opaque, lower)))
            }
            "call_expression" => match first() {
                // `f(x) { }` is one call with the lambda as its last argument.
                Value::Call(callee, mut args) if child(node, "value_arguments").is_none() => {
                    args.extend(self.args(node, depth));
                    Value::Call(callee, args)
                }
                callee => Value::Call(Box::new(callee), self.args(node, depth)),
            },
            "string_literal" | "multiline_string_literal" => self.string(node, depth),
            "binary_expression" | "additive_expression" => {
                let operator =
                    node.child_by_field_name("operator").map_or("", |sign| self.builder.text_of(sign));
                let parts: Vec<Value> = children(node).map(lower).collect();
                match operator {
                    "+" => joined(parts),
                    "?:" => Value::Choice(parts),
                    _ => Value::Opaque,
                }
            }
            "elvis_expression" => Value::Choice(children(node).map(lower).collect()),
            "unary_expression" | "parenthesized_expression" | "as_expression" => first(),
            "lambda_literal" | "anonymous_function" => Value::Lambda(self.builder.extent(node).0),
            "annotated_lambda" => first(),
            "collection_literal" => Value::List(children(node).map(lower).collect()),
            _ => Value::Opaque,
        }
    }

    /// `$name` comes out of the grammar as a lone `$` and a text that begins with the name.
    fn string(&self, node: Node<'t>, depth: usize) -> Value {
        let (mut parts, mut name_next) = (Vec::new(), false);
        for part in children(node) {
            let text = self.builder.text_of(part);
            match part.kind() {
                "interpolation" => {
                    let inner = children(part).next();
                    parts.push(inner.map_or(Value::Opaque, |inner| self.lower(inner, depth + 1)));
                }
                "string_content" if text == "$" => name_next = true,
                _ if name_next => {
                    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
                    let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
                    parts.extend([Value::name(name), Value::Text(rest.to_owned())]);
                    name_next = false;
                }
                "escape_sequence" => parts.push(unescaped(text)),
                _ => parts.push(Value::Text(text.to_owned())),
            }
        }
        joined(parts)
    }
}

/// The lambda behind a call.
fn trailing_lambda(node: Node<'_>) -> Option<Node<'_>> {
    child(node, "annotated_lambda").and_then(|lambda| child(lambda, "lambda_literal"))
}

fn is_type(node: Node<'_>) -> bool {
    matches!(node.kind(), "user_type" | "nullable_type" | "function_type" | "type")
}

fn is_expression(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("_expression") || kind.ends_with("_literal") || kind == "identifier"
}

/// The path of a type, without its parameters.
fn type_path(text: &str) -> &str {
    text.split(['<', '?', '(']).next().unwrap_or(text).trim()
}
