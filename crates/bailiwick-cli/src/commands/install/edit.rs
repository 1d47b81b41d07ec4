//! Adding and removing our entries in a JSON text whose every other byte stays.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue as Input, CstNode, CstObject, CstRootNode};

use crate::args::guard::Agent;

/// How long the agent waits for scripts, in seconds: a little longer than we do.
const PATIENCE: u32 = 310;

/// What one agent's settings look like.
pub(super) struct Settings {
    agent: Agent,
    name: &'static str,
    events: &'static [&'static str],
    /// The file as it starts.
    pub(super) empty: &'static str,
}

impl Settings {
    pub(super) const fn of(agent: Agent) -> Self {
        let (name, events): (_, &'static [&'static str]) = match agent {
            Agent::ClaudeCode | Agent::Generic => {
                ("claude-code", &["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"])
            }
            Agent::Codex => ("codex", &["PreToolUse", "PostToolUse", "Stop"]),
            Agent::Gemini => ("gemini", &["BeforeTool", "AfterTool", "AfterAgent"]),
            Agent::Cursor => {
                ("cursor", &["preToolUse", "postToolUse", "postToolUseFailure", "afterAgentResponse", "stop"])
            }
        };
        let empty = match agent {
            Agent::Cursor => "{\n  \"version\": 1\n}\n",
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Generic => "{}\n",
        };
        Self { agent, name, events, empty }
    }

    fn entry(&self, command: &str, event: &str) -> Input {
        let text = |text: &str| Input::String(text.to_owned());
        let field = |key: &str, value: Input| (key.to_owned(), value);
        let seconds = |scale: u32| Input::Number((PATIENCE * scale).to_string());
        if self.agent == Agent::Cursor {
            let closed =
                if event == "preToolUse" { vec![field("failClosed", Input::Bool(true))] } else { Vec::new() };
            let fields = [field("command", text(command)), field("timeout", seconds(1))];
            return Input::Object(fields.into_iter().chain(closed).collect());
        }
        let scale = if self.agent == Agent::Gemini { 1000 } else { 1 };
        let hook = Input::Object(vec![
            field("type", text("command")),
            field("command", text(command)),
            field("timeout", seconds(scale)),
        ]);
        let tools = event
            .contains("Tool")
            .then(|| field("matcher", text("*")))
            .filter(|_| self.agent != Agent::Gemini);
        let tools = tools.or_else(|| event.contains("Tool").then(|| field("matcher", text(".*"))));
        Input::Object(tools.into_iter().chain([field("hooks", Input::Array(vec![hook]))]).collect())
    }
}

/// The text with our entries.
pub(super) fn add(settings: &Settings, text: &str, program: &Path) -> Result<String, String> {
    let root = parse(text)?;
    let object = root.object_value_or_create().ok_or("is not a JSON object")?;
    let hooks = object.object_value_or_create("hooks").ok_or("has a `hooks` that is not an object")?;
    let command = format!("{} hook {}", quoted(program), settings.name);
    for event in settings.events {
        let list = hooks
            .array_value_or_create(event)
            .ok_or_else(|| format!("has a `{event}` that is not a list"))?;
        if !list.elements().iter().any(|entry| is_ours(entry, settings)) {
            list.ensure_multiline();
            list.append(settings.entry(&command, event));
        }
    }
    Ok(root.to_string())
}

/// The text without our entries; nothing if only they were in it.
pub(super) fn remove(settings: &Settings, text: &str) -> Result<Option<String>, String> {
    let root = parse(text)?;
    let Some(object) = root.object_value() else { return Err("is not a JSON object".to_owned()) };
    if let Some(hooks) = object.object_value("hooks") {
        settings.events.iter().for_each(|event| remove_event(settings, &hooks, event));
        if hooks.properties().is_empty() {
            object.get("hooks").into_iter().for_each(|property| property.remove());
        }
    }
    Ok(Some(root.to_string()))
}

fn remove_event(settings: &Settings, hooks: &CstObject, event: &str) {
    let Some(list) = hooks.array_value(event) else { return };
    let entries = list.elements();
    let all = entries.len();
    let ours: Vec<CstNode> = entries.into_iter().filter(|entry| is_ours(entry, settings)).collect();
    let left = all - ours.len();
    ours.into_iter().for_each(CstNode::remove);
    if left == 0 && all > 0 {
        hooks.get(event).into_iter().for_each(|property| property.remove());
    }
}

/// Whether an entry runs `bailiwick hook` for this agent, and nothing else.
fn is_ours(entry: &CstNode, settings: &Settings) -> bool {
    let Some(object) = entry.as_object() else { return false };
    let runs = |object: &CstObject| {
        let value = object.get("command").and_then(|property| property.value());
        let command =
            value.and_then(|value| value.as_string_lit()).and_then(|text| text.decoded_value().ok());
        command.is_some_and(|command| {
            command.contains("bailiwick") && command.ends_with(&format!(" hook {}", settings.name))
        })
    };
    match object.array_value("hooks") {
        Some(list) => {
            let inner = list.elements();
            !inner.is_empty() && inner.iter().all(|one| one.as_object().is_some_and(|one| runs(&one)))
        }
        None => runs(&object),
    }
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| format!("is not JSON: {error}"))
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
