//! `bailiwick audit`: what a manifest declares beside what a program does, and beside what its source does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::learn::Audit;
use bailiwick_command::companion;
use bailiwick_command::render::{escape, style};
use bailiwick_learn::{Draft, Evidence, draft};
use bailiwick_manifest::Manifest;
use serde_json::Value;

use super::known::Known;
use super::plan::Setup;
use super::recorded::given_calls;
use super::session::Ran;
use super::subject::{Naming, Subject};
use super::{Drive, watch};

/// Runs it.
pub(crate) fn audit(args: &Audit) -> anyhow::Result<Answer> {
    let known = Known::read(&args.manifest)?;
    let watched = &args.watched;
    let source = args.source.as_deref().map(scanned).transpose()?;
    let naming = Naming { name: None, is_server: !known.manifest.tools().is_empty(), is_unrecorded: true };
    let calls = given_calls(watched)?;
    let setup = Setup::new(watched, Subject::from_args(watched, &naming)?)?;
    let drive = Drive { watched, runs: 1, generates: true, is_unrecorded: true };
    let Ran { evidence, .. } = watch(&drive, &setup, calls.unwrap_or_default())?;
    let mut draft = draft(&evidence);
    let unused = known.unused(&draft, &evidence, &setup.subject)?;
    let sides = source.map(|source| side_by_side(&known.manifest, &source, &evidence, &draft));
    known.take_out_of(&mut draft, &evidence, &setup.subject)?;
    let mut found = String::new();
    for line in &draft.lines {
        found += &format!("+ {}  used and not declared\n", escape::line(&line.capability));
    }
    for line in &unused {
        found += &format!("- {}  declared and not used\n", escape::line(line));
    }
    if let Some(why) = &evidence.incomplete {
        found +=
            &format!("{}: not everything was seen: {}\n", style::warning("incomplete"), escape::line(why));
    }
    let sides = sides.unwrap_or_default();
    if found.is_empty() {
        let text = format!("{}: everything that was used is declared, and used\n", style::good("ok"));
        return Ok(Answer::result(Exit::Fine, sides + &text));
    }
    Ok(Answer::result(Exit::Found, sides + &found))
}

/// What the source of each tool does, as lines; what no tool does is under an empty name.
type SourceDeeds = BTreeMap<String, BTreeSet<String>>;

/// Reads source with the program that has the parsers.
fn scanned(dir: &Path) -> anyhow::Result<SourceDeeds> {
    let program = companion::find(companion::SCAN)
        .with_context(|| format!("{} is not beside this program: install all of them", companion::SCAN))?;
    let mut command = Command::new(program);
    command.args([companion::FOR, companion::VERSION, "scan", "--format", "json", "--"]).arg(dir);
    let done = command.stdin(Stdio::null()).output().context("cannot start the scan of the source")?;
    let report = serde_json::from_slice::<Value>(&done.stdout).with_context(|| {
        format!("cannot read `{}`: {}", dir.display(), String::from_utf8_lossy(&done.stderr).trim())
    })?;
    let mut deeds = SourceDeeds::new();
    deeds.insert(String::new(), lines_of(report.get("server").unwrap_or(&Value::Null)));
    for tool in report.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        deeds.entry(name.to_owned()).or_default().extend(lines_of(tool));
    }
    Ok(deeds)
}

/// The uses of a tool in a scan's report.
fn lines_of(tool: &Value) -> BTreeSet<String> {
    let list = |key: &str| tool.get(key).and_then(Value::as_array).into_iter().flatten();
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
    let uses = list("uses").filter_map(|one| {
        let kind = || Some(format!("{} of what the source does not name", text(one, "kind")?));
        text(one, "capability").or_else(kind)
    });
    let unknown = list("unknown").count();
    let unknown = (unknown > 0).then(|| format!("unknown in {}", style::count(unknown, "place", "places")));
    uses.chain(unknown).collect()
}

/// For each tool, and for the server as a whole: declared, in the source, done.
fn side_by_side(manifest: &Manifest, source: &SourceDeeds, evidence: &Evidence, draft: &Draft) -> String {
    let mut declared = SourceDeeds::new();
    let own = manifest.server_capabilities().iter().map(|line| line.value.to_string());
    declared.insert(String::new(), own.collect());
    for tool in manifest.tools() {
        let lines = tool.capabilities().unwrap_or_default().iter().map(|line| line.value.to_string());
        declared.insert(tool.name().to_owned(), lines.collect());
    }
    let mut done = SourceDeeds::new();
    for tool in &evidence.tools {
        done.entry(tool.name.clone()).or_default();
    }
    for line in &draft.lines {
        let name = line.tool.and_then(|tool| evidence.tools.get(tool)).map(|tool| tool.name.clone());
        done.entry(name.unwrap_or_default()).or_default().insert(line.capability.clone());
    }
    let names: BTreeSet<&String> = declared.keys().chain(source.keys()).chain(done.keys()).collect();
    let mut text = String::new();
    for name in names {
        let shown = if name.is_empty() { "the server".to_owned() } else { escape::line(name) };
        text += &format!("{}\n", style::strong(&shown));
        for (what, deeds) in [("declared", &declared), ("source", source), ("done", &done)] {
            let lines = deeds.get(name).map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
            let lines = match lines {
                None => vec!["not there"],
                Some(lines) if lines.is_empty() => vec!["nothing"],
                Some(lines) => lines,
            };
            for (at, line) in lines.iter().enumerate() {
                text += &format!("  {:<9} {}\n", if at == 0 { what } else { "" }, escape::line(line));
            }
        }
    }
    text
}
