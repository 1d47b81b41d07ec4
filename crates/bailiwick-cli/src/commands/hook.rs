//! `bailiwick hook`: one event of an agent, judged.
//!
//! Reads the agent's JSON from stdin and answers in its format. Fails closed: whatever goes wrong before a call, or
//! before it is known what the event is, ends with exit code 2, which every agent takes for a no. What goes wrong
//! after a call is reported and stops nothing.

mod dialect;
mod record;

pub(super) use record::act;

use std::io::Read as _;
use std::path::PathBuf;

use bailiwick_guardrails::{Asking, Decision, Said, State, Watch};
use serde_json::Value;

use self::dialect::{Dialect, Event, Kind};
use crate::answer::{Answer, Exit};
use crate::args::guard::Hook;
use crate::{facts, input};

/// The largest event that is read.
const MAX_EVENT: u64 = 64 * 1024 * 1024;

pub(super) fn run(args: &Hook) -> Answer {
    let dialect = Dialect::of(args.agent);
    let event = match read().and_then(|value| dialect.event(value)) {
        Ok(event) => event,
        Err(why) => return blocked(&why),
    };
    let before = matches!(event.kind, Kind::Before { .. });
    match handle(args, dialect, &event) {
        Ok(answer) => answer,
        Err(why) if before => blocked(&why),
        Err(why) => Answer::refusal(Exit::Fault, format!("bailiwick: {why}\n")),
    }
}

fn read() -> Result<Value, String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_EVENT).read_to_string(&mut text);
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("the event is not JSON: {error}"))
}

fn blocked(why: &str) -> Answer {
    Answer::refusal(Exit::Blocked, format!("[guardrail] nothing runs: {why}\n"))
}

fn handle(args: &Hook, dialect: Dialect, event: &Event) -> Result<Answer, String> {
    let watch = match &event.kind {
        Kind::Other => return Ok(dialect.nothing()),
        Kind::Before { .. } | Kind::After { .. } | Kind::Stop { .. } | Kind::Heard { .. } => {
            watch(args, event)?
        }
    };
    let text = |error: bailiwick_guardrails::StateFault| error.to_string();
    match &event.kind {
        Kind::Other => Ok(dialect.nothing()),
        Kind::Before { tool, params, id, can_ask } => {
            let asking = if *can_ask { Asking::Agent } else { Asking::Terminal };
            let decision = watch.before(tool, params, id.as_deref(), asking).map_err(text)?;
            if decision != Decision::Allow {
                record::decision(&event.session, tool, &decision);
            }
            Ok(dialect.decided(event, &decision))
        }
        Kind::After { tool, params, id, result, success } => {
            let said = watch.after(tool, params, id.as_deref(), result, *success).map_err(text)?;
            Ok(answered(dialect, event, &said))
        }
        Kind::Stop { text: words, role, again } => {
            let said = watch.end_turn(words.as_deref(), role, *again).map_err(text)?;
            Ok(answered(dialect, event, &said))
        }
        Kind::Heard { text: words } => watch.heard(words).map_err(text).map(|()| dialect.nothing()),
    }
}

fn answered(dialect: Dialect, event: &Event, said: &Said) -> Answer {
    record::debug(&said.debug);
    if said.injected.is_empty() {
        dialect.nothing()
    } else {
        dialect.injected(event, &said.injected.join("\n\n"))
    }
}

fn watch(args: &Hook, event: &Event) -> Result<Watch, String> {
    let dir = facts::state_dir().ok_or("neither XDG_STATE_HOME nor HOME says where the state is")?;
    let state = State::open(&dir).map_err(|error| error.to_string())?;
    let cwd = event.cwd.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    let cwd = match cwd {
        Some(cwd) => cwd,
        None => facts::here().map_err(|error| format!("the working folder is not known: {error}"))?,
    };
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let watch = Watch::new(state, &event.session, &cwd, facts::home().as_deref(), facts::now_us());
    let Some(path) = &args.manifest else { return Ok(watch) };
    let (_, manifest) =
        input::manifest(path).map_err(|_| format!("the manifest `{}` cannot be used", path.display()))?;
    let facts = facts::for_manifest(&manifest, &[])
        .map_err(|_| "the manifest has variables without a value".to_owned())?;
    let checked = manifest.check(&facts).map_err(|findings| findings.to_string())?;
    Ok(watch.with_manifest(checked))
}
