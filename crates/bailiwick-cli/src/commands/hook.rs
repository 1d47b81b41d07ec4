//! `bailiwick hook`: one event of an agent, judged.
//!
//! Reads the agent's JSON from stdin and answers in its format. Fails closed: whatever goes wrong before a call, or
//! before it is known what the event is, ends with exit code 2, which every agent takes for a no. What goes wrong
//! after a call is reported and stops nothing.

mod settings_change;

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use bailiwick_clients::hooks::{Agent, Event, EventKind, Injection, Refusal};
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::hook::Hook;
#[cfg(target_os = "linux")]
use bailiwick_command::fleet_rules;
use bailiwick_command::{facts, hook_records as record, input, terminal};
use bailiwick_guardrails::{Asking, Decision, InjectedMessage, Said, State, Watch};
use bailiwick_policy::denial::{Denial, DenialCode};
#[cfg(target_os = "linux")]
use bailiwick_replica::{ServerIdentity, ServerRules};
use serde_json::Value;

/// The largest event that is read.
const MAX_EVENT: u64 = 64 * 1024 * 1024;

pub(super) fn run(args: &Hook) -> Answer {
    refuse_on_panic();
    let agent = args.agent;
    let event = match read().and_then(|value| agent.event(&value).map_err(anyhow::Error::msg)) {
        Ok(event) => event,
        Err(error) => return blocked(&error),
    };
    record::seen(agent.name, &event.session);
    let before = matches!(event.kind, EventKind::Before { .. } | EventKind::SettingsChanged { .. });
    match handle(args, &event) {
        Ok(answer) => answer,
        Err(error) if before => blocked(&error),
        Err(error) => Answer::refusal(Exit::Program(agent.fault_code), format!("bailiwick: {error:#}\n")),
    }
}

/// Makes a panic a no: what a process ends with otherwise, agents take for a fault that stops nothing.
#[expect(clippy::exit, reason = "a panic returns nowhere")]
fn refuse_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        terminal::remark(&format!("[guardrail] nothing runs: {panic}\n"));
        std::process::exit(2);
    }));
}

fn read() -> anyhow::Result<Value> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_EVENT).read_to_string(&mut text);
    read.context("the event cannot be read")?;
    serde_json::from_str(&text).context("the event is not JSON")
}

fn blocked(error: &anyhow::Error) -> Answer {
    Answer::refusal(Exit::Blocked, format!("[guardrail] nothing runs: {error:#}\n"))
}

fn handle(args: &Hook, event: &Event) -> anyhow::Result<Answer> {
    let agent = args.agent;
    let text = |error: bailiwick_guardrails::StateFault| anyhow::Error::msg(error);
    let answer = match &event.kind {
        EventKind::Other => agent.nothing().to_owned(),
        EventKind::SettingsChanged { path } => match settings_change::refusal(agent, path.as_deref())? {
            Some(reason) => agent.refuse(event, &Refusal { word: "deny", reason: &reason, code: None }),
            None => agent.nothing().to_owned(),
        },
        EventKind::Before { tool, params, id, can_ask } => {
            if let Some(denial) = refused_by_fleet(agent)? {
                let decision = Decision::Deny(denial);
                record::decision(&event.session, tool, &decision)?;
                return Ok(Answer::bytes(decided(agent, event, &decision)));
            }
            let asking = if *can_ask { Asking::Agent } else { Asking::Terminal };
            let decision = watch(args, event)?.before(tool, params, id.as_deref(), asking).map_err(text)?;
            record::decision(&event.session, tool, &decision)?;
            decided(agent, event, &decision)
        }
        EventKind::After { tool, params, id, result, success } => {
            let said =
                watch(args, event)?.after(tool, params, id.as_deref(), result, *success).map_err(text)?;
            injected(agent, event, &said)
        }
        EventKind::Stop { text: words, role, again } => {
            let role = chosen_role(&args.role, role);
            let said = watch(args, event)?.end_turn(words.as_deref(), role, *again).map_err(text)?;
            injected(agent, event, &said)
        }
        EventKind::Heard { text: words } => {
            watch(args, event)?.heard(words).map_err(text)?;
            agent.nothing().to_owned()
        }
    };
    Ok(Answer::bytes(answer))
}

/// The answer to a call that may or may not run.
fn decided(agent: &Agent, event: &Event, decision: &Decision) -> String {
    let refusal = match decision {
        Decision::Allow => return agent.allow().to_owned(),
        Decision::Ask(question) => Refusal { word: "ask", reason: question, code: None },
        Decision::Deny(denial) => {
            Refusal { word: "deny", reason: denial.message(), code: Some(denial.code().as_str()) }
        }
    };
    agent.refuse(event, &refusal)
}

