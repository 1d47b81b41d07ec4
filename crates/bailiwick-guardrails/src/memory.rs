//! Guardrails over one session in one process: the past is kept in memory.
//!
//! A reload that fails keeps the last good rules; a file that is broken from the start refuses every call.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use super::call::ToolCall;
use super::engine::{Engine, place};
use super::file::{Good, Policy};
use super::history::{Cursor, History};
use super::names::Names;
use super::rails::Rails;
use super::react::{self, CallOutcome, Trigger, Turn};
use super::script::{Script, TIMEOUT, run_all};
use super::state::{State, StateFault};
use super::trust::Trust;
use super::verdict::{Call, Verdict};
use super::watch::Said;

/// The rules in force and what happened under them.
#[derive(Debug)]
pub struct SessionRails {
    policy: Policy,
    history: History,
    calls: Vec<Kept>,
    loaded: Vec<String>,
    state: State,
    workdir: PathBuf,
    home: Option<PathBuf>,
    /// Whether the rules are of a text, which stays as it is.
    is_of_text: bool,
}

/// A call that was admitted.
#[derive(Debug)]
struct Kept {
    tool: String,
    params: Value,
    ended: Option<bool>,
}

/// What came of reading the file again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The new rules hold.
    Changed,
    /// The file cannot be used; the rules from before hold.
    KeptOld(String),
}

/// Scripts to run, which may take their time.
#[derive(Debug)]
pub struct Scripts {
    workdir: PathBuf,
    scripts: Vec<Script>,
}

impl Scripts {
    const fn none() -> Self {
        Self { workdir: PathBuf::new(), scripts: Vec::new() }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.scripts.is_empty()
    }

    /// Runs them, one after the other, on this thread.
    #[must_use]
    pub fn run(self) -> Said {
        let ran = run_all(&self.workdir, &self.scripts);
        react::said(&self.scripts, &ran)
    }
}

impl SessionRails {
    /// The rules of a working directory, under which nothing has happened.
    ///
    /// # Errors
    /// If the trust store cannot be read.
    pub fn new(workdir: &Path, state: &State, home: Option<&Path>) -> Result<Self, StateFault> {
        let policy = Policy::load(workdir, &Trust::load(state)?);
        Ok(Self::under(policy, workdir, state, home, false))
    }

    /// The rules of a text that is no project's file: its scripts never run, and it is not read again.
    #[must_use]
    pub fn of_text((name, text): (&str, &str), workdir: &Path, state: &State, home: Option<&Path>) -> Self {
        Self::under(Policy::of_text(name, text), workdir, state, home, true)
    }

    fn under(policy: Policy, workdir: &Path, state: &State, home: Option<&Path>, is_of_text: bool) -> Self {
        let history = fresh(&policy, &[]);
        let (workdir, home) = (workdir.to_path_buf(), home.map(Path::to_path_buf));
        let (calls, loaded, state) = (Vec::new(), Vec::new(), state.clone());
        Self { policy, history, calls, loaded, state, workdir, home, is_of_text }
    }

    /// Reads the file again; one that cannot be used leaves the rules from before in force.
    ///
    /// # Errors
    /// If the trust store cannot be read.
    pub fn reload(&mut self) -> Result<Reload, StateFault> {
        if self.is_of_text {
            return Ok(Reload::Changed);
        }
        let policy = Policy::load(&self.workdir, &Trust::load(&self.state)?);
        Ok(match &policy {
            Policy::Broken(broken) => Reload::KeptOld(broken.summary()),
            Policy::Changed(why) => Reload::KeptOld(why.clone()),
            Policy::Absent | Policy::Good(_) => {
                self.adopt(policy);
                Reload::Changed
            }
        })
    }

    /// Begins a turn: validators may send the assistant back again.
    pub const fn begin_turn(&mut self) {
        self.history.reentries = 0;
    }

    /// Counts that validators sent the assistant back.
    pub const fn send_back(&mut self) {
        self.history.reentries += 1;
    }

    /// What becomes of a call.
    #[must_use]
    pub fn judge(&self, call: &Call) -> Verdict {
        let none = Names::default();
        let names = self.policy.rails().map_or(&none, Rails::names);
        let engine = Engine {
            policy: &self.policy,
            workdir: &self.workdir,
            here: &self.workdir,
            state: self.state.dir(),
            home: self.home.as_deref(),
            manifest: None, // the registry holds its tools to their manifests
        };
        engine.judge(&ToolCall::new(&call.tool, &call.args, names), &self.history)
    }

