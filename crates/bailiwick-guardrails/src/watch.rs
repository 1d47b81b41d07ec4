//! Guardrails over one session of an agent that calls us from outside, one process per event.
//!
//! Before a call: the built-in guard, the rules, consent. After it: scripts that react to its result. At the end of
//! a turn: scripts that validate it. The session's log is locked while it is judged and written, never while a
//! script runs.
//!
//! Fails closed when the state cannot be used, the file is broken or was changed after it was trusted: no call runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::journal::Digest;
use bailiwick_policy::manifest::Checked;
use serde_json::Value;

use super::approvals::{self, Consulted, Question};
use super::call::ToolCall;
use super::digest::digest;
use super::engine::Engine;
use super::file::Policy;
use super::log::{OpenLog, Record, SessionLog, admitted};
use super::names::Names;
use super::rails::Rails;
use super::react::{self, Outcome, Turn};
use super::script::{TIMEOUT, run_all};
use super::state::{State, StateFault};
use super::trust::Trust;
use super::verdict::{Call, Verdict};

/// How a history counts: raised when it counts more.
const COUNTING: u32 = 2;

/// Who can be asked when a rule wants a person's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The agent asks the person in front of it.
    Agent,
    /// A person answers with `bailiwick approve`; until then it is no.
    Terminal,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It may run, as far as we are concerned.
    Allow,
    /// The agent must ask its person.
    Ask(String),
    /// It may not run.
    Deny(Denial),
}

/// An agent's session.
#[derive(Debug)]
pub struct Watch {
    state: State,
    session: String,
    cwd: PathBuf,
    home: Option<PathBuf>,
    now: u64,
    timeout: Duration,
    manifest: Option<Checked>,
}

/// What scripts said, and what they left for the log of debugging.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What the model is to read.
    pub injected: Vec<String>,
    /// What only a developer is.
    pub debug: Vec<String>,
}

impl Watch {
    /// A session by its agent's name for it, that works in `cwd` if it is new.
    #[must_use]
    pub fn new(state: State, session: &str, cwd: &Path, home: Option<&Path>, now: u64) -> Self {
        let (session, cwd, home) = (session.to_owned(), cwd.to_path_buf(), home.map(Path::to_path_buf));
        Self { state, session, cwd, home, now, timeout: TIMEOUT, manifest: None }
    }

    /// The same session, whose scripts may run this long.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same session, whose tools are held to what a manifest declares of them.
    #[must_use]
    pub fn with_manifest(mut self, manifest: Checked) -> Self {
        self.manifest = Some(manifest);
        self
    }

    /// Judges a call before it runs. `id` is the agent's name for it, if it has one.
    ///
    /// # Errors
    /// If the session's state cannot be used: the call must not run.
    pub fn before(
        &self,
        tool: &str,
        params: &Value,
        id: Option<&str>,
        asking: Asking,
    ) -> Result<Decision, StateFault> {
        let (log, policy) = self.open()?;
        let none = Rails::none();
        let rails = policy.rails().unwrap_or(&none);
        let mut log = log.with(rails, &rules_id(&policy))?;
        Names::of_agents().for_each(|name| log.history.load(name));
        let call = ToolCall::new(tool, params, rails.names());
        let hash = call_digest(&call);
        let engine = Engine {
            policy: &policy,
            workdir: log.workdir(),
            state: self.state.dir(),
            home: self.home.as_deref(),
            manifest: self.manifest.as_ref(),
        };
        let verdict = engine.judge(&call, &log.history);
        let decision = match verdict {
            Verdict::Allow | Verdict::Rewrite(_) => Decision::Allow,
            Verdict::Deny(denial) => Decision::Deny(denial),
            Verdict::Ask(question) => self.ask(&call, hash, &question, asking)?,
        };
        if decision == Decision::Allow {
            log.add(&admitted(&call, &key(id, hash)), rails)?;
        }
        drop(call);
        log.save()?;
        Ok(decision)
    }

    /// Ends a call, and runs the hooks that its result calls for.
    ///
    /// # Errors
    /// If the session's state cannot be used.
    pub fn after(
        &self,
        tool: &str,
        params: &Value,
        id: Option<&str>,
        result: &str,
        success: bool,
    ) -> Result<Said, StateFault> {
        let (log, policy) = self.open()?;
        let none = Rails::none();
        let rails = policy.rails().unwrap_or(&none);
        let mut log = log.with(rails, &rules_id(&policy))?;
        let call = ToolCall::new(tool, params, rails.names());
        let key = key(id, call_digest(&call));
        // A call that a person allowed in the agent was not admitted by us.
        if log.history.find_open(&key).is_none() {
            log.add(&admitted(&call, &key), rails)?;
        }
        if let Some(number) = log.history.find_open(&key) {
            log.add(&Record::Ended { call: number, success }, rails)?;
        }
        let workdir = log.workdir().to_path_buf();
        log.save()?;
        let Policy::Good(good) = &policy else { return Ok(Said::default()) };
        let outcome = Outcome { call: &call, id: id.unwrap_or_default(), result, success };
        let scripts = react::hooks(&good.rails, &outcome, self.timeout);
        if !good.trusted {
            return Ok(untrusted(scripts.len()));
        }
        let ran = run_all(&workdir, &scripts);
        Ok(react::said(&scripts, &ran, |_, text| text.to_owned()))
    }

