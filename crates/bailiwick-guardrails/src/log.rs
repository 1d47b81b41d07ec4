//! A session's log between processes: one file, locked while it is used, one checked line per event.
//!
//! A line is the first half of its hash and its JSON. A line that was not written whole, because a process died, is
//! cut off before the next one is written; a line in the middle that does not check is damage, and nothing runs on
//! it. Beside the log lies a summary of what it adds up to, so that a process reads only what is new; without it, or
//! under other rules, the log is read from its start.
//!
//! Residual: lines are not flushed to the disk one by one, so a power cut may lose the last of them. The parameters
//! that are kept are shortened: rules that change in the middle of a session see old calls as they were kept.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bailiwick_policy::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::ToolCall;
use super::engine::place;
use super::history::{Cursor, History};
use super::rails::Rails;
use super::react::Trigger;
use super::state::{State, StateFault, VERSION};

/// The longest string in kept parameters, in bytes.
const MAX_KEPT: usize = 4 * 1024;
/// How many characters of a line are its check.
const CHECK: usize = 32;

/// One event of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// The session began here.
    Started {
        workdir: PathBuf,
        #[serde(default)]
        version: u32,
    },
    /// A call was admitted.
    Admitted {
        server: String,
        tool: String,
        capability: Option<String>,
        key: String,
        params: Value,
        /// The subagent that made it; empty for the session's own agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent: String,
        /// Where the agent worked, if not where the session began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        here: Option<PathBuf>,
    },
    /// A call was refused.
    Refused { key: String },
    /// A call ended; whether it succeeded, where that is known.
    Ended { call: u64, success: Option<bool> },
    /// A validator's script was started.
    Validated { validator: String, call: u64, offset: u64 },
    /// The turn goes on because validators said so, for the n-th time; 0 for a turn that began.
    Turn { reentries: u32 },
    /// The assistant said something.
    Said { text: String },
}

/// What a log adds up to.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    #[serde(default)]
    version: u32,
    rules: String,
    workdir: PathBuf,
    covered: u64,
    history: History,
}

/// A session's log, locked.
#[derive(Debug)]
pub(crate) struct SessionLog {
    state: State,
    name: String,
    file: File,
    workdir: PathBuf,
    home: Option<PathBuf>,
    summary: Option<Summary>,
}

/// A session's log with its history under some rules.
#[derive(Debug)]
pub(crate) struct OpenLog {
    log: SessionLog,
    rules: String,
    end: u64,
    pub(crate) history: History,
}

impl SessionLog {
    /// Opens and locks a session's log; a new session works in `cwd`.
    pub(crate) fn open(
        state: &State,
        session: &str,
        cwd: &Path,
        home: Option<&Path>,
    ) -> Result<Self, StateFault> {
        let name = format!("sessions/{}", file_name(session));
        let mut file = state.lock(&format!("{name}.log"))?;
        let summary = state.read(&format!("{name}.sum"))?;
        let summary: Option<Summary> = summary.and_then(|bytes| {
            checked(bytes.trim_ascii_end()).and_then(|json| serde_json::from_slice(json).ok())
        });
        let path = state.path(&format!("{name}.log"));
        let length = file.metadata().map_err(|error| StateFault::new("look at", &path, error))?.len();
        let summary = summary.filter(|summary| summary.covered <= length && summary.version <= VERSION);
        let known = match &summary {
            Some(summary) => Some(summary.workdir.clone()),
            None => first_workdir(state, &mut file, &format!("{name}.log"))?,
        };
        let workdir = known.clone().unwrap_or_else(|| cwd.to_path_buf());
        let home = home.map(Path::to_path_buf);
        let mut log = Self { state: state.clone(), name, file, workdir, home, summary };
        if known.is_none() {
            log.file.set_len(0).map_err(|error| StateFault::new("clear", &path, error))?;
            let workdir = log.workdir.clone();
            log.write(&Record::Started { workdir, version: VERSION })?;
        }
        Ok(log)
    }

    /// Where the session works, fixed when it began.
    pub(crate) fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// What tells the rules under which it was last counted from others.
    pub(crate) fn rules(&self) -> Option<&str> {
        self.summary.as_ref().map(|summary| summary.rules.as_str())
    }

