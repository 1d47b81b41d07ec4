//! The registry: tools by name, and the one way to run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bailiwick_policy::authority::Authority;
use bailiwick_policy::caveats::Caveats;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::finding::Findings;
use bailiwick_policy::journal::{Decision, Event, Kind};
use bailiwick_policy::manifest::Checked;
use serde_json::Value;

use crate::gate::{Approval, Entry, Gate, Permit, Refusal, Shared};
use crate::grant::Grant;
use crate::interceptor::{Approver, Interceptor};
use crate::offload::{CallThreads, CancelFlag};
use crate::session::Session;
use crate::tool::{AnyTool, Definition, Listener, Tool, ToolError};
use bailiwick_guardrails::Rules;
use bailiwick_guardrails::{Call, Consent};
use bailiwick_journal::Journal;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Tools, and the gate in front of them.
pub struct Registry(Arc<Inner>);

/// What the threads that run calls share.
pub(crate) struct Inner {
    tools: Vec<Box<dyn AnyTool>>,
    gate: Gate,
    approver: Option<Box<dyn Approver>>,
    threads: CallThreads,
}

/// Collects tools, rules and interceptors; nothing changes once it is built.
pub struct RegistryBuilder {
    tools: Vec<(Box<dyn AnyTool>, Rules)>,
    interceptors: Vec<Box<dyn Interceptor>>,
    approver: Option<Box<dyn Approver>>,
    session: Session,
    journal: Journal,
    generation: u64,
}

impl Registry {
    /// Starts a registry whose every decision goes into `journal`.
    #[must_use]
    pub fn builder(journal: Journal, session: Session) -> RegistryBuilder {
        RegistryBuilder {
            tools: Vec::new(),
            interceptors: Vec::new(),
            approver: None,
            session,
            journal,
            generation: 0,
        }
    }

    /// Mints what a session may touch and how often. Its budget is shared by all calls under it.
    ///
    /// # Errors
    /// A finding for every entry of the caveats that cannot be read; nothing is granted then.
    pub fn mint_grant(&self, caveats: &Caveats) -> Result<Grant, Findings> {
        Ok(self.mint(caveats.authority()?))
    }

    /// The same from an authority that was read elsewhere.
    #[must_use]
    pub fn mint(&self, authority: Authority) -> Grant {
        let shared = self.0.gate.shared();
        let generation = shared.generation.load(Ordering::Acquire);
        Grant::new(shared.id, generation, authority, self.0.gate.tool_names())
    }

    /// Runs a tool under a grant, on a thread that may block. Dropping the answer cancels the call.
    ///
    /// # Errors
    /// Why it did not run, or how it failed.
    pub async fn dispatch(&self, name: &str, args: Value, grant: &Grant) -> Result<Value, ToolError> {
        self.call(name, args, grant, None).await
    }

    /// The same, and tells `listener` what the call says meanwhile.
    ///
    /// # Errors
    /// As [`Registry::dispatch`].
    pub async fn dispatch_heard(
        &self,
        name: &str,
        args: Value,
        grant: &Grant,
        listener: Listener,
    ) -> Result<Value, ToolError> {
        self.call(name, args, grant, Some(listener)).await
    }

    async fn call(
        &self,
        name: &str,
        args: Value,
        grant: &Grant,
        listener: Option<Listener>,
    ) -> Result<Value, ToolError> {
        let (inner, name, grant) = (Arc::clone(&self.0), name.to_owned(), grant.clone());
        let call = move |flag: CancelFlag| async move {
            let permit = inner.permit(&name, args, &grant).await?;
            inner.run(permit.heard_by_some(listener), flag).await
        };
        self.0.threads.run(call).await?
    }

    /// The most bytes that a call of a tool holds in memory at once, as the tool says.
    #[must_use]
    pub fn footprint(&self, name: &str, args: &Value) -> usize {
        let tool = self.0.gate.position(name).and_then(|index| self.0.tools.get(index));
        tool.map_or(0, |tool| tool.footprint(args))
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Runs a tool once, under a grant that is minted for it.
    ///
    /// # Errors
    /// As [`Registry::dispatch`]; caveats that cannot be read grant nothing.
    pub async fn dispatch_oneshot(
        &self,
        name: &str,
        args: Value,
        caveats: &Caveats,
    ) -> Result<Value, ToolError> {
        let grant = self.mint_grant(caveats).map_err(|findings| ToolError::Other(findings.to_string()))?;
        self.dispatch(name, args, &grant).await
    }

    /// Ends every grant minted so far: the next call, and the next check of a running one, is refused.
    pub fn revoke(&self) -> u64 {
        let shared = self.0.gate.shared();
        let generation = shared.generation.fetch_add(1, Ordering::AcqRel) + 1;
        let event =
            Event::new(Kind::SessionEnded).with_code("revoked").with_reason("every grant was revoked");
        drop(shared.journal.append(event));
        generation
    }

    /// The generation that grants are minted in.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.gate.shared().generation.load(Ordering::Acquire)
    }

    /// The gate, for those who run tools themselves.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// What every tool is called, says and takes, in order of registration.
    pub fn definitions(&self) -> impl Iterator<Item = Definition<'_>> {
        self.0.tools.iter().map(|tool| tool.definition())
    }
}

