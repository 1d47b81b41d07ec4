//! Guardrails over one session of an agent that calls us from outside, one process per event.
//!
//! Before a call: the built-in guard, the rules, consent. After it: scripts that react to its result. At the end of
//! a turn: scripts that validate it. The session's log is locked while it is judged and written, never while a
//! script runs.
//!
//! Fails closed when the state cannot be used, the file is broken or was changed after it was trusted: no call runs.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use bailiwick_manifest::Checked;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::digest::Digest;
use serde_json::Value;

use super::approvals::{self, Consulted, Question};
use super::call::ToolCall;
use super::digest::digest;
use super::engine::{Engine, place};
use super::file::Policy;
use super::history::Ending;
use super::injected::InjectedMessage;
use super::levels::Level;
use super::log::{OpenLog, Record, SessionLog};
use super::names::Names;
use super::rails::Rails;
use super::react::{self, CallOutcome, Turn};
use super::script::{TIMEOUT, run_all};
use super::state::{State, StateFault};
use super::trust::Trust;
use super::verdict::{Call, Verdict};
use super::waiting::waiting_program;

/// How a history counts: raised when it counts more.
const COUNTING: u32 = 5;

/// Arguments in which a model describes its call; they change nothing.
const WORDING: &[&str] = &["description", "explanation", "justification"];

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
    /// Rules that hold besides those of files, by their names.
    more: Vec<(String, String)>,
    /// The subagent whose events these are; empty for the session's own agent.
    agent: String,
    /// Whether what is typed into a running program is asked about too.
    sees_input: bool,
}

/// What scripts said, and what they left for the log of debugging.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What the model is to read, a message a script.
    pub injected: Vec<InjectedMessage>,
    /// What only a developer is.
    pub debug: Vec<String>,
}

