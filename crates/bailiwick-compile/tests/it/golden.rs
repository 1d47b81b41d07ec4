//! What every target and every gateway says of every case, byte by byte.
//!
//! A case is a directory with a `manifest.toml` and a `why.txt`; see [`Case`] for how its golden files are stored.
//! They are one file for each target and gateway, how well each target holds the manifest (`coverage.txt`), what
//! is the same for all targets (`artifact.json`), and what is refused (`refused.txt`); a manifest that is itself
//! wrong has its `findings.txt` instead. Parts that many artifacts share are stored once, see [`shared`], and a
//! file that hardly differs from another of its case is stored as that difference. A file too many fails as one
//! too few does; `UPDATE_GOLDEN=1` rewrites. A first line `# targets: a, b` keeps a case to these.
//!
//! Other tests take what is emitted from [`produced`], never from the golden files.

mod case;
mod diff;
mod shared;

use std::path::{Path, PathBuf};

use bailiwick_compile::{Egress, Target, compile, coverage, egress};
use bailiwick_manifest::Manifest;
use bailiwick_policy::artifact::{Artifact, Provenance};
use bailiwick_policy::enforcement::{Aspect, Coverage, Floor, Precision};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::Findings;
use bailiwick_policy::plan::Plan;
use serde_json::Value;

use case::{Case, Texts};
use shared::Shared;

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

/// Files that say the same as another of their case but for a few lines.
const TWINS: [(&str, &str); 2] =
    [("config.rootless.json", "config.json"), ("squid/squid.conf", "squid.conf")];

#[test]
fn every_case_says_what_its_golden_files_hold() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if update {
        shared::rewrite();
    }
    let shared = Shared::stored();
    let mut wrong = String::new();
    for case in cases() {
        let (said, plan) = said(&case);
        let said = folded(said, plan.as_ref(), &shared);
        if update {
            case.rewrite(&said);
            continue;
        }
        let expected = case.expected();
        let names: std::collections::BTreeSet<&String> = said.keys().chain(expected.keys()).collect();
        for name in names.into_iter().filter(|name| said.get(*name) != expected.get(*name)) {
            let text = |texts: &Texts| texts.get(name).cloned().unwrap_or_default();
            wrong += &format!("--- {}/{name}\n{}", case.name, diff::between(&text(&expected), &text(&said)));
        }
    }
    let shown: String = wrong.split_inclusive('\n').take(200).collect();
    assert!(wrong.is_empty(), "out of date, missing or orphan; rewrite with UPDATE_GOLDEN=1:\n{shown}");
}

#[test]
fn the_reference_servers_are_the_templates_and_the_other_sixteen_are_there() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bailiwick-admin/templates");
    for name in REFERENCE {
        let template = std::fs::read_to_string(templates.join(format!("{name}.toml"))).unwrap();
        assert_eq!(Case::named(name).manifest(), template, "{name}");
    }
    let names: Vec<String> = cases().into_iter().map(|case| case.name).collect();
    for number in 1..=16 {
        let start = format!("peer-{number:02}-");
        assert_eq!(names.iter().filter(|name| name.starts_with(&start)).count(), 1, "{start}");
    }
    assert_eq!(names.len(), 1 + REFERENCE.len() + 16, "`base`, the servers and the peers' mistakes");
}

/// All cases, one that others are like before those.
fn cases() -> Vec<Case> {
    let entries = std::fs::read_dir(directory()).expect("there is a directory of cases");
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<Case> = names.filter(|name| name != "shared").map(|name| Case::named(&name)).collect();
    cases.sort_by_cached_key(|case| {
        let likes = std::iter::successors(Some(case.clone()), |case| case.why().1).take(10).count();
        assert!(likes < 10, "{} is like itself", case.name);
        (likes, case.name.clone())
    });
    cases
}

/// What the compiler says under this name for every case that it says anything for, with the name of the case.
pub(crate) fn produced(file: &str) -> Vec<(String, String)> {
    let text = |case: Case| Some((case.name.clone(), said(&case).0.remove(file)?));
    cases().into_iter().filter_map(text).collect()
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
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
    Ok(checked.server_plan(&facts).expect("a list of rules says it"))
}

fn provenance() -> Provenance {
    Provenance { manifest: None, compiler: "test".to_owned() }
}

/// Everything that is said of a case, in full; with the plan, if there is one.
fn said(case: &Case) -> (Texts, Option<Plan>) {
    let text = case.manifest();
    let plan = match plan(&text) {
        Ok(plan) => plan,
        Err(findings) => {
            let findings = findings.into_vec().into_iter();
            let lines = findings.map(|found| format!("{}: {}\n", found.code(), found.message()));
            return (Texts::from([("findings.txt".to_owned(), lines.collect())]), None);
        }
    };
    let targets = Target::ALL.into_iter().filter(|target| wanted(&text, target.as_str()));
    let gateways = Egress::ALL.into_iter().filter(|format| wanted(&text, format.as_str()));
    let said = said_of(&plan, &targets.collect::<Vec<_>>(), &gateways.collect::<Vec<_>>());
    (said, Some(plan))
}

