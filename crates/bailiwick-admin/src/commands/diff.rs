//! `bailiwick diff`: what a change of a manifest allows that was not allowed before.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::input::InputError;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::{facts, input};
use bailiwick_manifest::diff::{Diff as Comparison, Difference};
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::finding::{Severity, Source};

use crate::additions;
use crate::args::{Diff, DiffFormat};
use crate::render::{markdown, sarif};

/// A file and what it declares.
type Side = (Source, Snapshot);

pub(super) fn run(args: &Diff) -> Answer {
    if [&args.base, &args.new].iter().all(|path| path.as_os_str() == "-") {
        let text = format!("{}: only one side can be stdin\n", style::error("error"));
        return Answer::refusal(Exit::Usage, text);
    }
    match compare(args) {
        Ok((base, new, diff)) => answer(args, &base, &new, &diff),
        Err(useless) => useless.refusal(),
    }
}

fn compare(args: &Diff) -> Result<(Side, Side, Comparison), InputError> {
    let (base, new) = (input::snapshot(&args.base)?, input::snapshot(&args.new)?);
    let accepted = args.accept.as_deref().map(input::accepted).transpose()?;
    let diff = match Comparison::between(&base.1, &new.1) {
        Ok(diff) => diff,
        Err(findings) => return Err(InputError::wrong(new.0, findings)),
    };
    let diff = match accepted {
        Some(accepted) => diff.accepting(&accepted, facts::today(), &new.1),
        None => diff,
    };
    Ok((base, new, diff))
}

fn answer(args: &Diff, base: &Side, new: &Side, diff: &Comparison) -> Answer {
    let fails = diff.needs_review() || (args.tighten_only && diff.widens());
    let text = match args.format {
        DiffFormat::Text => text(base, new, diff, args.tighten_only),
        DiffFormat::Json => json::document(&json::diff((&base.0, &base.1), (&new.0, &new.1), diff, fails)),
        DiffFormat::Sarif => json::document(&sarif::log(&sarif::of_diff(&new.0, &new.1, diff), &[])),
        DiffFormat::Markdown => markdown::diff(&base.1, &new.1, diff, fails),
    };
    Answer::result(if fails { Exit::Found } else { Exit::Fine }, text)
}

fn text(base: &Side, new: &Side, diff: &Comparison, tighten_only: bool) -> String {
    let title = |(source, snapshot): &Side| {
        let manifest = snapshot.manifest();
        let name = escape::line(source.name());
        format!("{name} ({} {})", escape::line(manifest.name()), escape::line(manifest.version()))
    };
    let mut text = format!("{} → {}\n\n", title(base), title(new));
    for verdict in diff.verdicts() {
        text += &match &verdict.evidence {
            Some(evidence) => format!(
                "  {}  {}\n         {}\n",
                style::error("yes"),
                style::strong(verdict.question.text()),
                escape::line(evidence)
            ),
            None => format!("   {}  {}\n", style::faint("no"), verdict.question.text()),
        };
    }
    text += "\n";
    for found in diff.differences() {
        text += &entry(found, &additions::added(&base.1, &new.1, found));
    }
    if !diff.differences().is_empty() {
        text += "\n";
    }
    text + &conclusion(diff, tighten_only)
}

fn entry(found: &Difference, lines: &[String]) -> String {
    let word = if found.accepted().is_some() { "accepted" } else { found.severity().as_str() };
    let weight = if found.accepted().is_some() { Severity::Info } else { found.severity() };
    let about =
        found.tool().map_or_else(|| "server".to_owned(), |tool| format!("tool {}", escape::line(tool)));
    let reason = found.accepted().map(|reason| format!("            because {}\n", escape::line(reason)));
    let lines: String = lines.iter().map(|line| format!("          + {}\n", escape::line(line))).collect();
    format!(
        "  {}  {}  {about}\n            {}\n{lines}{}",
        style::severity(weight, &format!("{word:<8}")),
        found.code(),
        escape::line(found.message()),
        reason.unwrap_or_default(),
    )
}

fn conclusion(diff: &Comparison, tighten_only: bool) -> String {
    let open = |severity| {
        let all = diff.differences().iter();
        all.filter(|found| found.severity() == severity && found.accepted().is_none()).count()
    };
    let (high, medium) = (open(Severity::High), open(Severity::Medium));
    if diff.needs_review() {
        let number = high + medium;
        let verb = if number == 1 { "needs" } else { "need" };
        let count = style::count(number, "difference", "differences");
        return format!("{}: {count} {verb} review ({high} high, {medium} medium)\n", style::error("review"));
    }
    if tighten_only && diff.widens() {
        return format!("{}: wider than before, and only tightening is allowed\n", style::error("refused"));
    }
    let what = if diff.differences().is_empty() { "nothing changed" } else { "nothing needs review" };
    format!("{}: {what}\n", style::good("ok"))
}
