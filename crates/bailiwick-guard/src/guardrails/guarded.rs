//! Guardrails around a registry, in one process: judged before the gate lets a call through, scripts after it.
//!
//! The rules are an interceptor of the gate, so that they judge what would really run, and asking goes through the
//! registry's approver. A reload that fails keeps the last good rules; a file that is broken from the start refuses
//! every call.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::Value;

use super::call::ToolCall;
use super::file::{Good, Policy};
use super::history::{Cursor, History};
use super::names::Names;
use super::protect::Protected;
use super::rails::Rails;
use super::react::{self, Outcome, Trigger, Turn};
use super::script::{Script, TIMEOUT, run_all};
use super::state::{State, StateFault};
use super::trust::Trust;
use super::watch::Said;
use crate::gate::Permit;
use crate::grant::Grant;
use crate::offload::CancelFlag;
use crate::registry::{Inner, Registry, RegistryBuilder};
use crate::tool::{Listener, ToolError};
use crate::verdict::{Call, Interceptor, Verdict};

/// A registry whose calls are held to a project's guardrails.
pub struct Guarded {
    registry: Registry,
    state: State,
    held: Arc<Held>,
}

/// What the threads that run calls share.
struct Held {
    registry: Arc<Inner>,
    rules: Arc<Mutex<Rules>>,
    workdir: PathBuf,
}

/// What came of a call.
#[derive(Debug)]
pub struct Answered {
    /// The tool's own answer, or why there is none.
    pub result: Result<Value, ToolError>,
    /// What hooks have to say to the model, in the order of the file.
    pub injected: Vec<String>,
}

/// What came of reading the file again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The new rules hold.
    Changed,
    /// The file cannot be used; the rules from before hold.
    KeptOld(String),
}

/// The rules in force and what happened under them.
struct Rules {
    policy: Policy,
    history: History,
    calls: Vec<Kept>,
    loaded: Vec<String>,
    state: PathBuf,
    workdir: PathBuf,
    home: Option<PathBuf>,
}

/// A call that was admitted.
struct Kept {
    tool: String,
    params: Value,
    ended: Option<bool>,
}

/// The rules as the gate sees them.
struct Rail(Arc<Mutex<Rules>>);

impl Guarded {
    /// Holds a registry to the guardrails of `workdir`.
    ///
    /// # Errors
    /// If the trust store cannot be read, or the registry cannot be built.
    pub fn around(
        builder: RegistryBuilder,
        workdir: &Path,
        state: &State,
        home: Option<&Path>,
    ) -> Result<Self, GuardedFault> {
        let policy = Policy::load(workdir, &Trust::load(state)?);
        let history = fresh(&policy, &[]);
        let (state_dir, home) = (state.dir().to_path_buf(), home.map(Path::to_path_buf));
        let workdir = workdir.to_path_buf();
        let rules = Rules {
            policy,
            history,
            calls: Vec::new(),
            loaded: Vec::new(),
            state: state_dir,
            workdir: workdir.clone(),
            home,
        };
        let rules = Arc::new(Mutex::new(rules));
        let registry = builder.interceptor(Rail(Arc::clone(&rules))).build()?;
        let held = Arc::new(Held { registry: Arc::clone(registry.inner()), rules, workdir });
        held.locked().load(registry.definitions().map(|tool| tool.name));
        Ok(Self { registry, state: state.clone(), held })
    }

    /// The registry itself; calls made on it are judged and not counted.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Runs a tool under a grant and the rules, on a thread that may block. Dropping the answer cancels the call.
    ///
    /// # Errors
    /// None of its own: the answer holds the tool's.
    pub async fn dispatch(&self, name: &str, args: Value, grant: &Grant) -> Answered {
        self.call(name, args, grant, None).await
    }

    /// The same, and tells `listener` what the call says meanwhile.
    pub async fn dispatch_heard(
        &self,
        name: &str,
        args: Value,
        grant: &Grant,
        listener: Listener,
    ) -> Answered {
        self.call(name, args, grant, Some(listener)).await
    }

