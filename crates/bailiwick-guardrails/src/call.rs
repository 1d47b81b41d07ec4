//! A call as guardrails see it: a server, a tool, a capability, and texts to match.

use std::borrow::Cow;
use std::cell::OnceCell;

use bailiwick_policy::guardrails::AGENT_SERVER;
use serde_json::Value;

use super::names::Names;
use super::shell::{self, Reading};

/// The capability whose arguments hold shell text.
pub(crate) const SHELL: &str = "shell";

/// Arguments that hold shell text, in order of preference.
const SHELL_ARGUMENTS: &[&str] = &["command", "cmd", "script", "program"];

/// One call of one tool.
#[derive(Debug)]
pub struct ToolCall<'a> {
    server: Cow<'a, str>,
    tool: Cow<'a, str>,
    capability: Option<Cow<'a, str>>,
    params: &'a Value,
    json: OnceCell<String>,
    reading: OnceCell<Option<Commands>>,
}

/// The commands of a shell text, and all their texts in one for a quick look.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) reading: Reading,
    pub(crate) all: String,
}

impl<'a> ToolCall<'a> {
    /// A call of an agent's tool: its own (`Bash`), or a server's (`mcp__server__tool`, `server:tool`).
    #[must_use]
    pub fn new(name: &'a str, params: &'a Value, names: &'a Names) -> Self {
        let (server, tool) = split(name);
        Self::of(server, tool, params, names)
    }

    /// A call of a server's tool.
    #[must_use]
    pub fn of(server: &'a str, tool: &'a str, params: &'a Value, names: &'a Names) -> Self {
        let capability = names.capability(server, tool).map(Cow::Borrowed);
        let (json, reading) = (OnceCell::new(), OnceCell::new());
        Self { server: server.into(), tool: tool.into(), capability, params, json, reading }
    }

    /// The server it belongs to; `agent` for an agent's own.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tool's own name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What the tool counts as, if anything.
    #[must_use]
    pub fn capability(&self) -> Option<&str> {
        self.capability.as_deref()
    }

    /// The arguments.
    #[must_use]
    pub const fn params(&self) -> &'a Value {
        self.params
    }

    /// `server:tool`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}:{}", self.server, self.tool)
    }

    /// The arguments as compact JSON.
    pub(crate) fn json(&self) -> &str {
        self.json.get_or_init(|| self.params.to_string())
    }

    /// The text of one argument: a string itself, anything else as compact JSON, nothing if it is not there.
    pub(crate) fn argument(&self, name: &str) -> Cow<'_, str> {
        match self.params.get(name) {
            None => Cow::Borrowed(""),
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(value) => Cow::Owned(value.to_string()),
        }
    }

    /// What a shell call would run; `None` if it is no shell call.
    #[must_use]
    pub fn reading(&self) -> Option<&Reading> {
        self.commands().map(|commands| &commands.reading)
    }

    pub(crate) fn commands(&self) -> Option<&Commands> {
        self.reading
            .get_or_init(|| (self.capability() == Some(SHELL)).then(|| Commands::of(self.params)))
            .as_ref()
    }

    /// Whether an argument is the one that holds the shell text.
    pub(crate) fn is_shell_argument(name: &str) -> bool {
        SHELL_ARGUMENTS.contains(&name)
    }
}

impl Commands {
    fn of(params: &Value) -> Self {
        let reading = shell_text(params).map(|text| shell::read(&text)).unwrap_or_default();
        let texts = reading.commands.iter().flat_map(|one| std::iter::once(&one.plain).chain(&one.variants));
        let all = texts.map(|text| format!("{text}\n")).collect();
        Self { reading, all }
    }
}

/// The shell text of a call: a string, a list of words, or a program with its arguments.
fn shell_text(params: &Value) -> Option<Cow<'_, str>> {
    let words = |value: &Value| match value {
        Value::Array(items) => {
            Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    let value = match params {
        Value::String(text) => return Some(Cow::Borrowed(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            SHELL_ARGUMENTS.iter().find_map(|name| params.get(name))?
        }
    };
    let arguments = params.get("args").and_then(words);
    match (value, arguments) {
        (Value::String(program), Some(arguments)) => {
            let all = std::iter::once(program.as_str()).chain(arguments.iter().map(String::as_str));
            Some(Cow::Owned(shell::quoted(all)))
        }
        (Value::String(text), None) => Some(Cow::Borrowed(text)),
        (value, _) => words(value).map(|words| Cow::Owned(shell::quoted(words.iter().map(String::as_str)))),
    }
}

/// The server and the tool in an agent's name for it.
fn split(name: &str) -> (&str, &str) {
    if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return (server, tool);
    }
    match name.split_once(':') {
        Some(("MCP", tool)) => ("mcp", tool),
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (server, tool),
        Some(_) | None => (AGENT_SERVER, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_split_as_agents_write_them() {
        assert_eq!(split("mcp__github__create_issue"), ("github", "create_issue"));
        assert_eq!(split("github:create_issue"), ("github", "create_issue"));
        assert_eq!(split("MCP:query"), ("mcp", "query"));
        assert_eq!(split("Bash"), ("agent", "Bash"));
    }

    #[test]
    fn shell_text_is_found_in_every_shape() {
        let names = Names::default();
        for (tool, params) in [
            ("Bash", json!({"command": "rm -rf /"})),
            ("shell", json!({"command": ["bash", "-lc", "rm -rf /"]})),
            ("shell", json!({"command": ["rm", "-rf", "/"]})),
            ("shell", json!({"program": "rm", "args": ["-rf", "/"]})),
            ("exec_command", json!({"cmd": "rm -rf /"})),
        ] {
            let call = ToolCall::new(tool, &params, &names);
            assert!(call.commands().unwrap().all.contains("rm -rf /"), "{tool} {params}");
        }
        let read = json!({"file_path": "rm -rf /"});
        assert!(ToolCall::new("Read", &read, &names).reading().is_none());
    }
}
