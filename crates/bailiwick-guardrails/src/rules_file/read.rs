//! From a document to guardrails, field by field.

use std::collections::BTreeSet;

use super::target::{Condition, Target, is_name};
use super::{Action, Examples, Guard, Guardrails, Hook, Mapping, On, RESERVED_SERVER, Validator};
use bailiwick_manifest::Declared;
use bailiwick_manifest::document::{self, Fields, Node, Value};
use bailiwick_policy::finding::{Code, Collector, Finding, Findings};

const SHAPE: Code = Code::GuardrailShape;
const UNKNOWN: Code = Code::GuardrailUnknownField;

/// The most rules of a kind: a file with more was not written by a person.
const MAX_RULES: usize = 10_000;

pub(super) fn read(text: &str) -> Result<Guardrails, Findings> {
    let node = document::parse(text)?;
    let mut found = Collector::default();
    let mut fields = Fields::from_node(&node, "the guardrails file", SHAPE)?.closed();
    let mut rails = Guardrails::default();
    if let Some(table) = fields.optional("capabilities") {
        rails.capabilities = mappings(table, &mut found);
    }
    rails.guards = rules(fields.optional("guard"), "guard", guard, &mut found);
    rails.hooks = rules(fields.optional("hook"), "hook", hook, &mut found);
    rails.validators = rules(fields.optional("validator"), "validator", validator, &mut found);
    fields.finish(UNKNOWN, &mut found);
    duplicates(&rails.validators, &mut found);
    found.finish(rails)
}

fn rules<T>(
    node: Option<&Node<'_>>,
    name: &str,
    read: fn(&Node<'_>, &mut Collector) -> Option<T>,
    found: &mut Collector,
) -> Vec<T> {
    let Some(node) = node else { return Vec::new() };
    let list = found
        .keep(node.list(SHAPE).map_err(|finding| finding.help(format!("start each one with `[[{name}]]`"))));
    let list = list.unwrap_or_default();
    if list.len() > MAX_RULES {
        found.push(Finding::new(SHAPE, format!("there are more than {MAX_RULES} rules")).at(node.span));
    }
    list.iter().take(MAX_RULES).filter_map(|node| read(node, found)).collect()
}

fn guard(node: &Node<'_>, found: &mut Collector) -> Option<Guard> {
    let mut fields = found.keep(Fields::from_node(node, "a guard", SHAPE))?.closed();
    let target = found.keep(fields.required("match", SHAPE)).and_then(|node| target(node, found));
    let message = found.keep(fields.required("message", SHAPE)).and_then(|node| filled(node, found));
    let has = fields.optional("has").map(|node| texts(node, found)).unwrap_or_default();
    let when = conditions(fields.optional("when"), found);
    let action =
        fields.optional("action").and_then(|node| choice(node, ACTIONS, found)).unwrap_or(Action::Block);
    let examples = fields.optional("examples").map(|node| examples(node, found)).unwrap_or_default();
    fields.finish(UNKNOWN, found);
    Some(Guard { target: target?, has, when, message: message?.value, action, examples, span: node.span })
}

fn hook(node: &Node<'_>, found: &mut Collector) -> Option<Hook> {
    let mut fields = found.keep(Fields::from_node(node, "a hook", SHAPE))?.closed();
    let target = fields.optional("match").and_then(|node| target(node, found));
    let result = fields.optional("result").and_then(|node| text(node, found));
    let on = fields.optional("on").and_then(|node| choice(node, RESULTS, found)).unwrap_or(On::Any);
    let script = found.keep(fields.required("script", SHAPE)).and_then(|node| script(node, found));
    fields.finish(UNKNOWN, found);
    Some(Hook { target, result, on, script: script? })
}

fn validator(node: &Node<'_>, found: &mut Collector) -> Option<Validator> {
    let mut fields = found.keep(Fields::from_node(node, "a validator", SHAPE))?.closed();
    let name = found.keep(fields.required("name", SHAPE)).and_then(|node| filled(node, found));
    let text = fields.optional("match").and_then(|node| text(node, found));
    let when = conditions(fields.optional("when"), found);
    let roles = fields.optional("roles").map(|node| texts(node, found)).unwrap_or_default();
    let script = found.keep(fields.required("script", SHAPE)).and_then(|node| script(node, found));
    fields.finish(UNKNOWN, found);
    let roles = roles.into_iter().map(|role| role.value).collect();
    Some(Validator { name: name?, text, when, roles, script: script? })
}

fn examples(node: &Node<'_>, found: &mut Collector) -> Examples {
    let Some(fields) = found.keep(Fields::from_node(node, "a guard's examples", SHAPE)) else {
        return Examples::default();
    };
    let mut fields = fields.closed();
    let block = fields.optional("block").map(|node| texts(node, found)).unwrap_or_default();
    let allow = fields.optional("allow").map(|node| texts(node, found)).unwrap_or_default();
    fields.finish(UNKNOWN, found);
    Examples { block, allow }
}

fn mappings(node: &Node<'_>, found: &mut Collector) -> Vec<Mapping> {
    let entries = found.keep(node.table(SHAPE)).unwrap_or_default();
    let mut mappings = Vec::new();
    for entry in entries {
        let Some(capability) = text(&entry.node, found) else { continue };
        let parts = entry.key.split_once(':').filter(|(server, tool)| {
            is_name(server) && *server != RESERVED_SERVER && (*tool == "*" || is_name(tool))
        });
        match parts {
            Some((server, tool)) if is_name(&capability.value) => mappings.push(Mapping {
                server: server.to_owned(),
                tool: (tool != "*").then(|| tool.to_owned()),
                capability: capability.value,
                span: entry.key_span,
            }),
            Some(_) => found.push(
                Finding::new(Code::GuardrailTarget, format!("`{}` is not a capability's name", capability.value))
                    .at(capability.span)
                    .help("use letters, digits, `_`, `-` and `.`"),
            ),
            None => found.push(
                Finding::new(Code::GuardrailTarget, format!("`{}` names no tool", entry.key))
                    .at(entry.key_span)
                    .help("write `\"server:tool\" = \"capability\"` or `\"server:*\" = \"capability\"`; `ok` is reserved"),
            ),
        }
    }
    mappings
}

fn target(node: &Node<'_>, found: &mut Collector) -> Option<Declared<Target>> {
    let text = text(node, found)?;
    let value = found.keep(node.place(Target::parse(&text.value)))?;
    Some(Declared { value, span: node.span })
}

fn conditions(node: Option<&Node<'_>>, found: &mut Collector) -> Vec<Condition> {
    let list = node.and_then(|node| found.keep(node.list(SHAPE))).unwrap_or_default();
    let read = |node: &Node<'_>| {
        let text = found.keep(node.text(SHAPE))?;
        let condition = found.keep(node.place(Condition::parse(text)))?;
        Some(Condition { span: node.span, ..condition })
    };
    list.iter().filter_map(read).collect()
}

