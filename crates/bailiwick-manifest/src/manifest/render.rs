//! A manifest in canonical form: sorted, normalised, without what changes nothing a tool may touch.

use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::limits::Limits;
use serde_json::{Map, Value, json};

use super::authority::{named_for_writing, symbolic};
use super::secrets::canonical_use;
use super::{
    ArgumentAccess, ArgumentRule, ArgumentTest, ClientFeatures, Constraints, Declared, Manifest, Package,
    Stance, Tool, ToolPolicy, Variable, VariableSource,
};

impl Manifest {
    /// The canonical JSON value: equal for manifests that declare the same.
    #[must_use]
    pub fn canonical(&self) -> Value {
        let mut root = Map::new();
        root.insert("name".into(), json!(self.name));
        root.insert("version".into(), json!(self.version));
        if let Some((command, args)) = self.command() {
            root.insert("command".into(), json!(command));
            insert_unless_empty(&mut root, "args", json!(args));
        }
        insert_unless_empty(&mut root, "env", json!(self.env));
        insert_unless_empty(&mut root, "limits", limits(&self.limits));
        insert_unless_empty(&mut root, "pins", self.canonical_pins());
        if let Some(package) = &self.package {
            root.insert("package".into(), canonical_package(package));
        }
        insert_unless_empty(&mut root, "client", canonical_client(&self.client));
        let secrets = self.secrets.iter().map(|(name, usage)| (name.clone(), canonical_use(usage)));
        insert_unless_empty(&mut root, "secrets", Value::Object(secrets.collect()));
        insert_unless_empty(&mut root, "serverCapabilities", json!(canonical_lines(&self.server)));
        let mut tools: Vec<&Tool> = self.tools.iter().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        root.insert("tools".into(), tools.into_iter().map(Tool::canonical).collect());
        let variables = self.variables.iter().map(|(name, variable)| (name.clone(), variable.canonical()));
        insert_unless_empty(&mut root, "variables", Value::Object(variables.collect()));
        Value::Object(root)
    }

    fn canonical_pins(&self) -> Value {
        let mut pins = Map::new();
        if let Some(hash) = &self.pins.instructions {
            pins.insert("instructions".into(), json!(hash));
        }
        if let Some(hash) = &self.pins.set {
            pins.insert("set".into(), json!(hash));
        }
        insert_unless_empty(&mut pins, "tools", json!(self.pins.tools));
        let files = self.pins.files.iter().map(|(path, hash)| (path.to_string(), json!(hash)));
        insert_unless_empty(&mut pins, "files", Value::Object(files.collect()));
        Value::Object(pins)
    }
}

/// Without the versions that it was tried with: they change nothing that it may touch.
fn canonical_package(package: &Package) -> Value {
    let mut table = Map::new();
    table.insert("identity".into(), json!(package.identity));
    if package.install_scripts {
        table.insert("install_scripts".into(), json!(true));
    }
    if package.stateless {
        table.insert("stateless".into(), json!(true));
    }
    Value::Object(table)
}

impl Variable {
    pub(crate) fn canonical(&self) -> Value {
        let mut table = Map::new();
        match &self.source {
            VariableSource::Argument { first, onwards } => {
                let onwards = if *onwards { ".." } else { "" };
                table.insert("argument".into(), json!(format!("{first}{onwards}")));
            }
            VariableSource::Flag(names) => drop(table.insert("flag".into(), json!(names))),
            VariableSource::Env(name) => drop(table.insert("env".into(), json!(name))),
        }
        if self.parent {
            table.insert("parent".into(), json!(true));
        }
        if let Some(default) = &self.default {
            table.insert("default".into(), json!(default));
        }
        Value::Object(table)
    }
}

impl Tool {
    fn canonical(&self) -> Value {
        let mut tool = Map::new();
        tool.insert("name".into(), json!(self.name));
        if let Some(lines) = &self.capabilities {
            tool.insert("capabilities".into(), json!(canonical_lines(lines)));
        }
        if let Some(policy) = &self.policy {
            tool.insert("policy".into(), policy.canonical());
        }
        if let Some(risk) = self.risk() {
            tool.insert("risk".into(), json!(risk.as_str()));
        }
        if let Some(state) = self.state {
            tool.insert("state".into(), json!(state.as_str()));
        }
        let kinds = self.arguments.iter().map(|(name, access)| {
            let kind =
                ArgumentAccess::ALL.iter().find(|(_, own)| own == access).map_or("text", |(kind, _)| kind);
            (name.clone(), json!(kind))
        });
        insert_unless_empty(&mut tool, "arguments", Value::Object(kinds.collect()));
        insert_unless_empty(&mut tool, "constraints", constraints(&self.constraints));
        insert_unless_empty(&mut tool, "rules", rules(&self.rules));
        Value::Object(tool)
    }
}

