//! What every published version of the protocol's reference servers says of itself, judged from each to the next.
//!
//! `published/*.jsonl` has a line for each version, in the order of their numbers, with what it says where that differs from the one before;
//! `scripts/published-pins` asks the registries anew. `published.expected` has every verdict, read by a person. Beside it
//! stands an oracle that knows nothing of the judge: it compares schemas as trees.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bailiwick_pins::{Drift, PinnedSubject, ServerSurface, SurfaceChange, judge_drift};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Texts inside schemas, which change nothing of what a tool takes.
const TEXTS: [&str; 5] = ["title", "description", "default", "examples", "$schema"];

#[derive(Deserialize)]
struct Published {
    version: String,
    #[serde(default)]
    instructions: Option<String>,
    tools: Option<Vec<Value>>,
}

fn directory() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/published");
    std::env::var_os("BAILIWICK_PUBLISHED").map_or_else(own, PathBuf::from)
}

/// Every step of every server: its name, both versions, and what they say.
fn steps() -> Vec<(String, ServerSurface, ServerSurface)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let mut steps = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let mut last: Option<(String, ServerSurface)> = None;
        for line in text.lines() {
            let Published { version, instructions, tools } = serde_json::from_str(line).unwrap();
            let Some(tools) = tools else { continue };
            let named = |tool: Value| (tool["name"].as_str().unwrap().to_owned(), tool);
            let tools = tools.into_iter().map(named).collect();
            let now = ServerSurface { instructions, tools, ..ServerSurface::default() };
            if let Some((before, old)) = last.replace((version.clone(), now.clone())) {
                steps.push((format!("{name} {before} -> {version}"), old, now));
            }
        }
    }
    steps
}

fn judged() -> Vec<(String, ServerSurface, ServerSurface, Vec<SurfaceChange>)> {
    let judge = |(name, old, new)| {
        let changes = judge_drift(&old, &new, &[]);
        (name, old, new, changes)
    };
    steps().into_iter().map(judge).collect()
}

fn drift_of(changes: &[SurfaceChange], tool: &str) -> Option<Drift> {
    let subject = PinnedSubject::Tool(tool.to_owned());
    changes.iter().find(|change| change.subject == subject).map(|change| change.drift)
}

#[test]
fn every_verdict_is_the_one_that_a_person_read() {
    let mut text = String::new();
    for (step, _, _, changes) in judged() {
        let _ = writeln!(text, "{step}");
        for change in changes {
            let _ = writeln!(
                text,
                "  {} {}: {}",
                change.drift.as_str(),
                change.subject,
                change.reasons.join("; ")
            );
        }
    }
    if std::env::var_os("BAILIWICK_PUBLISHED").is_some() {
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/published.expected");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(golden, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap());
}

#[test]
fn every_new_tool_and_every_looser_schema_is_withheld() {
    let (mut new_tools, mut looser) = (0, 0);
    for (step, old, new, changes) in judged() {
        for (name, tool) in &new.tools {
            let drift = drift_of(&changes, name);
            match old.tools.get(name) {
                None => {
                    new_tools += 1;
                    assert_eq!(drift, Some(Drift::Widening), "{step}: {name} is new");
                }
                Some(before) if takes_more(&before["inputSchema"], &tool["inputSchema"]) => {
                    looser += 1;
                    assert_eq!(drift, Some(Drift::Widening), "{step}: {name} takes more");
                }
                Some(_) => {}
            }
        }
    }
    assert!(
        new_tools > 10 && looser > 3,
        "{new_tools} new tools and {looser} looser schemas are too few to show anything"
    );
}

/// A tool whose schema and promises are the same and whose texts have nothing new in them but words must not be withheld.
#[test]
fn no_harmless_change_is_withheld() {
    let mut reworded = 0;
    for (step, old, new, changes) in judged() {
        for (name, tool) in &new.tools {
            let Some(before) = old.tools.get(name) else { continue };
            let others: Vec<&str> = new
                .tools
                .keys()
                .chain(old.tools.keys())
                .filter(|other| *other != name)
                .map(String::as_str)
                .collect();
            let is_same = shape(&before["inputSchema"]) == shape(&tool["inputSchema"])
                && before.get("annotations") == tool.get("annotations");
            if before == tool || !is_same || has_cue(&before.to_string(), &tool.to_string(), &others) {
                continue;
            }
            reworded += 1;
            assert_eq!(drift_of(&changes, name), Some(Drift::Harmless), "{step}: {name}: {changes:?}");
        }
        for name in old.tools.keys().filter(|name| !new.tools.contains_key(*name)) {
            assert_eq!(drift_of(&changes, name), Some(Drift::Harmless), "{step}: {name} is gone");
        }
    }
    assert!(reworded > 5, "{reworded} are too few to show anything");
}

/// Whether a text has a sign of more than rewording that the other has not: a link, a path, an order, or another tool.
fn has_cue(old: &str, new: &str, others: &[&str]) -> bool {
    let signs = |text: &str| -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        let words = text.split(|c: char| c.is_whitespace() || "\"'()\\,".contains(c));
        for word in words.map(str::to_lowercase) {
            let is_sign = (word.contains("://") && !word.contains("//json-schema.org/"))
                || word.starts_with('/')
                || others.contains(&word.trim_end_matches(['.', ':', '`']))
                || [
                    "must",
                    "always",
                    "never",
                    "important",
                    "important:",
                    "required",
                    "only",
                    "before",
                    "first",
                ]
                .contains(&&*word);
            if is_sign {
                *found.entry(word).or_default() += 1;
            }
        }
        found
    };
    let before = signs(old);
    signs(new).iter().any(|(sign, count)| before.get(sign).is_none_or(|known| known < count))
}

/// A schema without its texts.
fn shape(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !TEXTS.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), shape(value))).collect::<Map<_, _>>())
        }
        Value::Array(all) => Value::Array(all.iter().map(shape).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// Whether something is taken now that was not: a property, one that may be left out, a value, or a type.
fn takes_more(old: &Value, new: &Value) -> bool {
    let list =
        |schema: &Value, key: &str| -> Vec<Value> { schema[key].as_array().cloned().unwrap_or_default() };
    let has_new_value =
        |key: &str| old[key].is_array() && list(new, key).iter().any(|value| !list(old, key).contains(value));
    let needs_less = list(old, "required").iter().any(|name| !list(new, "required").contains(name));
    let empty = Map::new();
    let properties = |schema: &Value| schema["properties"].as_object().unwrap_or(&empty).clone();
    let (before, now) = (properties(old), properties(new));
    let has_new_property = now.keys().any(|name| !before.contains_key(name));
    let inside = now.iter().any(|(name, schema)| before.get(name).is_some_and(|old| takes_more(old, schema)));
    let of_items =
        old["items"].is_object() && new["items"].is_object() && takes_more(&old["items"], &new["items"]);
    let other_type = old["type"].is_string() && new["type"].is_string() && old["type"] != new["type"];
    let fewer_bounds = ["minimum", "maximum", "exclusiveMinimum", "pattern", "enum"]
        .iter()
        .any(|bound| !old[*bound].is_null() && new[*bound].is_null() && new["type"] == old["type"]);
    has_new_property
        || needs_less
        || has_new_value("enum")
        || inside
        || of_items
        || other_type
        || fewer_bounds
}
