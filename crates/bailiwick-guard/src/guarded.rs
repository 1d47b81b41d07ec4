//! Guardrails around a registry, in one process: judged before the gate lets a call through, scripts after it.
//!
//! The rules are an interceptor of the gate, so that they judge what would really run, and asking goes through the
//! registry's approver. A reload that fails keeps the last good rules; a file that is broken from the start refuses
//! every call.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use bailiwick_guardrails::{
    Call, InjectedMessage, Reload, Said, Scripts, SessionRails, State, StateFault, Verdict,
};

use crate::gate::Permit;
use crate::interceptor::{Interceptor, InterceptorError};
use crate::offload::CancelFlag;
use crate::outcome::Outcome;
use crate::pending::PendingCall;
use crate::registry::{BuildError, Inner, Registry, RegistryBuilder};
use crate::tool::{Tool, ToolError, ToolFault};

/// A registry whose calls are held to a project's guardrails.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Guarded, PendingCall, Registry, Session, tools};
/// use bailiwick_guardrails::State;
/// use bailiwick_manifest::caveats::Caveats;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bailiwick_journal::{Journal, Options, new_session};
/// # let state = tempfile::tempdir()?;
/// # let journal = Journal::open(&state.path().join("journal"), new_session()?, Options::default())?;
/// # let project = tempfile::tempdir()?;
/// # let dir = project.path().canonicalize()?;
/// std::fs::create_dir(dir.join(".agents"))?;
/// let rules = "[[guard]]\nmatch = \"filesystem-read\"\nmessage = \"not in this project\"\n";
/// std::fs::write(dir.join(".agents/guardrails.toml"), rules)?;
///
/// let builder = tools::files(Registry::builder(journal, Session::new(&dir)));
/// let guarded = Guarded::around(builder, &dir, &State::open(&state.path().join("state"))?, None)?;
/// let grant = guarded.registry().mint_grant(&Caveats::top())?;
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let answered = guarded.run(PendingCall::new("fs_read", json!({ "path": "notes.md" }), &grant)).await;
/// let outcome = answered.result?;
/// assert_eq!(outcome.denial().map(|denial| denial.code().as_str()), Some("guardrail-blocked"));
/// # Ok::<(), bailiwick_guard::ToolFault>(()) })?;
/// # Ok(())
/// # }
/// ```
pub struct Guarded {
    registry: Registry,
    held: Arc<Held>,
}

/// What the threads that run calls share.
struct Held {
    registry: Arc<Inner>,
    rules: SharedRails,
}

/// The rules of a project and others that hold besides. All see every call.
type SharedRails = Arc<[Mutex<SessionRails>]>;

/// What came of a call.
#[derive(Debug)]
pub struct Answered {
    /// What came of it, or how it failed.
    pub result: Result<Outcome, ToolFault>,
    /// What hooks have to say to the model, a message a script, in the order of the file.
    pub injected: Vec<InjectedMessage>,
}

