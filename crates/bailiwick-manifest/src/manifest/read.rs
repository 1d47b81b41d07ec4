//! From a tree to a manifest. Collects every finding before it gives up.

use std::collections::{BTreeMap, HashMap};

use bailiwick_policy::capability::{Capability, Scribe, check_env_name, is_loader_variable, nearest, parse};
use bailiwick_policy::finding::{Code, Collector, Finding, Findings, Span};
use bailiwick_policy::limits::Limits;
use bailiwick_policy::path::AbsPath;

use super::client::read_client;
use super::limits::{exact, read_limits};
use super::package::read_package;
use super::policy::{read_policy, read_risk};
use super::rules::read_rules;
use super::secrets::{check_secrets, read_secrets};
use super::state::read_state;
use super::variables::read_variables;
use super::verified::read_verified;
use super::{
    ArgumentAccess, Constraints, Declared, FleetBudget, MAX_CAPABILITIES, MAX_LINES_OF_TOOLS, MAX_TOOLS,
    Manifest, Pins, SpendUnit, Tool,
};
use crate::document::{Fields, Node, Value};

/// How many unknown tools are compared with all known ones.
const MAX_ADVICE: usize = 20;

/// Reads the tree of a whole file.
pub(crate) fn read_node(node: &Node<'_>) -> Result<Manifest, Findings> {
    let mut found = Collector::default();
    let mut fields = Fields::from_node(node, "a manifest", Code::ManifestShape)?;
    fields.optional("$schema");
    if let Some(grammar) = fields.optional("grammar")
        && !matches!(grammar.value, Value::Text { .. } | Value::Number(_))
    {
        found.push(grammar.expected(Code::ManifestShape, "a string or a number"));
    }
    let name = required_text(&mut fields, "name", &mut found).unwrap_or_default();
    let version = required_text(&mut fields, "version", &mut found).unwrap_or_default();
    let description = optional_text(&mut fields, "description", &mut found);
    let command_node = fields.optional("command");
    let command = command_node.and_then(|node| found.keep(plain_text(node, "`command`"))).map(str::to_owned);
    let args_node = fields.optional("args");
    let args = args_node.map(|node| texts(node, &mut found)).unwrap_or_default();
    if let (None, Some(node), false) = (command_node, args_node, args.is_empty()) {
        let message = "there are arguments, but no command that they are for";
        found.push(Finding::new(Code::ManifestShape, message).at(node.span).help("add `command`"));
    }
    let server_node = fields.either("serverCapabilities", "server_capabilities", &mut found);
    let server = server_node.map(|node| read_capabilities(node, &mut found)).unwrap_or_default();
    let env = fields.optional("env").map(|node| read_env(node, &server, &mut found)).unwrap_or_default();
    let tools_node = fields.either("tools", "tool", &mut found);
    let tools = tools_node.map(|node| read_tools(node, &mut found)).unwrap_or_default();
    let limits = fields.optional("limits").map_or_else(Limits::default, |node| read_limits(node, &mut found));
    let pins = fields.optional("pins").map(|node| read_pins(node, &tools, &mut found)).unwrap_or_default();
    let variables =
        fields.optional("variables").map(|node| read_variables(node, &mut found)).unwrap_or_default();
    let package = fields.optional("package").map(|node| read_package(node, &mut found));
    let verified = fields.optional("verified").and_then(|node| read_verified(node, &mut found));
    let client = fields.optional("client").map(|node| read_client(node, &mut found)).unwrap_or_default();
    let secrets_node = fields.optional("secrets");
    let secrets = secrets_node.map(|node| read_secrets(node, &mut found)).unwrap_or_default();
    fields.finish(Code::ManifestUnknownField, &mut found);
    check_size(&server, &tools, node, &mut found);
    check_constraints(&tools, &mut found);
    let manifest = Manifest {
        name,
        version,
        description,
        command,
        args,
        env,
        server,
        tools,
        limits,
        pins,
        variables,
        package,
        verified,
        client,
        secrets,
    };
    secrets_node.into_iter().for_each(|node| check_secrets(node, &manifest, &mut found));
    found.finish(manifest)
}

fn required_text(fields: &mut Fields<'_, '_>, key: &'static str, found: &mut Collector) -> Option<String> {
    let node = found.keep(fields.required(key, Code::ManifestShape))?;
    let text = found.keep(node.text(Code::ManifestShape))?;
    found.keep(check_name(text, node.span)).map(|()| text.to_owned())
}

