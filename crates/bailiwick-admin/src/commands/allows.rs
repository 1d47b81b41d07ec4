//! `bailiwick allows`: whether a manifest allows a request, and the line that decides.

use annotate_snippets::Level;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::input::InputError;
use bailiwick_command::render::{json, snippet};
use bailiwick_command::{facts, input};
use bailiwick_manifest::{Checked, CheckedTool, ExplainedRequest};
use bailiwick_policy::authority::{Authority, Request};
use bailiwick_policy::capability::{Capability, FsActions};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_policy::plan::Origin;
use serde_json::json;

use crate::args::Allows;
use crate::planned::no_such_tool;

/// The most lines that are shown for one answer.
const SHOWN: usize = 3;

/// A checked manifest, and what it was checked against.
struct Case {
    source: Source,
    checked: Checked,
    facts: HostFacts,
}

/// The answer and the lines that bear on it.
struct Decision {
    request: Capability,
    explained: ExplainedRequest,
    /// Denied only because of what lies below the path that was asked for.
    only_itself: bool,
}

pub(super) fn run(args: &Allows) -> Answer {
    let case = match open(args) {
        Ok(case) => case,
        Err(useless) => return useless.refusal(),
    };
    let tool = args.tool.as_deref().map(|name| case.checked.tool(name).ok_or(name)).transpose();
    let tool = match tool {
        Ok(tool) => tool,
        Err(name) => return no_such_tool(&case.source, &case.checked, name),
    };
    let request = match input::capability("CAPABILITY", &args.capability) {
        Ok(request) => request,
        Err(refusal) => return refusal,
    };
    match decide(&case, request, tool) {
        Ok(decision) => answer(args, &case, &decision),
        Err(finding) => input::wrong_capability("CAPABILITY", &args.capability, &finding),
    }
}

fn open(args: &Allows) -> Result<Case, InputError> {
    let (source, manifest) = input::manifest(&args.manifest)?;
    let checked = facts::for_manifest(&manifest, &args.settings)
        .and_then(|facts| manifest.check(&facts).map(|checked| (checked, facts)).map_err(Findings::into_vec));
    match checked {
        Ok((checked, facts)) => Ok(Case { source, checked, facts }),
        Err(findings) => Err(InputError::Wrong(source, findings)),
    }
}

fn decide(case: &Case, request: Capability, tool: Option<&CheckedTool>) -> Result<Decision, Finding> {
    let explained = case.checked.explain(&request, tool, &case.facts)?;
    let authority = tool.map_or_else(|| case.checked.authority(), CheckedTool::authority);
    let only_itself = !explained.explanation.is_allowed() && allows_itself(authority, &request);
    Ok(Decision { request, explained, only_itself })
}

/// Whether the path of a request without globs is allowed by itself, whatever lies below it.
fn allows_itself(authority: &Authority, request: &Capability) -> bool {
    let Capability::Fs { actions, path } = request else { return false };
    let requests = [
        (FsActions::READ, Request::Read(path.base())),
        (FsActions::CODE, Request::MapCode(path.base())),
        (FsActions::WRITE, Request::Write(path.base())),
        (FsActions::CREATE, Request::Create(path.base())),
        (FsActions::DELETE, Request::Delete(path.base())),
    ];
    let mut asked = requests.iter().filter(|(action, _)| actions.contains(*action));
    let literal = path.literal_prefix().len() == path.parts().len();
    literal && asked.all(|(_, request)| authority.allows(request))
}

fn answer(args: &Allows, case: &Case, decision: &Decision) -> Answer {
    let exit = if decision.explained.explanation.is_allowed() { Exit::Fine } else { Exit::Found };
    let text = match args.format {
        AnswerFormat::Text => text(case, decision, args.tool.as_deref()),
        AnswerFormat::Json => json::document(&document(case, decision, args.tool.as_deref())),
    };
    Answer::result(exit, text)
}

fn text(case: &Case, decision: &Decision, tool: Option<&str>) -> String {
    let subject = tool.map_or_else(|| "the server".to_owned(), |tool| format!("the tool `{tool}`"));
    if decision.explained.explanation.is_allowed() {
        allowed(case, decision, &subject)
    } else {
        denied(case, decision, &subject)
    }
}

fn allowed(case: &Case, decision: &Decision, subject: &str) -> String {
    let explanation = &decision.explained.explanation;
    let title = format!("{subject} may use `{}`", decision.request);
    let together = explanation.deciding().join(" and ");
    let notes = match &*decision.explained.origins {
        [] if together.is_empty() => vec!["several lines together allow it".to_owned()],
        [] => vec![format!("no single line allows it; among those that do together: `{together}`")],
        _ => Vec::new(),
    };
    let level = Level::NOTE.with_name("allowed");
    let lines = decision.explained.origins.iter().take(SHOWN).map(|origin| (origin.span, owner(origin)));
    snippet::remarks(level, (explanation.axis().as_str(), &title), &case.source, lines, &notes) + "\n"
}

fn denied(case: &Case, decision: &Decision, subject: &str) -> String {
    let explanation = &decision.explained.explanation;
    let title = if explanation.is_undecided() {
        format!("whether {subject} may use `{}` is too hard to decide", decision.request)
    } else {
        format!("{subject} may not {}", explanation.asked())
    };
    let mut notes = Vec::new();
    if decision.only_itself {
        notes
            .push("the path itself is allowed; a request without globs asks for all below it too".to_owned());
    }
    let (lines, remark) = match (&*decision.explained.outvoted, &*decision.explained.near) {
        ([], near) => (near, ", does not cover it"),
        (outvoted, _) => (outvoted, ", would allow it"),
    };
    if lines.is_empty() {
        notes.push("no line is about this at all".to_owned());
    }
    match explanation.smallest_grant() {
        Some(grant) if decision.explained.outvoted.is_empty() => {
            notes.push(format!("the smallest grant that would allow it is `{grant}`"));
        }
        _ => notes.push("the tool's own policy does not allow it".to_owned()),
    }
    let level = Level::ERROR.with_name("denied");
    let lines = lines.iter().take(SHOWN).map(|origin| (origin.span, owner(origin) + remark));
    snippet::remarks(level, (explanation.axis().as_str(), &title), &case.source, lines, &notes) + "\n"
}

fn owner(origin: &Origin) -> String {
    origin.tool.as_ref().map_or_else(|| "the server's".to_owned(), |tool| format!("of the tool `{tool}`"))
}

fn document(case: &Case, decision: &Decision, tool: Option<&str>) -> serde_json::Value {
    let explanation = &decision.explained.explanation;
    let lines = |origins: &[Origin]| -> Vec<serde_json::Value> {
        let line = |origin: &Origin| {
            let place = json::place(case.source.place(origin.span.start));
            json!({ "tool": origin.tool, "capability": origin.capability, "place": place })
        };
        origins.iter().map(line).collect()
    };
    json!({
        "format": "bailiwick.allows/1",
        "file": case.source.name(),
        "tool": tool,
        "request": decision.request.to_string(),
        "allowed": explanation.is_allowed(),
        "undecided": explanation.is_undecided(),
        "axis": explanation.axis().as_str(),
        "asked": explanation.asked(),
        "lines": lines(&decision.explained.origins),
        "outvoted": lines(&decision.explained.outvoted),
        "near": lines(&decision.explained.near),
        "only_itself": decision.only_itself,
        "deciding": explanation.deciding(),
        "smallest_grant": explanation.smallest_grant().map(ToString::to_string),
    })
}