/// The rules as the gate sees them.
struct Rail(SharedRails);

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
        Self::around_all(builder, [SessionRails::new(workdir, state, home)?])
    }

    /// Holds a registry to several sets of rules: the strictest verdict counts.
    ///
    /// # Errors
    /// If the registry cannot be built.
    pub fn around_all(
        builder: RegistryBuilder,
        rails: impl IntoIterator<Item = SessionRails>,
    ) -> Result<Self, GuardedFault> {
        let rules: SharedRails = rails.into_iter().map(Mutex::new).collect();
        let registry = builder.interceptor(Rail(Arc::clone(&rules))).build()?;
        let held = Arc::new(Held { registry: Arc::clone(registry.inner()), rules });
        held.each(|rails| rails.load(registry.definitions().map(|tool| tool.name)));
        Ok(Self { registry, held })
    }

    /// The registry itself; calls made on it are judged and not counted.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Judges a call by the rules and the gate and runs it, on a thread that may block. Dropping the answer cancels the
    /// call.
    pub async fn run(&self, pending: PendingCall) -> Answered {
        self.apart(move |held, flag| async move {
            match held.admit(pending).await {
                Ok(admitted) => held.run(admitted, flag).await,
                Err(error) => Answered::stopped(error),
            }
        })
        .await
    }

    /// Judges a call by the rules and the gate, where it is awaited, for those who run it elsewhere. It waits only for
    /// a person.
    ///
    /// # Errors
    /// The denial, or that there is no such tool.
    pub async fn admit(&self, pending: PendingCall) -> Result<AdmittedCall, ToolError> {
        let judged = self.held.admit(pending).await?;
        Ok(AdmittedCall { judged: Judged::Guarded(judged, Arc::clone(&self.held)) })
    }

    /// Runs the calls of one batch: all are judged in order before any runs, and each sees those let through before.
    pub async fn run_batch(&self, calls: Vec<PendingCall>) -> Vec<Answered> {
        let held = Arc::clone(&self.held);
        let count = calls.len();
        let admit = move |_| async move {
            let mut admitted = Vec::new();
            for pending in calls {
                admitted.push(held.admit(pending).await);
            }
            admitted
        };
        let admitted = match self.held.registry.threads().run(admit).await {
            Ok(admitted) => admitted,
            Err(_) => (0..count).map(|_| Err(ToolFault::Cancelled.into())).collect(),
        };
        let running = admitted.into_iter().map(|admitted| -> Pin<Box<dyn Future<Output = _> + Send + '_>> {
            match admitted {
                Ok(admitted) => Box::pin(self.apart(move |held, flag| held.run(admitted, flag))),
                Err(error) => Box::pin(async { Answered::stopped(error) }),
            }
        });
        all(running.collect()).await
    }

    /// Ends a turn: what validators have to say to the model, each in its frame.
    pub async fn end_turn(&self, text: &str, role: &str) -> Vec<InjectedMessage> {
        let (held, text, role) = (Arc::clone(&self.held), text.to_owned(), role.to_owned());
        let end = move |_| async move {
            let scripts = held.each(|rails| rails.end_turn(&text, &role));
            let said = run_scripts(scripts).await;
            if !said.injected.is_empty() {
                held.each(SessionRails::send_back);
            }
            said.injected
        };
        self.held.registry.threads().run(end).await.unwrap_or_default()
    }

    /// Begins a turn: validators may send the assistant back again.
    pub fn begin_turn(&self) {
        self.held.each(SessionRails::begin_turn);
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If the trust store cannot be read.
    pub fn reload(&self) -> Result<Reload, StateFault> {
        let all: Result<Vec<Reload>, StateFault> = self.held.each(SessionRails::reload).into_iter().collect();
        let kept = all?.into_iter().find(|one| matches!(one, Reload::KeptOld(_)));
        Ok(kept.unwrap_or(Reload::Changed))
    }

    /// Runs work on a thread that may block: judging holds a lock, and patterns take their time.
    async fn apart<F: Future<Output = Answered>>(
        &self,
        work: impl FnOnce(Arc<Held>, CancelFlag) -> F + Send + 'static,
    ) -> Answered {
        let held = Arc::clone(&self.held);
        let answered = self.held.registry.threads().run(move |flag| work(held, flag)).await;
        answered.unwrap_or_else(|fault| Err(fault).into())
    }
}

impl Answered {
    fn stopped(error: ToolError) -> Self {
        Outcome::sorted(Err(error)).into()
    }
}

impl From<Result<Outcome, ToolFault>> for Answered {
    fn from(result: Result<Outcome, ToolFault>) -> Self {
        Self { result, injected: Vec::new() }
    }
}

impl Held {
    async fn admit(&self, pending: PendingCall) -> Result<JudgedCall, ToolError> {
        let PendingCall { tool, args, grant, listener } = pending;
        let permit = self.registry.permit(&tool, args, &grant).await?;
        let call = permit.call().clone();
        // Each counts the same calls, so the number is the same.
        let number = self.each(|rails| rails.admit(&call)).into_iter().next().unwrap_or_default();
        Ok(JudgedCall { permit: permit.heard_by_some(listener), call, number })
    }