/// The role of an agent of this type: what is set for the type, else for all, else the type itself.
fn chosen_role<'a>(set: &'a [String], agent_type: &'a str) -> &'a str {
    let of_type = set.iter().find_map(|one| one.split_once('=').filter(|(of, _)| *of == agent_type));
    let of_all = || set.iter().find(|one| !one.contains('=')).map(String::as_str);
    of_type.map(|(_, role)| role).or_else(of_all).unwrap_or(agent_type)
}

fn injected(agent: &Agent, event: &Event, said: &Said) -> String {
    record::debug(&said.debug);
    if said.injected.is_empty() {
        return agent.nothing().to_owned();
    }
    let text = InjectedMessage::joined(&said.injected);
    agent.inject(event, &Injection { text: &text, messages: &serde_json::json!(said.injected) })
}

/// Why the fleet lets nothing run here, if it does not.
#[cfg(target_os = "linux")]
fn refused_by_fleet(agent: &Agent) -> anyhow::Result<Option<Denial>> {
    let Some(replica) = fleet_rules::replica()? else { return Ok(None) };
    fleet_rules::refresh_aside(&replica);
    let rules = ServerRules::now(&replica, ServerIdentity::named([agent.name]));
    Ok(rules.err().map(|why| Denial::new(DenialCode::Revoked, why.to_string())))
}

/// The same session, where the fleet's guardrails hold too.
#[cfg(target_os = "linux")]
fn under_fleet(watch: Watch, agent: &Agent) -> anyhow::Result<Watch> {
    let Some(replica) = fleet_rules::replica()? else { return Ok(watch) };
    // What is revoked was refused before; what comes after a call is no call.
    let Ok(rules) = ServerRules::now(&replica, ServerIdentity::named([agent.name])) else { return Ok(watch) };
    let guardrails = rules.guardrails();
    Ok(guardrails.fold(watch, |watch, (name, text)| watch.with_rules(&format!("the fleet's {name}"), text)))
}

/// Only Linux has a copy of a fleet's log: elsewhere a machine that is in a fleet runs nothing.
#[cfg(not(target_os = "linux"))]
fn refused_by_fleet(_: &Agent) -> anyhow::Result<Option<Denial>> {
    let is_enrolled = facts::fleet_dir()
        .is_some_and(|dir| facts::is_fleet_of_host(&dir) || dir.join("fleet.toml").exists());
    let why = "this machine is in a fleet, whose rules hold on Linux alone";
    Ok(is_enrolled.then(|| Denial::new(DenialCode::Revoked, why)))
}

#[cfg(not(target_os = "linux"))]
fn under_fleet(watch: Watch, _: &Agent) -> anyhow::Result<Watch> {
    Ok(watch)
}

fn watch(args: &Hook, event: &Event) -> anyhow::Result<Watch> {
    let dir = facts::state_dir().context("neither XDG_STATE_HOME nor HOME says where the state is")?;
    let state = State::open(&dir).map_err(anyhow::Error::msg)?;
    let cwd = event.cwd.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    let cwd = match cwd {
        Some(cwd) => cwd,
        None => facts::here().context("the working directory is not known")?,
    };
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let watch = Watch::new(state, &event.session, &cwd, facts::home().as_deref(), facts::now_us());
    let watch = watch.of_agent(&event.subagent);
    let watch = if args.agent.sees_input { watch } else { watch.without_input() };
    let watch = under_fleet(watch, args.agent)?;
    let Some(path) = &args.manifest else { return Ok(watch) };
    let (_, manifest) =
        input::manifest(path).map_err(|_| anyhow!("the manifest `{}` cannot be used", path.display()))?;
    let facts = facts::for_manifest(&manifest, &[])
        .map_err(|_| anyhow!("the manifest has variables without a value"))?;
    let checked = manifest.check(&facts).map_err(anyhow::Error::msg)?;
    Ok(watch.with_manifest(checked))
}

#[cfg(test)]
mod tests {
    use bailiwick_testkit::child::{child, input, start};

    #[test]
    fn a_panic_is_a_no() {
        let hook = start(child("commands::hook::tests::panics"), "as a hook\n");
        assert_eq!(hook.wait_with_output().unwrap().status.code(), Some(2));
    }

    #[test]
    fn panics() {
        if !input().is_empty() {
            super::refuse_on_panic();
            panic!("unforeseen");
        }
    }
}
