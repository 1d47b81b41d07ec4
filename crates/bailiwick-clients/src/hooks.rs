//! Agents that ask a program before and after every call: what their events mean, how they are answered, and where
//! their hooks are written.
//!
//! Pure: values and texts in, values and texts out. What is known of each agent is one file below `agents/`; most took
//! over Claude Code's format, so such a file says which events the agent has and where it differs.
//!
//! An allowed call gets no word of approval: the agent's own permissions still count. Where an agent has no way to ask
//! its person from a hook, or is told not to ask, the answer is a no with the id to approve.
//!
//! ```
//! use bailiwick_clients::hooks::{Refusal, agent};
//! use serde_json::json;
//!
//! let claude = agent("claude-code").unwrap();
//! let event = claude.event(&json!({
//!     "hook_event_name": "PreToolUse", "session_id": "s",
//!     "tool_name": "Bash", "tool_input": {"command": "rm -rf /"},
//! }))?;
//! let answer = claude.refuse(&event, &Refusal { word: "deny", reason: "no", code: None });
//! assert!(answer.contains(r#""permissionDecision":"deny""#));
//! # Ok::<(), bailiwick_clients::hooks::EventError>(())
//! ```

mod agents;
mod answers;
mod edit;
mod fields;
mod outcome;
mod settings;
#[cfg(test)]
mod tests;
mod trust;

pub use self::agents::{AGENTS, GENERIC, agent};
pub use self::edit::HookSettingsError;
pub use self::settings::{HookEntries, HookFile, HookForm};
pub use self::trust::TrustFile;

use serde_json::{Value, json};

use self::answers::Answers;
use self::fields::{after, before, stop, text};

/// The session of the event that a dry run sends: it is not counted as one of an agent's.
pub const DRY_SESSION: &str = "bailiwick-doctor";

/// One event of a session.
#[derive(Debug)]
pub struct Event {
    /// The agent's name for the event.
    pub name: String,
    /// The session, with the agent's name before it.
    pub session: String,
    /// Where the agent works.
    pub cwd: Option<String>,
    /// The subagent that it is about; empty for the session's own agent.
    pub subagent: String,
    /// What it is about.
    pub kind: EventKind,
}

/// What an event is about.
#[derive(Debug)]
pub enum EventKind {
    /// A call that has not run.
    Before {
        /// The tool, as `server:tool` where the event says which server.
        tool: String,
        /// Its arguments.
        params: Value,
        /// The call's name, repeated after it.
        id: Option<String>,
        /// Whether the agent can ask its person.
        can_ask: bool,
    },
    /// A call that ran.
    After {
        /// The tool.
        tool: String,
        /// Its arguments.
        params: Value,
        /// The call's name.
        id: Option<String>,
        /// What the model reads of the result.
        result: String,
        /// Whether it succeeded, where the agent says so.
        success: Option<bool>,
    },
    /// The end of a turn.
    Stop {
        /// The last words.
        text: Option<String>,
        /// The type of the agent; `main` for the session's own.
        role: String,
        /// Whether the turn went on because of a hook.
        again: bool,
    },
    /// The assistant said something.
    Heard {
        /// What it said.
        text: String,
    },
    /// A settings file of the agent changed while it runs.
    SettingsChanged {
        /// The file.
        path: Option<String>,
    },
    /// Nothing that guardrails are about.
    Other,
}

/// Why an event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A field is missing or empty.
    #[error("the event has no `{0}`")]
    Missing(&'static str),
    /// An event that is not in our own format.
    #[error("`{0}` is not `before`, `after` or `stop`")]
    Unknown(String),
}

/// Why a call does not run now.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// `ask` or `deny`.
    pub word: &'static str,
    /// For the model to read.
    pub reason: &'a str,
    /// The code of a denial.
    pub code: Option<&'a str>,
}

/// What scripts said, for the model to read.
#[derive(Debug, Clone, Copy)]
pub struct Injection<'a> {
    /// All of it as one text.
    pub text: &'a str,
    /// One entry a script, for agents that take more than one.
    pub messages: &'a Value,
}

/// What an event of an agent is about, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    After,
    /// A call that failed has an event of its own.
    Failed,
    Stop,
    SettingsChanged,
}

/// How an agent's events are read.
#[derive(Debug)]
enum Reader {
    /// As Claude Code describes them.
    Phases(PhaseReader),
    /// In a format that shares little with others.
    Own { events: &'static [&'static str], kind: KindOf },
}

