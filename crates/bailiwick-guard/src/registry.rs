//! The registry: tools by name, and the one way to run them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_manifest::caveats::Caveats;
use bailiwick_manifest::{Checked, Stance, ToolPolicy};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::finding::{Code, Finding, Findings};
use bailiwick_policy::path::PathScope;
use serde_json::Value;

use crate::gate::{Approval, Gate, GateEntry, OnDenied, Permit, Refusal, Shared};
use crate::grant::Grant;
use crate::guarded::AdmittedCall;
use crate::interceptor::{Approver, Interceptor, Meter};
use crate::offload::{CallThreads, CancelFlag};
use crate::outcome::{Outcome, Output};
use crate::pending::{GrantSource, PendingCall};
use crate::session::Session;
use crate::tool::{AnyTool, Definition, Required, Tool, ToolError, ToolFault};
use bailiwick_guardrails::arguments::ArgumentRules;
use bailiwick_guardrails::{Call, Consent, Rules};
use bailiwick_journal::{Journal, JournalFault, Redaction};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// How many different caveats stand for grants of one registry.
const MAX_MINTED: usize = 4096;

/// Tools, and the gate in front of them.
///
/// # Examples
/// ```
/// use bailiwick_guard::{PendingCall, Registry, Session, tools};
/// use bailiwick_manifest::caveats::Caveats;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bailiwick_journal::{Journal, Options, new_session};
/// # let state = tempfile::tempdir()?;
/// # let journal = Journal::open(&state.path().join("journal"), new_session()?, Options::default())?;
/// let registry = tools::files(Registry::builder(journal, Session::new("/"))).build()?;
/// let grant = registry.mint_grant(&Caveats::bottom())?;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let outcome = registry.run(PendingCall::new("fs_read", json!({ "path": "/etc/hostname" }), &grant)).await?;
/// assert!(outcome.denial().is_some(), "nothing was granted");
/// # Ok::<(), bailiwick_guard::ToolFault>(()) })?;
/// # Ok(())
/// # }
/// ```
pub struct Registry(Arc<Inner>);

/// What the threads that run calls share.
pub(crate) struct Inner {
    tools: Vec<Box<dyn AnyTool>>,
    gate: Gate,
    approver: Option<Box<dyn Approver>>,
    threads: CallThreads,
    /// The grants that caveats stand for.
    minted: Mutex<HashMap<Caveats, Grant>>,
}

/// Why a registry cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// One of them could never be called.
    #[error("there are two tools called `{0}`")]
    TwoTools(String),
    /// A tool's policy cannot be held.
    #[error("the policy of `{tool}` cannot be held: {finding}")]
    Policy {
        /// Which tool.
        tool: String,
        /// What is wrong with the policy.
        finding: Box<Finding>,
    },
    /// That policies are not held must be on record, and cannot be.
    #[error("policies that are not enforced cannot be recorded: {0}")]
    Unrecorded(JournalFault),
}

/// Collects tools, rules and interceptors; nothing changes once it is built.
pub struct RegistryBuilder {
    tools: Vec<(Box<dyn AnyTool>, Rules)>,
    interceptors: Vec<Box<dyn Interceptor>>,
    approver: Option<Box<dyn Approver>>,
    meter: Option<Box<dyn Meter>>,
    session: Session,
    journal: Journal,
    generation: u64,
    enforces_policies: bool,
    on_denied: Option<OnDenied>,
    audits: bool,
    recorded: Option<Redaction>,
}

impl Registry {
    /// Starts a registry whose every decision goes into `journal`.
    #[must_use]
    pub fn builder(journal: Journal, session: Session) -> RegistryBuilder {
        RegistryBuilder {
            tools: Vec::new(),
            interceptors: Vec::new(),
            approver: None,
            meter: None,
            session,
            journal,
            generation: 0,
            enforces_policies: true,
            on_denied: None,
            audits: false,
            recorded: None,
        }
    }

