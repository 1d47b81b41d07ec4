//! Whole documents, one a file, with what the library must say of them beside it.
//!
//! `NAME.toml` or `NAME.json` has either `NAME.expected` (every finding as `LINE:COLUMN code: message` with its
//! help below, or `ok`) or `NAME.canonical` (what was read, in canonical JSON). Missing or orphan ones fail.

use std::collections::BTreeMap;
use std::path::Path;

use bailiwick_manifest::Manifest;
use bailiwick_manifest::caveats::Caveats;
use bailiwick_manifest::diff::Accepted;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::{Findings, Source};

use super::lines::describe;
use super::{Seen, directory, files, updating};

/// A kind of document: its directory, and how a text of it is read and written back.
pub(super) struct Kind {
    pub(super) directory: &'static str,
    read: fn(&str) -> Result<String, Findings>,
}

pub(super) const KINDS: &[Kind] = &[
    Kind { directory: "manifest", read: read_manifest },
    Kind { directory: "caveats", read: read_caveats },
    Kind { directory: "snapshot", read: read_snapshot },
    Kind {
        directory: "accept",
        read: |text| Accepted::parse(text).map(|risks| format!("{} accepted\n", risks.len())),
    },
];

fn read_manifest(text: &str) -> Result<String, Findings> {
    let canonical = Manifest::parse(text)?.canonical();
    let again = Manifest::parse(&canonical.to_string()).unwrap();
    assert_eq!(again.canonical(), canonical, "what is canonical reads back as itself");
    let taken = Snapshot::parse(text)?;
    let kept = Snapshot::parse(&taken.to_text()?)?;
    assert_eq!(kept.hash(), taken.hash());
    assert_eq!(kept.manifest().canonical(), canonical);
    Ok(format!("{canonical:#}\n"))
}

fn read_caveats(text: &str) -> Result<String, Findings> {
    let caveats = Caveats::parse(text)?;
    let written = serde_json::to_string_pretty(&caveats).unwrap();
    assert_eq!(Caveats::parse(&written)?, caveats, "what is written reads back as itself");
    let authority = caveats.authority()?;
    assert!(authority == authority.meet(&authority));
    Ok(written + "\n")
}

fn read_snapshot(text: &str) -> Result<String, Findings> {
    let snapshot = Snapshot::parse(text)?;
    Ok(format!("{}\n", snapshot.hash()))
}

/// Reads every document of a kind.
pub(super) fn run(kind: &Kind) -> Seen {
    let _held = files();
    let root = directory().join(kind.directory);
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(&root).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let (stem, extension) = file.split_once('.').unwrap();
        cases.entry(stem.to_owned()).or_default().push(extension.to_owned());
    }
    let mut seen = Seen::default();
    for (stem, mut extensions) in cases {
        extensions.sort_unstable();
        let sources: Vec<&String> =
            extensions.iter().filter(|own| *own == "toml" || *own == "json").collect();
        match &*sources {
            [source] => case(kind, &root, &stem, source, &extensions, &mut seen),
            [] => seen.wrong.push(format!("{}/{stem}: an expectation of nothing", kind.directory)),
            _ => seen.wrong.push(format!("{}/{stem}: two documents of one name", kind.directory)),
        }
    }
    seen
}

fn case(kind: &Kind, root: &Path, stem: &str, source: &str, extensions: &[String], seen: &mut Seen) {
    let name = format!("{}/{stem}.{source}", kind.directory);
    let text = std::fs::read_to_string(root.join(format!("{stem}.{source}"))).unwrap();
    let (answer, written) = match (kind.read)(&text) {
        Ok(canonical) => {
            seen.valid += 1;
            ("canonical", Ok(canonical))
        }
        Err(findings) => {
            seen.invalid += 1;
            seen.codes.extend(findings.as_slice().iter().map(|finding| finding.code()));
            ("expected", list(&name, &text, &findings))
        }
    };
    let other = if answer == "expected" { "canonical" } else { "expected" };
    if extensions.iter().any(|own| own == other) {
        seen.wrong.push(format!("{name}: has a `.{other}`, yet the answer is\n{written:?}"));
    }
    let path = root.join(format!("{stem}.{answer}"));
    let stored = std::fs::read_to_string(&path).ok();
    match written {
        Err(why) => seen.wrong.push(format!("{name}: {why}")),
        Ok(written) if updating() => {
            if stored.as_ref() != Some(&written) {
                std::fs::write(&path, written).unwrap();
            }
        }
        Ok(written) if stored.as_ref() != Some(&written) => {
            seen.wrong
                .push(format!("{name}:\n--- expected\n{}\n+++ found\n{written}", stored.unwrap_or_default()));
        }
        Ok(_) => {}
    }
}

fn list(name: &str, text: &str, findings: &Findings) -> Result<String, String> {
    let source = Source::new(name, text);
    let mut out = String::new();
    for finding in findings.as_slice() {
        describe(finding)?;
        let span = finding.span().ok_or_else(|| format!("`{finding}` has no place"))?;
        if span.start > span.end || text.get(span.start..span.end).is_none() {
            return Err(format!("{span:?} of `{finding}` is not in the text"));
        }
        let place = source.place(span.start);
        out += &format!("{}:{} {}: {}\n", place.line, place.column, finding.code(), finding.message());
        out += &format!("    help: {}\n", finding.help_text().unwrap_or_default());
    }
    Ok(out)
}