    /// Runs the calls of one batch: all are judged in order before any runs, and each sees those let through before.
    pub async fn dispatch_batch(&self, calls: Vec<(String, Value)>, grant: &Grant) -> Vec<Answered> {
        let (held, grant) = (Arc::clone(&self.held), grant.clone());
        let count = calls.len();
        let admit = move |_| async move {
            let mut admitted = Vec::new();
            for (name, args) in calls {
                admitted.push(held.admit(&name, args, &grant).await);
            }
            admitted
        };
        let admitted = match self.held.registry.threads().run(admit).await {
            Ok(admitted) => admitted,
            Err(_) => (0..count).map(|_| Err(ToolError::Cancelled)).collect(),
        };
        let running = admitted.into_iter().map(|admitted| -> Pin<Box<dyn Future<Output = _> + Send + '_>> {
            match admitted {
                Ok(admitted) => Box::pin(self.apart(move |held, flag| held.run(admitted, None, flag))),
                Err(error) => Box::pin(async { Answered::error(error) }),
            }
        });
        all(running.collect()).await
    }

    /// Ends a turn: what validators have to say to the model, each in its frame.
    pub async fn end_turn(&self, text: &str, role: &str) -> Vec<String> {
        let (held, text, role) = (Arc::clone(&self.held), text.to_owned(), role.to_owned());
        let end = move |_| async move {
            let scripts = held.locked().validations(&Turn { text: &text, role: &role });
            let said = held.run_scripts(scripts, react::framed).await;
            if !said.injected.is_empty() {
                held.locked().history.reentries += 1;
            }
            said.injected
        };
        self.held.registry.threads().run(end).await.unwrap_or_default()
    }

    /// Begins a turn: validators may send the assistant back again.
    pub fn begin_turn(&self) {
        self.held.locked().history.reentries = 0;
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If the trust store cannot be read.
    pub fn reload(&self) -> Result<Reload, StateFault> {
        let policy = Policy::load(&self.held.workdir, &Trust::load(&self.state)?);
        let why = match &policy {
            Policy::Broken(broken) => Some(broken.summary()),
            Policy::Changed(why) => Some(why.clone()),
            Policy::Absent | Policy::Good(_) => None,
        };
        match why {
            Some(why) => Ok(Reload::KeptOld(why)),
            None => {
                self.held.locked().adopt(policy);
                Ok(Reload::Changed)
            }
        }
    }

    async fn call(&self, name: &str, args: Value, grant: &Grant, listener: Option<Listener>) -> Answered {
        let (name, grant) = (name.to_owned(), grant.clone());
        self.apart(move |held, flag| async move {
            match held.admit(&name, args, &grant).await {
                Ok(admitted) => held.run(admitted, listener, flag).await,
                Err(error) => Answered::error(error),
            }
        })
        .await
    }

    /// Runs work on a thread that may block: judging holds a lock, and patterns take their time.
    async fn apart<F: Future<Output = Answered>>(
        &self,
        work: impl FnOnce(Arc<Held>, CancelFlag) -> F + Send + 'static,
    ) -> Answered {
        let held = Arc::clone(&self.held);
        let answered = self.held.registry.threads().run(move |flag| work(held, flag)).await;
        answered.unwrap_or_else(Answered::error)
    }
}

impl Answered {
    const fn error(error: ToolError) -> Self {
        Self { result: Err(error), injected: Vec::new() }
    }
}

impl Held {
    async fn admit(&self, name: &str, args: Value, grant: &Grant) -> Result<Admitted, ToolError> {
        let permit = self.registry.permit(name, args, grant).await?;
        let call = permit.call().clone();
        let number = self.locked().admit(&call);
        Ok(Admitted { permit, call, number })
    }

    async fn run(
        self: Arc<Self>,
        admitted: Admitted,
        listener: Option<Listener>,
        flag: CancelFlag,
    ) -> Answered {
        let Admitted { permit, call, number } = admitted;
        let result = self.registry.run(permit.heard_by_some(listener), flag).await;
        let scripts = self.locked().end(number, &call, &result);
        let said = self.run_scripts(scripts, |_, text| text.to_owned()).await;
        Answered { result, injected: said.injected }
    }