/// A path below the working directory, spelt without detours.
fn script(node: &Node<'_>, found: &mut Collector) -> Option<Declared<String>> {
    let text = filled(node, found)?;
    let relative = text.value.strip_prefix("./").unwrap_or(&text.value).to_owned();
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if relative.contains(['\0', '\\']) || !relative.split('/').all(plain) {
        let message = format!("`{}` is not a path below the working directory", text.value);
        let finding = Finding::new(Code::GuardrailScript, message).at(text.span);
        found.push(finding.help("write it relative to the project, such as `.agents/hooks/lint.sh`"));
        return None;
    }
    Some(Declared { value: relative, span: text.span })
}

fn text(node: &Node<'_>, found: &mut Collector) -> Option<Declared<String>> {
    let value = found.keep(node.text(SHAPE))?.to_owned();
    Some(Declared { value, span: node.span })
}

fn filled(node: &Node<'_>, found: &mut Collector) -> Option<Declared<String>> {
    let read = text(node, found)?;
    if read.value.trim().is_empty() {
        found.push(Finding::new(SHAPE, "the text is empty").at(node.span).help("say something"));
        return None;
    }
    Some(read)
}

/// A string, or a list of them.
fn texts(node: &Node<'_>, found: &mut Collector) -> Vec<Declared<String>> {
    match &node.value {
        Value::List(items) => items.iter().filter_map(|item| text(item, found)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text { .. } | Value::Table(_) => {
            text(node, found).into_iter().collect()
        }
    }
}

const ACTIONS: &[(&str, Action)] = &[("block", Action::Block), ("ask", Action::Ask)];
const RESULTS: &[(&str, On)] = &[("success", On::Success), ("error", On::Error), ("any", On::Any)];

fn choice<T: Copy>(node: &Node<'_>, choices: &[(&str, T)], found: &mut Collector) -> Option<T> {
    let text = found.keep(node.text(SHAPE))?;
    let known = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    if known.is_none() {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        let finding = Finding::new(SHAPE, format!("`{text}` is not one of {}", names.join(", ")));
        found.push(finding.at(node.span).help(format!("write {}", names.join(" or "))));
    }
    known
}

fn duplicates(validators: &[Validator], found: &mut Collector) {
    let mut names = BTreeSet::new();
    for validator in validators {
        if !names.insert(&validator.name.value) {
            let message = format!("there are two validators called `{}`", validator.name.value);
            let finding = Finding::new(Code::GuardrailDuplicateName, message).at(validator.name.span);
            found.push(finding.help("give each its own name: it has its own cursor"));
        }
    }
}