/// Events by their phase.
#[derive(Debug)]
struct PhaseReader {
    events: &'static [(&'static str, Phase)],
    can_ask: fn(&Value) -> bool,
    /// The field that has the result.
    result: &'static str,
    /// What the model reads of the result of a tool, and whether it succeeded.
    outcome: fn(&str, &Value) -> (String, Option<bool>),
}

/// The fields that every event has.
#[derive(Debug)]
struct EventKeys {
    name: &'static str,
    session: &'static str,
    subagent: &'static str,
    tool: &'static str,
    params: &'static str,
}

/// What an event of this name is about.
type KindOf = fn(&str, &Value) -> Result<EventKind, EventError>;

/// One agent.
#[derive(Debug)]
pub struct Agent {
    /// Its name on our command line, and in the names of its sessions.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Where its hooks are written; `None` for one without settings of its own.
    pub settings: Option<HookFile>,
    /// What a person has to do after the hooks are installed, so that the agent runs them.
    pub left_to_do: Option<&'static str>,
    /// Where it keeps whether a person trusts its hooks.
    pub trust: Option<TrustFile>,
    /// Whether its hooks are asked about what the model types into a running program.
    pub sees_input: bool,
    /// How a fault after a call ends, where it must stop nothing.
    pub fault_code: u8,
    /// What it calls its shell.
    shell: &'static str,
    keys: EventKeys,
    reader: Reader,
    answers: Answers,
}

impl Agent {
    /// What an event means.
    ///
    /// # Errors
    /// If a field that it must have is missing.
    pub fn event(&self, value: &Value) -> Result<Event, EventError> {
        let required = |key| text(value, key).ok_or(EventError::Missing(key));
        let name = required(self.keys.name)?;
        let kind = self.kind(&name, value)?;
        let session = required(self.keys.session)?;
        if session.is_empty() {
            return Err(EventError::Missing(self.keys.session));
        }
        let root = value.pointer("/workspace_roots/0").and_then(Value::as_str).map(str::to_owned);
        Ok(Event {
            name,
            session: format!("{}-{session}", self.name),
            cwd: root.or_else(|| text(value, "cwd")),
            subagent: text(value, self.keys.subagent).unwrap_or_default(),
            kind,
        })
    }

    fn kind(&self, name: &str, value: &Value) -> Result<EventKind, EventError> {
        let PhaseReader { events, can_ask, result: key, outcome } = match &self.reader {
            Reader::Own { kind, .. } => return kind(name, value),
            Reader::Phases(reader) => reader,
        };
        let Some((_, phase)) = events.iter().find(|(event, _)| *event == name) else {
            return Ok(EventKind::Other);
        };
        match phase {
            Phase::Before => before(value, can_ask(value)),
            Phase::After => after(value, |tool| outcome(tool, value.get(*key).unwrap_or(&Value::Null))),
            Phase::Failed => {
                let error = value.get("error").or_else(|| value.get(*key)).unwrap_or(&Value::Null);
                after(value, |tool| (outcome(tool, error).0, Some(false)))
            }
            Phase::Stop => Ok(stop(value)),
            Phase::SettingsChanged => Ok(EventKind::SettingsChanged { path: text(value, "file_path") }),
        }
    }

    /// The answer to a call that is asked about or refused.
    #[must_use]
    pub fn refuse(&self, event: &Event, refusal: &Refusal<'_>) -> String {
        line(&(self.answers.refuse)(event, refusal))
    }

    /// What scripts said, for the model to read.
    #[must_use]
    pub fn inject(&self, event: &Event, injection: &Injection<'_>) -> String {
        line(&(self.answers.inject)(event, injection))
    }

    /// The answer that says nothing.
    #[must_use]
    pub const fn nothing(&self) -> &'static str {
        self.answers.nothing
    }

    /// The answer to a call that may run.
    #[must_use]
    pub const fn allow(&self) -> &'static str {
        self.answers.allow
    }

    /// An event about a call that every guard refuses, in the agent's own format.
    #[must_use]
    pub fn dry_event(&self) -> Value {
        let keys = &self.keys;
        json!({
            keys.name: self.events().next(),
            keys.session: DRY_SESSION,
            keys.tool: self.shell,
            keys.params: {"command": "bailiwick trust ."},
        })
    }

    /// The events that its settings name, the one before a call first.
    fn events(&self) -> impl Iterator<Item = &'static str> + use<> {
        let (phases, names): (&'static [(&'static str, Phase)], &'static [&'static str]) = match &self.reader
        {
            Reader::Phases(reader) => (reader.events, &[]),
            Reader::Own { events, .. } => (&[], events),
        };
        phases.iter().map(|(name, _)| *name).chain(names.iter().copied())
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