fn optional_text(fields: &mut Fields<'_, '_>, key: &'static str, found: &mut Collector) -> Option<String> {
    let node = fields.optional(key)?;
    found.keep(plain_text(node, &format!("`{key}`"))).map(str::to_owned)
}

/// Names reach terminals, file names and arguments: printable, bounded, without white space.
fn check_name(text: &str, span: Span) -> Result<(), Finding> {
    let plain = text.chars().all(|c| c.is_ascii_graphic() && !"\"'`\\$<>|;&*?".contains(c));
    if plain && (1..=214).contains(&text.len()) && !text.starts_with('-') {
        return Ok(());
    }
    Err(Finding::new(Code::ManifestName, format!("`{}` is not a name", text.escape_debug()))
        .at(span)
        .help("write 1 to 214 ASCII letters, digits and signs such as `-_./@+`, without spaces or quotes"))
}

pub(super) fn texts(node: &Node<'_>, found: &mut Collector) -> Vec<String> {
    let items = found.keep(node.list(Code::ManifestShape)).unwrap_or_default();
    items.iter().filter_map(|item| found.keep(plain_text(item, "an entry")).map(str::to_owned)).collect()
}

/// A string that can be passed on as an argument: without NUL.
pub(super) fn plain_text<'n>(node: &'n Node<'_>, what: &str) -> Result<&'n str, Finding> {
    let text = node.text(Code::ManifestShape)?;
    if text.contains('\0') {
        return Err(Finding::new(Code::CapControl, format!("{what} contains NUL"))
            .at(node.span)
            .help("remove it"));
    }
    Ok(text)
}

fn read_capabilities(node: &Node<'_>, found: &mut Collector) -> Vec<Declared<Capability>> {
    let items = found.keep(node.list(Code::ManifestShape)).unwrap_or_default();
    let read = items.iter().filter_map(|item| {
        let text = found.keep(item.text(Code::ManifestShape))?;
        let value = found.keep(item.place(parse(text, Scribe::Manifest)))?;
        Some(Declared { value, span: item.span })
    });
    read.collect()
}

fn read_env(
    node: &Node<'_>,
    server: &[Declared<Capability>],
    found: &mut Collector,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for entry in found.keep(node.table(Code::ManifestShape)).unwrap_or_default() {
        let name = check_env_name(&entry.key).map_err(|finding| finding.at(entry.key_span));
        let text = plain_text(&entry.node, &format!("the value of `{}`", entry.key));
        if found.keep(name).is_none() {
            continue;
        }
        if is_loader_variable(&entry.key) && !injects(server, &entry.key) {
            let message = format!("`{}` makes programs load or choose code", entry.key);
            let help = format!(
                "leave it out, or add `env:inject:{}?loader=true` to `serverCapabilities`",
                entry.key
            );
            found.push(Finding::new(Code::EnvLoader, message).at(entry.key_span).help(help));
        }
        if let Some(text) = found.keep(text) {
            env.insert(entry.key.to_string(), text.to_owned());
        }
    }
    env
}

fn injects(server: &[Declared<Capability>], variable: &str) -> bool {
    server.iter().any(|line| line.value.injected() == Some(variable))
}

fn read_tools(node: &Node<'_>, found: &mut Collector) -> Vec<Tool> {
    let items = found.keep(node.list(Code::ManifestShape)).unwrap_or_default();
    let tools: Vec<Tool> =
        items.iter().take(MAX_TOOLS + 1).filter_map(|item| read_tool(item, found)).collect();
    let mut seen: HashMap<&str, ()> = HashMap::with_capacity(tools.len());
    for tool in &tools {
        if !tool.name.is_empty() && seen.insert(&tool.name, ()).is_some() {
            let message = format!("there are two tools called `{}`", tool.name);
            found.push(
                Finding::new(Code::ManifestDuplicateTool, message)
                    .at(tool.span)
                    .help("merge them, or rename one"),
            );
        }
    }
    drop(seen);
    tools
}