impl ToolPolicy {
    /// The stances in canonical form, without the risk.
    pub(crate) fn canonical(&self) -> Value {
        let (mut policy, mut files) = (Map::new(), Map::new());
        for (subject, stance) in self.stances() {
            let value = match stance {
                Stance::Unspecified => continue,
                Stance::None if subject == "network" || subject == "exec" => json!("deny"),
                Stance::None => json!([]),
                Stance::All => json!("allow"),
                Stance::Only(lines) => json!(scopes(lines)),
            };
            let table = if matches!(subject, "read" | "write") { &mut files } else { &mut policy };
            table.insert(subject.into(), value);
        }
        insert_unless_empty(&mut policy, "filesystem", Value::Object(files));
        if !self.is_enforced() {
            policy.insert("enforced".into(), json!(false));
        }
        Value::Object(policy)
    }
}

/// The scopes of lines whose kind and actions the subject implies.
fn scopes(lines: &[Declared<Capability>]) -> Vec<String> {
    let texts = canonical_lines(lines);
    texts.iter().map(|text| text.splitn(3, ':').nth(2).unwrap_or_default().to_owned()).collect()
}

/// Normalised lines: what others cover is gone, but for files that run later and are open because they are named.
fn canonical_lines(lines: &[Declared<Capability>]) -> Vec<String> {
    let mut texts =
        normal_texts(lines).unwrap_or_else(|| lines.iter().map(|line| line.value.to_string()).collect());
    let named = lines.iter().filter(|line| named_for_writing(&line.value).is_some());
    texts.extend(named.flat_map(|line| normal_texts(std::slice::from_ref(line)).unwrap_or_default()));
    let asserts = lines.iter().filter(|line| matches!(line.value, Capability::Assert { .. }));
    texts.extend(asserts.map(|line| line.value.to_string()));
    texts.sort();
    texts.dedup();
    texts
}

fn normal_texts(lines: &[Declared<Capability>]) -> Option<Vec<String>> {
    let resolved: Result<Vec<Capability>, _> = lines.iter().map(|line| symbolic(&line.value)).collect();
    let normal = resolved.and_then(|lines| Authority::from_capabilities(&lines)).ok()?.capabilities()?;
    Some(normal.iter().map(ToString::to_string).collect())
}

/// What is as it is without the table is left out.
fn canonical_client(client: &ClientFeatures) -> Value {
    let usual = ClientFeatures::default().all();
    let changed = client.all().into_iter().filter(|feature| !usual.contains(feature));
    Value::Object(changed.map(|(name, stance)| (name.to_owned(), json!(stance.as_str()))).collect())
}

/// Rules in an order of their own: all of them count, whichever stands first.
fn rules(rules: &[ArgumentRule]) -> Value {
    let mut all: Vec<Value> = rules.iter().map(ArgumentRule::canonical).collect();
    all.sort_by_cached_key(Value::to_string);
    all.dedup();
    Value::Array(all)
}

impl ArgumentRule {
    pub(crate) fn canonical(&self) -> Value {
        let each = self.when.iter().map(|condition| {
            let mut table = Map::new();
            table.insert("argument".into(), json!(condition.argument()));
            table.insert(condition.test().key().into(), condition.test().canonical());
            if condition.is_negated() {
                table.insert("not".into(), json!(true));
            }
            Value::Object(table)
        });
        json!({ "when": each.collect::<Vec<_>>(), "then": self.then.as_str(), "message": self.message })
    }
}

impl ArgumentTest {
    pub(crate) fn canonical(&self) -> Value {
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts.dedup();
            json!(texts)
        };
        match self {
            Self::Matches(pattern) => json!(pattern),
            Self::Number(range) => json!(range.to_string()),
            Self::Host(hosts) => sorted(hosts.iter().map(ToString::to_string).collect()),
            Self::Path(_) => sorted(self.paths().map(ToString::to_string).collect()),
        }
    }
}

fn limits(limits: &Limits) -> Value {
    let mut table = Map::new();
    for (key, value) in [
        ("timeout", limits.timeout_ms.map(|ms| json!(format!("{ms}ms")))),
        ("memory", limits.memory.map(|bytes| json!(bytes))),
        ("pids", limits.pids.map(|pids| json!(pids))),
        ("file_size", limits.file_size.map(|bytes| json!(bytes))),
        ("cpu", limits.cpu_milli.map(thousandths)),
    ] {
        if let Some(value) = value {
            table.insert(key.into(), value);
        }
    }
    Value::Object(table)
}

/// A decimal number without going through floating point.
fn thousandths(milli: u64) -> Value {
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn constraints(constraints: &Constraints) -> Value {
    let mut table = Map::new();
    if let Some(most) = constraints.max_invocations {
        table.insert("max_invocations".into(), json!(most));
    }
    let mut after = constraints.only_after.clone();
    after.sort();
    after.dedup();
    insert_unless_empty(&mut table, "only_after", json!(after));
    for (key, flag) in [("forbidden", constraints.forbidden), ("confirm", constraints.confirm)] {
        if flag {
            table.insert(key.into(), json!(true));
        }
    }
    if let Some(budget) = &constraints.fleet_budget {
        let unit = budget.unit.as_str();
        let budget = json!({ "name": budget.name, "unit": unit, "each": budget.each });
        table.insert("fleet_budget".into(), budget);
    }
    Value::Object(table)
}

fn insert_unless_empty(table: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if !empty {
        table.insert(key.to_owned(), value);
    }
}