    /// Runs the validators that the end of a turn calls for. `again` says that they sent the assistant back before.
    ///
    /// # Errors
    /// If the session's state cannot be used.
    pub fn end_turn(&self, text: Option<&str>, role: &str, again: bool) -> Result<Said, StateFault> {
        let (log, policy) = self.open()?;
        let Policy::Good(good) = &policy else { return Ok(Said::default()) };
        let rails = &good.rails;
        let mut log = log.with(rails, &rules_id(&policy))?;
        let count = if again { log.history.reentries } else { 0 };
        if count >= react::MAX_REENTRIES {
            log.save()?;
            return Ok(Said {
                injected: Vec::new(),
                debug: vec!["validators had their say as often as they may".to_owned()],
            });
        }
        let text = text.map_or_else(|| log.history.last_text.clone(), str::to_owned);
        let turn = Turn { text: &text, role };
        let due = react::due(rails, &log.history, &turn);
        if !good.trusted {
            log.save()?;
            return Ok(untrusted(due.len()));
        }
        let mut scripts = Vec::new();
        for validator in due {
            scripts.push(self.start_validator(&mut log, rails, validator, &turn)?);
        }
        if log.history.reentries != count {
            log.add(&Record::Turn { reentries: count }, rails)?;
        }
        let workdir = log.workdir().to_path_buf();
        log.save()?;
        let ran = run_all(&workdir, &scripts);
        let said = react::said(&scripts, &ran, react::framed);
        if !said.injected.is_empty() {
            self.note(&Record::Turn { reentries: count + 1 })?;
        }
        Ok(said)
    }

    /// Keeps the assistant's words until the end of its turn.
    ///
    /// # Errors
    /// If the session's state cannot be used.
    pub fn heard(&self, text: &str) -> Result<(), StateFault> {
        self.note(&Record::Said { text: text.chars().take(64 * 1024).collect() })
    }

    /// Moves a validator's cursor and gathers what its script is told.
    fn start_validator(
        &self,
        log: &mut OpenLog,
        rails: &Rails,
        validator: &super::rails::Validator,
        turn: &Turn<'_>,
    ) -> Result<super::script::Script, StateFault> {
        let name = &validator.written.name.value;
        let cursor = log.history.cursors.get(name).copied().unwrap_or_default();
        let calls = log.window(cursor, rails)?;
        let (call, offset) = (log.history.calls(), log.end());
        log.add(&Record::Validated { validator: name.clone(), call, offset }, rails)?;
        Ok(react::validation(validator, &calls, turn, self.timeout))
    }

    fn note(&self, record: &Record) -> Result<(), StateFault> {
        let (log, policy) = self.open()?;
        let none = Rails::none();
        let rails = policy.rails().unwrap_or(&none);
        let mut log = log.with(rails, &rules_id(&policy))?;
        log.add(record, rails)?;
        log.save()
    }

    fn open(&self) -> Result<(SessionLog, Policy), StateFault> {
        let log = SessionLog::open(&self.state, &self.session, &self.cwd)?;
        let trust = Trust::load(&self.state)?;
        let policy = Policy::load(log.workdir(), &trust);
        Ok((log, policy))
    }

    fn ask(
        &self,
        call: &ToolCall<'_>,
        digest: Digest,
        question: &str,
        asking: Asking,
    ) -> Result<Decision, StateFault> {
        if asking == Asking::Agent {
            let approved = approvals::take(&self.state, digest, self.now)?;
            return Ok(if approved { Decision::Allow } else { Decision::Ask(question.to_owned()) });
        }
        let tool = call.id();
        let asked = Question { digest, tool: &tool, arguments: call.json(), question, now: self.now };
        let missing = |message: String| Decision::Deny(Denial::new(DenialCode::ConsentMissing, message));
        Ok(match approvals::consult(&self.state, &asked)? {
            Consulted::Approved => Decision::Allow,
            Consulted::Denied => missing(format!("{question} A person was asked and said no.")),
            Consulted::Waiting(id) => missing(format!(
                "{question} It needs a person's consent: they run `bailiwick approve {id}` in a terminal, then the same call may be made once."
            )),
        })
    }
}

fn untrusted(count: usize) -> Said {
    let debug = (count > 0)
        .then(|| "scripts were not run: the directory is not trusted; see `bailiwick trust`".to_owned());
    Said { injected: Vec::new(), debug: debug.into_iter().collect() }
}

/// What tells one set of rules from another, and one way of counting: what was counted otherwise is counted anew.
fn rules_id(policy: &Policy) -> String {
    let rules = match policy {
        Policy::Good(good) => Digest::of(good.source.text().as_bytes()).to_string(),
        Policy::Absent | Policy::Broken(_) | Policy::Changed(_) => "none".to_owned(),
    };
    format!("{COUNTING}:{rules}")
}

fn call_digest(call: &ToolCall<'_>) -> Digest {
    digest(&Call { tool: call.id().into(), args: call.params().clone() })
}

fn key(id: Option<&str>, digest: Digest) -> String {
    id.filter(|id| !id.is_empty() && id.len() <= 128).map_or_else(|| digest.to_string(), str::to_owned)
}
