//! The arguments of a call, read strictly: one form, nothing unknown, nothing empty-handed.

use std::collections::BTreeMap;
use std::time::Duration;

use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::Code;
use serde_json::{Map, Value, json};

use super::super::args;
use crate::tool::ToolError;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a call asks for.
#[derive(Debug)]
pub(super) struct Args {
    pub(super) work: Work,
    pub(super) cwd: Option<String>,
    /// Variables for the programs.
    pub(super) env: BTreeMap<String, String>,
    /// Variables that were asked for and make programs run other code.
    pub(super) dropped: Vec<String>,
    pub(super) stdin: Option<String>,
    pub(super) timeout: Duration,
}

/// What is to run.
#[derive(Debug)]
pub(super) enum Work {
    /// One program with its arguments.
    Program(String, Vec<String>),
    /// A script of the subset.
    Script(String),
    /// A script for a real bash.
    Bash(String),
}

/// The JSON Schema of the arguments.
pub(super) fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "properties": {
            "program": text("A bare name such as `git`, or an absolute path. Either this or `cmd`."),
            "args": { "type": "array", "items": { "type": "string" }, "description": "Arguments of `program`." },
            "cmd": text("A script: words, quotes, | && || ; newlines, redirections, globs, $VAR, VAR=x prefixes, cd."),
            "engine": {
                "enum": ["safe", "bash"],
                "default": "safe",
                "description": "What runs `cmd`; `bash` needs `exec:spawn:bash`.",
            },
            "cwd": text("Where to run; the session's directory if absent."),
            "env": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Variables to set. Those that make programs load other code are dropped.",
            },
            "stdin": text("What the programs read from standard input; nothing if absent."),
            "timeout_ms": { "type": "integer", "minimum": 1, "maximum": 3_600_000, "default": 60_000 },
        },
        "additionalProperties": false,
    })
}

/// Whether a variable makes programs load or choose code, in whatever case it is written.
pub(super) fn is_loader(name: &str) -> bool {
    let line = format!("env:inject:{}", name.to_ascii_uppercase());
    line.parse::<Capability>().is_err_and(|finding| finding.code() == Code::EnvLoader)
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(rest)
}

impl Args {
    pub(super) fn read(args: &Value) -> Result<Self, ToolError> {
        let known = ["program", "args", "cmd", "engine", "cwd", "env", "stdin", "timeout_ms"];
        let fields = args::Args::read("shell", args, &known)?.fields();
        let (env, dropped) = variables(fields)?;
        Ok(Self {
            work: work(fields)?,
            cwd: text(fields, "cwd")?,
            env,
            dropped,
            stdin: text(fields, "stdin")?,
            timeout: timeout(fields)?,
        })
    }
}

fn bad(what: &str) -> ToolError {
    args::wrong("shell", what)
}

/// One form and not both. Who is neither is told so, whatever is null: guardrails read the first of these keys.
fn work(fields: &Map<String, Value>) -> Result<Work, ToolError> {
    if let Some(key) = ["program", "cmd"].into_iter().find(|key| fields.get(*key).is_some_and(Value::is_null))
    {
        return Err(bad(&format!("`{key}` is a string")));
    }
    let engine = text(fields, "engine")?;
    match (text(fields, "program")?, text(fields, "cmd")?) {
        (Some(_), Some(_)) => Err(bad("give `program` or `cmd`, not both")),
        (None, None) => Err(bad("`program` is missing; give it, or a script as `cmd`")),
        (Some(_), None) if engine.is_some() => Err(bad("`engine` goes with `cmd`")),
        (Some(program), None) => Ok(Work::Program(program, list(fields, "args")?)),
        (None, Some(_)) if fields.contains_key("args") => Err(bad("`args` goes with `program`")),
        (None, Some(script)) => match engine.as_deref() {
            None | Some("safe") => Ok(Work::Script(script)),
            Some("bash") => Ok(Work::Bash(script)),
            Some(_) => Err(bad("`engine` is `safe` or `bash`")),
        },
    }
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, ToolError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.contains('\0') || key == "stdin" => Ok(Some(text.clone())),
        Some(_) => Err(bad(&format!("`{key}` is a string"))),
    }
}

fn list(fields: &Map<String, Value>, key: &str) -> Result<Vec<String>, ToolError> {
    let wrong = || bad(&format!("`{key}` is a list of strings"));
    match fields.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| clean(item).ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

fn clean(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.contains('\0')).map(str::to_owned)
}

/// The variables to set, and the names of those that are not.
fn variables(fields: &Map<String, Value>) -> Result<(BTreeMap<String, String>, Vec<String>), ToolError> {
    let items = match fields.get("env") {
        None | Some(Value::Null) => return Ok(Default::default()),
        Some(Value::Object(items)) => items,
        Some(_) => return Err(bad("`env` is an object of strings")),
    };
    let (mut set, mut dropped) = (BTreeMap::new(), Vec::new());
    for (name, value) in items {
        if !is_name(name) {
            return Err(bad(&format!("`{}` is not the name of a variable", name.escape_debug())));
        }
        let value = clean(value).ok_or_else(|| bad("`env` is an object of strings"))?;
        if is_loader(name) {
            dropped.push(name.clone());
        } else {
            set.insert(name.clone(), value);
        }
    }
    Ok((set, dropped))
}

fn timeout(fields: &Map<String, Value>) -> Result<Duration, ToolError> {
    let asked = match fields.get("timeout_ms") {
        None | Some(Value::Null) => DEFAULT_TIMEOUT,
        Some(value) => {
            value.as_u64().map(Duration::from_millis).ok_or_else(|| bad("`timeout_ms` is a number"))?
        }
    };
    Ok(asked.min(MAX_TIMEOUT))
}
