//! The JSON Schema knows the fields that the reader knows, and accepts every manifest we show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{run, run_with};
use bailiwick_testkit::skip;

fn schema() -> Value {
    serde_json::from_str(&run(&["schema"]).out).expect("the schema is JSON")
}

/// A manifest with one unknown field somewhere, and where the schema describes that place.
fn places() -> Vec<(&'static str, Value)> {
    let unknown = json!({ "qqqqqqqqqqqq": 1 });
    let when = json!({ "argument": "/a", "matches": "x" });
    let odd = json!({ "argument": "/a", "matches": "x", "qqqqqqqqqqqq": 1 });
    let tool = |key: &str, value: &Value| {
        let mut tool = json!({ "name": "t" });
        tool[key] = value.clone();
        json!({ "name": "a", "version": "1", "tools": [tool] })
    };
    vec![
        ("", json!({ "name": "a", "version": "1", "qqqqqqqqqqqq": 1 })),
        ("/$defs/tool", tool("qqqqqqqqqqqq", &json!(1))),
        ("/$defs/policy", tool("policy", &unknown)),
        ("/$defs/policy/properties/filesystem", tool("policy", &json!({ "filesystem": unknown }))),
        ("/$defs/constraints", tool("constraints", &unknown)),
        (
            "/$defs/constraints/properties/fleet_budget",
            tool("constraints", &json!({ "fleet_budget": { "name": "b", "qqqqqqqqqqqq": 1 } })),
        ),
        (
            "/$defs/rule",
            tool("rules", &json!([{ "when": when, "then": "deny", "message": "m", "qqqqqqqqqqqq": 1 }])),
        ),
        ("/$defs/condition", tool("rules", &json!([{ "when": odd, "then": "deny", "message": "m" }]))),
        ("/$defs/client", json!({ "name": "a", "version": "1", "client": unknown })),
        ("/$defs/limits", json!({ "name": "a", "version": "1", "limits": unknown })),
        ("/$defs/pins", json!({ "name": "a", "version": "1", "pins": unknown })),
    ]
}

/// The fields that the reader asks for, as the help of an unknown field lists them.
fn asked(manifest: &Value) -> BTreeSet<String> {
    let ran = run_with(&["check", "--format", "json", "-"], manifest.to_string());
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let help = report["files"][0]["findings"][0]["help"].as_str().expect("a finding with help").to_owned();
    let list = help.strip_prefix("known here: ").expect("the help lists the fields");
    list.split(';').next().unwrap().split(", ").map(str::to_owned).collect()
}

#[test]
fn the_schema_has_exactly_the_fields_of_the_reader() {
    let schema = schema();
    for (pointer, manifest) in places() {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        let mut fields: BTreeSet<String> =
            object["properties"].as_object().unwrap().keys().cloned().collect();
        assert!(fields.remove("_meta"), "{pointer} allows extensions");
        assert_eq!(fields, asked(&manifest), "{pointer}");
        assert_eq!(object["additionalProperties"], false, "{pointer}");
    }
}

#[test]
fn every_field_is_described() {
    let schema = schema();
    for (pointer, _) in places() {
        for (name, field) in schema.pointer(pointer).unwrap()["properties"].as_object().unwrap() {
            let described = field["description"].is_string() || field["$ref"].is_string();
            assert!(described, "{pointer} {name}");
        }
    }
}

/// Validates each file against the schema, and says which fail.
const VALIDATE: &str = "
import json, sys, tomllib, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    with open(path, 'rb') as file:
        document = json.load(file) if path.endswith('.json') else tomllib.load(file)
    errors = [error.message for error in validator.iter_errors(document)]
    print('ok' if not errors else 'wrong', path, *errors)
";

fn validate(files: &[PathBuf]) -> Option<Vec<String>> {
    let importable = Command::new("python3").args(["-c", "import jsonschema, tomllib"]).output();
    if !importable.is_ok_and(|output| output.status.success()) {
        skip("python3 with jsonschema is not installed");
        return None;
    }
    let schema = super::root().join("crates/bailiwick-manifest/src/manifest/manifest.schema.json");
    let output = Command::new("python3").arg("-c").arg(VALIDATE).arg(schema).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn templates_and_examples_are_valid() {
    let mut files = files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../bailiwick-admin/templates"));
    files.extend(files_in(&super::root().join("examples")));
    files.retain(|path| !path.ends_with("accept.toml") && !path.ends_with("notes.py"));
    assert!(files.len() >= 15);
    let Some(answers) = validate(&files) else { return };
    assert_eq!(answers.len(), files.len());
    for answer in answers {
        assert!(answer.starts_with("ok "), "{answer}");
    }
}

#[test]
fn what_the_reader_refuses_by_its_shape_the_schema_refuses_too() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken.toml");
    let Some(answers) = validate(&[fixture]) else { return };
    assert!(answers[0].starts_with("wrong "), "{}", answers[0]);
}
