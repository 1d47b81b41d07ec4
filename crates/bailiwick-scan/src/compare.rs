//! What was declared against what is done.
//!
//! Using more than declared is a failure; declaring more than used is worth knowing. A target that the source does
//! not name fails where nothing of its kind is declared, and otherwise cannot be checked here.
//!
//! Fails closed when a policy cannot be read, a tool is not declared, or containment is not decided.

use bailiwick_manifest::{Checked, Declared, Manifest};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Code, Finding, Span};
use serde_json::json;

use crate::draft;
use crate::report::{Deeds, Report, Tool, Unknown, Use, UseKind};
use crate::target::{self, Cover, Target};

/// How many tools of a list are named.
const NAMED: usize = 12;
/// What to do about a use that the source does not name.
const UNCHECKED: &str = "it cannot be checked here; what confines it must";

/// The text that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A file of the report, by its number.
    File(usize),
    /// The manifest.
    Manifest,
}

/// A finding and whom it concerns.
#[derive(Debug, Clone)]
pub struct Judged {
    /// In which text.
    pub subject: Subject,
    /// About which tool; `None` is the server as a whole.
    pub tool: Option<String>,
    /// What.
    pub finding: Finding,
    /// What to paste into a manifest in TOML, where that would do.
    pub entry: Option<String>,
}

/// All that a comparison says.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    items: Vec<Judged>,
}

impl Judgement {
    /// The findings, tool by tool.
    #[must_use]
    pub fn items(&self) -> &[Judged] {
        &self.items
    }

    /// Whether more is done than declared; where it is strict, also whether anything is not known.
    #[must_use]
    pub fn fails(&self, strict: bool) -> bool {
        let fails = |code: Code| {
            let unknown = matches!(code, Code::ScanUnknown | Code::ScanDynamic);
            code.severity() == bailiwick_policy::finding::Severity::Error || strict && unknown
        };
        self.items.iter().any(|item| fails(item.finding.code()))
    }
}

/// Compares each tool with the manifest, or without one with the policy beside it in the source.
#[must_use]
pub fn compare(report: &Report, manifest: Option<&Checked>, facts: &HostFacts) -> Judgement {
    let mut judge = Judge { facts, items: Vec::new() };
    judge.listed(report);
    for tool in report.tools() {
        match manifest {
            Some(checked) => judge.by_manifest(checked, tool),
            None => judge.by_policy(tool),
        }
    }
    if let Some(checked) = manifest {
        judge.deeds(None, report.server(), Some(checked.authority()));
        judge.unused_of_manifest(report, checked);
        judge.unseen(report, checked);
    } else {
        judge.deeds(None, report.server(), None);
    }
    Judgement { items: judge.items }
}

struct Judge<'a> {
    facts: &'a HostFacts,
    items: Vec<Judged>,
}