    /// A registry that refuses every call, because nothing can be recorded.
    #[must_use]
    pub fn refusing(fault: JournalFault) -> Self {
        let builder = Self::builder(Journal::unavailable(fault), Session::new("/"));
        builder.assembled(Vec::new(), Vec::new())
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

    /// The grant that caveats stand for here: minted when they are first used, and the same one ever after.
    pub(crate) fn grant_of(&self, caveats: &Caveats) -> Result<Grant, Findings> {
        let mut minted = self.0.minted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grant) = minted.get(caveats) {
            return Ok(grant.clone());
        }
        if minted.len() >= MAX_MINTED {
            let why = format!("{MAX_MINTED} different caveats were used with this registry");
            return Err(Finding::new(Code::CaveatsShape, why).help("mint a grant with `mint_grant`").into());
        }
        let grant = self.mint_grant(caveats)?;
        minted.insert(caveats.clone(), grant.clone());
        Ok(grant)
    }

    /// Runs a tool once, under a grant that is minted for this call alone.
    ///
    /// # Errors
    /// As [`Registry::dispatch`]; caveats that cannot be read grant nothing.
    pub async fn dispatch_oneshot(
        &self,
        name: &str,
        args: Value,
        caveats: &Caveats,
    ) -> Result<Output, ToolError> {
        let grant = self.mint_grant(caveats).map_err(ToolFault::Caveats)?;
        self.dispatch(name, args, &grant).await
    }

    /// Runs a tool, on a thread that may block, under a [`Grant`] or under [`Caveats`]; equal caveats share one budget.
    /// Dropping the answer cancels the call.
    ///
    /// # Errors
    /// The denial, or how it failed. [`Registry::run`] keeps the two apart.
    pub async fn dispatch(
        &self,
        name: &str,
        args: Value,
        granted: &impl GrantSource,
    ) -> Result<Output, ToolError> {
        let grant = granted.grant_in(self).map_err(ToolFault::Caveats)?;
        self.run(PendingCall::new(name, args, &grant)).await?.into_result()
    }

    /// Judges a call and runs it, on a thread that may block. Dropping the answer cancels the call.
    ///
    /// # Errors
    /// How it failed. A denial is an outcome.
    pub async fn run(&self, pending: PendingCall) -> Result<Outcome, ToolFault> {
        let inner = Arc::clone(&self.0);
        let call = move |flag: CancelFlag| async move {
            let PendingCall { tool, args, grant, listener } = pending;
            match inner.permit(&tool, args, &grant).await {
                Ok(permit) => inner.run(permit.heard_by_some(listener), flag).await,
                Err(error) => Outcome::sorted(Err(error)),
            }
        };
        self.0.threads.run(call).await?
    }

    /// Judges a call where it is awaited, for those who run it elsewhere. It waits only for a person.
    ///
    /// # Errors
    /// The denial, or that there is no such tool.
    pub async fn admit(&self, pending: PendingCall) -> Result<AdmittedCall, ToolError> {
        let PendingCall { tool, args, grant, listener } = pending;
        let permit = self.0.permit(&tool, args, &grant).await?;
        Ok(AdmittedCall::plain(permit.heard_by_some(listener)))
    }

    /// The most bytes that a call of a tool holds in memory at once, as the tool says.
    #[must_use]
    pub fn footprint(&self, name: &str, args: &Value) -> usize {
        let tool = self.0.gate.position(name).and_then(|index| self.0.tools.get(index));
        tool.map_or(0, |tool| tool.footprint(args))
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.0.gate.position(name).is_some()
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Ends every grant minted so far: the next call, and the next check of a running one, is refused.
    pub fn revoke(&self) -> u64 {
        let shared = self.0.gate.shared();
        let generation = shared.generation.fetch_add(1, Ordering::AcqRel) + 1;
        let event =
            Event::new(RecordKind::SessionEnded).with_code("revoked").with_reason("every grant was revoked");
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
            Err(Refusal::Ask { call, question }) => self.ask(call, &question, grant).await,
            Err(Refusal::Denied(denial)) => Err(denial.into()),
            Err(Refusal::NotFound(tool)) => Err(ToolFault::NotFound(tool).into()),
        }
    }