    /// Adds tools that are there.
    pub fn load<'n>(&mut self, tools: impl Iterator<Item = &'n str>) {
        let names = self.policy.rails().map(|rails| rails.names().clone()).unwrap_or_default();
        for tool in tools {
            let call = ToolCall::new(tool, &Value::Null, &names);
            self.loaded.push(call.server().to_owned());
            self.loaded.extend(call.capability().map(str::to_owned));
        }
        self.loaded.iter().for_each(|name| self.history.load(name));
    }

    /// Admits a call; later calls see it. Its number.
    pub fn admit(&mut self, call: &Call) -> usize {
        let mut history = std::mem::take(&mut self.history);
        self.count(&self.policy, &mut history, &call.tool, &call.args);
        self.history = history;
        self.calls.push(Kept { tool: call.tool.to_string(), params: call.args.clone(), ended: None });
        self.calls.len() - 1
    }

    /// Ends a call, and says which scripts its result calls for.
    #[must_use]
    pub fn end(&mut self, number: usize, call: &Call, result: &str, success: bool) -> Scripts {
        if let Some(kept) = self.calls.get_mut(number) {
            kept.ended = Some(success);
        }
        self.history.end(u64::try_from(number).unwrap_or(u64::MAX), success);
        let Some(good) = self.trusted() else { return Scripts::none() };
        let tool_call = ToolCall::new(&call.tool, &call.args, good.rails.names());
        let id = number.to_string();
        let scripts = react::hooks(
            &good.rails,
            &CallOutcome { call: &tool_call, id: &id, result, ending: success.into() },
            TIMEOUT,
        );
        Scripts { workdir: self.workdir.clone(), scripts }
    }

    /// The validators that the end of a turn calls for; their cursors move now.
    #[must_use]
    pub fn end_turn(&mut self, text: &str, role: &str) -> Scripts {
        if self.history.reentries >= react::MAX_REENTRIES {
            return Scripts::none();
        }
        let turn = &Turn { text, role, agent: "" };
        let Some(good) = self.trusted() else { return Scripts::none() };
        let due = react::due(&good.rails, &self.history, turn);
        let mut scripts = Vec::new();
        let mut names = Vec::new();
        for validator in due {
            let name = validator.written.name.value.clone();
            let since = self.history.cursors.get(&name).map_or(0, |cursor| cursor.call);
            scripts.push(react::validation(validator, &self.window(since), turn, TIMEOUT));
            names.push(name);
        }
        let call = self.history.calls();
        self.history.cursors.extend(names.into_iter().map(|name| (name, Cursor { call, offset: 0 })));
        Scripts { workdir: self.workdir.clone(), scripts }
    }

    fn window(&self, since: u64) -> Vec<Trigger> {
        let since = usize::try_from(since).unwrap_or(usize::MAX);
        let calls = self.calls.iter().skip(since).filter(|kept| kept.ended != Some(false));
        let names = self.policy.rails().map(|rails| rails.names().clone()).unwrap_or_default();
        let trigger = |kept: &Kept| {
            let capability = ToolCall::new(&kept.tool, &kept.params, &names).capability().map(str::to_owned);
            (capability, kept.params.clone(), self.matched(&self.policy, &kept.tool, &kept.params))
        };
        calls.map(trigger).collect()
    }

    /// A call where it stands.
    fn call<'a>(&self, policy: &'a Policy, tool: &'a str, params: &'a Value) -> ToolCall<'a> {
        static NONE: LazyLock<Names> = LazyLock::new(Names::default);
        let call = ToolCall::new(tool, params, policy.rails().map_or(&NONE, Rails::names));
        place(&call, &self.workdir, &self.workdir, self.home.as_deref());
        call
    }

    /// Which counted targets a call is of; a pattern that cannot be used denies when it is judged.
    fn matched(&self, policy: &Policy, tool: &str, params: &Value) -> Vec<usize> {
        let call = self.call(policy, tool, params);
        policy.rails().and_then(|rails| rails.matched(&call).ok()).unwrap_or_default()
    }

    /// Counts a call that is admitted under these rules.
    fn count(&self, policy: &Policy, history: &mut History, tool: &str, params: &Value) {
        let call = self.call(policy, tool, params);
        let matched = policy.rails().and_then(|rails| rails.matched(&call).ok()).unwrap_or_default();
        if policy.rails().is_some_and(Rails::names_classes) {
            history.note_made(call.consequences());
        }
        history.admit("", call.id(), matched);
    }

    /// The file, if its scripts may run.
    fn trusted(&self) -> Option<&Good> {
        match &self.policy {
            Policy::Good(good) if good.trusted => Some(good),
            Policy::Good(_) | Policy::Absent | Policy::Broken(_) | Policy::Changed(_) => None,
        }
    }

    /// Puts new rules in force; what happened is counted again under them.
    fn adopt(&mut self, policy: Policy) {
        let mut history = fresh(&policy, &self.loaded);
        for (number, kept) in self.calls.iter().enumerate() {
            self.count(&policy, &mut history, &kept.tool, &kept.params);
            if let Some(success) = kept.ended {
                history.end(u64::try_from(number).unwrap_or(u64::MAX), success);
            }
        }
        history.cursors = std::mem::take(&mut self.history.cursors);
        history.reentries = self.history.reentries;
        self.history = history;
        self.policy = policy;
    }
}

fn fresh(policy: &Policy, loaded: &[String]) -> History {
    let mut history = History::new(policy.rails().map_or(0, |rails| rails.counted.len()));
    loaded.iter().for_each(|name| history.load(name));
    history
}
