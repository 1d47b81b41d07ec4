//! Adding and removing our entries in a settings text whose every other byte stays.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue as Input, CstNode, CstObject, CstRootNode};

use super::{Agent, HookEntries, HookForm};

/// How long the agent waits for scripts, in seconds: a little longer than we do.
const PATIENCE: u32 = 310;

/// Why a settings text cannot take our hooks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookSettingsError {
    /// The agent has no settings file that we know.
    #[error("is not a settings file")]
    NoSettings,
    /// It cannot be read.
    #[error("is not JSON: {0}")]
    Syntax(String),
    /// It is JSON and no object.
    #[error("is not a JSON object")]
    NoObject,
    /// What should have our entries cannot have them.
    #[error("has a `{0}` that is not {1}")]
    Shape(&'static str, &'static str),
    /// A file of another program has the name of ours.
    #[error("is there and not ours: move it away")]
    NotOurs,
    /// The program's path does not fit into the file.
    #[error("cannot name the program `{0}`: move it to a path without blanks and quotes")]
    Program(String),
}

impl Agent {
    /// The settings text with our entries, which run `program`; `None` is a file that is not there.
    ///
    /// # Errors
    /// If the text cannot be read, or has no place for them.
    pub fn add_hooks(&self, text: Option<&str>, program: &Path) -> Result<String, HookSettingsError> {
        let entries = match self.form()? {
            HookForm::Whole(template) => return self.own_file(template, text, program),
            HookForm::Entries(entries) => entries,
        };
        let (bom, text) = crate::without_bom(text.unwrap_or(entries.empty));
        let root = parse(text)?;
        let object = root.object_value_or_create().ok_or(HookSettingsError::NoObject)?;
        let hooks =
            object.object_value_or_create("hooks").ok_or(HookSettingsError::Shape("hooks", "an object"))?;
        let command = format!("{} hook {}", quoted(program), self.name);
        for event in self.events() {
            let list = hooks.array_value_or_create(event);
            let list = list.ok_or(HookSettingsError::Shape(event, "a list"))?;
            if !list.elements().iter().any(|entry| self.is_ours(entry)) {
                list.ensure_multiline();
                list.append(entry(entries, &command, event));
            }
        }
        Ok(bom.to_owned() + &root.to_string())
    }

    /// The settings text without our entries; nothing for a file that was ours alone.
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn remove_hooks(&self, text: &str) -> Result<Option<String>, HookSettingsError> {
        if let HookForm::Whole(_) = self.form()? {
            return Ok((!self.is_own_file(text)).then(|| text.to_owned()));
        }
        let (bom, text) = crate::without_bom(text);
        let root = parse(text)?;
        let object = root.object_value().ok_or(HookSettingsError::NoObject)?;
        if let Some(hooks) = object.object_value("hooks") {
            self.events().for_each(|event| self.remove_event(&hooks, event));
            if hooks.properties().is_empty() {
                object.get("hooks").into_iter().for_each(|property| property.remove());
            }
        }
        Ok(Some(bom.to_owned() + &root.to_string()))
    }

    /// Whether a text is what is left of a settings file that we made.
    #[must_use]
    pub fn is_empty_file(&self, text: &str) -> bool {
        let bare = |text: &str| -> String { text.split_whitespace().collect() };
        let text = bare(text);
        let as_made = |settings: &super::HookFile| match &settings.form {
            HookForm::Entries(entries) => bare(entries.empty) == text,
            HookForm::Whole(_) => false,
        };
        matches!(text.as_str(), "" | "{}") || self.settings.as_ref().is_some_and(as_made)
    }

    /// Whether a settings text calls our hook before every tool.
    #[must_use]
    pub fn is_called_by(&self, text: &str) -> bool {
        match self.form() {
            Ok(HookForm::Whole(_)) => self.is_own_file(text),
            Ok(HookForm::Entries(_)) => {
                self.entries_before(text).is_some_and(|list| list.iter().any(|entry| self.is_ours(entry)))
            }
            Err(_) => false,
        }
    }

    /// The command that a settings text runs before a call, if it is ours.
    #[must_use]
    pub fn configured_command(&self, text: &str) -> Option<String> {
        if let HookForm::Whole(_) = self.form().ok()? {
            return self.command_in_own_file(text);
        }
        let commands = self.entries_before(text)?.into_iter().flat_map(|entry| commands_of(&entry));
        commands.flatten().find(|command| self.is_our_command(command))
    }

    fn form(&self) -> Result<&HookForm, HookSettingsError> {
        self.settings.as_ref().map(|settings| &settings.form).ok_or(HookSettingsError::NoSettings)
    }

