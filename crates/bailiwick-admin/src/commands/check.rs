//! `bailiwick check`: every finding of every file, or what each manifest may touch in all.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::facts::Setting;
use bailiwick_command::input::InputError;
use bailiwick_command::render::{escape, json, snippet, style};
use bailiwick_command::{facts, input};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_manifest::{Checked, Manifest};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Finding, Source};
use serde_json::{Value, json};

use crate::args::{Check, Format};
use crate::render::sarif;

/// The most lines of a summary.
const SHOWN: usize = 24;

/// What became of one file.
enum Outcome {
    Unreadable { name: String, why: String },
    Wrong(Source, Vec<Finding>),
    Fine(Source, Box<Summary>),
}

/// What a manifest without findings says.
struct Summary {
    name: String,
    version: String,
    tools: usize,
    capabilities: usize,
    /// The hash, if the file is a stored snapshot.
    snapshot: Option<String>,
    /// What the server may touch in all; `None` where no list of capabilities says it.
    touches: Option<Vec<String>>,
    promises: Vec<String>,
}

pub(super) fn run(args: &Check) -> Answer {
    let outcomes: Vec<Outcome> = args.files.iter().map(|path| look(path, &args.settings)).collect();
    let exit = outcomes.iter().map(Outcome::exit).max().unwrap_or(Exit::Fine);
    match args.format {
        Format::Text => Answer {
            complaint: outcomes.iter().map(Outcome::complaint).collect(),
            ..Answer::result(exit, text(&outcomes, args.quiet))
        },
        Format::Json => Answer::result(exit, json::document(&document(&outcomes))),
        Format::Sarif => Answer::result(exit, json::document(&log(&outcomes))),
    }
}

fn look(path: &std::path::Path, settings: &[Setting]) -> Outcome {
    let source = match input::read(path) {
        Ok(source) => source,
        Err(InputError::Wrong(source, findings)) => return Outcome::Wrong(source, findings),
        Err(InputError::Unreadable(why)) => {
            return Outcome::Unreadable { name: path.to_string_lossy().into_owned(), why };
        }
    };
    match summarise(source.text(), settings) {
        Ok(summary) => Outcome::Fine(source, Box::new(summary)),
        Err(findings) => Outcome::Wrong(source, findings),
    }
}

fn summarise(text: &str, settings: &[Setting]) -> Result<Summary, Vec<Finding>> {
    let (manifest, snapshot) = if input::is_snapshot(text) {
        let snapshot = Snapshot::parse(text).map_err(bailiwick_policy::finding::Findings::into_vec)?;
        (snapshot.manifest().clone(), Some(snapshot.hash().to_owned()))
    } else {
        (Manifest::parse(text).map_err(bailiwick_policy::finding::Findings::into_vec)?, None)
    };
    let facts = facts::for_manifest(&manifest, settings)?;
    let checked = manifest.check(&facts).map_err(bailiwick_policy::finding::Findings::into_vec)?;
    if checked.hidden_lines().is_empty() {
        return Ok(Summary::for_checked(&checked, snapshot));
    }
    Err(checked.hidden_lines().to_vec())
}

impl Summary {
    fn for_checked(checked: &Checked, snapshot: Option<String>) -> Self {
        let manifest = checked.manifest();
        let of_tools = manifest.tools().iter().flat_map(|tool| tool.capabilities().unwrap_or_default());
        let lines: Vec<&Capability> =
            manifest.server_capabilities().iter().chain(of_tools).map(|line| &line.value).collect();
        let promises = lines.iter().filter(|line| matches!(line, Capability::Assert { .. }));
        let touches = checked.authority().capabilities();
        Self {
            name: manifest.name().to_owned(),
            version: manifest.version().to_owned(),
            tools: manifest.tools().len(),
            capabilities: lines.len(),
            snapshot,
            touches: touches.map(|lines| lines.iter().map(ToString::to_string).collect()),
            promises: promises.map(ToString::to_string).collect(),
        }
    }

