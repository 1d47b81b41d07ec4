//! Our own form of the allowlist: all that a rule says, for gateways that can hold it. Fields are only added.

use bailiwick_policy::artifact::EgressRule;
use bailiwick_policy::net::{Method, NetRule, Scheme, Speech};
use bailiwick_policy::plan::Plan;
use serde_json::{Value, json};

use crate::yaml;

pub(super) fn json(plan: &Plan, rules: &[NetRule]) -> String {
    format!("{:#}\n", value(plan, rules))
}

pub(super) fn yaml(plan: &Plan, rules: &[NetRule]) -> String {
    yaml::document(&value(plan, rules))
}

fn value(plan: &Plan, rules: &[NetRule]) -> Value {
    let subject = plan.subject();
    json!({
        "format": "bailiwick.egress/1",
        "server": subject.name,
        "tool": subject.tool,
        "default": "deny",
        "rules": rules.iter().map(rule).collect::<Vec<_>>(),
    })
}

fn rule(rule: &NetRule) -> Value {
    let mut value = EgressRule::from_rule(rule).to_json();
    if let Value::Object(fields) = &mut value {
        fields.insert("speech".to_owned(), speech(rule.speech()));
        fields.insert("capability".to_owned(), rule.to_string().into());
    }
    value
}

fn speech(speech: &Speech) -> Value {
    match speech {
        Speech::Connect { raw, ech } => json!({ "kind": "connect", "raw": raw, "ech": ech }),
        Speech::Http { schemes, methods, path } => json!({
            "kind": "http",
            "schemes": schemes.iter().map(Scheme::as_str).collect::<Vec<_>>(),
            "methods": methods.iter().map(Method::as_str).collect::<Vec<_>>(),
            "path": path.to_string(),
        }),
    }
}