/// What these targets and gateways say of a plan.
fn said_of(plan: &Plan, targets: &[Target], gateways: &[Egress]) -> Texts {
    let (mut said, mut held, mut refused) = (Texts::new(), String::new(), String::new());
    for target in targets.iter().copied() {
        held += &lines_of(target, &coverage(target, plan));
        if let Err(refusal) = compile(target, plan, &plan.floor(), provenance()) {
            refused += &format!("{refusal}\n");
        }
        // no floor: what the usual one refuses is told in `refused.txt`
        if let Ok(artifact) = compile(target, plan, &Floor::none(), provenance()) {
            assert_eq!(artifact.coverage(), &coverage(target, plan), "{target}");
            held.extend(artifact.notes().iter().map(|note| format!("{target} note: {note}\n")));
            emitted(&artifact, &mut said);
        }
    }
    for format in gateways.iter().copied() {
        match egress(format, plan) {
            Ok(file) => put(&mut said, &file.name, file.text),
            Err(refusal) => refused += &format!("{refusal}\n"),
        }
    }
    put(&mut said, "coverage.txt", held);
    if !refused.is_empty() {
        put(&mut said, "refused.txt", refused);
    }
    said
}

/// Every aspect in a line.
fn lines_of(target: Target, coverage: &Coverage) -> String {
    let line = |aspect: Aspect| {
        let held = coverage.held(aspect);
        let precision = if held.precision == Precision::Exact { "exact" } else { "superset" };
        format!("{target} {aspect}: {} {precision}: {}\n", held.level, held.why)
    };
    Aspect::ALL.into_iter().map(line).collect()
}

/// The command line, the files, and what is the same for all targets.
fn emitted(artifact: &Artifact, said: &mut Texts) {
    let target = artifact.target();
    if !artifact.argv().is_empty() {
        let own = format!("{target}.args");
        let taken = artifact.files().iter().any(|file| file.name == own);
        put(said, &if taken { format!("{target}.argv") } else { own }, option_lines(artifact.argv()));
    }
    for file in artifact.files() {
        put(said, &file.name, file.text.clone());
    }
    let mut document = artifact.to_json();
    let fields = document.as_object_mut().unwrap();
    assert_eq!(fields.remove("target"), Some(target.into()));
    assert_eq!(fields.remove("argv"), Some(artifact.argv().into()));
    assert_eq!(fields.remove("notes"), Some(artifact.notes().into()));
    assert_eq!(fields.remove("coverage"), Some(artifact.coverage().to_json()));
    let files: Value = artifact.files().iter().map(|file| (file.name.clone(), file.text.clone())).collect();
    assert_eq!(fields.remove("files"), Some(files));
    put(said, "artifact.json", format!("{document:#}\n"));
}

/// A command line with an option and its values in each line, quoted for a shell that reads all lines as one.
fn option_lines(argv: &[String]) -> String {
    let mut text = String::new();
    for (at, word) in argv.iter().enumerate() {
        text += if at == 0 {
            ""
        } else if word.starts_with("--") {
            "\n"
        } else {
            " "
        };
        text += &shlex::try_quote(word).unwrap();
    }
    assert_eq!(shlex::split(&text).as_deref(), Some(argv), "the lines are the words");
    text + "\n"
}

fn put(said: &mut Texts, name: &str, text: String) {
    assert!(!name.ends_with(".diff"), "{name} would be taken for a difference");
    let before = said.insert(name.to_owned(), text.clone());
    assert!(before.is_none_or(|before| before == text), "two targets write {name}, and not the same");
}

fn wanted(manifest: &str, name: &str) -> bool {
    let only = manifest.lines().next().and_then(|line| line.strip_prefix("# targets: "));
    only.is_none_or(|names| names.split(", ").any(|own| own == name))
}

/// The same texts as they are stored: shared parts by their name, twins as what differs. Nothing is lost.
fn folded(mut said: Texts, plan: Option<&Plan>, shared: &Shared) -> Texts {
    let Some(plan) = plan else { return said };
    for (name, text) in &mut said {
        *text = shared.folded(name, text, plan);
    }
    for (name, other) in TWINS {
        let (Some(text), Some(base)) = (said.get(name), said.get(other)) else { continue };
        let difference = diff::between(base, text);
        assert_eq!(diff::apply(base, &difference).as_ref(), Ok(text), "{name}");
        said.insert(name.to_owned(), format!("as {other}, but:\n{difference}"));
    }
    said
}
