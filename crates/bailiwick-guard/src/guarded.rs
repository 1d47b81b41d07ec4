//! Guardrails around a registry, in one process: judged before the gate lets a call through, scripts after it.
//!
//! The rules are an interceptor of the gate, so that they judge what would really run, and asking goes through the
//! registry's approver. A reload that fails keeps the last good rules; a file that is broken from the start refuses
//! every call.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use bailiwick_guardrails::{Call, Reload, Said, Scripts, SessionRails, State, StateFault, Verdict};
use serde_json::Value;

use crate::gate::Permit;
use crate::grant::Grant;
use crate::interceptor::Interceptor;
use crate::offload::CancelFlag;
use crate::registry::{Inner, Registry, RegistryBuilder};
use crate::tool::{Listener, ToolError};

/// A registry whose calls are held to a project's guardrails.
pub struct Guarded {
    registry: Registry,
    held: Arc<Held>,
}

/// What the threads that run calls share.
struct Held {
    registry: Arc<Inner>,
    rules: Arc<Mutex<SessionRails>>,
}

/// What came of a call.
#[derive(Debug)]
pub struct Answered {
    /// The tool's own answer, or why there is none.
    pub result: Result<Value, ToolError>,
    /// What hooks have to say to the model, in the order of the file.
    pub injected: Vec<String>,
}

/// The rules as the gate sees them.
struct Rail(Arc<Mutex<SessionRails>>);

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
        let rules = Arc::new(Mutex::new(SessionRails::new(workdir, state, home)?));
        let registry = builder.interceptor(Rail(Arc::clone(&rules))).build()?;
        let held = Arc::new(Held { registry: Arc::clone(registry.inner()), rules });
        held.locked().load(registry.definitions().map(|tool| tool.name));
        Ok(Self { registry, held })
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
            let scripts = held.locked().end_turn(&text, &role);
            let said = run_scripts(scripts).await;
            if !said.injected.is_empty() {
                held.locked().send_back();
            }
            said.injected
        };
        self.held.registry.threads().run(end).await.unwrap_or_default()
    }

    /// Begins a turn: validators may send the assistant back again.
    pub fn begin_turn(&self) {
        self.held.locked().begin_turn();
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If the trust store cannot be read.
    pub fn reload(&self) -> Result<Reload, StateFault> {
        self.held.locked().reload()
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
        let text = match &result {
            Ok(Value::String(text)) => text.clone(),
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        let scripts = self.locked().end(number, &call, &text, result.is_ok());
        let said = run_scripts(scripts).await;
        Answered { result, injected: said.injected }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, SessionRails> {
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

async fn run_scripts(scripts: Scripts) -> Said {
    if scripts.is_empty() {
        return Said::default();
    }
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