    /// A file of our own; one that another program wrote under its name is left alone.
    fn own_file(
        &self,
        template: &str,
        text: Option<&str>,
        program: &Path,
    ) -> Result<String, HookSettingsError> {
        if text.is_some_and(|text| !self.is_own_file(text)) {
            return Err(HookSettingsError::NotOurs);
        }
        let program = program.to_string_lossy();
        if program.contains(['"', '\\', '\n', ' ']) {
            return Err(HookSettingsError::Program(program.into_owned()));
        }
        Ok(template.replace("{program}", &program))
    }

    fn is_own_file(&self, text: &str) -> bool {
        text.contains(&format!(" hook {}", self.name)) && text.contains("bailiwick")
    }

    /// The entries about calls that have not run.
    fn entries_before(&self, text: &str) -> Option<Vec<CstNode>> {
        let root = parse(crate::without_bom(text).1).ok()?;
        let hooks = root.object_value()?.object_value("hooks")?;
        Some(hooks.array_value(self.events().next()?)?.elements())
    }

    /// The command in a file that is ours: a plugin names its program and calls it with fixed arguments, a list of hooks
    /// has the whole command between quotes.
    fn command_in_own_file(&self, text: &str) -> Option<String> {
        if let Some((_, behind)) = text.split_once("const PROGRAM = \"") {
            let program = behind.split('"').next()?;
            return Some(format!("{} hook {}", quoted(Path::new(program)), self.name));
        }
        text.split('"').find(|part| self.is_our_command(part)).map(str::to_owned)
    }

    fn remove_event(&self, hooks: &CstObject, event: &str) {
        let Some(list) = hooks.array_value(event) else { return };
        let entries = list.elements();
        let all = entries.len();
        let ours: Vec<CstNode> = entries.into_iter().filter(|entry| self.is_ours(entry)).collect();
        let left = all - ours.len();
        ours.into_iter().for_each(CstNode::remove);
        if left == 0 && all > 0 {
            hooks.get(event).into_iter().for_each(|property| property.remove());
        }
    }

    /// Whether an entry runs `bailiwick hook` for this agent, and nothing else.
    fn is_ours(&self, entry: &CstNode) -> bool {
        let commands = commands_of(entry);
        let is_ours = |command: &Option<String>| command.as_ref().is_some_and(|one| self.is_our_command(one));
        !commands.is_empty() && commands.iter().all(is_ours)
    }

    /// Whether a command is ours; a person may have added options such as `--role`.
    fn is_our_command(&self, command: &str) -> bool {
        let call = format!(" hook {}", self.name);
        command.contains("bailiwick") && (command.ends_with(&call) || command.contains(&(call + " ")))
    }
}

fn entry(entries: &HookEntries, command: &str, event: &str) -> Input {
    let text = |text: &str| Input::String(text.to_owned());
    let field = |key: &str, value: Input| (key.to_owned(), value);
    let timeout = field("timeout", Input::Number((PATIENCE * entries.second).to_string()));
    let closed =
        entries.closed.iter().filter(|(of, _, _)| *of == event).map(|(_, key, value)| {
            field(key, if *value == "true" { Input::Bool(true) } else { text(value) })
        });
    let Some(matcher) = entries.matcher else {
        let fields = [field("command", text(command)), timeout];
        return Input::Object(fields.into_iter().chain(closed).collect());
    };
    let fields = [field("type", text("command")), field("command", text(command)), timeout];
    let hook = Input::Object(fields.into_iter().chain(closed).collect());
    let tools = event.contains("Tool").then(|| field("matcher", text(matcher)));
    Input::Object(tools.into_iter().chain([field("hooks", Input::Array(vec![hook]))]).collect())
}

/// The commands of an entry: of each hook in it, or its own; `None` for a hook that has none.
fn commands_of(entry: &CstNode) -> Vec<Option<String>> {
    let Some(object) = entry.as_object() else { return Vec::new() };
    match object.array_value("hooks") {
        Some(list) => {
            list.elements().iter().map(|one| one.as_object().and_then(|one| command(&one))).collect()
        }
        None => vec![command(&object)],
    }
}

fn command(object: &CstObject) -> Option<String> {
    object.get("command")?.value()?.as_string_lit()?.decoded_value().ok()
}

fn parse(text: &str) -> Result<CstRootNode, HookSettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let read = CstRootNode::parse(text, &ParseOptions::default());
    read.map_err(|error| HookSettingsError::Syntax(error.to_string()))
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