    /// Brings the history up to date under these rules.
    pub(crate) fn with(mut self, rails: &Rails, rules: &str) -> Result<OpenLog, StateFault> {
        let (mut history, covered) = match self.summary.take() {
            Some(summary) if summary.rules == rules => (summary.history, summary.covered),
            Some(_) | None => (History::new(rails.counted.len()), 0),
        };
        let (records, end) = self.records(covered)?;
        for record in records {
            self.apply(&mut history, &record, rails)?;
        }
        Ok(OpenLog { log: self, rules: rules.to_owned(), end, history })
    }

    fn path(&self) -> PathBuf {
        self.state.path(&format!("{}.log", self.name))
    }

    /// The events from an offset on, and where they end; what is torn at the end is cut off.
    fn records(&mut self, from: u64) -> Result<(Vec<Record>, u64), StateFault> {
        let path = self.path();
        let fault = |step, error: std::io::Error| StateFault::new(step, &path, error);
        self.file.seek(SeekFrom::Start(from)).map_err(|error| fault("read", error))?;
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).map_err(|error| fault("read", error))?;
        let (mut records, mut end) = (Vec::new(), from);
        let mut rest = bytes.as_slice();
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at_checked(at + 1).unwrap_or((rest, &[]));
            let record = checked(line.trim_ascii_end()).and_then(|json| serde_json::from_slice(json).ok());
            let Some(record) = record else {
                if behind.contains(&b'\n') {
                    return Err(StateFault::new(
                        "use",
                        &path,
                        "a line in it is damaged; remove the file to begin the session anew",
                    ));
                }
                break;
            };
            end += u64::try_from(line.len()).unwrap_or(u64::MAX);
            records.push(record);
            rest = behind;
        }
        if !rest.is_empty() {
            self.file.set_len(end).map_err(|error| fault("repair", error))?;
        }
        Ok((records, end))
    }

    /// Counts an event.
    fn apply(&self, history: &mut History, record: &Record, rails: &Rails) -> Result<(), StateFault> {
        match record {
            Record::Started { .. } => {}
            Record::Admitted { server, tool, key, params, agent, here, .. } => {
                let call = ToolCall::on_server(server, tool, params, rails.names());
                place(&call, &self.workdir, here.as_ref().unwrap_or(&self.workdir), self.home.as_deref());
                return self.count(history, &call, key, agent, rails);
            }
            Record::Refused { key } => history.refuse(key),
            Record::Ended { call, success } => history.end(*call, *success),
            Record::Validated { validator, call, offset } => {
                history.cursors.insert(validator.clone(), Cursor { call: *call, offset: *offset });
            }
            Record::Turn { reentries } => history.reentries = *reentries,
            Record::Said { text } => history.last_text.clone_from(text),
        }
        Ok(())
    }

    /// Counts a call that was admitted.
    fn count(
        &self,
        history: &mut History,
        call: &ToolCall<'_>,
        key: &str,
        agent: &str,
        rails: &Rails,
    ) -> Result<(), StateFault> {
        let too_large = |_| StateFault::new("use", &self.path(), "a pattern of the rules is too large");
        let matched = rails.matched(call).map_err(too_large)?;
        history.load(call.server());
        call.capability().into_iter().for_each(|name| history.load(name));
        if rails.names_classes() {
            history.note_made(call.consequences());
        }
        history.admit_of(agent, key, call.id(), matched);
        Ok(())
    }

    fn write(&mut self, record: &Record) -> Result<u64, StateFault> {
        let path = self.path();
        let json = serde_json::to_vec(record).map_err(|error| StateFault::new("write", &path, error))?;
        let line = with_check(&json);
        self.file.write_all(&line).map_err(|error| StateFault::new("write", &path, error))?;
        Ok(u64::try_from(line.len()).unwrap_or(u64::MAX))
    }
}

impl OpenLog {
    pub(crate) fn workdir(&self) -> &Path {
        self.log.workdir()
    }

    /// Adds an event, and counts it.
    pub(crate) fn add(&mut self, record: &Record, rails: &Rails) -> Result<(), StateFault> {
        self.end += self.log.write(record)?;
        self.log.apply(&mut self.history, record, rails)
    }

