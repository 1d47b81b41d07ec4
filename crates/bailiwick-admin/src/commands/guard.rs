//! `bailiwick guard`: a project's guardrails, checked, tried, explained, begun.

mod events;
mod explain;

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::input::InputError;
use bailiwick_command::output::{Draft, Existing};
use bailiwick_command::render::{escape, json, snippet, style};
use bailiwick_guardrails::{GUARDRAILS, Good, Policy, STARTER, STARTER_SCRIPT, Trust, lint, test_examples};
use bailiwick_policy::finding::{Finding, Severity, Source};
use serde_json::json;

use crate::args::Format;
use crate::args::guard::{Guard, GuardCommand, GuardInit, Lint, Tested};
use crate::render::sarif;

pub(super) fn run(args: Guard) -> anyhow::Result<Answer> {
    match args.command {
        GuardCommand::Lint(args) => Ok(linted(&args)),
        GuardCommand::Test(args) => match &args.events {
            Some(events) => events::run(&args.dir, events, args.format),
            None => Ok(tested(&args)),
        },
        GuardCommand::Explain(args) => Ok(explain::run(&args)),
        GuardCommand::Init(args) => init(&args),
    }
}

/// The guardrails of a directory, trusted or not, or why they cannot be used.
fn load(dir: &Path) -> Result<Box<Good>, InputError> {
    let shown = dir.join(GUARDRAILS);
    match Policy::load(dir, &Trust::default()) {
        Policy::Good(good) => Ok(good),
        Policy::Broken(broken) => {
            let source = Source::new(shown.to_string_lossy(), broken.source.text().to_owned());
            Err(InputError::Wrong(source, broken.findings))
        }
        Policy::Absent | Policy::Changed(_) => {
            Err(InputError::Unreadable(format!("there is no `{}`", shown.display())))
        }
    }
}

fn linted(args: &Lint) -> Answer {
    let (source, findings) = match load(&args.dir) {
        Ok(good) => {
            let findings = lint(&good.written, &good.rails);
            (
                Source::new(args.dir.join(GUARDRAILS).to_string_lossy(), good.source.text().to_owned()),
                findings,
            )
        }
        Err(InputError::Wrong(source, findings)) => (source, findings),
        Err(missing @ InputError::Unreadable(_)) => return missing.refusal(),
    };
    let worth_knowing = |finding: &Finding| finding.severity() == Severity::Info;
    let exit = if findings.iter().all(worth_knowing) { Exit::Fine } else { Exit::Found };
    Answer::result(exit, printed(&source, &findings, args.format))
}

fn printed(source: &Source, findings: &[Finding], format: Format) -> String {
    match format {
        Format::Text if findings.is_empty() => {
            format!("{}: {}\n", style::good("ok"), escape::line(source.name()))
        }
        Format::Text => {
            snippet::findings(source, findings) + &style::count(findings.len(), "finding", "findings") + "\n"
        }
        Format::Json => {
            let findings: Vec<_> = findings.iter().map(|finding| json::finding(source, finding)).collect();
            json::document(
                &json!({"format": "bailiwick.guard-lint/1", "file": source.name(), "findings": findings}),
            )
        }
        Format::Sarif => json::document(&sarif::log(&sarif::of_findings(source, findings), &[])),
    }
}

fn tested(args: &Tested) -> Answer {
    let good = match load(&args.dir) {
        Ok(good) => good,
        Err(useless) => return useless.refusal(),
    };
    let (tried, wrong) = test_examples(&good.rails);
    let source = Source::new(args.dir.join(GUARDRAILS).to_string_lossy(), good.source.text().to_owned());
    let exit = if wrong.is_empty() { Exit::Fine } else { Exit::Found };
    let text = match args.format {
        AnswerFormat::Json => {
            let findings: Vec<_> = wrong.iter().map(|finding| json::finding(&source, finding)).collect();
            json::document(
                &json!({"format": "bailiwick.guard-test/1", "file": source.name(), "examples": tried, "failed": findings}),
            )
        }
        AnswerFormat::Text if wrong.is_empty() => {
            format!(
                "{}: {} in {}\n",
                style::good("ok"),
                style::count(tried, "example", "examples"),
                escape::line(source.name())
            )
        }
        AnswerFormat::Text => {
            snippet::findings(&source, &wrong) + &format!("{} of {tried} examples failed\n", wrong.len())
        }
    };
    Answer::result(exit, text)
}

fn init(args: &GuardInit) -> anyhow::Result<Answer> {
    let (script, body) = STARTER_SCRIPT;
    for (path, text, mode) in [(GUARDRAILS, STARTER, 0o644), (script, body, 0o755)] {
        let path = args.dir.join(path);
        if !write(&path, text, mode, args.force)? {
            let why = format!("`{}` exists; overwrite it with --force", path.display());
            return Ok(refused(Exit::Invalid, &why));
        }
    }
    let file = escape::line(&args.dir.join(GUARDRAILS).to_string_lossy());
    let text = format!(
        "{}: wrote {file} and {script}\n  try it with `bailiwick guard test`; scripts run after `bailiwick trust {}`\n",
        style::good("ok"),
        escape::line(&args.dir.to_string_lossy())
    );
    Ok(Answer::result(Exit::Fine, text))
}

/// Writes a file; says no if it is there and not to be overwritten.
fn write(path: &Path, text: &str, mode: u32, force: bool) -> anyhow::Result<bool> {
    let shown = || format!("cannot write `{}`", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(path)).with_context(shown)?;
    let existing = if force { Existing::ReplaceLink } else { Existing::Keep };
    let written = Draft::begin(path, existing, &[]).and_then(|mut draft| {
        draft.write_all(text.as_bytes())?;
        draft.set_mode(mode)?;
        draft.finish().map(drop)
    });
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(shown),
    }
}