    async fn run_scripts(&self, scripts: Vec<Script>, frame: fn(&Script, &str) -> String) -> Said {
        if scripts.is_empty() {
            return Said::default();
        }
        let workdir = self.workdir.clone();
        let ran = tokio::task::spawn_blocking(move || {
            let ran = run_all(&workdir, &scripts);
            react::said(&scripts, &ran, frame)
        });
        ran.await.unwrap_or_default()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why guardrails could not be put around a registry.
#[derive(Debug, thiserror::Error)]
pub enum GuardedFault {
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateFault),
    /// The registry cannot be built.
    #[error(transparent)]
    Registry(#[from] ToolError),
}

struct Admitted {
    permit: Permit,
    call: Call,
    number: usize,
}

impl Interceptor for Rail {
    fn name(&self) -> &'static str {
        "guardrails"
    }

    fn judge(&self, call: &Call) -> Result<Verdict, String> {
        let rules = self.0.lock().map_err(|_| "a thread panicked while it held the rules".to_owned())?;
        Ok(rules.judge(call))
    }
}

impl Rules {
    fn judge(&self, call: &Call) -> Verdict {
        let none = Names::default();
        let rails = self.policy.rails();
        let names = rails.map_or(&none, Rails::names);
        let call = ToolCall::new(&call.tool, &call.args, names);
        let scripts = rails.map(Rails::scripts).unwrap_or_default();
        let protected = Protected::new(&self.workdir, scripts, &self.state, self.home.as_deref());
        if let Some(denial) = protected.refuse(&call) {
            return Verdict::Deny(denial);
        }
        let refuse =
            |code, why: String| Verdict::Deny(Denial::new(code, format!("[guardrail] nothing runs: {why}")));
        match &self.policy {
            Policy::Absent => Verdict::Allow,
            Policy::Good(good) => good.rails.judge(&call, &self.history).verdict,
            Policy::Broken(broken) => refuse(DenialCode::GuardrailBroken, broken.summary()),
            Policy::Changed(why) => refuse(DenialCode::GuardrailChanged, why.clone()),
        }
    }

    fn load<'n>(&mut self, tools: impl Iterator<Item = &'n str>) {
        let names = self.policy.rails().map(|rails| rails.names().clone()).unwrap_or_default();
        for tool in tools {
            let call = ToolCall::new(tool, &Value::Null, &names);
            self.loaded.push(call.server().to_owned());
            self.loaded.extend(call.capability().map(str::to_owned));
        }
        self.loaded.iter().for_each(|name| self.history.load(name));
    }

    fn admit(&mut self, call: &Call) -> usize {
        let matched = matched(&self.policy, &call.tool, &call.args);
        self.history.admit("", matched);
        self.calls.push(Kept { tool: call.tool.to_string(), params: call.args.clone(), ended: None });
        self.calls.len() - 1
    }

    /// Ends a call, and says which scripts its result calls for.
    fn end(&mut self, number: usize, call: &Call, result: &Result<Value, ToolError>) -> Vec<Script> {
        if let Some(kept) = self.calls.get_mut(number) {
            kept.ended = Some(result.is_ok());
        }
        self.history.end(u64::try_from(number).unwrap_or(u64::MAX), result.is_ok());
        let Some(good) = self.trusted() else { return Vec::new() };
        let text = match result {
            Ok(Value::String(text)) => text.clone(),
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        let tool_call = ToolCall::new(&call.tool, &call.args, good.rails.names());
        let id = number.to_string();
        react::hooks(
            &good.rails,
            &Outcome { call: &tool_call, id: &id, result: &text, success: result.is_ok() },
            TIMEOUT,
        )
    }

    /// The validators that are due; their cursors move now.
    fn validations(&mut self, turn: &Turn<'_>) -> Vec<Script> {
        if self.history.reentries >= react::MAX_REENTRIES {
            return Vec::new();
        }
        let Some(good) = self.trusted() else { return Vec::new() };
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
        scripts
    }

    fn window(&self, since: u64) -> Vec<Trigger> {
        let since = usize::try_from(since).unwrap_or(usize::MAX);
        let calls = self.calls.iter().skip(since).filter(|kept| kept.ended != Some(false));
        let names = self.policy.rails().map(|rails| rails.names().clone()).unwrap_or_default();
        let trigger = |kept: &Kept| {
            let capability = ToolCall::new(&kept.tool, &kept.params, &names).capability().map(str::to_owned);
            (capability, kept.params.clone(), matched(&self.policy, &kept.tool, &kept.params))
        };
        calls.map(trigger).collect()
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
            history.admit("", matched(&policy, &kept.tool, &kept.params));
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

/// Which counted targets a call is of; a pattern that cannot be used denies when it is judged.
fn matched(policy: &Policy, tool: &str, params: &Value) -> Vec<usize> {
    let Some(rails) = policy.rails() else { return Vec::new() };
    rails.matched(&ToolCall::new(tool, params, rails.names())).unwrap_or_default()
}

/// Every answer, in order; all run at once.
async fn all<T>(mut running: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut waiting = false;
        for (slot, future) in done.iter_mut().zip(&mut running).filter(|(slot, _)| slot.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *slot = Some(value),
                Poll::Pending => waiting = true,
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(done.iter_mut().filter_map(Option::take).collect()) }
    })
    .await
}