    /// Adds a call that is admitted, which stands somewhere and may have been looked at already.
    pub(crate) fn admit(
        &mut self,
        call: &ToolCall<'_>,
        (key, agent, here): (&str, &str, &Path),
        rails: &Rails,
    ) -> Result<(), StateFault> {
        let here = (here != self.log.workdir).then(|| here.to_path_buf());
        let record = Record::Admitted {
            server: call.server().to_owned(),
            tool: call.tool().to_owned(),
            capability: call.capability().map(str::to_owned),
            key: key.to_owned(),
            params: shortened(call.params()),
            agent: agent.to_owned(),
            here,
        };
        self.end += self.log.write(&record)?;
        self.log.count(&mut self.history, call, key, agent, rails)
    }

    /// Where the next event will be.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The calls from a cursor on that have not failed: capability, parameters and which targets they are of.
    pub(crate) fn window(
        &mut self,
        cursor: Cursor,
        of_agent: &str,
        rails: &Rails,
    ) -> Result<Vec<Trigger>, StateFault> {
        let path = self.log.path();
        let (records, _) = self.log.records(cursor.offset)?;
        let mut calls = Vec::new();
        let mut number = cursor.call;
        for record in records {
            match record {
                Record::Admitted { server, tool, capability, params, agent, here, .. } => {
                    let call = ToolCall::on_server(&server, &tool, &params, rails.names());
                    let (workdir, home) = (&self.log.workdir, self.log.home.as_deref());
                    place(&call, workdir, here.as_ref().unwrap_or(workdir), home);
                    let matched = rails
                        .matched(&call)
                        .map_err(|_| StateFault::new("use", &path, "a pattern is too large"))?;
                    drop(call);
                    if agent == of_agent {
                        calls.push((number, (capability, params, matched)));
                    }
                    number += 1;
                }
                Record::Ended { call, success: Some(false) } => {
                    calls.retain(|(number, _)| *number != call);
                }
                Record::Ended { .. }
                | Record::Refused { .. }
                | Record::Started { .. }
                | Record::Validated { .. }
                | Record::Turn { .. }
                | Record::Said { .. } => {}
            }
        }
        Ok(calls.into_iter().map(|(_, call)| call).collect())
    }

    /// Leaves the summary for the next process.
    pub(crate) fn save(self) -> Result<(), StateFault> {
        let Self { log, rules, end, history } = self;
        let summary =
            Summary { version: VERSION, rules, workdir: log.workdir.clone(), covered: end, history };
        let json =
            serde_json::to_vec(&summary).map_err(|error| StateFault::new("write", &log.path(), error))?;
        log.state.replace(&format!("{}.sum", log.name), &with_check(&json), false)
    }
}

fn first_workdir(state: &State, file: &mut File, name: &str) -> Result<Option<PathBuf>, StateFault> {
    let path = &state.path(name);
    let fault = |error: std::io::Error| StateFault::new("read", path, error);
    file.seek(SeekFrom::Start(0)).map_err(fault)?;
    let mut head = Vec::new();
    std::io::Read::by_ref(file).take(64 * 1024).read_to_end(&mut head).map_err(fault)?;
    let line = head.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    match line.strip_suffix(b"\n").and_then(checked).map(serde_json::from_slice) {
        Some(Ok(Record::Started { workdir, version })) => {
            state.check_version(name, version).map(|()| Some(workdir))
        }
        None if !line.ends_with(b"\n") => Ok(None),
        _ => Err(StateFault::new(
            "use",
            path,
            "it does not begin like a session; remove the file to begin anew",
        )),
    }
}

fn with_check(json: &[u8]) -> Vec<u8> {
    let mut line = check(json).into_bytes();
    line.push(b' ');
    line.extend_from_slice(json);
    line.push(b'\n');
    line
}

fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.split_at_checked(CHECK)?;
    let json = json.strip_prefix(b" ")?;
    (sum == check(json).as_bytes()).then_some(json)
}

fn check(json: &[u8]) -> String {
    Digest::sha256(json).to_string().chars().take(CHECK).collect()
}

/// A file name for whatever an agent calls its session.
fn file_name(session: &str) -> String {
    let plain = session.parse::<bailiwick_journal::format::SessionId>().is_ok();
    if plain { session.to_owned() } else { format!("h-{}", check(session.as_bytes())) }
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_KEPT => {
            let kept =
                text.char_indices().take_while(|(at, _)| *at < MAX_KEPT).map(|(_, c)| c).collect::<String>();
            Value::String(kept + "…")
        }
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), shortened(value))).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
