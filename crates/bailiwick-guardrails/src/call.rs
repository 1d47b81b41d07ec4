//! A call as guardrails see it: a server, a tool, a capability, and texts to match.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rules_file::AGENT_SERVER;
use bailiwick_shell::Reading;
use bailiwick_shell::aliases;
use bailiwick_shell::classes::{self, Consequences, EarlierFiles, Effect, Setting};
use serde_json::Value;

use super::names::Names;
use super::searched::SearchedText;
use super::tool_name::{same_name, split, tool_of};

/// The capability whose arguments hold shell text.
pub(crate) const SHELL: &str = "shell";

/// Arguments that hold shell text, in order of preference.
const SHELL_ARGUMENTS: &[&str] = &["command", "cmd", "script", "program"];

/// Arguments by which a tool that nothing is known of shows that it runs shell text.
const TELLING_ARGUMENTS: &[&str] = &["command", "cmd"];

/// One call of one tool.
#[derive(Debug)]
pub struct ToolCall<'a> {
    server: Cow<'a, str>,
    tool: Cow<'a, str>,
    capability: Option<Cow<'a, str>>,
    params: &'a Value,
    json: OnceCell<String>,
    searched_json: OnceCell<[SearchedText<'static>; 1]>,
    /// The texts of the arguments that were asked for.
    arguments: RefCell<BTreeMap<String, Arc<[SearchedText<'a>]>>>,
    reading: OnceCell<Option<Commands>>,
    setting: OnceCell<Setting>,
    earlier: OnceCell<EarlierFiles>,
    consequences: OnceCell<Consequences>,
}

/// The commands of a shell text, and all their texts in one for a quick look.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) reading: Reading,
    pub(crate) all: SearchedText<'static>,
}

impl<'a> ToolCall<'a> {
    /// A call of an agent's tool: its own (`Bash`), or a server's in any agent's way (`mcp__server__tool`,
    /// `server:tool`, `server-tool`).
    #[must_use]
    pub fn new(name: &'a str, params: &'a Value, names: &'a Names) -> Self {
        let (server, tool) = names.server_in(name).unwrap_or_else(|| split(name));
        Self::on_server(server, tool, params, names)
    }

    /// A call of a server's tool. One that nothing is known of, but that carries a command, is one of the shell.
    #[must_use]
    pub fn on_server(server: &'a str, tool: &'a str, params: &'a Value, names: &'a Names) -> Self {
        let carries_command = || {
            let command = TELLING_ARGUMENTS.iter().find_map(|name| params.get(name));
            command.is_some_and(|command| command.is_string() || command.is_array()).then_some(SHELL)
        };
        let capability = names.capability(server, tool).or_else(carries_command).map(Cow::Borrowed);
        Self {
            server: server.into(),
            tool: tool.into(),
            capability,
            params,
            json: OnceCell::new(),
            searched_json: OnceCell::new(),
            arguments: RefCell::default(),
            reading: OnceCell::new(),
            setting: OnceCell::new(),
            earlier: OnceCell::new(),
            consequences: OnceCell::new(),
        }
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

    /// Whether it is a call of this server's, and of this tool if one is given, however the agent joins the two names.
    #[must_use]
    pub fn is_of(&self, server: &str, tool: Option<&str>) -> bool {
        if same_name(&self.server, server) {
            return tool.is_none_or(|tool| same_name(&self.tool, tool));
        }
        let joined = (self.server == AGENT_SERVER).then(|| tool_of(&self.tool, server)).flatten();
        joined.is_some_and(|found| tool.is_none_or(|tool| same_name(found, tool)))
    }

    /// The directory that the call itself says it runs in.
    pub(crate) fn directory(&self) -> Option<&'a str> {
        aliases::directory(self.params)
    }

    /// The arguments as compact JSON.
    pub(crate) fn json(&self) -> &str {
        self.json.get_or_init(|| self.params.to_string())
    }

    /// The same, to look for words in it.
    pub(crate) fn searched_json(&self) -> &[SearchedText<'static>] {
        self.searched_json.get_or_init(|| [SearchedText::new(self.json().to_owned())])
    }

    /// The texts of an argument, under whichever name this call has it: a string itself, anything else as compact
    /// JSON, an empty text if it is not there.
    pub(crate) fn argument_texts(&self, name: &str) -> Arc<[SearchedText<'a>]> {
        if let Some(known) = self.arguments.borrow().get(name) {
            return Arc::clone(known);
        }
        let texts: Arc<[_]> = aliases::texts(self.params, name).into_iter().map(SearchedText::new).collect();
        self.arguments.borrow_mut().insert(name.to_owned(), Arc::clone(&texts));
        texts
    }