impl Judge<'_> {
    fn push(&mut self, subject: Subject, tool: Option<&str>, finding: Finding) {
        self.items.push(Judged { subject, tool: tool.map(str::to_owned), finding, entry: None });
    }

    /// Whether tools were found at all, and those that the server lists.
    fn listed(&mut self, report: &Report) {
        if let Some(file) =
            report.speaks().filter(|_| report.tools().is_empty() && report.unfound().is_empty())
        {
            let help = if report.picks_unnamed_tools() {
                "its handler of calls picks tools by names that are not in the source: give its answer to `tools/list` with --tools FILE"
            } else {
                "scan the source that defines them: --include-dependencies reads packages that it calls, --tools FILE takes its answer to `tools/list`"
            };
            let message = "this is an MCP server, and no tool was found in it";
            self.push(Subject::File(file), None, Finding::new(Code::ScanNoTools, message).help(help));
        }
        let file = Subject::File(report.speaks().unwrap_or(0));
        if !report.unfound().is_empty() {
            let message = format!(
                "the server lists {} that the source was not seen to define",
                names(report.unfound())
            );
            let help =
                "scan the source that defines them; --include-dependencies reads packages that it calls";
            self.push(file, None, Finding::new(Code::ScanToolUnfound, message).help(help));
        }
        if !report.unlisted().is_empty() {
            let message =
                format!("the source defines {} that the server does not list", names(report.unlisted()));
            let help = "they may be for other settings; what is not listed cannot be called";
            self.push(file, None, Finding::new(Code::ScanToolUnlisted, message).help(help));
        }
    }

    fn by_manifest(&mut self, checked: &Checked, tool: &Tool) {
        if let Some(declared) = checked.tool(tool.name()) {
            return self.deeds(Some(tool.name()), tool.deeds(), Some(declared.authority()));
        }
        let message = format!("the manifest does not have the tool `{}`", tool.name());
        let help = format!("declare it, with capabilities = {}; or remove it", draft::one_line(tool));
        let finding = Finding::new(Code::ScanToolUndeclared, message).at(span_of(tool.place())).help(help);
        let (subject, name) = (Subject::File(tool.place().file), tool.name().to_owned());
        self.items.push(Judged { subject, tool: Some(name), finding, entry: Some(draft::entry(tool)) });
        self.unknowns(Some(tool.name()), tool.deeds());
    }

    fn by_policy(&mut self, tool: &Tool) {
        let Some(lines) = tool.declared() else {
            return self.deeds(Some(tool.name()), tool.deeds(), None);
        };
        match declared_authority(lines, self.facts) {
            Ok((authority, lines)) => {
                self.deeds(Some(tool.name()), tool.deeds(), Some(&authority));
                let place = tool.place();
                for line in &lines {
                    if self.is_used(line, &[tool.deeds()]) {
                        continue;
                    }
                    let finding = unused(line, tool.name()).at(span_of(place));
                    self.push(Subject::File(place.file), Some(tool.name()), finding);
                }
            }
            Err(wrong) => {
                let message = format!("the policy of `{}` cannot be read: {}", tool.name(), wrong.message());
                let mut finding = Finding::new(Code::ScanPolicy, message).at(span_of(tool.place()));
                if let Some(help) = wrong.help_text() {
                    finding = finding.help(help);
                }
                self.push(Subject::File(tool.place().file), Some(tool.name()), finding);
                self.unknowns(Some(tool.name()), tool.deeds());
            }
        }
    }

    /// Uses against an authority; without one there is nothing to compare with.
    fn deeds(&mut self, tool: Option<&str>, deeds: &Deeds, authority: Option<&Authority>) {
        for one in deeds.uses() {
            if let Some(finding) = authority.and_then(|authority| self.judged(tool, one, authority)) {
                let finding = finding.at(span_of(one.place()));
                self.push(Subject::File(one.place().file), tool, finding);
            }
        }
        self.unknowns(tool, deeds);
    }

    fn judged(&self, tool: Option<&str>, one: &Use, authority: &Authority) -> Option<Finding> {
        let who = tool.map_or_else(|| "the server".to_owned(), |tool| format!("`{tool}`"));
        let (verb, noun) = match one.target() {
            Some(Target::AllVariables) => ("reads all variables", "variable"),
            _ => (one.kind().verb(), one.kind().noun()),
        };
        if let Some(capability) = one.capability() {
            let cover = match one.target() {
                Some(found) => found.cover(one.kind(), authority, self.facts),
                None => Cover::whole_if(target::allows_zones(authority)),
            };
            let named = one.target().filter(|found| **found != Target::AllVariables);
            let shown = named.map(|found| format!(" `{found}`")).unwrap_or_default();
            return match cover {
                Cover::Whole => None,
                Cover::Undecided => {
                    let message =
                        format!("{who} {verb}{shown}, at a URL that the source does not name whole");
                    Some(Finding::new(Code::ScanDynamic, message).help(UNCHECKED))
                }
                Cover::None => {
                    let message = format!("{who} {verb}{shown} and does not declare it");
                    let help = format!("widen: add \"{capability}\" to its capabilities; or remove the call");
                    Some(Finding::new(Code::ScanUseUndeclared, message).help(help))
                }
            };
        }
        let declared = authority.capabilities_on(one.kind().axis());
        let message = format!("{who} {verb} a {noun} that the source does not name");
        if declared.is_some_and(|lines| lines.is_empty()) {
            let help =
                format!("widen: add \"{}\" to its capabilities; or remove the call", example(one.kind()));
            return Some(Finding::new(Code::ScanKindUndeclared, message + " and declares none").help(help));
        }
        Some(Finding::new(Code::ScanDynamic, message).help(UNCHECKED))
    }

    fn unknowns(&mut self, tool: Option<&str>, deeds: &Deeds) {
        for unknown in deeds.unknowns() {
            self.push(Subject::File(unknown.place().file), tool, unknown_finding(unknown));
        }
    }

    /// Lines of the manifest that nothing in the source needs.
    fn unused_of_manifest(&mut self, report: &Report, checked: &Checked) {
        let everything: Vec<&Deeds> =
            report.tools().iter().map(Tool::deeds).chain([report.server()]).collect();
        for line in checked.manifest().server_capabilities() {
            if !self.is_used(&line.value, &everything) {
                self.push(Subject::Manifest, None, unused(&line.value, "the server").at(line.span));
            }
        }
        for declared in checked.manifest().tools() {
            let named = report.tools().iter().filter(|tool| tool.name() == declared.name());
            let deeds: Vec<&Deeds> = named.map(Tool::deeds).collect();
            if deeds.is_empty() {
                continue;
            }
            let lines: &[Declared<Capability>] = declared.capabilities().unwrap_or_default();
            for line in lines {
                if self.is_used(&line.value, &deeds) {
                    continue;
                }
                let finding = unused(&line.value, declared.name()).at(line.span);
                self.push(Subject::Manifest, Some(declared.name()), finding);
            }
        }
    }

    /// Whether a line is needed by anything that is done, or may be.
    fn is_used(&self, line: &Capability, deeds: &[&Deeds]) -> bool {
        let Some(kinds) = kinds_of(line) else { return true };
        let resolved = line.resolve(|name| self.facts.variable(name).cloned());
        let Ok(authority) = resolved.and_then(|line| Authority::from_capabilities(&[line])) else {
            return true;
        };
        let mut uses = deeds.iter().flat_map(|deeds| deeds.uses());
        uses.any(|one| {
            kinds.contains(&one.kind())
                && match one.target() {
                    Some(found) => found.cover(one.kind(), &authority, self.facts) != Cover::None,
                    None => true,
                }
        })
    }

    /// Tools of the manifest that the source does not define.
    fn unseen(&mut self, report: &Report, checked: &Checked) {
        for declared in checked.manifest().tools() {
            if !report.tools().iter().any(|tool| tool.name() == declared.name()) {
                let message = format!("the source does not define the tool `{}`", declared.name());
                let finding = Finding::new(Code::ScanToolUnseen, message)
                    .at(declared.span())
                    .help("remove it, or scan the source that defines it");
                self.push(Subject::Manifest, Some(declared.name()), finding);
            }
        }
    }
}