impl Watch {
    /// A session by its agent's name for it, that works in `cwd` if it is new.
    #[must_use]
    pub fn new(state: State, session: &str, cwd: &Path, home: Option<&Path>, now: u64) -> Self {
        let (session, cwd, home) = (session.to_owned(), cwd.to_path_buf(), home.map(Path::to_path_buf));
        let (agent, more) = (String::new(), Vec::new());
        Self {
            state,
            session,
            cwd,
            home,
            now,
            timeout: TIMEOUT,
            manifest: None,
            more,
            agent,
            sees_input: true,
        }
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

    /// The same session, where the rules of a text hold besides those of files. Its scripts never run.
    #[must_use]
    pub fn with_rules(mut self, name: &str, text: &str) -> Self {
        self.more.push((name.to_owned(), text.to_owned()));
        self
    }

    /// The same session, for the events of one of its subagents.
    #[must_use]
    pub fn of_agent(mut self, agent: &str) -> Self {
        agent.clone_into(&mut self.agent);
        self
    }

    /// The same session, of an agent that lets the model type into running programs without asking.
    #[must_use]
    pub const fn without_input(mut self) -> Self {
        self.sees_input = false;
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
        let (policies, mut logs): (Vec<Policy>, Vec<OpenLog>) =
            self.open()?.into_iter().map(|level| (level.policy, level.log)).unzip();
        // Each call is read once, under the names of its file.
        let calls: Vec<ToolCall<'_>> =
            policies.iter().map(|policy| ToolCall::new(tool, params, rails_of(policy).names())).collect();
        let mut verdict = Verdict::Allow;
        for ((policy, log), call) in policies.iter().zip(&mut logs).zip(&calls) {
            Names::of_agents().for_each(|name| log.history.load(name));
            verdict = verdict.max(self.judge(policy, log, call));
        }
        let names = Names::default();
        let call = ToolCall::new(tool, params, &names);
        let key = key(id, call_digest(&call));
        let known = logs.first().is_some_and(|log| id.is_some() && log.history.find_open(&key).is_some());
        let decision = match verdict {
            Verdict::Allow | Verdict::Rewrite(_) => Decision::Allow,
            Verdict::Deny(denial) => Decision::Deny(denial),
            // Two settings files may both call us: the approval was used for this very call.
            Verdict::Ask(_) if known => Decision::Allow,
            Verdict::Ask(question) => self.ask(&call, &question, asking)?,
        };
        for ((policy, mut log), call) in policies.iter().zip(logs).zip(&calls) {
            let rails = rails_of(policy);
            match &decision {
                Decision::Allow if known => {}
                Decision::Allow => log.admit(call, (&key, &self.agent, &self.cwd), rails)?,
                Decision::Deny(_) => log.add(&Record::Refused { key: key.clone() }, rails)?,
                Decision::Ask(_) => {}
            }
            log.save()?;
        }
        Ok(decision)
    }

    fn judge(&self, policy: &Policy, log: &OpenLog, call: &ToolCall<'_>) -> Verdict {
        let engine = Engine {
            policy,
            workdir: log.workdir(),
            here: &self.cwd,
            state: self.state.dir(),
            home: self.home.as_deref(),
            manifest: self.manifest.as_ref(),
        };
        let waiting = (!self.sees_input).then(|| waiting_in(call)).flatten();
        waiting.map_or(Verdict::Allow, Verdict::Deny).max(engine.judge(call, &log.history))
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
        ending: impl Into<Ending>,
    ) -> Result<Said, StateFault> {
        let ending = ending.into();
        let names = Names::default();
        let key = key(id, call_digest(&ToolCall::new(tool, params, &names)));
        let mut all = Said::default();
        for mut level in self.open()? {
            let open = level.log.history.find_open(&key);
            if open.is_none() && level.log.history.is_refused(&key) {
                level.log.save()?;
                continue;
            }
            // A call that a person allowed in the agent was not admitted by us.
            if open.is_none() {
                let rails = rails_of(&level.policy);
                let call = ToolCall::new(tool, params, rails.names());
                place(&call, level.log.workdir(), &self.cwd, self.home.as_deref());
                level.log.admit(&call, (&key, &self.agent, &self.cwd), rails)?;
            }
            if let Some(call) = level.log.history.find_open(&key) {
                level.add(&Record::Ended { call, success: ending.success() })?;
            }
            let workdir = level.log.workdir().to_path_buf();
            level.log.save()?;
            let Policy::Good(good) = &level.policy else { continue };
            let call = ToolCall::new(tool, params, good.rails.names());
            let outcome = CallOutcome { call: &call, id: id.unwrap_or_default(), result, ending };
            let scripts = react::hooks(&good.rails, &outcome, self.timeout);
            all.extend(if good.trusted {
                react::said(&scripts, &run_all(&workdir, &scripts))
            } else {
                untrusted(scripts.len())
            });
        }
        Ok(all)
    }

    /// Runs the validators that the end of a turn calls for. `again` says that they sent the assistant back before.
    ///
    /// # Errors
    /// If the session's state cannot be used.
    pub fn end_turn(&self, text: Option<&str>, role: &str, again: bool) -> Result<Said, StateFault> {
        let mut all = Said::default();
        for level in self.open()? {
            all.extend(self.end_turn_of(level, text, role, again)?);
        }
        Ok(all)
    }

    fn end_turn_of(
        &self,
        level: OpenLevel,
        text: Option<&str>,
        role: &str,
        again: bool,
    ) -> Result<Said, StateFault> {
        let OpenLevel { policy, mut log } = level;
        let Policy::Good(good) = &policy else { return Ok(Said::default()) };
        let rails = &good.rails;
        let count = if again { log.history.reentries } else { 0 };
        if count >= react::MAX_REENTRIES {
            log.save()?;
            return Ok(Said {
                injected: Vec::new(),
                debug: vec!["validators had their say as often as they may".to_owned()],
            });
        }
        let text = text.map_or_else(|| log.history.last_text.clone(), str::to_owned);
        let turn = Turn { text: &text, role, agent: &self.agent };
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
        let said = react::said(&scripts, &ran);
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
        let name = react::cursor_name(&validator.written.name.value, turn.agent);
        let cursor = log.history.cursors.get(&name).copied().unwrap_or_default();
        let calls = log.window(cursor, turn.agent, rails)?;
        let (call, offset) = (log.history.calls(), log.end());
        log.add(&Record::Validated { validator: name, call, offset }, rails)?;
        Ok(react::validation(validator, &calls, turn, self.timeout))
    }

    fn note(&self, record: &Record) -> Result<(), StateFault> {
        for mut level in self.open()? {
            level.add(record)?;
            level.log.save()?;
        }
        Ok(())
    }

    /// The session's log under every guardrails file that holds for it, innermost first. Logs are always locked in this
    /// order.
    fn open(&self) -> Result<Vec<OpenLevel>, StateFault> {
        let home = self.home.as_deref();
        let first = SessionLog::open(&self.state, &self.session, &self.cwd, home)?;
        let trust = Trust::load(&self.state)?;
        let known = first.rules().and_then(|rules| rules.strip_prefix(&format!("{COUNTING}:")));
        let levels = Level::all(first.workdir(), home, &trust, known);
        let workdir = first.workdir().to_path_buf();
        let mut first = Some(first);
        let mut open = Vec::new();
        for Level { dir, policy } in levels {
            let log = match first.take() {
                Some(log) => log,
                None => self.open_log(&format!("in {}", dir.display()), &dir)?,
            };
            open.push(OpenLevel::new(policy, log)?);
        }
        for (name, text) in &self.more {
            let log = self.open_log(&format!("under {name}"), &workdir)?;
            open.push(OpenLevel::new(Policy::of_text(name, text), log)?);
        }
        Ok(open)
    }

    fn open_log(&self, of: &str, dir: &Path) -> Result<SessionLog, StateFault> {
        SessionLog::open(&self.state, &format!("{} {of}", self.session), dir, self.home.as_deref())
    }

    fn ask(&self, call: &ToolCall<'_>, question: &str, asking: Asking) -> Result<Decision, StateFault> {
        let digest = consent_digest(call);
        if asking == Asking::Agent {
            let approved = approvals::take(&self.state, digest, Some(digest), self.now)?;
            return Ok(if approved { Decision::Allow } else { Decision::Ask(question.to_owned()) });
        }
        let tool = call.id();
        let asked = Question {
            digest,
            tool: &tool,
            arguments: call.json(),
            question,
            now: self.now,
            of_session: false,
            lasting: Some(digest),
        };
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

/// Why a call that leaves a program waiting for commands is refused.
fn waiting_in(call: &ToolCall<'_>) -> Option<Denial> {
    let text = call.shell_text()?;
    let program = waiting_program(&call.reading()?.commands, &text)?;
    let message = format!(
        "[guardrail] `{program}` would wait for commands that no rule sees; give it what to run, as in `{program} -c '…'`"
    );
    Some(Denial::new(DenialCode::GuardrailProtected, message))
}

/// One guardrails file and the session's log under it.
#[derive(Debug)]
struct OpenLevel {
    policy: Policy,
    log: OpenLog,
}

impl OpenLevel {
    fn new(policy: Policy, log: SessionLog) -> Result<Self, StateFault> {
        let log = log.with(rails_of(&policy), &rules_id(&policy))?;
        Ok(Self { policy, log })
    }

    fn add(&mut self, record: &Record) -> Result<(), StateFault> {
        self.log.add(record, rails_of(&self.policy))
    }
}

/// The rules of a file; none at all where there is no file that can be used.
fn rails_of(policy: &Policy) -> &Rails {
    static NONE: LazyLock<Rails> = LazyLock::new(Rails::none);
    policy.rails().unwrap_or(&NONE)
}

impl Said {
    fn extend(&mut self, more: Self) {
        self.injected.extend(more.injected);
        self.debug.extend(more.debug);
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
        Policy::Good(good) => good.digest.to_string(),
        Policy::Absent | Policy::Broken(_) | Policy::Changed(_) => "none".to_owned(),
    };
    format!("{COUNTING}:{rules}")
}

fn call_digest(call: &ToolCall<'_>) -> Digest {
    digest(&Call { tool: call.id().into(), args: call.params().clone() })
}

/// What a person consents to: the tool and its arguments, without the model's own words about them.
fn consent_digest(call: &ToolCall<'_>) -> Digest {
    let mut args = call.params().clone();
    if let Value::Object(fields) = &mut args {
        WORDING.iter().for_each(|name| drop(fields.remove(*name)));
    }
    digest(&Call { tool: call.id().into(), args })
}

fn key(id: Option<&str>, digest: Digest) -> String {
    id.filter(|id| !id.is_empty() && id.len() <= 128).map_or_else(|| digest.to_string(), str::to_owned)
}
