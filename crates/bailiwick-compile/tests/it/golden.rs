//! What every target and every gateway says of every case, in its own format.
//!
//! A case is a folder with a `manifest.toml`. Beside it lie one file for each target and gateway, how well each
//! target holds the manifest (`coverage.json`), and what is refused (`refused.txt`); a manifest that is itself
//! wrong has its `findings.txt` instead. A file too many fails as one too few does; `UPDATE_GOLDEN=1` rewrites.
//! A first line `# targets: a, b` keeps a case to these.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bailiwick_compile::{Egress, Target, compile, coverage, egress};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::Findings;
use bailiwick_policy::manifest::Manifest;
use bailiwick_policy::plan::Plan;
use serde_json::{Map, Value, json};

/// The servers whose manifests are those that `bailiwick init` writes.
const REFERENCE: [&str; 10] = [
    "brave-search",
    "fetch",
    "filesystem",
    "git",
    "github",
    "memory",
    "postgres",
    "puppeteer",
    "sqlite",
    "time",
];

#[test]
fn every_case_says_what_its_golden_files_hold() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let said = said(&case);
        if update {
            rewrite(&case, &said);
            continue;
        }
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let held = files(&case);
        for file in said.keys().chain(held.keys()) {
            let (now, golden) = (said.get(file), held.get(file));
            if now != golden && !wrong.contains(&format!("{name}/{file}")) {
                wrong.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "out of date, missing or orphan; rewrite with UPDATE_GOLDEN=1:\n{wrong:#?}");
}

#[test]
fn the_reference_servers_are_the_templates_and_the_other_sixteen_are_there() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bailiwick-cli/templates");
    for name in REFERENCE {
        let template = std::fs::read_to_string(templates.join(format!("{name}.toml"))).unwrap();
        assert_eq!(manifest(&folder().join(name)), template, "{name}");
    }
    let names: Vec<String> =
        cases().iter().map(|case| case.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for number in 1..=16 {
        let start = format!("peer-{number:02}-");
        assert_eq!(names.iter().filter(|name| name.starts_with(&start)).count(), 1, "{start}");
    }
    assert_eq!(names.len(), REFERENCE.len() + 16);
}

/// The folders of all cases, sorted.
pub(crate) fn cases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("there is a folder of cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// The golden files of this name, with the name of their case.
pub(crate) fn golden(file: &str) -> Vec<(String, PathBuf)> {
    let cases = cases().into_iter();
    let named = cases.map(|case| (case.file_name().unwrap().to_string_lossy().into_owned(), case.join(file)));
    named.filter(|(_, path)| path.is_file()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn manifest(case: &Path) -> String {
    std::fs::read_to_string(case.join("manifest.toml")).expect("every case has a manifest")
}

/// The facts that all cases share: no host is asked.
pub(crate) fn facts() -> HostFacts {
    let facts = HostFacts::unknown().with_variable("WORKSPACE", "/workspace").unwrap();
    facts.with_variable("HOME", "/home/user").unwrap()
}

/// The plan of a manifest's text.
pub(crate) fn plan(text: &str) -> Result<Plan, Findings> {
    let facts = facts();
    let checked = Manifest::parse(text)?.check(&facts)?;
    Ok(Plan::server(&checked, &facts).expect("a list of rules says it"))
}

fn said(case: &Path) -> BTreeMap<String, String> {
    let text = manifest(case);
    let mut said = BTreeMap::new();
    let plan = match plan(&text) {
        Ok(plan) => plan,
        Err(findings) => {
            let lines = findings
                .into_vec()
                .into_iter()
                .map(|found| format!("{}: {}\n", found.code(), found.message()));
            said.insert("findings.txt".to_owned(), lines.collect());
            return said;
        }
    };
    let (mut held, mut refused) = (Map::new(), String::new());
    for target in Target::ALL.into_iter().filter(|target| wanted(&text, target.as_str())) {
        emitted(target, &plan, &mut said, &mut held, &mut refused);
    }
    for format in Egress::ALL.into_iter().filter(|format| wanted(&text, format.as_str())) {
        match egress(format, &plan) {
            Ok(file) => put(&mut said, file.name, file.text),
            Err(refusal) => refused += &format!("{refusal}\n"),
        }
    }
    put(&mut said, "coverage.json".to_owned(), format!("{:#}\n", Value::Object(held)));
    if !refused.is_empty() {
        put(&mut said, "refused.txt".to_owned(), refused);
    }
    said
}

/// The target's files, with no floor; what the usual floor says of it is told in `refused.txt`.
fn emitted(
    target: Target,
    plan: &Plan,
    said: &mut BTreeMap<String, String>,
    held: &mut Map<String, Value>,
    refused: &mut String,
) {
    let provenance = || Provenance { manifest: None, compiler: "test".to_owned() };
    let mut entry = json!({ "coverage": coverage(target, plan).to_json() });
    if let Err(refusal) = compile(target, plan, &plan.floor(), provenance()) {
        *refused += &format!("{refusal}\n");
    }
    if let Ok(artifact) = compile(target, plan, &Floor::none(), provenance()) {
        assert_eq!(artifact.coverage(), &coverage(target, plan), "{target}");
        entry["notes"] = json!(artifact.notes());
        if !artifact.argv().is_empty() {
            let lines = artifact.argv().iter().map(|word| shlex::try_quote(word).unwrap() + "\n");
            let own = format!("{target}.args");
            let taken = artifact.files().iter().any(|file| file.name == own);
            put(said, if taken { format!("{target}.argv") } else { own }, lines.collect());
        }
        for file in artifact.files() {
            put(said, file.name.clone(), file.text.clone());
        }
    }
    held.insert(target.to_string(), entry);
}

fn put(said: &mut BTreeMap<String, String>, name: String, text: String) {
    let before = said.insert(name.clone(), text.clone());
    assert!(before.is_none_or(|before| before == text), "two targets write {name}, and not the same");
}

fn wanted(manifest: &str, name: &str) -> bool {
    let only = manifest.lines().next().and_then(|line| line.strip_prefix("# targets: "));
    only.is_none_or(|names| names.split(", ").any(|own| own == name))
}

fn files(case: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![case.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(case).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    files.remove("manifest.toml");
    files
}

fn rewrite(case: &Path, said: &BTreeMap<String, String>) {
    for name in files(case).keys() {
        std::fs::remove_file(case.join(name)).unwrap();
    }
    for (name, text) in said {
        let path = case.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