    async fn run(self: Arc<Self>, admitted: JudgedCall, flag: CancelFlag) -> Answered {
        let JudgedCall { permit, call, number } = admitted;
        let result = self.registry.run(permit, flag).await;
        self.settle(number, &call, result).await
    }

    /// Notes how a call ended, and lets the scripts that react to it speak.
    async fn settle(&self, number: usize, call: &Call, result: Result<Outcome, ToolFault>) -> Answered {
        let (text, succeeded) = match &result {
            Ok(Outcome::Ran(output)) => (output.text(), !output.is_error),
            Ok(Outcome::Refused(denial)) => (denial.to_string(), false),
            Err(fault) => (fault.to_string(), false),
        };
        let scripts = self.each(|rails| rails.end(number, call, &text, succeeded));
        let said = run_scripts(scripts).await;
        Answered { result, injected: said.injected }
    }

    fn each<T>(&self, does: impl Fn(&mut SessionRails) -> T) -> Vec<T> {
        let locked =
            |rails: &Mutex<SessionRails>| does(&mut rails.lock().unwrap_or_else(PoisonError::into_inner));
        self.rules.iter().map(locked).collect()
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
    Registry(#[from] BuildError),
}

struct JudgedCall {
    permit: Permit,
    call: Call,
    number: usize,
}

/// A call that was let through and runs elsewhere: in a server that a relay speaks to. Dropping it puts the call back.
///
/// # Examples
/// ```
/// use bailiwick_guard::{Answered, PendingCall, Registry, Tool, ToolError};
///
/// /// Judges a call by the registry, and runs it with a tool of the caller's that has the same name.
/// async fn relay(registry: &Registry, pending: PendingCall, remote: &impl Tool) -> Result<Answered, ToolError> {
///     Ok(registry.admit(pending).await?.run_with(remote).await)
/// }
/// ```
#[must_use = "a call that is not run is put back"]
pub struct AdmittedCall {
    judged: Judged,
}

enum Judged {
    Plain(Permit),
    Guarded(JudgedCall, Arc<Held>),
}

impl AdmittedCall {
    pub(crate) const fn plain(permit: Permit) -> Self {
        Self { judged: Judged::Plain(permit) }
    }

    /// The call as it will run.
    #[must_use]
    pub const fn call(&self) -> &Call {
        match &self.judged {
            Judged::Plain(permit) => permit.call(),
            Judged::Guarded(judged, _) => &judged.call,
        }
    }

    /// Runs the call with a tool of the same name, and settles what it cost.
    pub async fn run_with(self, tool: &impl Tool) -> Answered {
        match self.judged {
            Judged::Plain(permit) => permit.run(tool).await.into(),
            Judged::Guarded(JudgedCall { permit, call, number }, held) => {
                let result = permit.run(tool).await;
                held.settle(number, &call, result).await
            }
        }
    }
}

impl Interceptor for Rail {
    fn name(&self) -> &'static str {
        "guardrails"
    }

    fn judge(&self, call: &Call) -> Result<Verdict, InterceptorError> {
        let poisoned = |_| InterceptorError("a thread panicked while it held the rules".to_owned());
        self.0.iter().try_fold(Verdict::Allow, |strictest, rails| {
            let rails = rails.lock().map_err(poisoned)?;
            Ok(strictest.max(rails.judge(call)))
        })
    }
}

async fn run_scripts(scripts: Vec<Scripts>) -> Said {
    // The rules of one set alone have scripts: those of a project.
    let Some(scripts) = scripts.into_iter().find(|scripts| !scripts.is_empty()) else {
        return Said::default();
    };
    tokio::task::spawn_blocking(|| scripts.run()).await.unwrap_or_default()
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
