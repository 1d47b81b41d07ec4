//! `[secrets.NAME]`: how a brokered secret is used at its hosts.
//!
//! Without the table a value is put into `Authorization` and the usual fields for API keys, and into the user and password of
//! Basic. Other places, other credentials and short values have to be asked for. A manifest says nothing of where a value
//! comes from.

use std::collections::{BTreeMap, BTreeSet};

use bailiwick_policy::finding::{Code, Collector, Finding};
use bailiwick_policy::net::{Method, Methods};
use bailiwick_policy::path::{PathPattern, parse_pattern};
use bailiwick_policy::secret_use::{RequestSigning, SecretRule, SecretUse};
use serde_json::{Map, Value, json};

use super::Manifest;
use crate::document::{Fields, Node, Value as Written};

/// A use as a snapshot has it.
pub(super) fn canonical_use(usage: &SecretUse) -> Value {
    let mut table = Map::new();
    for (key, names) in
        [("headers", &usage.headers), ("query", &usage.query), ("form", &usage.form), ("json", &usage.json)]
    {
        if !names.is_empty() {
            table.insert(key.into(), json!(names));
        }
    }
    if let Some(sign) = usage.sign {
        table.insert("sign".into(), json!(sign.as_str()));
    }
    for (key, is_set) in [("websocket", usage.websocket), ("foreign", usage.foreign), ("short", usage.short)]
    {
        if is_set {
            table.insert(key.into(), json!("allow"));
        }
    }
    if !usage.rules.is_empty() {
        table.insert("rules".into(), usage.rules.iter().map(canonical_rule).collect());
    }
    Value::Object(table)
}

fn canonical_rule(rule: &SecretRule) -> Value {
    let methods: Vec<&str> = rule.methods.iter().map(Method::as_str).collect();
    let paths: Vec<String> = rule.paths.iter().map(ToString::to_string).collect();
    json!({ "methods": methods, "paths": paths })
}

pub(super) fn read_secrets(node: &Node<'_>, found: &mut Collector) -> BTreeMap<String, SecretUse> {
    let entries = found.keep(node.table(Code::ManifestSecret)).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.to_string(), read_use(&entry.node, found)?))).collect()
}

/// Every secret must be one that a line brokers.
pub(super) fn check_secrets(node: &Node<'_>, manifest: &Manifest, found: &mut Collector) {
    let brokered: BTreeSet<&str> = manifest.lines().filter_map(|line| line.value.brokered()).collect();
    for entry in node.table(Code::ManifestSecret).unwrap_or_default() {
        if !brokered.contains(&*entry.key) {
            let message = format!("no line brokers `{}`", entry.key.escape_debug());
            found.push(
                Finding::new(Code::ManifestSecret, message)
                    .at(entry.key_span)
                    .help("add `env:inject:NAME?broker=HOST` for it, or remove the table"),
            );
        }
    }
}

fn read_use(node: &Node<'_>, found: &mut Collector) -> Option<SecretUse> {
    let mut fields = found.keep(Fields::from_node(node, "a secret", Code::ManifestSecret))?;
    let mut names = |key| fields.optional(key).map(|node| read_names(node, found)).unwrap_or_default();
    let headers = names("headers").into_iter().map(|name| name.to_ascii_lowercase()).collect();
    let (query, form, json) = (names("query"), names("form"), names("json"));
    let mut allowed =
        |key| fields.optional(key).and_then(|node| found.keep(read_allow(node))).unwrap_or(false);
    let (websocket, foreign, short) = (allowed("websocket"), allowed("foreign"), allowed("short"));
    let sign = fields.optional("sign").and_then(|node| found.keep(read_signing(node)));
    let rules_node = fields.optional("rules");
    let items = rules_node.and_then(|node| found.keep(node.list(Code::ManifestSecret))).unwrap_or_default();
    let rules: Vec<SecretRule> = items.iter().filter_map(|item| read_rule(item, found)).collect();
    if let (Some(node), true) = (rules_node, items.is_empty()) {
        found.push(node.expected(Code::ManifestSecret, "at least one rule"));
    }
    fields.finish(Code::ManifestUnknownField, found);
    Some(SecretUse { headers, query, form, json, websocket, sign, foreign, short, rules, bounds: Vec::new() })
}

fn read_names(node: &Node<'_>, found: &mut Collector) -> BTreeSet<String> {
    let items = found.keep(node.list(Code::ManifestSecret)).unwrap_or_default();
    items.iter().filter_map(|item| found.keep(read_name(item))).collect()
}

fn read_name(node: &Node<'_>) -> Result<String, Finding> {
    let text = node.text(Code::ManifestSecret)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=100).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(Finding::new(Code::ManifestSecret, format!("`{}` is not the name of a field", text.escape_debug()))
        .at(node.span)
        .help("write letters, digits and `-_.`"))
}

fn read_allow(node: &Node<'_>) -> Result<bool, Finding> {
    match node.text(Code::ManifestSecret)? {
        "allow" => Ok(true),
        "deny" => Ok(false),
        _ => Err(node.expected(Code::ManifestSecret, "`\"allow\"` or `\"deny\"`")),
    }
}

fn read_signing(node: &Node<'_>) -> Result<RequestSigning, Finding> {
    RequestSigning::from_text(node.text(Code::ManifestSecret)?)
        .ok_or_else(|| node.expected(Code::ManifestSecret, "`\"aws-sigv4\"`"))
}

