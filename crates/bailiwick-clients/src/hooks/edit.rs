//! Adding and removing our entries in a settings text whose every other byte stays.

mod block;

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue as Input, CstNode, CstObject, CstObjectProp, CstRootNode};

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
    /// A mark that says where our lines end is gone.
    #[error("has no line `{0}` behind our lines any more: put it back, or remove the file")]
    NoEnd(&'static str),
}

impl Agent {
    /// The settings text with our entries, which run `program`; `None` is a file that is not there.
    ///
    /// # Errors
    /// If the text cannot be read, or has no place for them.
    pub fn add_hooks(&self, text: Option<&str>, program: &Path) -> Result<String, HookSettingsError> {
        let entries = match self.form()? {
            HookForm::Block(template) => return self.add_block(template, text, program),
            HookForm::Entries(entries) => entries,
        };
        let (bom, text) = crate::without_bom(text.unwrap_or(entries.empty));
        let root = parse(text)?;
        let object = root.object_value_or_create().ok_or(HookSettingsError::NoObject)?;
        let hooks =
            object.object_value_or_create("hooks").ok_or(HookSettingsError::Shape("hooks", "an object"))?;
        let command = format!("{} hook {}", quoted(&program.to_string_lossy()), self.name);
        for event in self.events() {
            let list = hooks.array_value_or_create(event);
            let list = list.ok_or(HookSettingsError::Shape(event, "a list"))?;
            let ours: Vec<CstNode> =
                list.elements().into_iter().filter(|entry| self.is_ours(entry)).collect();
            ours.iter().flat_map(hooks_of).flatten().for_each(|hook| self.move_program(&hook, &command));
            if ours.is_empty() {
                list.ensure_multiline();
                list.append(entry(entries, &command, event));
            }
        }
        Ok(bom.to_owned() + &root.to_string())
    }

    /// The settings text without our entries.
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn remove_hooks(&self, text: &str) -> Result<String, HookSettingsError> {
        if let HookForm::Block(_) = self.form()? {
            return block::without(text);
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
        Ok(bom.to_owned() + &root.to_string())
    }

    /// Whether a text is what is left of a settings file that we made.
    #[must_use]
    pub fn is_empty_file(&self, text: &str) -> bool {
        let bare = |text: &str| -> String { text.split_whitespace().collect() };
        let text = bare(crate::without_bom(text).1);
        let as_made = |settings: &super::HookFile| match &settings.form {
            HookForm::Entries(entries) => bare(entries.empty) == text,
            HookForm::Block(_) => false,
        };
        matches!(text.as_str(), "" | "{}") || self.settings.as_ref().is_some_and(as_made)
    }

    /// Whether a settings text calls our hook before every tool.
    #[must_use]
    pub fn is_called_by(&self, text: &str) -> bool {
        match self.form() {
            Ok(HookForm::Block(_)) => self.command_in_block(text).is_some(),
            Ok(HookForm::Entries(_)) => {
                self.entries_before(text).is_some_and(|list| list.iter().any(|entry| self.is_ours(entry)))
            }
            Err(_) => false,
        }
    }

    /// The command that a settings text runs before a call, if it is ours.
    #[must_use]
    pub fn configured_command(&self, text: &str) -> Option<String> {
        if let HookForm::Block(_) = self.form().ok()? {
            let words = self.command_in_block(text)?;
            return Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        }
        let commands = self.entries_before(text)?.into_iter().flat_map(|entry| commands_of(&entry));
        commands.flatten().find(|command| self.is_our_command(command))
    }

    fn form(&self) -> Result<&HookForm, HookSettingsError> {
        self.settings.as_ref().map(|settings| &settings.form).ok_or(HookSettingsError::NoSettings)
    }

    /// A file with our lines; those of a person around them stay, and the options that a person gave our command.
    fn add_block(
        &self,
        template: &str,
        text: Option<&str>,
        program: &Path,
    ) -> Result<String, HookSettingsError> {
        let ours = [&*program.to_string_lossy(), "hook", self.name].map(str::to_owned).to_vec();
        let text = text.unwrap_or_default();
        let options = self.command_in_block(text).into_iter().flatten().skip(ours.len());
        let command = serde_json::Value::from_iter(ours.iter().cloned().chain(options));
        block::put(text, &template.replace("{command}", &command.to_string()))
    }

    /// The command in our lines of a file, word for word.
    fn command_in_block(&self, text: &str) -> Option<Vec<String>> {
        let ours = block::found(text).ok()??;
        let (_, list) = text.get(ours)?.lines().find_map(|line| line.split_once("const COMMAND = "))?;
        let words: Vec<String> = serde_json::from_str(list.trim_end_matches(';')).ok()?;
        let ours = words.first()?.contains("bailiwick") && words.get(1..3)? == ["hook", self.name];
        ours.then_some(words)
    }

    /// Lets a hook of ours run the program of this command; the options that a person gave it stay.
    fn move_program(&self, hook: &CstObject, command: &str) {
        let Some(property) = command_property(hook) else { return };
        let Some(now) = text_of(&property) else { return };
        let options = now.split_once(&format!(" hook {}", self.name)).map_or("", |(_, options)| options);
        if now != command.to_owned() + options {
            property.set_value(Input::String(command.to_owned() + options));
        }
    }

    /// The entries about calls that have not run.
    fn entries_before(&self, text: &str) -> Option<Vec<CstNode>> {
        let root = parse(crate::without_bom(text).1).ok()?;
        let hooks = root.object_value()?.object_value("hooks")?;
        Some(hooks.array_value(self.events().next()?)?.elements())
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
    let timeout = field(entries.timeout, Input::Number((PATIENCE * entries.second).to_string()));
    let typed = entries.typed.then(|| field("type", text("command")));
    let closed =
        entries.closed.iter().filter(|(of, _, _)| *of == event).map(|(_, key, value)| {
            field(key, if *value == "true" { Input::Bool(true) } else { text(value) })
        });
    let fields = typed.into_iter().chain([field(entries.command, text(command)), timeout]);
    let hook = Input::Object(fields.chain(closed).collect());
    let Some(matcher) = entries.matcher else { return hook };
    let tools = event.contains("Tool").then(|| field("matcher", text(matcher)));
    Input::Object(tools.into_iter().chain([field("hooks", Input::Array(vec![hook]))]).collect())
}

/// The hooks of an entry: those in it, or the entry itself; `None` for one that is no object.
fn hooks_of(entry: &CstNode) -> Vec<Option<CstObject>> {
    let Some(object) = entry.as_object() else { return Vec::new() };
    match object.array_value("hooks") {
        Some(list) => list.elements().iter().map(CstNode::as_object).collect(),
        None => vec![Some(object)],
    }
}

/// The commands of an entry, one a hook; `None` for a hook that has none.
fn commands_of(entry: &CstNode) -> Vec<Option<String>> {
    let command = |hook: Option<CstObject>| command_property(&hook?).and_then(|found| text_of(&found));
    hooks_of(entry).into_iter().map(command).collect()
}

fn command_property(hook: &CstObject) -> Option<CstObjectProp> {
    hook.get("command").or_else(|| hook.get("bash"))
}

fn text_of(property: &CstObjectProp) -> Option<String> {
    property.value()?.as_string_lit()?.decoded_value().ok()
}

fn parse(text: &str) -> Result<CstRootNode, HookSettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let read = CstRootNode::parse(text, &ParseOptions::default());
    read.map_err(|error| HookSettingsError::Syntax(error.to_string()))
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