impl Inner {
    pub(crate) const fn threads(&self) -> &CallThreads {
        &self.threads
    }

    /// The gate's leave for a call, a person's consent included.
    pub(crate) async fn permit(&self, name: &str, args: Value, grant: &Grant) -> Result<Permit, ToolError> {
        let call = Call { tool: self.interned(name), args };
        match self.gate.authorize(call, grant, None) {
            Ok(permit) => Ok(permit),
            Err(Refusal::Error(error)) => Err(error),
            Err(Refusal::Ask { call, question }) => self.ask(call, &question, grant).await,
        }
    }

    /// Runs the call that a permit of this registry is for, until it ends or the flag is set.
    pub(crate) async fn run(&self, permit: Permit, flag: CancelFlag) -> Result<Value, ToolError> {
        match self.tools.get(permit.index()) {
            Some(tool) => permit.cancelled_by(flag).run_any(tool.as_ref()).await,
            None => Err(ToolError::NotFound(permit.call().tool.to_string())),
        }
    }

    /// The name as the gate holds it, so that calls and events share it.
    fn interned(&self, name: &str) -> Arc<str> {
        let known = self.gate.position(name).and_then(|index| self.gate.entry(index));
        known.map_or_else(|| name.into(), |entry| Arc::clone(&entry.name))
    }

    async fn ask(&self, call: Call, question: &str, grant: &Grant) -> Result<Permit, ToolError> {
        let denied = |call: &Call, why: &str| {
            let denial = Denial::new(DenialCode::ConsentMissing, format!("{question} {why}"));
            self.gate.record_denial(call, &denial);
            ToolError::Denied(denial)
        };
        let Some(approver) = &self.approver else { return Err(denied(&call, "no one can be asked here")) };
        let journal = &self.gate.shared().journal;
        let event = |kind| Event::new(kind).with_tool(&call.tool).with_reason(question.to_owned());
        let asked = journal.append(event(Kind::ApprovalAsked).with_decision(Decision::Ask));
        let asked = asked.map_err(|fault| {
            ToolError::Denied(Denial::new(
                DenialCode::RecordRefused,
                format!("the question cannot be recorded: {fault}"),
            ))
        })?;
        let consent = approver.ask(&call, question).await;
        let decision = if consent == Consent::Given { Decision::Allow } else { Decision::Deny };
        let decided = event(Kind::ApprovalDecided).with_decision(decision).with_parent(asked.seq);
        if consent == Consent::Refused || journal.append(decided).is_err() {
            return Err(denied(&call, "the answer was no"));
        }
        let approval = Approval::of(&call);
        self.gate.authorize(call, grant, Some(approval)).map_err(|refusal| match refusal {
            Refusal::Error(error) => error,
            Refusal::Ask { call, .. } => denied(&call, "the call changed after it was approved"),
        })
    }
}

impl RegistryBuilder {
    /// Adds a tool without further rules.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tool_with(tool, Rules::none())
    }

    /// Adds a tool under rules.
    #[must_use]
    pub fn tool_with(mut self, tool: impl Tool, rules: Rules) -> Self {
        self.tools.push((Box::new(tool), rules));
        self
    }

    /// Holds every tool to what a manifest declares; one it does not declare is forbidden.
    #[must_use]
    pub fn manifest(mut self, checked: &Checked) -> Self {
        for (tool, rules) in &mut self.tools {
            *rules = Rules::of(checked, tool.name()).unwrap_or_else(Rules::forbidden);
        }
        self
    }

    /// Adds an interceptor; all of them judge every call.
    #[must_use]
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors.push(Box::new(interceptor));
        self
    }

    /// Names who is asked for consent.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Box::new(approver));
        self
    }

    /// Starts in this generation instead of the first.
    #[must_use]
    pub const fn generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// The registry. Of two tools with one name, the first is kept and the second never reachable, so that is
    /// an error.
    ///
    /// # Errors
    /// If two tools have the same name.
    pub fn build(self) -> Result<Registry, ToolError> {
        let mut names = BTreeMap::new();
        let (mut tools, mut entries) = (Vec::new(), Vec::new());
        for (tool, rules) in self.tools {
            let name: Arc<str> = tool.name().into();
            if names.insert(Arc::clone(&name), ()).is_some() {
                return Err(ToolError::Other(format!("there are two tools called `{name}`")));
            }
            entries.push(Entry { name, required: tool.required(), rules });
            tools.push(tool);
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let generation = AtomicU64::new(self.generation);
        let own = own(&self.session, &self.journal);
        let shared = Arc::new(Shared { id, generation, session: self.session, journal: self.journal, own });
        let gate = Gate::new(shared, entries, self.interceptors);
        let threads = CallThreads::new();
        Ok(Registry(Arc::new(Inner { tools, gate, approver: self.approver, threads })))
    }
}

/// Bailiwick's own folders, by their names and where these lead.
fn own(session: &Session, journal: &Journal) -> Vec<PathBuf> {
    let named = session.own().iter().map(PathBuf::as_path).chain([journal.dir()]);
    named.flat_map(|dir| [dir.to_owned(), std::fs::canonicalize(dir).unwrap_or(dir.to_owned())]).collect()
}
