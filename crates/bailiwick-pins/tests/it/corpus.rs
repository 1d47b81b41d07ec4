//! Changes of what servers say of themselves, each with the label that a person gave it.

use std::collections::BTreeMap;

use bailiwick_pins::{Drift, ServerSurface, judge_drift};
use serde::Deserialize;
use serde_json::Value;

const CORPUS: &str = include_str!("pins.jsonl");

#[derive(Deserialize)]
struct LabelledPair {
    label: String,
    name: String,
    old: Surface,
    new: Surface,
    foreign: Vec<String>,
}

#[derive(Deserialize)]
struct Surface {
    instructions: Option<String>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    prompts: Vec<Value>,
}

impl From<Surface> for ServerSurface {
    fn from(read: Surface) -> Self {
        let named = |all: Vec<Value>| -> BTreeMap<String, Value> {
            all.into_iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one)).collect()
        };
        Self {
            instructions: read.instructions,
            tools: named(read.tools),
            prompts: named(read.prompts),
            ..Self::default()
        }
    }
}

#[test]
fn every_labelled_change_is_judged_as_its_label_says() {
    let pairs: Vec<LabelledPair> = CORPUS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(pairs.len() >= 150, "{}", pairs.len());
    let mut wrong = Vec::new();
    for pair in pairs {
        let foreign: Vec<&str> = pair.foreign.iter().map(String::as_str).collect();
        let changes = judge_drift(&pair.old.into(), &pair.new.into(), &foreign);
        let judged = changes.iter().map(|change| change.drift).max();
        let label = judged.map_or("same", Drift::as_str);
        if label != pair.label {
            let reasons: Vec<_> = changes.iter().flat_map(|change| &change.reasons).collect();
            wrong.push(format!("{}: {label}, not {}: {reasons:?}", pair.name, pair.label));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