    /// The text that a shell call runs.
    pub(crate) fn shell_text(&self) -> Option<Cow<'_, str>> {
        if self.capability() == Some(SHELL) { shell_text(self.params) } else { None }
    }

    /// What a shell call would run; `None` if it is no shell call.
    #[must_use]
    pub fn reading(&self) -> Option<&Reading> {
        self.commands().map(|commands| &commands.reading)
    }

    pub(crate) fn commands(&self) -> Option<&Commands> {
        self.reading
            .get_or_init(|| (self.capability() == Some(SHELL)).then(|| Commands::from_params(self.params)))
            .as_ref()
    }

    /// Says where the call stands; only the first time counts, and only before its effects are looked at.
    pub fn stands(&self, setting: Setting) {
        let _ = self.setting.set(setting);
    }

    /// Says which files earlier calls made; under the same terms.
    pub(crate) fn follows(&self, earlier: EarlierFiles) {
        let _ = self.earlier.set(earlier);
    }

    /// What the call does, in classes.
    #[must_use]
    pub fn effects(&self) -> &[Effect] {
        &self.consequences().effects
    }

    /// What the call does and leaves behind.
    pub(crate) fn consequences(&self) -> &Consequences {
        self.consequences.get_or_init(|| {
            let setting = self.setting.get_or_init(Setting::default);
            match self.commands() {
                Some(commands) => {
                    let earlier = self.earlier.get_or_init(EarlierFiles::default);
                    classes::consequences(&commands.reading, setting, earlier)
                }
                None => classes::consequences_of_files(self.capability(), self.params, setting),
            }
        })
    }

    /// Whether an argument is the one that holds the shell text.
    pub(crate) fn is_shell_argument(name: &str) -> bool {
        SHELL_ARGUMENTS.contains(&name)
    }
}

impl Commands {
    fn from_params(params: &Value) -> Self {
        let reading = shell_text(params).map(|text| bailiwick_shell::read(&text)).unwrap_or_default();
        let texts = reading.commands.iter().flat_map(|one| std::iter::once(&one.plain).chain(&one.variants));
        let all: String = texts.flat_map(|text| [text.as_str(), "\n"]).collect();
        Self { reading, all: SearchedText::new(all) }
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
            Some(Cow::Owned(bailiwick_shell::quoted(all)))
        }
        (Value::String(text), None) => Some(Cow::Borrowed(text)),
        (value, _) => {
            words(value).map(|words| Cow::Owned(bailiwick_shell::quoted(words.iter().map(String::as_str))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shell_text_is_found_in_every_shape() {
        let names = Names::default();
        for (tool, params) in [
            ("Bash", json!({"command": "rm -rf /"})),
            ("shell", json!({"command": ["bash", "-lc", "rm -rf /"]})),
            ("shell", json!({"command": ["rm", "-rf", "/"]})),
            ("shell", json!({"program": "rm", "args": ["-rf", "/"]})),
            ("exec_command", json!({"cmd": "rm -rf /"})),
            ("Monitor", json!({"command": "rm -rf /"})),
            ("mcp__unheard__of", json!({"command": "rm -rf /"})),
            ("unheard-of", json!({"cmd": ["rm", "-rf", "/"]})),
        ] {
            let call = ToolCall::new(tool, &params, &names);
            assert!(call.commands().unwrap().all.contains("rm -rf /"), "{tool} {params}");
        }
        let read = json!({"file_path": "rm -rf /"});
        assert!(ToolCall::new("Read", &read, &names).reading().is_none());
    }

    #[test]
    fn a_server_is_found_however_its_name_is_joined() {
        let (names, none) = (Names::default(), json!({}));
        for name in
            ["mcp__my_notes__drop", "my-notes:drop", "my-notes-drop", "my_notes_drop", "mcp_my-notes_drop"]
        {
            let call = ToolCall::new(name, &none, &names);
            assert!(call.is_of("my-notes", Some("drop")), "{name}");
            assert!(call.is_of("my-notes", None), "{name}");
            assert!(!call.is_of("my-notes", Some("other")), "{name}");
            assert!(!call.is_of("notes", None), "{name}");
        }
    }
}
