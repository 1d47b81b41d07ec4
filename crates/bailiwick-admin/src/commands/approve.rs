//! `bailiwick approve`, `deny` and `pending`: a person's answer to a call that waits for one.

use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::hook_records::act;
use bailiwick_command::render::{escape, json, style};
use bailiwick_command::user_state::state;
use bailiwick_command::{facts, terminal};
use bailiwick_guardrails::Consent;
use bailiwick_guardrails::approvals::{self, Answer as Given, Answered, Pending};
use serde_json::json;

use crate::args::console::ConsentFor;
use crate::args::guard::{Answer as Args, Pending as PendingArgs};

pub(super) fn run(args: &Args, consent: Consent) -> anyhow::Result<Answer> {
    let (state, now) = (state()?, facts::now_us());
    if consent == Consent::Refused
        && let Some(rule) = approvals::take_back(&state, &args.id, now)?
    {
        act(rule.taken_back());
        let text = format!("{}: taken back\n{}", style::good("ok"), shown_rule(&rule));
        return Ok(Answer::result(Exit::Fine, text));
    }
    let waiting = approvals::pending(&state, now)?.into_iter().find(|one| one.id == args.id);
    let Some(waiting) = waiting else {
        return Ok(refused(Exit::Found, &format!("nothing waits as `{}`; see `bailiwick pending`", args.id)));
    };
    let (given, often) = match (consent, args.reach) {
        (Consent::Given, ConsentFor::Once) => (Given::Approved, "once"),
        (Consent::Given, ConsentFor::Session) => (Given::Session, "for this session"),
        (Consent::Given, ConsentFor::Always) => (Given::Always, "always"),
        (Consent::Refused, _) => (Given::Denied, ""),
    };
    let rule = if given == Given::Always { shown_rule(&waiting) } else { String::new() };
    let question = format!("{}{rule}May it run, {often}?", shown(&waiting));
    // A no needs no second thought.
    if consent == Consent::Given && !args.yes && terminal::confirm(&question)? != Some(true) {
        return Ok(refused(Exit::Found, "not approved: confirm at a terminal, or say --yes"));
    }
    let waiting = match approvals::answer(&state, &args.id, given, now)? {
        Answered::Recorded(waiting) => waiting,
        Answered::Gone => {
            return Ok(refused(Exit::Found, &format!("nothing waits as `{}` any more", args.id)));
        }
        Answered::Sessionless => {
            let why = format!("`{}` belongs to no session: leave out `--for session`", args.id);
            return Ok(refused(Exit::Found, &why));
        }
        Answered::NoRule => {
            let why = format!(
                "`{}` is allowed call by call: its risk is high, or it has more arguments than are shown",
                args.id
            );
            return Ok(refused(Exit::Found, &why));
        }
    };
    act(given.event(&waiting, args.note.trim()));
    let word = if given == Given::Denied { "denied" } else { "approved" };
    let text = format!("{}: {word} {}\n{}", style::good("ok"), escape::line(&waiting.id), shown(&waiting));
    Ok(Answer::result(Exit::Fine, text))
}

pub(super) fn pending(args: &PendingArgs) -> anyhow::Result<Answer> {
    let now = facts::now_us();
    let all = approvals::pending(&state()?, now)?;
    let rules = approvals::rules(&state()?, now)?;
    let text = match args.format {
        AnswerFormat::Json => {
            let one = |one: &Pending| {
                json!({
                    "id": one.id, "tool": one.tool, "arguments": one.arguments, "question": one.question,
                    "digest": one.digest, "expires_us": one.expires,
                })
            };
            let [all, rules] = [&all, &rules].map(|some| some.iter().map(one).collect::<Vec<_>>());
            json::document(&json!({"format": "bailiwick.pending/1", "pending": all, "always": rules}))
        }
        AnswerFormat::Text => {
            let nothing = if all.is_empty() { "nothing waits for an answer\n" } else { "" };
            let waits = all.iter().map(|one| format!("{}\n{}", escape::line(&one.id), shown(one)));
            let known = rules.iter().map(|one| format!("{}\n{}", escape::line(&one.id), shown_rule(one)));
            nothing.to_owned() + &waits.chain(known).collect::<String>()
        }
    };
    Ok(Answer::result(Exit::Fine, text))
}

/// The rule that allows a call always.
fn shown_rule(one: &Pending) -> String {
    one.rule().iter().map(|line| format!("  + {}\n", escape::line(line))).collect()
}

fn shown(one: &Pending) -> String {
    format!(
        "  tool  {}\n  call  {}\n  why   {}\n",
        escape::line(&one.tool),
        escape::line(&one.arguments),
        escape::line(&one.question)
    )
}
