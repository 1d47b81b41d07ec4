//! `bailiwick doctor --agents`: whether the hooks that are installed really answer, as their agent would call them.
//!
//! For every settings file that should call us, the command in it is run as it is written there, with an event about
//! a call that must be refused. Whether an agent trusts its hooks, and when it last sent an event, is said where it can
//! be known.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use bailiwick_clients::hooks::{AGENTS, Agent};
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::hook_records::last_event;
use bailiwick_command::render::{escape, json as render, style};
use bailiwick_command::{facts, moment};
use serde_json::{Value, json};

/// What was found about one settings file.
struct Found {
    agent: &'static str,
    path: PathBuf,
    /// Why the command in it does not refuse what it must, if it does not.
    fault: Option<String>,
    trust: Option<String>,
    last: Option<u64>,
}

pub(super) fn run(format: AnswerFormat) -> Answer {
    let found: Vec<Found> = AGENTS.iter().flat_map(looked_at).collect();
    let fine = !found.is_empty() && found.iter().all(|one| one.fault.is_none());
    let text = match format {
        AnswerFormat::Text => text(&found),
        AnswerFormat::Json => render::document(&document(&found)),
    };
    Answer::result(if fine { Exit::Fine } else { Exit::Found }, text)
}

fn looked_at(agent: &'static Agent) -> Vec<Found> {
    let Some(settings) = &agent.settings else { return Vec::new() };
    let here = facts::here().ok();
    let user = facts::home().map(|home| home.join(settings.user));
    let project = here.as_ref().map(|here| here.join(settings.project));
    let mut paths: Vec<PathBuf> = user.into_iter().chain(project).filter(|path| path.is_file()).collect();
    paths.dedup();
    let found = paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        let command = agent.configured_command(&text)?;
        Some(Found {
            agent: agent.name,
            fault: tried(agent, &command).err().map(|error| format!("{error:#}")),
            trust: trust(agent, &path, here.as_deref()),
            last: last_event(agent.name),
            path,
        })
    });
    found.collect()
}

/// Runs the command as the agent would, with a call that must be refused.
fn tried(agent: &Agent, command: &str) -> anyhow::Result<()> {
    let event = agent.dry_event();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("`sh` cannot be started")?;
    let wrote = child.stdin.take().map(|mut stdin| stdin.write_all(event.to_string().as_bytes()));
    let ended = child.wait_with_output().context("it cannot be waited for")?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    let refused = said.contains("a person's act");
    match (wrote, ended.status.code()) {
        (Some(Ok(())), Some(0 | 2)) if refused => Ok(()),
        (_, code) => {
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            let said: String = said.lines().next().unwrap_or_default().chars().take(160).collect();
            bail!("`{command}` does not refuse what it must: {code}, `{said}`")
        }
    }
}

/// What the agent's own files say about whether it runs these hooks.
fn trust(agent: &Agent, path: &Path, here: Option<&Path>) -> Option<String> {
    let file = agent.trust?;
    let text = std::fs::read_to_string(facts::home()?.join(file.path)).unwrap_or_default();
    Some(file.state(&text, path, here?))
}

fn text(found: &[Found]) -> String {
    if found.is_empty() {
        return "no agent's settings call `bailiwick hook`; see `bailiwick install --hooks`\n".to_owned();
    }
    let mut text = String::new();
    for one in found {
        let sign = if one.fault.is_none() { style::good("✓") } else { style::error("✗") };
        text += &format!("{sign} {:<12} {}\n", one.agent, escape::line(&one.path.to_string_lossy()));
        text += &match &one.fault {
            None => "    the command refuses what it must\n".to_owned(),
            Some(fault) => format!("    {}\n", escape::line(fault)),
        };
        text += &one.trust.as_ref().map(|trust| format!("    {}\n", escape::line(trust))).unwrap_or_default();
        text += &match one.last {
            Some(last) => format!("    last event of the agent: {}\n", moment::ago(last, facts::now_us())),
            None => "    no event of the agent has been seen\n".to_owned(),
        };
    }
    text
}

fn document(found: &[Found]) -> Value {
    let one = |one: &Found| {
        json!({
            "agent": one.agent,
            "file": one.path,
            "answers": one.fault.is_none(),
            "fault": one.fault,
            "trust": one.trust,
            "last_event": one.last.map(moment::utc),
        })
    };
    json!({"format": "bailiwick.doctor-agents/1", "hooks": found.iter().map(one).collect::<Vec<_>>()})
}
