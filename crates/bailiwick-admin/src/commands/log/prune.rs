//! `bailiwick log prune`: retention. Removes old segments behind signed tombstones.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::{moment, terminal};
use bailiwick_journal::{Retained, retain};
use serde_json::{Value, json};

use super::{Scope, refusal};
use crate::args::log::Prune;

pub(super) fn run(scope: &Scope, args: &Prune) -> anyhow::Result<Answer> {
    let before = scope.now.saturating_sub(args.older_than.0);
    if !args.yes {
        let (dir, time) = (escape::line(&scope.dir.to_string_lossy()), moment::utc(before));
        match terminal::confirm(&format!("remove what was recorded in {dir} before {time}?"))? {
            Some(true) => {}
            Some(false) => return Ok(refusal(Exit::Usage, "nothing was removed")),
            None => return Ok(refusal(Exit::Usage, "this removes records for good: confirm with --yes")),
        }
    }
    let outcomes = retain(&scope.dir, before, scope.now)?;
    let is_suspect = |outcome: &Retained| matches!(outcome, Retained::Suspect(_));
    let exit = if outcomes.iter().any(is_suspect) { Exit::Found } else { Exit::Fine };
    Ok(Answer::result(
        exit,
        match scope.format {
            AnswerFormat::Text => text(&outcomes),
            AnswerFormat::Json => json::document(&json!({
                "format": "bailiwick.prune/1",
                "before": moment::utc(before),
                "sessions": outcomes.iter().map(value).collect::<Vec<_>>(),
            })),
        },
    ))
}

fn text(outcomes: &[Retained]) -> String {
    if outcomes.is_empty() {
        return format!("{}: nothing is that old\n", style::good("ok"));
    }
    let line = |outcome: &Retained| match outcome {
        Retained::Removed { session, segments, upto, is_whole } => {
            let segments = style::count(*segments, "segment", "segments");
            let rest = if *is_whole { "all of it" } else { "the rest stays" };
            format!("{}: {session}: {segments}, up to line {} ({rest})\n", style::good("removed"), upto.seq)
        }
        Retained::Suspect(session) => {
            format!("{}: {session}: it does not verify; see `bailiwick log verify`\n", style::error("kept"))
        }
    };
    outcomes.iter().map(line).collect()
}

fn value(outcome: &Retained) -> Value {
    match outcome {
        Retained::Removed { session, segments, upto, is_whole } => json!({
            "session": session.as_str(),
            "removed_segments": segments,
            "removed_up_to": { "seq": upto.seq, "hash": upto.hash.to_string() },
            "whole": is_whole,
        }),
        Retained::Suspect(session) => json!({ "session": session.as_str(), "suspect": true }),
    }
}