fn read_rule(node: &Node<'_>, found: &mut Collector) -> Option<SecretRule> {
    let mut fields = found.keep(Fields::from_node(node, "a rule", Code::ManifestSecret))?;
    let (methods, paths) = (fields.optional("methods"), fields.optional("paths"));
    fields.finish(Code::ManifestUnknownField, found);
    if methods.is_none() && paths.is_none() {
        let message = "a rule without methods and paths covers everything";
        found.push(
            Finding::new(Code::ManifestSecret, message)
                .at(node.span)
                .help("add `methods` or `paths`, or remove it"),
        );
    }
    let methods = methods.map_or(Some(Methods::ALL), |node| {
        let items = non_empty(node, found)?;
        let read = |item: &Node<'_>| item.place(Method::new(item.text(Code::ManifestSecret)?));
        let all: Vec<Method> = items.iter().filter_map(|item| found.keep(read(item))).collect();
        (all.len() == items.len()).then(|| Methods::from_methods(all))
    })?;
    let paths = paths.map_or(Some(vec![PathPattern::everything()]), |node| {
        let items = non_empty(node, found)?;
        let read = |item: &Node<'_>| item.place(parse_pattern(item.text(Code::ManifestSecret)?, false));
        let all: Vec<PathPattern> = items.iter().filter_map(|item| found.keep(read(item))).collect();
        (all.len() == items.len()).then_some(all)
    })?;
    Some(SecretRule { methods, paths })
}

fn non_empty<'n, 't>(node: &'n Node<'t>, found: &mut Collector) -> Option<&'n [Node<'t>]> {
    let Written::List(items) = &node.value else {
        found.push(node.expected(Code::ManifestSecret, "a list"));
        return None;
    };
    if items.is_empty() {
        found.push(node.expected(Code::ManifestSecret, "a list that is not empty"));
        return None;
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::net::UrlPath;

    use super::*;

    const HEAD: &str =
        "name = 's'\nversion = '1'\nserver_capabilities = ['env:inject:TOKEN?broker=api.test']\n";

    fn usage(text: &str) -> SecretUse {
        let manifest =
            Manifest::parse(&format!("{HEAD}{text}")).unwrap_or_else(|found| panic!("{text}: {found}"));
        manifest.secrets().get("TOKEN").cloned().unwrap_or_default()
    }

    fn is_used(usage: &SecretUse, method: &str, path: &str) -> bool {
        usage.is_used_on(Method::new(method).unwrap(), &UrlPath::of_target(path))
    }

    #[test]
    fn rules_are_by_method_and_path() {
        let rules = usage("[[secrets.TOKEN.rules]]\nmethods = ['GET', 'HEAD']\npaths = ['/repos/**']\n");
        assert!(is_used(&rules, "GET", "/repos/a/b?c=d") && is_used(&rules, "HEAD", "/repos/x"));
        for (method, path) in
            [("POST", "/repos/a"), ("GET", "/user"), ("GET", "/repos/../user"), ("GET", "/repos/%2e%2e/user")]
        {
            assert!(!is_used(&rules, method, path), "{method} {path}");
        }
        let read_only = usage("[[secrets.TOKEN.rules]]\nmethods = ['GET']\n");
        assert!(is_used(&read_only, "GET", "/any") && !is_used(&read_only, "POST", "/any"));
    }

    #[test]
    fn what_is_wrong_is_found() {
        for (text, code) in [
            ("[secrets.OTHER]\nshort = 'allow'\n", Code::ManifestSecret),
            ("[secrets.TOKEN]\nshort = true\n", Code::ManifestSecret),
            ("[secrets.TOKEN]\nheaders = ['a b']\n", Code::ManifestSecret),
            ("[secrets.TOKEN]\nsign = 'hmac'\n", Code::ManifestSecret),
            ("[secrets.TOKEN]\nwebsocket = 'first'\n", Code::ManifestSecret),
            ("[secrets.TOKEN]\nrules = []\n", Code::ManifestSecret),
            ("[[secrets.TOKEN.rules]]\n", Code::ManifestSecret),
            ("[[secrets.TOKEN.rules]]\nmethods = []\n", Code::ManifestSecret),
            ("[[secrets.TOKEN.rules]]\nmethods = ['GRAB']\n", Code::MethodUnknown),
            ("[secrets.TOKEN]\nsource = 'env:TOKEN'\n", Code::ManifestUnknownField),
        ] {
            let findings = Manifest::parse(&format!("{HEAD}{text}")).expect_err(text).into_vec();
            assert!(findings.iter().any(|finding| finding.code() == code), "{text}: {findings:?}");
        }
    }

    #[test]
    fn what_is_wider_is_said() {
        let wider = |old: &str, new: &str| !usage(new).wider_than(&usage(old)).is_empty();
        let rules = "[[secrets.TOKEN.rules]]\nmethods = ['GET']\npaths = ['/a/**']\n";
        for new in [
            "[secrets.TOKEN]\nforeign = 'allow'\n",
            "[secrets.TOKEN]\nquery = ['key']\n",
            "[secrets.TOKEN]\nshort = 'allow'\n",
            "[secrets.TOKEN]\nwebsocket = 'allow'\n",
        ] {
            assert!(wider("", new) && !wider(new, "") && !wider(new, new), "{new}");
        }
        let signs = "[secrets.TOKEN]\nsign = 'aws-sigv4'\n";
        assert!(wider("", signs) && wider(signs, "") && !wider(signs, signs), "another use either way");
        assert!(wider(rules, "") && !wider("", rules) && !wider(rules, rules));
        assert!(wider(rules, "[[secrets.TOKEN.rules]]\nmethods = ['GET']\n"));
        assert!(wider(rules, "[[secrets.TOKEN.rules]]\nmethods = ['POST']\npaths = ['/a/**']\n"));
    }
}
