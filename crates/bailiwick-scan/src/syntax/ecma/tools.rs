//! Where tools are defined: by a call that registers one, by a handler of calls, or as an object that has a tool's name,
//! schema and handler.

use tree_sitter::Node;

use super::Ecma;
use crate::model::{Arg, Value};
use crate::syntax::builder::{self, children};

/// What the handler of a tool that is an object is called.
const HANDLERS: [&str; 9] =
    ["handle", "handler", "execute", "run", "call", "callback", "invoke", "func", "fn"];
/// What its schema is called.
const SCHEMAS: [&str; 6] =
    ["inputSchema", "input_schema", "parameters", "paramsSchema", "argsSchema", "inputs"];
/// Under which key an object keeps what it says of itself apart from its handler.
const INNER: [&str; 5] = ["schema", "tool", "definition", "spec", "config"];

impl<'t> Ecma<'t> {
    /// `server.tool(name, …, handler)`, `registerTool`, `addTool({ name, execute })`, `setRequestHandler(schema, handler)`.
    pub(super) fn tool(&mut self, callee: &Value, args: &[Arg], node: Node<'t>) {
        let Value::Member(_, method) = callee else { return };
        let first = args.first().map(|arg| &arg.value);
        let (here, extent) = (self.builder.here(), self.builder.extent(node));
        let (name, handler) = match (method.as_str(), first) {
            ("tool" | "registerTool", Some(name)) if args.len() > 1 => {
                (name.clone(), args.last().map(|arg| arg.value.clone()))
            }
            ("addTool" | "registerTool", Some(Value::Map(pairs))) => {
                let list = node.child_by_field_name("arguments");
                self.registered.extend(list.and_then(|list| children(list).next()).map(|first| first.id()));
                (part(pairs, &["name"]).unwrap_or(Value::Opaque), part(pairs, &HANDLERS))
            }
            ("setRequestHandler", Some(schema)) => {
                let is_call = schema.last_name() == Some("CallToolRequestSchema")
                    || schema.as_text() == Some("tools/call");
                if !is_call {
                    return;
                }
                let mut tool = builder::tool(Value::Opaque, "tools/call", here, extent);
                tool.handlers.extend(args.get(1).into_iter().flat_map(|arg| handlers(&arg.value)));
                tool.dispatches = true;
                return self.builder.tool(tool);
            }
            _ => return,
        };
        let fallback = name.last_name().unwrap_or("tool").to_owned();
        let mut tool = builder::tool(name, &fallback, here, extent);
        tool.handlers.extend(handler);
        self.builder.tool(tool);
    }

    /// `{ name, description, inputSchema, handler }`, and `{ schema: { name, … }, handle }`.
    pub(super) fn record(&mut self, node: Node<'t>) {
        let keys: Vec<&str> = children(node).filter_map(|part| self.key(part)).collect();
        let has = |names: &[&str]| keys.iter().any(|key| names.contains(key));
        if !has(&HANDLERS) || self.registered.contains(&node.id()) {
            return;
        }
        let is_whole = has(&["name"]) && has(&SCHEMAS);
        if !is_whole && !has(&INNER) {
            return;
        }
        let Value::Map(pairs) = self.lower(node, 0) else { return };
        let name = if is_whole { part(&pairs, &["name"]) } else { part(&pairs, &INNER).and_then(inner_name) };
        let (Some(name), Some(handler)) = (name, part(&pairs, &HANDLERS)) else { return };
        if !matches!(handler, Value::Lambda(_) | Value::Name(_) | Value::Member(..)) {
            return;
        }
        let (here, extent) = (self.builder.here(), self.builder.extent(node));
        let fallback = name.last_name().unwrap_or("tool").to_owned();
        let mut tool = builder::tool(name, &fallback, here, extent);
        tool.handlers.push(handler);
        tool.is_record = true;
        self.builder.tool(tool);
    }

    /// What stands in front of the colon of a part of an object.
    fn key(&self, part: Node<'t>) -> Option<&'t str> {
        let named = match part.kind() {
            "pair" => part.child_by_field_name("key")?,
            "method_definition" => part.child_by_field_name("name")?,
            "shorthand_property_identifier" => part,
            _ => return None,
        };
        Some(self.builder.text_of(named).trim_matches(['"', '\'']))
    }
}

fn part(pairs: &[(String, Value)], names: &[&str]) -> Option<Value> {
    pairs.iter().find(|(key, _)| names.contains(&&**key)).map(|(_, value)| value.clone())
}

/// The name in an object that says what a tool is.
fn inner_name(value: Value) -> Option<Value> {
    let Value::Map(pairs) = value else { return None };
    let says = |names: &[&str]| pairs.iter().any(|(key, _)| names.contains(&&**key));
    if says(&SCHEMAS) || says(&["description"]) { part(&pairs, &["name"]) } else { None }
}

/// A handler, and what is handed to a function that makes one of it: `withLogging(async (request) => …)`.
fn handlers(value: &Value) -> Vec<Value> {
    let mut all = vec![value.clone()];
    if let Value::Call(_, args) = value {
        let is_handler =
            |value: &&Value| matches!(value, Value::Lambda(_) | Value::Name(_) | Value::Call(..));
        all.extend(args.iter().map(|arg| &arg.value).filter(is_handler).flat_map(handlers));
    }
    all
}
