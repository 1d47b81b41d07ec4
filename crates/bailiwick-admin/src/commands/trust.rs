//! `bailiwick trust`: a person's word that a directory's scripts may run as they are.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::hook_records::act;
use bailiwick_command::input::InputError;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::terminal;
use bailiwick_command::user_state::state;
use bailiwick_guardrails::{self, GUARDRAILS, State, Trust};
use bailiwick_journal::format::{Decision, Event, RecordKind};
use serde_json::json;

use crate::args::guard::Trust as Args;

pub(super) fn run(args: &Args) -> anyhow::Result<Answer> {
    let state = state()?;
    let Some(dir) = &args.dir else { return list(&state, args.format) };
    let dir = match dir.canonicalize() {
        Ok(dir) => dir,
        Err(error) => return Ok(refused(Exit::Invalid, &format!("cannot use `{}`: {error}", dir.display()))),
    };
    let shown = escape::line(&dir.to_string_lossy());
    if args.remove {
        let was = Trust::remove(&state, &dir)?;
        let text = if was { "is no longer trusted" } else { "was not trusted" };
        return Ok(Answer::result(Exit::Fine, format!("{}: {shown} {text}\n", style::good("ok"))));
    }
    let (hash, scripts) = match bailiwick_guardrails::trustable(&dir) {
        Ok(Some(found)) => found,
        Ok(None) => {
            return Ok(refused(Exit::Invalid, &format!("there is no {GUARDRAILS} in `{}`", dir.display())));
        }
        Err(broken) => return Ok(InputError::Wrong(broken.source, broken.findings).refusal()),
    };
    let listed: String = scripts.iter().map(|script| format!("  {}\n", escape::line(script))).collect();
    let question = format!(
        "{shown}/{GUARDRAILS} names {}:\n{listed}Trust them as they are?",
        style::count(scripts.len(), "script", "scripts")
    );
    if !args.yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not trusted: confirm at a terminal, or say --yes"));
    }
    Trust::add(&state, &dir, hash)?;
    act(Event::new(RecordKind::ApprovalDecided)
        .with_decision(Decision::Allow)
        .with_code("trusted")
        .with_reason(format!("{} as {hash}", dir.display())));
    let text = format!(
        "{}: trusted {shown}\n  {} as {hash}\n",
        style::good("ok"),
        style::count(scripts.len(), "script", "scripts")
    );
    Ok(Answer::result(Exit::Fine, text))
}

fn list(state: &State, format: AnswerFormat) -> anyhow::Result<Answer> {
    let trust = Trust::load(state)?;
    let text = match format {
        AnswerFormat::Json => {
            let all: Vec<_> =
                trust.directories().map(|(dir, hash)| json!({"directory": dir, "hash": hash})).collect();
            json::document(&json!({"format": "bailiwick.trust/1", "directories": all}))
        }
        AnswerFormat::Text => trust
            .directories()
            .map(|(dir, hash)| format!("{}  {hash}\n", escape::line(&dir.to_string_lossy())))
            .collect(),
    };
    Ok(Answer::result(Exit::Fine, text))
}