    /// Runs the call that a permit of this registry is for, until it ends or the flag is set.
    pub(crate) async fn run(&self, permit: Permit, flag: CancelFlag) -> Result<Outcome, ToolFault> {
        match self.tools.get(permit.index()) {
            Some(tool) => permit.cancelled_by(flag).run_any(tool.as_ref()).await,
            None => Err(ToolFault::NotFound(permit.call().tool.to_string())),
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
            ToolError::from(denial)
        };
        let Some(approver) = &self.approver else { return Err(denied(&call, "no person can be asked here")) };
        let journal = &self.gate.shared().journal;
        let event = |kind| Event::new(kind).with_tool(&call.tool).with_reason(question.to_owned());
        let asked = journal.append(event(RecordKind::ApprovalAsked).with_decision(Decision::Ask));
        let asked = asked.map_err(|fault| {
            let message = format!("the question cannot be recorded: {fault}");
            ToolError::from(Denial::new(DenialCode::RecordRefused, message))
        })?;
        let consent = approver.ask(&call, question).await;
        let decision = if consent == Consent::Given { Decision::Allow } else { Decision::Deny };
        let decided = event(RecordKind::ApprovalDecided).with_decision(decision).with_parent(asked.seq);
        if consent == Consent::Refused || journal.append(decided).is_err() {
            let advice = approver.advice(&call).unwrap_or_else(|| "the answer was no".to_owned());
            return Err(denied(&call, &advice));
        }
        let approval = Approval::for_call(&call);
        self.gate.authorize(call, grant, Some(approval)).map_err(|refusal| match refusal {
            Refusal::Denied(denial) => denial.into(),
            Refusal::NotFound(tool) => ToolFault::NotFound(tool).into(),
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

    /// Holds every tool to what a manifest declares; one it does not declare is forbidden. Hosts in arguments are not judged:
    /// tools here hold each connection to their authority.
    #[must_use]
    pub fn manifest(mut self, checked: &Checked) -> Self {
        for (tool, rules) in &mut self.tools {
            let declared = Rules::for_tool(checked, tool.name()).map(Rules::without_hosts);
            *rules = declared.unwrap_or_else(Rules::forbidden);
        }
        self
    }

    /// Holds the tools that a manifest declares to it as [`RegistryBuilder::manifest`] does, and leaves others alone.
    #[must_use]
    pub fn declared_by(mut self, checked: &Checked) -> Self {
        for (tool, rules) in &mut self.tools {
            if let Some(declared) = Rules::for_tool(checked, tool.name()).map(Rules::without_hosts) {
                *rules = declared;
            }
        }
        self
    }

    /// Adds an interceptor; all of them judge every call.
    #[must_use]
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors.push(Box::new(interceptor));
        self
    }

    /// Records what the rules of tools refuse or ask about, as `would-deny`, and lets it through. Interceptors, grants and
    /// demands of tools hold as ever.
    #[must_use]
    pub const fn audit(mut self, audits: bool) -> Self {
        self.audits = audits;
        self
    }

    /// Records the arguments of calls beside their digest, with what looks secret taken out.
    #[must_use]
    pub fn record_arguments(mut self, redaction: Redaction) -> Self {
        self.recorded = Some(redaction);
        self
    }

    /// Names who is asked for consent.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Box::new(approver));
        self
    }

    /// Names what spends of the fleet's budgets. Without it, a tool whose manifest names one never runs.
    #[must_use]
    pub fn meter(mut self, meter: impl Meter) -> Self {
        self.meter = Some(Box::new(meter));
        self
    }

    /// Tells `hear` of every call that is refused: the tool, its arguments, and the denial. It is called once for a call,
    /// when it is refused before the tool runs or when the tool ends with a denial; it must not block.
    #[must_use]
    pub fn on_denied(mut self, hear: impl Fn(&str, &Value, &Denial) + Send + Sync + 'static) -> Self {
        self.on_denied = Some(Arc::new(hear));
        self
    }

    /// Leaves the policies that tools declare unenforced: for those who enforce them elsewhere. The journal says so, as
    /// `enforcement.disabled`. What is granted and what tools need hold as before.
    #[must_use]
    pub const fn leave_policies_unenforced(mut self) -> Self {
        self.enforces_policies = false;
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
    /// If two tools have the same name, or a tool's policy cannot be held.
    pub fn build(mut self) -> Result<Registry, BuildError> {
        let mut names = BTreeMap::new();
        let (mut tools, mut entries) = (Vec::new(), Vec::new());
        for (tool, rules) in std::mem::take(&mut self.tools) {
            let name: Arc<str> = tool.name().into();
            if names.insert(Arc::clone(&name), ()).is_some() {
                return Err(BuildError::TwoTools(name.to_string()));
            }
            let (required, rules) = match tool.policy() {
                Some(policy) if self.enforces_policies && policy.is_enforced() => {
                    held_to(policy, tool.required(), rules).map_err(|finding| BuildError::Policy {
                        tool: name.to_string(),
                        finding: Box::new(finding),
                    })?
                }
                Some(policy) => {
                    self.journal.append(unenforced(&name)).map_err(BuildError::Unrecorded)?;
                    (tool.required(), rules.with_risk(policy.risk()))
                }
                None => (tool.required(), rules),
            };
            let declared = declared(&required, &rules).map(Arc::new);
            entries.push(GateEntry { name, required, rules, declared });
            tools.push(tool);
        }
        Ok(self.assembled(tools, entries))
    }

    fn assembled(self, tools: Vec<Box<dyn AnyTool>>, entries: Vec<GateEntry>) -> Registry {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let generation = AtomicU64::new(self.generation);
        let own = own(&self.session, &self.journal);
        let (session, journal, on_denied, audits) = (self.session, self.journal, self.on_denied, self.audits);
        let recorded = self.recorded;
        let shared = Arc::new(Shared { id, generation, session, journal, own, on_denied, audits, recorded });
        let gate = Gate::new(shared, entries, self.interceptors, self.meter);
        let threads = CallThreads::new();
        let minted = Mutex::new(HashMap::new());
        Registry(Arc::new(Inner { tools, gate, approver: self.approver, threads, minted }))
    }
}

/// What a tool needs and is held to, with the policy that it declares.
fn held_to(policy: &ToolPolicy, required: Required, rules: Rules) -> Result<(Required, Rules), Finding> {
    let ceiling = policy.ceiling()?;
    let says_files = !policy.read().is_unspecified() || !policy.write().is_unspecified();
    // A subject that is left open names no path, so it lets none through.
    let named = |stance: &Stance<Capability>, scope: &PathScope| {
        if stance.is_unspecified() { PathScope::None } else { scope.clone() }
    };
    let (read, write) = (named(policy.read(), ceiling.read()), named(policy.write(), ceiling.write()));
    let files = says_files.then(|| ArgumentRules::within(read, write));
    Ok((required.within(&ceiling), rules.with_own_policy(files, policy.risk())))
}

/// What a tool and its manifest declare together; `None` if neither says anything.
fn declared(required: &Required, rules: &Rules) -> Option<Authority> {
    let own = Some(required.authority()).filter(|own| **own != Authority::top());
    match (own, rules.ceiling()) {
        (Some(own), Some(ceiling)) => Some(own.meet(ceiling)),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    }
}

/// The event of a policy that is not held.
fn unenforced(tool: &Arc<str>) -> Event {
    Event::new(RecordKind::SessionStarted)
        .with_tool(tool)
        .with_code("enforcement.disabled")
        .with_reason("the policy of this tool is not enforced")
}

/// Bailiwick's own directories, by their names and where these lead.
fn own(session: &Session, journal: &Journal) -> Vec<PathBuf> {
    let named = session.own().iter().map(PathBuf::as_path).chain([journal.dir()]);
    named.flat_map(|dir| [dir.to_owned(), std::fs::canonicalize(dir).unwrap_or(dir.to_owned())]).collect()
}
