//! Precision and recall over a corpus that was labelled by hand, per language and capability.
//!
//! A case is a file or a directory; `labels.toml` says what each of its tools does. A label is matched at most once,
//! and every use that has no label counts against precision.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bailiwick_scan::{Deeds, Report};

use super::{corpus_dir, scan};

const LANGUAGES: [&str; 5] = ["javascript", "kotlin", "python", "rust", "typescript"];
const PRECISION: f64 = 0.95;
const RECALL: f64 = 0.90;

/// Tool to what it does, as labels say it.
type Tools = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Default, Clone, Copy)]
struct Score {
    right: u32,
    found: u32,
    labelled: u32,
}

impl Score {
    fn add(&mut self, found: &BTreeSet<String>, labelled: &BTreeSet<String>) {
        let count = |number: usize| u32::try_from(number).unwrap();
        self.right += count(found.intersection(labelled).count());
        self.found += count(found.len());
        self.labelled += count(labelled.len());
    }

    fn precision(self) -> f64 {
        if self.found == 0 { 1.0 } else { f64::from(self.right) / f64::from(self.found) }
    }

    fn recall(self) -> f64 {
        if self.labelled == 0 { 1.0 } else { f64::from(self.right) / f64::from(self.labelled) }
    }

    fn is_good(self) -> bool {
        self.precision() >= PRECISION && self.recall() >= RECALL
    }
}

#[test]
fn precision_and_recall_are_high_enough() {
    let mut scores: BTreeMap<(&str, &str), Score> = BTreeMap::new();
    let mut wrong = Vec::new();
    for language in LANGUAGES {
        for (case, labelled) in labels(language) {
            let found = found(&scan(&path_of(language, &case)));
            let tools: BTreeSet<&String> = found.keys().chain(labelled.keys()).collect();
            for tool in tools {
                let none = BTreeSet::new();
                let (own, due) = (found.get(tool).unwrap_or(&none), labelled.get(tool).unwrap_or(&none));
                if own != due {
                    wrong.push(format!("{language}/{case} `{tool}`: found {own:?}, labelled {due:?}"));
                }
                for kind in ["file read", "file write", "network", "environment", "exec", "clock", "unknown"]
                {
                    let of = |lines: &BTreeSet<String>| {
                        lines.iter().filter(|line| kind_of(line) == kind).cloned().collect()
                    };
                    scores.entry((language, kind)).or_default().add(&of(own), &of(due));
                }
            }
        }
    }
    eprintln!("{:<12} {:<12} {:>9} {:>7} {:>7}", "language", "capability", "precision", "recall", "labels");
    for ((language, kind), score) in &scores {
        let (precision, recall) = (score.precision(), score.recall());
        eprintln!("{language:<12} {kind:<12} {precision:>9.3} {recall:>7.3} {:>7}", score.labelled);
    }
    wrong.iter().for_each(|line| eprintln!("{line}"));
    let bad: Vec<_> = scores.iter().filter(|(_, score)| !score.is_good()).map(|(key, _)| key).collect();
    assert!(bad.is_empty(), "below {PRECISION} or {RECALL}: {bad:?}");
}

#[test]
fn the_corpus_is_large_enough_and_every_case_is_labelled() {
    let mut tools = 0;
    for language in LANGUAGES {
        let labels = labels(language);
        let own: usize = labels.values().map(|tools| tools.keys().filter(|name| *name != "-").count()).sum();
        assert!(own >= 12, "{language} has {own} tools");
        tools += own;
        let entries = std::fs::read_dir(corpus_dir().join(language)).unwrap();
        let cases = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("labels.toml"));
        let cases: BTreeSet<String> =
            cases.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(cases, labels.keys().cloned().collect(), "{language}");
    }
    assert!(tools >= 60, "{tools} tools");
}

#[test]
fn a_wrong_label_lowers_the_score() {
    let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<_>>();
    let mut score = Score::default();
    score.add(&set(&["fs:read:/a", "fs:read:/b"]), &set(&["fs:read:/a", "fs:read:/c"]));
    assert!(!score.is_good());
    assert!((score.precision() - 0.5).abs() < 1e-9 && (score.recall() - 0.5).abs() < 1e-9);
}

fn labels(language: &str) -> BTreeMap<String, Tools> {
    let text = std::fs::read_to_string(corpus_dir().join(language).join("labels.toml")).unwrap();
    toml::from_str(&text).unwrap_or_else(|fault| panic!("{language}: {fault}"))
}

fn path_of(language: &str, case: &str) -> std::path::PathBuf {
    let dir = corpus_dir().join(language);
    let entries = std::fs::read_dir(&dir).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let own = |path: &std::path::PathBuf| path.file_stem() == Some(Path::new(case).as_os_str());
    paths.find(own).unwrap_or_else(|| panic!("{language} has no {case}"))
}

fn found(report: &Report) -> Tools {
    let mut tools = Tools::new();
    for tool in report.tools() {
        tools.entry(tool.name().to_owned()).or_default().extend(lines(tool.deeds()));
    }
    let server: BTreeSet<String> = lines(report.server()).collect();
    if !server.is_empty() {
        tools.insert("-".to_owned(), server);
    }
    tools
}

fn lines(deeds: &Deeds) -> impl Iterator<Item = String> {
    let uses = deeds
        .uses()
        .iter()
        .map(|one| one.capability().unwrap_or_else(|| format!("{} dynamic", one.kind().as_str())));
    uses.chain(deeds.unknowns().iter().map(|one| format!("unknown {}", one.reason().as_str())))
}

fn kind_of(line: &str) -> &'static str {
    let kinds = [
        ("fs:read", "file read"),
        ("fs:", "file write"),
        ("net:", "network"),
        ("env:", "environment"),
        ("exec:", "exec"),
        ("clock:", "clock"),
    ];
    kinds.iter().find(|(start, _)| line.starts_with(start)).map_or("unknown", |(_, kind)| kind)
}