/// What the lines of a policy in the source allow.
fn declared_authority(lines: &[String], facts: &HostFacts) -> Result<(Authority, Vec<Capability>), Finding> {
    let text =
        json!({ "name": "policy", "version": "0", "tools": [{ "name": "tool", "capabilities": lines }] });
    let first = |findings: bailiwick_policy::finding::Findings| {
        let mut findings = findings.into_vec();
        if findings.is_empty() {
            Finding::new(Code::ScanPolicy, "no reason is known")
        } else {
            findings.swap_remove(0)
        }
    };
    let manifest = Manifest::parse(&text.to_string()).map_err(first)?;
    let tools = manifest.tools().iter().flat_map(|tool| tool.capabilities().unwrap_or_default());
    let lines = tools.map(|line| line.value.clone()).collect();
    let checked = manifest.check(facts).map_err(first)?;
    let authority = checked.tools().first().map(|tool| tool.authority().clone());
    Ok((authority.unwrap_or_else(Authority::bottom), lines))
}

/// `2 tools, `a` and `b`,`: how many, and the first of them.
fn names(all: &[String]) -> String {
    let shown: Vec<String> = all.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "{} ({}{more})",
        if all.len() == 1 { "a tool".to_owned() } else { format!("{} tools", all.len()) },
        shown.join(", ")
    )
}

fn unknown_finding(unknown: &Unknown) -> Finding {
    let message = format!("`{}` is not known: {}", unknown.what(), unknown.reason().meaning());
    Finding::new(Code::ScanUnknown, message)
        .at(span_of(unknown.place()))
        .help("read it yourself; --strict makes it fail")
}

fn unused(line: &Capability, who: &str) -> Finding {
    let message = format!("`{who}` declares `{line}` and was not seen to use it");
    Finding::new(Code::ScanUnused, message).help("remove it if nothing needs it")
}

/// The kinds of use that a line is for; `None` for lines that a scan cannot see used.
fn kinds_of(line: &Capability) -> Option<&'static [UseKind]> {
    Some(match line {
        Capability::Fs { .. } => &[UseKind::Read, UseKind::Write, UseKind::Create, UseKind::Delete],
        Capability::Net(_) => &[UseKind::Net],
        Capability::Exec { .. } => &[UseKind::Exec],
        Capability::Env { .. } | Capability::Broker { .. } => &[UseKind::Env],
        Capability::Listen(_) | Capability::Ipc(_) | Capability::Clock(_) | Capability::Assert { .. } => {
            return None;
        }
    })
}

/// An example of a line that would allow part of it; the author fills in which.
pub(crate) const fn example(kind: UseKind) -> &'static str {
    match kind {
        UseKind::Read => "fs:read:$WORKSPACE/**",
        UseKind::Write => "fs:write:$WORKSPACE/**",
        UseKind::Create => "fs:create:$WORKSPACE/**",
        UseKind::Delete => "fs:delete:$WORKSPACE/**",
        UseKind::Net => "net:connect:HOST:443",
        UseKind::Exec => "exec:spawn:PROGRAM",
        UseKind::Env => "env:read:NAME",
        UseKind::Tzdata => "clock:tzdata",
    }
}

const fn span_of(place: &crate::report::CodeSpan) -> Span {
    Span::new(place.start, place.end)
}