fn read_tool(node: &Node<'_>, found: &mut Collector) -> Option<Tool> {
    let mut fields = found.keep(Fields::from_node(node, "a tool", Code::ManifestShape))?;
    let name_node = found.keep(fields.required("name", Code::ManifestShape));
    let name = name_node.and_then(|node| found.keep(node.text(Code::ManifestShape)));
    if let Some((name, node)) = name.zip(name_node) {
        found.keep(check_name(name, node.span));
    }
    let description = optional_text(&mut fields, "description", found);
    let capabilities = fields.optional("capabilities").map(|node| read_capabilities(node, found));
    let policy = fields.optional("policy").and_then(|node| read_policy(node, found));
    let arguments = fields.optional("arguments").map(|node| read_arguments(node, found)).unwrap_or_default();
    let risk_node = fields.optional("risk");
    let risk = risk_node.and_then(|node| found.keep(read_risk(node)));
    let (constraints, after) =
        fields.optional("constraints").map(|node| read_constraints(node, found)).unwrap_or_default();
    let rules = fields.optional("rules").map(|node| read_rules(node, found)).unwrap_or_default();
    let state = fields.optional("state").and_then(|node| found.keep(read_state(node)));
    fields.finish(Code::ManifestUnknownField, found);
    if let (Some(own), Some(other), Some(node)) =
        (risk, policy.as_ref().and_then(super::ToolPolicy::risk), risk_node)
        && own != other
    {
        let message = format!("the tool says `{}`, its policy `{}`", own.as_str(), other.as_str());
        found.push(Finding::new(Code::PolicyRisk, message).at(node.span).help("say it once"));
    }
    let span = name_node.map_or(node.span, |node| node.span);
    let name = name.unwrap_or_default().to_owned();
    Some(Tool {
        name,
        span,
        description,
        capabilities,
        policy,
        arguments,
        constraints,
        rules,
        after,
        risk,
        state,
    })
}

fn read_arguments(node: &Node<'_>, found: &mut Collector) -> BTreeMap<String, ArgumentAccess> {
    let mut arguments = BTreeMap::new();
    for entry in found.keep(node.table(Code::ManifestShape)).unwrap_or_default() {
        let Some(text) = found.keep(entry.node.text(Code::ManifestShape)) else { continue };
        match ArgumentAccess::ALL.iter().find(|(name, _)| *name == text) {
            Some((_, access)) => drop(arguments.insert(entry.key.to_string(), *access)),
            None => found.push(
                Finding::new(
                    Code::ManifestShape,
                    format!("`{}` is not a kind of argument", text.escape_debug()),
                )
                .at(entry.node.span)
                .help("write `read`, `write`, `path`, `host` or `text`"),
            ),
        }
    }
    arguments
}

/// The constraints, and where the entries of `only_after` stand.
fn read_constraints(node: &Node<'_>, found: &mut Collector) -> (Constraints, Vec<Span>) {
    let Some(mut fields) = found.keep(Fields::from_node(node, "constraints", Code::ManifestShape)) else {
        return (Constraints { forbidden: true, ..Constraints::default() }, Vec::new());
    };
    let after_node = fields.optional("only_after");
    let items = after_node.and_then(|node| node.list(Code::ManifestShape).ok()).unwrap_or_default();
    let readable = items.iter().filter(|item| plain_text(item, "").is_ok());
    let after = readable.map(|item| item.span).collect();
    let constraints = Constraints {
        max_invocations: fields.optional("max_invocations").and_then(|node| {
            let whole = node.whole(Code::ManifestShape);
            found.keep(whole.and_then(|value| exact(value, node, Code::ManifestShape)))
        }),
        only_after: after_node.map(|node| texts(node, found)).unwrap_or_default(),
        forbidden: fields
            .optional("forbidden")
            .and_then(|node| found.keep(node.flag(Code::ManifestShape)))
            .unwrap_or(false),
        confirm: fields
            .optional("confirm")
            .and_then(|node| found.keep(node.flag(Code::ManifestShape)))
            .unwrap_or(false),
        fleet_budget: fields.optional("fleet_budget").and_then(|node| read_fleet_budget(node, found)),
    };
    fields.finish(Code::ManifestUnknownField, found);
    (constraints, after)
}

fn read_fleet_budget(node: &Node<'_>, found: &mut Collector) -> Option<FleetBudget> {
    let mut fields = found.keep(Fields::from_node(node, "fleet_budget", Code::ManifestShape))?;
    let name = found.keep(fields.required("name", Code::ManifestShape));
    let name = name.and_then(|node| {
        let text = found.keep(plain_text(node, "`name`"))?;
        found.keep(check_name(text, node.span)).map(|()| text.to_owned())
    });
    let unit = fields.optional("unit").map_or(Some(SpendUnit::Calls), |node| {
        let text = found.keep(plain_text(node, "`unit`"))?;
        let known = SpendUnit::ALL.iter().find(|(word, _)| *word == text).map(|(_, unit)| *unit);
        found.keep(known.ok_or_else(|| node.expected(Code::ManifestShape, "`calls`, `seconds` or `money`")))
    });
    let each = fields.optional("each").map_or(Some(1), |node| {
        let whole = node.whole(Code::ManifestShape).and_then(|value| exact(value, node, Code::ManifestShape));
        let each = found.keep(whole)?;
        let positive =
            if each > 0 { Ok(each) } else { Err(node.expected(Code::ManifestShape, "at least 1")) };
        found.keep(positive)
    });
    fields.finish(Code::ManifestUnknownField, found);
    Some(FleetBudget { name: name?, unit: unit?, each: each? })
}

