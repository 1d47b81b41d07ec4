//! `bailiwick guard test --events`: a session from a file, one event a line, with what is expected of each.
//!
//! The session has a state of its own, which is removed afterwards. Scripts run if a person has trusted the directory,
//! as they would for an agent.

use std::path::Path;

use anyhow::{Context as _, bail};
use bailiwick_clients::hooks::{EventKind, GENERIC};
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::facts;
use bailiwick_command::render::{escape, json as render, style};
use bailiwick_command::user_state::state;
use bailiwick_guardrails::{Asking, Decision, InjectedMessage, State, Trust, Watch, trustable};
use serde_json::{Value, json};

pub(super) fn run(dir: &Path, events: &Path, format: AnswerFormat) -> anyhow::Result<Answer> {
    let text = match std::fs::read_to_string(events) {
        Ok(text) => text,
        Err(error) => {
            let why = format!("cannot read `{}`: {error}", events.display());
            return Ok(refused(Exit::Invalid, &why));
        }
    };
    let dir = dir.canonicalize().with_context(|| format!("cannot use `{}`", dir.display()))?;
    let place = tempfile::Builder::new().prefix("bailiwick-events").tempdir()?;
    let own = State::open(&place.path().join("state"))?;
    let trusted = take_trust_over(&dir, &own)?;
    let (mut tried, mut wrong) = (0, Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        tried += 1;
        if let Err(why) = one(&dir, &own, line) {
            wrong.push((number + 1, format!("{why:#}")));
        }
    }
    let exit = if wrong.is_empty() { Exit::Fine } else { Exit::Found };
    let text = match format {
        AnswerFormat::Json => {
            let failed: Vec<Value> =
                wrong.iter().map(|(line, why)| json!({"line": line, "why": why})).collect();
            render::document(
                &json!({"format": "bailiwick.guard-events/1", "file": events, "events": tried, "trusted": trusted, "failed": failed}),
            )
        }
        AnswerFormat::Text => shown(events, tried, trusted, &wrong),
    };
    Ok(Answer::result(exit, text))
}

fn shown(events: &Path, tried: usize, trusted: bool, wrong: &[(usize, String)]) -> String {
    let name = escape::line(&events.to_string_lossy());
    let mut text = String::new();
    for (line, why) in wrong {
        text += &format!("{}: {name}:{line}: {}\n", style::error("error"), escape::line(why));
    }
    let all = style::count(tried, "event", "events");
    text += &match wrong.len() {
        0 => format!("{}: {all} in {name}\n", style::good("ok")),
        failed => format!("{failed} of {all} came out otherwise\n"),
    };
    if !trusted {
        text += "  scripts did not run: the directory is not trusted; see `bailiwick trust`\n";
    }
    text
}

/// Gives the session's own state the trust that a person has given to the directory as it is.
fn take_trust_over(dir: &Path, own: &State) -> anyhow::Result<bool> {
    let trust = Trust::load(&state()?)?;
    let Ok(Some((hash, _))) = trustable(dir) else { return Ok(false) };
    let trusted = trust.hash(dir) == Some(hash.to_string().as_str());
    if trusted {
        Trust::add(own, dir, hash)?;
    }
    Ok(trusted)
}

/// Plays one event; what came out otherwise than it says.
fn one(dir: &Path, own: &State, line: &str) -> anyhow::Result<()> {
    let mut value: Value = serde_json::from_str(line).context("it is not JSON")?;
    let fields = value.as_object_mut().context("it is not an object")?;
    let expected = fields.remove("expect").context("it has no `expect`")?;
    fields.entry("session").or_insert_with(|| json!("test"));
    let event = GENERIC.event(&value).map_err(anyhow::Error::msg)?;
    let watch = Watch::new(own.clone(), &event.session, dir, facts::home().as_deref(), facts::now_us())
        .of_agent(&event.subagent);
    let fault = |error: bailiwick_guardrails::StateFault| anyhow::Error::msg(error);
    match &event.kind {
        EventKind::Before { tool, params, id, .. } => {
            let decision = watch.before(tool, params, id.as_deref(), Asking::Agent).map_err(fault)?;
            let (word, message) = match decision {
                Decision::Allow => ("allow", String::new()),
                Decision::Ask(question) => ("ask", question),
                Decision::Deny(denial) => ("deny", denial.message().to_owned()),
            };
            compare(&expected, "decision", word)?;
            compare_part(&expected, "message", &message)
        }
        EventKind::After { tool, params, id, result, success } => {
            let said = watch.after(tool, params, id.as_deref(), result, *success).map_err(fault)?;
            compare_part(&expected, "inject", &InjectedMessage::joined(&said.injected))
        }
        EventKind::Stop { text, role, again } => {
            let said = watch.end_turn(text.as_deref(), role, *again).map_err(fault)?;
            compare_part(&expected, "inject", &InjectedMessage::joined(&said.injected))
        }
        EventKind::Heard { .. } | EventKind::SettingsChanged { .. } | EventKind::Other => Ok(()),
    }
}

fn compare(expected: &Value, key: &str, found: &str) -> anyhow::Result<()> {
    match expected.get(key).and_then(Value::as_str) {
        Some(wanted) if wanted != found => bail!("`{key}` is `{found}`, not `{wanted}`"),
        Some(_) | None => Ok(()),
    }
}

/// A text must hold the expected one; `null` expects that there is none.
fn compare_part(expected: &Value, key: &str, found: &str) -> anyhow::Result<()> {
    match expected.get(key) {
        Some(Value::Null) if !found.is_empty() => bail!("`{key}` is `{found}`, not nothing"),
        Some(Value::String(wanted)) if !found.contains(wanted.as_str()) => {
            bail!("`{key}` is `{found}`, without `{wanted}`")
        }
        Some(_) | None => Ok(()),
    }
}
