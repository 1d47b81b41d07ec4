//! One tool or prompt, before and now: its schema, its annotations and every text in it.

use serde_json::{Map, Value};

use super::cues::{Cues, new_cues};
use super::{Drift, Judged, schema};

/// Fields of a tool that are understood.
const KNOWN: [&str; 8] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "icons"];

/// The same where `execution` says nothing.
const KNOWN_WITH_EXECUTION: [&str; 9] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
    "icons",
    "execution",
];

/// What `$schema` may say: which words a schema is written in. They are no texts for a model.
const DIALECTS: [&str; 6] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Judges a tool that is there before and now.
pub(super) fn judge(old: &Value, new: &Value, others: &[&str]) -> Judged {
    if old == new {
        return None;
    }
    let mut reasons = new_texts(old, new, others);
    let open = Value::Object(Map::new());
    let input = |tool: &Value| tool.get("inputSchema").cloned().unwrap_or_else(|| open.clone());
    reasons.extend(schema::within(&input(new), &input(old)).err());
    reasons.extend(lowered_risk(old.get("annotations"), new.get("annotations")));
    reasons.extend(other_fields(old, new, if runs_no_task(new) { &KNOWN_WITH_EXECUTION } else { &KNOWN }));
    Some(sorted(reasons))
}

/// Whether a tool says that it is never run as a task, which it need not say.
fn runs_no_task(tool: &Value) -> bool {
    let fields = tool.get("execution").and_then(Value::as_object);
    fields.is_some_and(|fields| {
        fields.iter().all(|(name, value)| name == "taskSupport" && value.as_str() == Some("forbidden"))
    })
}

/// Judges a prompt that is there before and now.
pub(super) fn judge_prompt(old: &Value, new: &Value, names: &[&str]) -> Judged {
    if old == new {
        return None;
    }
    let mut reasons = new_texts(old, new, names);
    let arguments = |prompt: &Value| -> Vec<String> {
        let all = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|argument| argument.get("name")?.as_str().map(str::to_owned)).collect()
    };
    let before = arguments(old);
    let fresh = arguments(new).into_iter().filter(|name| !before.contains(name));
    reasons.extend(fresh.map(|name| format!("the argument `{name}` is new")));
    reasons.extend(other_fields(old, new, &["name", "title", "description", "arguments", "_meta", "icons"]));
    Some(sorted(reasons))
}

/// Judges a resource, or a template of resources, that is there before and now.
pub(super) fn judge_resource(old: &Value, new: &Value, names: &[&str]) -> Judged {
    if old == new {
        return None;
    }
    const PLAIN: [&str; 10] = [
        "name",
        "title",
        "description",
        "uri",
        "uriTemplate",
        "mimeType",
        "size",
        "annotations",
        "_meta",
        "icons",
    ];
    let mut reasons = new_texts(old, new, names);
    reasons.extend(other_fields(old, new, &PLAIN));
    Some(sorted(reasons))
}

/// Judges a resource that was not there before. Lists of resources grow while a server is used, so one without a cue in its
/// texts is harmless; its address is no text.
pub(super) fn judge_new_resource(new: &Value, names: &[&str]) -> Judged {
    let mut said = new.clone();
    if let Value::Object(fields) = &mut said {
        fields.retain(|name, _| !matches!(name.as_str(), "uri" | "uriTemplate" | "name" | "mimeType"));
    }
    let reasons = new_texts(&Value::Null, &said, names);
    if reasons.is_empty() {
        return Some((Drift::Harmless, vec!["the resource is new".to_owned()]));
    }
    Some((Drift::Widening, reasons))
}

/// Which of these tools the texts of a tool name.
pub(super) fn named_tools<'a>(tool: &Value, names: &[&'a str]) -> Vec<&'a str> {
    let mut said = tool.clone();
    if let Value::Object(fields) = &mut said {
        fields.remove("name");
    }
    let mut all = Vec::new();
    texts(&said, &mut all);
    let text = all.join("\n");
    names.iter().copied().filter(|name| Cues::names_tool(&text, name)).collect()
}

fn sorted(reasons: Vec<String>) -> (Drift, Vec<String>) {
    if reasons.is_empty() {
        (Drift::Harmless, vec!["it is worded differently, or takes less".to_owned()])
    } else {
        (Drift::Widening, reasons)
    }
}

/// Cues that no text of the old form had.
fn new_texts(old: &Value, new: &Value, others: &[&str]) -> Vec<String> {
    let text = |value: &Value| {
        let mut all = Vec::new();
        texts(value, &mut all);
        all.join("\n")
    };
    new_cues(&Cues::in_text(&text(old), others), &Cues::in_text(&text(new), others))
}

/// Every text, and the names of all fields: a model reads both.
fn texts<'a>(value: &'a Value, all: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, value)| !names_dialect(key, value)).for_each(|(key, value)| {
                all.push(key);
                texts(value, all);
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn names_dialect(key: &str, value: &Value) -> bool {
    key == "$schema" && value.as_str().is_some_and(|value| DIALECTS.contains(&value))
}

/// Hints that now promise less risk than before. A hint that is absent means the worst.
fn lowered_risk(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    const HINTS: [(&str, bool, bool); 4] = [
        ("readOnlyHint", false, true),
        ("destructiveHint", true, false),
        ("idempotentHint", false, true),
        ("openWorldHint", true, false),
    ];
    let hint = |of: Option<&Value>, name: &str, absent: bool| {
        of.and_then(|all| all.get(name)).and_then(Value::as_bool).unwrap_or(absent)
    };
    let lowered = HINTS.into_iter().filter(|(name, absent, harmless)| {
        hint(old, name, *absent) != *harmless && hint(new, name, *absent) == *harmless
    });
    let mut reasons: Vec<String> =
        lowered.map(|(name, _, _)| format!("`{name}` now promises less risk")).collect();
    let fields = |of: Option<&Value>| of.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (fields(old), fields(new));
    let known = |name: &str| name == "title" || HINTS.iter().any(|(hint, _, _)| *hint == name);
    let changed = after.iter().filter(|(name, value)| !known(name) && before.get(*name) != Some(value));
    reasons.extend(changed.map(|(name, _)| format!("the annotation `{name}` is new or has changed")));
    reasons
}

/// Fields that are not understood and are not what they were.
fn other_fields(old: &Value, new: &Value, known: &[&str]) -> Vec<String> {
    let fields = new.as_object().into_iter().flatten();
    let changed =
        fields.filter(|(name, value)| !known.contains(&name.as_str()) && old.get(*name) != Some(value));
    changed.map(|(name, _)| format!("the field `{}` is new or has changed", name.escape_debug())).collect()
}