fn read_pins(node: &Node<'_>, tools: &[Tool], found: &mut Collector) -> Pins {
    let Some(mut fields) = found.keep(Fields::from_node(node, "pins", Code::ManifestPin)) else {
        return Pins::default();
    };
    let mut pins = Pins {
        instructions: fields.optional("instructions").and_then(|node| found.keep(read_hash(node))),
        set: fields.optional("set").and_then(|node| found.keep(read_hash(node))),
        tools: BTreeMap::new(),
        files: BTreeMap::new(),
    };
    let files = fields
        .optional("files")
        .and_then(|node| found.keep(node.table(Code::ManifestPin)))
        .unwrap_or_default();
    for entry in files {
        let path = AbsPath::new(&entry.key).map_err(|_| {
            Finding::new(Code::ManifestPin, format!("`{}` is not an absolute path", entry.key.escape_debug()))
                .at(entry.key_span)
                .help("name the file as `\"/opt/tool/bin/tool\"`")
        });
        if let (Some(path), Some(hash)) = (found.keep(path), found.keep(read_hash(&entry.node))) {
            pins.files.insert(path, hash);
        }
    }
    let entries = fields
        .optional("tools")
        .and_then(|node| found.keep(node.table(Code::ManifestPin)))
        .unwrap_or_default();
    for entry in entries {
        if !tools.iter().any(|tool| tool.name == entry.key) {
            let message = format!("there is no tool `{}` to pin", entry.key);
            found.push(
                Finding::new(Code::ManifestPin, message)
                    .at(entry.key_span)
                    .help("declare the tool, or drop the pin"),
            );
        }
        if let Some(hash) = found.keep(read_hash(&entry.node)) {
            pins.tools.insert(entry.key.to_string(), hash);
        }
    }
    fields.finish(Code::ManifestUnknownField, found);
    pins
}

fn read_hash(node: &Node<'_>) -> Result<String, Finding> {
    let text = node.text(Code::ManifestPin)?;
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    let plain =
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if plain {
        return Ok(text.to_owned());
    }
    Err(Finding::new(Code::ManifestPin, format!("`{}` is not a hash", text.escape_debug()))
        .at(node.span)
        .help("write `sha256:` and 64 lower-case hexadecimal digits"))
}

fn check_size(server: &[Declared<Capability>], tools: &[Tool], node: &Node<'_>, found: &mut Collector) {
    let lines: usize = tools.iter().map(|tool| tool.capabilities.as_ref().map_or(0, Vec::len)).sum();
    let of_tools = server.len().saturating_mul(tools.len()).saturating_add(lines);
    for (count, limit, what) in [
        (tools.len(), MAX_TOOLS, "tools"),
        (server.len() + lines, MAX_CAPABILITIES, "capabilities"),
        (of_tools, MAX_LINES_OF_TOOLS, "lines for all tools together, those of the server counted for each"),
    ] {
        if count > limit {
            let message = format!("more than {limit} {what}");
            found.push(
                Finding::new(Code::ManifestTooMany, message)
                    .at(Span::new(node.span.start, node.span.start))
                    .help("split the manifest, or write patterns instead of single paths"),
            );
        }
    }
}

fn check_constraints(tools: &[Tool], found: &mut Collector) {
    let names: std::collections::HashSet<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let mut advised = 0;
    for tool in tools {
        for (other, span) in tool.constraints.only_after.iter().zip(&tool.after) {
            if *other == tool.name {
                let message = format!("`{other}` can only run after itself: it never can");
                found.push(Finding::new(Code::ConstraintSelf, message).at(*span).help("name another tool"));
            } else if !names.contains(&**other) {
                let message = format!("`{}` can only run after `{other}`, which is no tool here", tool.name);
                advised += 1;
                // Comparing every name with every other would take minutes on a large manifest.
                let meant = if advised > MAX_ADVICE { None } else { nearest(other, names.iter().copied()) };
                let help = meant.map_or_else(
                    || "declare it, or name another tool".to_owned(),
                    |m| format!("did you mean `{m}`?"),
                );
                found.push(Finding::new(Code::ConstraintUnknownTool, message).at(*span).help(help));
            }
        }
    }
}