    fn text(&self, source: &Source) -> String {
        let what = match &self.snapshot {
            Some(hash) => format!(", a snapshot ({hash})"),
            None => String::new(),
        };
        let mut text = format!(
            "{}: {}{what}\n  {} {}: {}, {}\n",
            style::good("ok"),
            escape::line(source.name()),
            escape::line(&self.name),
            escape::line(&self.version),
            style::count(self.tools, "tool", "tools"),
            style::count(self.capabilities, "capability", "capabilities"),
        );
        match self.touches.as_deref() {
            None => {
                text += "  may touch more than a list of capabilities can say: a tool's policy allows all\n"
            }
            Some([]) => text += "  may touch nothing\n",
            Some(lines) => text += &listed("may touch, in all", lines),
        }
        if !self.promises.is_empty() {
            text += &listed("promises, which no sandbox holds", &self.promises);
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "version": self.version,
            "tools": self.tools,
            "capabilities": self.capabilities,
            "touches": self.touches,
            "promises": self.promises,
        })
    }
}

fn listed(title: &str, lines: &[String]) -> String {
    let mut text = format!("  {title}:\n");
    for line in lines.iter().take(SHOWN) {
        text += &format!("    {}\n", escape::line(line));
    }
    if lines.len() > SHOWN {
        text += &format!("    and {} more\n", lines.len() - SHOWN);
    }
    text
}

impl Outcome {
    const fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. } => Exit::Invalid,
            Self::Wrong(..) => Exit::Found,
            Self::Fine(..) => Exit::Fine,
        }
    }

    fn complaint(&self) -> String {
        match self {
            Self::Unreadable { why, .. } => input::unreadable(why),
            Self::Wrong(..) | Self::Fine(..) => String::new(),
        }
    }

    fn findings(&self) -> usize {
        match self {
            Self::Wrong(_, findings) => findings.len(),
            Self::Unreadable { .. } | Self::Fine(..) => 0,
        }
    }

    fn json(&self) -> Value {
        let (name, kind, findings, summary) = match self {
            Self::Unreadable { name, why } => return json!({ "file": name, "ok": false, "fault": why }),
            Self::Wrong(source, findings) => {
                let findings = findings.iter().map(|found| json::finding(source, found)).collect();
                (source.name(), kind(source.text()), findings, None)
            }
            Self::Fine(source, summary) => {
                let kind = if summary.snapshot.is_some() { "snapshot" } else { "manifest" };
                (source.name(), kind, Vec::new(), Some(summary.json()))
            }
        };
        json!({ "file": name, "kind": kind, "ok": findings.is_empty(), "findings": findings, "summary": summary })
    }
}

fn kind(text: &str) -> &'static str {
    if input::is_snapshot(text) { "snapshot" } else { "manifest" }
}

fn text(outcomes: &[Outcome], quiet: bool) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Wrong(source, findings) => text += &snippet::findings(source, findings),
            Outcome::Fine(source, summary) if !quiet => text += &summary.text(source),
            Outcome::Fine(..) | Outcome::Unreadable { .. } => {}
        }
    }
    let findings: usize = outcomes.iter().map(Outcome::findings).sum();
    let files = outcomes.iter().filter(|outcome| outcome.findings() > 0).count();
    if findings > 0 && !quiet {
        let findings = style::count(findings, "finding", "findings");
        text += &format!("{} in {}\n", style::error(&findings), style::count(files, "file", "files"));
    }
    text
}

fn document(outcomes: &[Outcome]) -> Value {
    json!({
        "format": "bailiwick.check/1",
        "findings": outcomes.iter().map(Outcome::findings).sum::<usize>(),
        "files": outcomes.iter().map(Outcome::json).collect::<Vec<_>>(),
    })
}

fn log(outcomes: &[Outcome]) -> Value {
    let (mut results, mut unreadable) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::Wrong(source, findings) => results.extend(sarif::of_findings(source, findings)),
            Outcome::Unreadable { why, .. } => unreadable.push(sarif::notification(why)),
            Outcome::Fine(..) => {}
        }
    }
    sarif::log(&results, &unreadable)
}
