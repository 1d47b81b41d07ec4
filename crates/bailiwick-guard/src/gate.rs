//! The gate: the only maker of permits.
//!
//! A call passes, in this order: generation and revocation, constraints, what the tool demands, the paths in its
//! arguments, every interceptor; a rewritten call starts again. Then a unit of the budget is taken, the call is
//! recorded, and a [`Permit`] exists. Whatever fails on the way denies and costs nothing.
//!
//! A gate that audits records what the rules of a tool refuse (`would-deny`) and lets it through; grants, demands and
//! interceptors hold as ever.
//!
//! Fails closed when the journal cannot record, an interceptor fails, or rewriting does not end.

mod context;
mod permit;

pub(crate) use context::Caller;
pub use context::ToolContext;
pub(crate) use context::{Look, Only, OpenedPath, Stamp, Use, child};
pub use permit::Permit;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bailiwick_journal::format::{Decision, Digest, Event, RecordKind};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::lattice::Containment;
use serde_json::Value;

use crate::grant::{Effective, Grant, Missing, PerTool};
use crate::interceptor::{Interceptor, Meter, judge_all};
use crate::session::Session;
use crate::tool::Required;
use bailiwick_guardrails::Rules;
use bailiwick_guardrails::digest;
use bailiwick_guardrails::{Call, Verdict, too_often};
use bailiwick_journal::{Body, Journal, JournalFault, Redaction};

/// How often one call may be rewritten.
const MAX_REWRITES: usize = 8;

/// Decides about calls. A registry has one; nothing else makes permits.
///
/// # Examples
/// ```
/// use bailiwick_guard::tools::{self, FsList};
/// use bailiwick_guard::{Call, Refusal, Registry, Session};
/// use bailiwick_manifest::caveats::Caveats;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bailiwick_journal::{Journal, Options, new_session};
/// # let state = tempfile::tempdir()?;
/// # let journal = Journal::open(&state.path().join("journal"), new_session()?, Options::default())?;
/// let registry = tools::files(Registry::builder(journal, Session::new("/"))).build()?;
/// let grant = registry.mint_grant(&Caveats::top())?;
/// let call = Call { tool: "fs_list".into(), args: json!({ "path": "/usr" }) };
/// // Leave to run this call once; running it uses it up.
/// let Ok(permit) = registry.gate().authorize(call, &grant, None) else { panic!("it is granted") };
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let outcome = runtime.block_on(permit.run(&FsList))?;
/// assert!(outcome.is_success());
/// registry.revoke();
/// let again = Call { tool: "fs_list".into(), args: json!({ "path": "/usr" }) };
/// assert!(matches!(registry.gate().authorize(again, &grant, None), Err(Refusal::Denied(_))));
/// # Ok(())
/// # }
/// ```
pub struct Gate {
    shared: Arc<Shared>,
    entries: Vec<GateEntry>,
    names: HashMap<Arc<str>, usize>,
    interceptors: Vec<Box<dyn Interceptor>>,
    meter: Option<Box<dyn Meter>>,
}

/// What permits and contexts need of the gate that made them.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) generation: AtomicU64,
    pub(crate) session: Session,
    pub(crate) journal: Journal,
    /// Bailiwick's own directories: closed to every tool.
    pub(crate) own: Vec<PathBuf>,
    /// Who is told of refused calls.
    pub(crate) on_denied: Option<OnDenied>,
    /// Whether what the rules of a tool refuse is recorded and let through.
    pub(crate) audits: bool,
    /// What is taken out of arguments that are recorded; without it, their digest alone is.
    pub(crate) recorded: Option<Redaction>,
}

impl Shared {
    /// The event with the digest of the arguments, and with them where that was asked for.
    fn with_arguments(&self, event: Event, call: &Call) -> Event {
        let event = event.with_args_digest(digest(call));
        match &self.recorded {
            Some(redaction) => event.with_args(Body::new(&call.args, redaction).text),
            None => event,
        }
    }
}

/// Told of a refused call: the tool, its arguments, the denial.
pub(crate) type OnDenied = Arc<dyn Fn(&str, &Value, &Denial) + Send + Sync>;

/// What the gate knows of one tool.
pub(crate) struct GateEntry {
    pub(crate) name: Arc<str>,
    pub(crate) required: Required,
    pub(crate) rules: Rules,
    /// What the tool, its policy and its manifest declare; `None` if none of them says anything.
    pub(crate) declared: Option<Arc<Authority>>,
}

impl GateEntry {
    /// An event about the tool, with the risk that it declares.
    fn event(&self, kind: RecordKind) -> Event {
        let event = Event::new(kind).with_tool(&self.name);
        self.rules.risk().into_iter().fold(event, |event, risk| event.with_risk(risk.as_str()))
    }

    /// What the tool says that it may touch: its own demand or policy, and its manifest. `None` if neither says anything.
    fn declares(&self) -> Option<Arc<Authority>> {
        self.declared.clone()
    }
}

/// What the gate says if not yes.
#[derive(Debug)]
pub enum Refusal {
    /// A person must consent to exactly this call first.
    Ask {
        /// The call, as it would run.
        call: Call,
        /// What about.
        question: String,
    },
    /// No.
    Denied(Denial),
    /// There is no such tool.
    NotFound(String),
}

/// Consent to one call, bound to the hash of tool and arguments. Only the registry's approver leads to one.
#[derive(Debug)]
pub struct Approval(Digest);

impl Approval {
    pub(crate) fn for_call(call: &Call) -> Self {
        Self(digest(call))
    }
}

impl Gate {
    pub(crate) fn new(
        shared: Arc<Shared>,
        entries: Vec<GateEntry>,
        interceptors: Vec<Box<dyn Interceptor>>,
        meter: Option<Box<dyn Meter>>,
    ) -> Self {
        let names =
            entries.iter().enumerate().map(|(index, entry)| (Arc::clone(&entry.name), index)).collect();
        Self { shared, entries, names, interceptors, meter }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn position(&self, tool: &str) -> Option<usize> {
        self.names.get(tool).copied()
    }

    pub(crate) fn tool_names(&self) -> impl Iterator<Item = Arc<str>> {
        self.names.keys().cloned()
    }

    pub(crate) fn entry(&self, index: usize) -> Option<&GateEntry> {
        self.entries.get(index)
    }

    /// Lets a call through, or says why not. `approval` is a person's consent to exactly this call.
    ///
    /// # Errors
    /// Who must be asked, or the denial. A denied call is recorded and costs nothing.
    pub fn authorize(
        &self,
        call: Call,
        grant: &Grant,
        approval: Option<Approval>,
    ) -> Result<Permit, Refusal> {
        let Some(index) = self.position(&call.tool) else {
            if let Some(fault) = self.shared.journal.refusal() {
                return Err(self.deny(&call, unrecorded(&fault)));
            }
            self.record_refusal(&call, "tool-not-found", "there is no such tool".to_owned(), None);
            return Err(Refusal::NotFound(call.tool.to_string()));
        };
        let (Some(entry), Some(counted)) = (self.entries.get(index), grant.tool(&call.tool)) else {
            let denial = Denial::new(DenialCode::GrantElsewhere, "the grant belongs to another registry");
            return Err(self.deny(&call, denial));
        };
        match self.admit(call, index, entry, counted, grant, approval) {
            Ok(permit) => Ok(permit),
            Err(stop) => Err(match *stop {
                Stop::Deny(call, denial) => self.deny(&call, denial),
                Stop::Ask(call, question) => Refusal::Ask { call, question },
            }),
        }
    }

    fn admit(
        &self,
        call: Call,
        index: usize,
        entry: &GateEntry,
        counted: &PerTool,
        grant: &Grant,
        approval: Option<Approval>,
    ) -> Result<Permit, Box<Stop>> {
        let past = self.check_grant(grant).and_then(|()| self.check_past(&call, entry, grant));
        if let Err(denial) = past {
            return Err(Stop::deny(call, denial));
        }
        let effective = counted.effective.get_or_init(|| effective(entry, grant.authority()));
        if let Some(missing) = &effective.missing {
            let message =
                format!("the tool `{}` demands to {}, which is not granted", entry.name, missing.example);
            let denial = Denial::new(DenialCode::RequiredNotGranted, message);
            let denial = denial.with_smallest(missing.smallest.iter().cloned());
            let denial = missing.request.iter().cloned().fold(denial, Denial::with_request);
            return Err(Stop::deny(call, denial));
        }
        let call = self.judge(call, entry, approval.as_ref())?;
        if !counted.take_run(entry.rules.max_invocations().filter(|_| !self.shared.audits)) {
            return Err(Stop::deny(call, too_often(&entry.name)));
        }
        if !grant.take_call() {
            counted.return_run();
            return Err(Stop::deny(call, spent()));
        }
        if let Err(denial) = self.spend(entry) {
            counted.return_run();
            grant.return_call();
            return Err(Stop::deny(call, denial));
        }
        let event = entry.event(RecordKind::ToolCalled).with_decision(Decision::Allow);
        let event = self.shared.with_arguments(event, &call);
        let called = self.shared.journal.append(event);
        match called.and_then(|ack| self.record_demand(entry, ack.seq).map(|()| ack)) {
            Ok(ack) => {
                let context = ToolContext::mint(
                    Arc::clone(&self.shared),
                    Caller {
                        name: Arc::clone(&entry.name),
                        risk: entry.rules.risk(),
                        declares: entry.declares(),
                    },
                    Arc::clone(&effective.authority),
                    grant.minted_in(),
                    ack.seq,
                );
                Ok(Permit::mint(call, context, grant.clone(), index))
            }
            Err(fault) => {
                counted.return_run();
                grant.return_call();
                Err(Stop::deny(call, unrecorded(&fault)))
            }
        }
    }

    /// Spends of the fleet's budget, last of all: what is spent does not come back.
    fn spend(&self, entry: &GateEntry) -> Result<(), Denial> {
        let Some(budget) = entry.rules.fleet_budget() else { return Ok(()) };
        let spent = match &self.meter {
            Some(meter) => meter.spend(budget),
            None => Err("nothing here can spend of it; `bailiwick wrap` does, on a machine that is enrolled"
                .to_owned()),
        };
        spent.map_err(|why| {
            let tool = &entry.name;
            let message =
                format!("each call of `{tool}` spends of the fleet's budget `{}`: {why}", budget.name);
            Denial::new(DenialCode::FleetBudgetSpent, message)
        })
    }

    /// Generation and revocation.
    fn check_grant(&self, grant: &Grant) -> Result<(), Denial> {
        if grant.registry() != self.shared.id {
            return Err(Denial::new(DenialCode::GrantElsewhere, "the grant belongs to another registry"));
        }
        let now = self.shared.generation.load(Ordering::Acquire);
        if grant.minted_in() != now {
            return Err(Denial::new(DenialCode::Revoked, "the grant was revoked"));
        }
        if !grant.authority().allows_generation(now) {
            let message = format!("the grant is not good in generation {now}");
            return Err(Denial::new(DenialCode::GenerationOver, message));
        }
        Ok(())
    }

    /// The constraints: forbidden, max_invocations, only_after; then the budget.
    fn check_past(&self, call: &Call, entry: &GateEntry, grant: &Grant) -> Result<(), Denial> {
        let judged =
            entry.rules.judge_past(&entry.name, grant).map_or_else(Verdict::Deny, |()| Verdict::Allow);
        if let Verdict::Deny(denial) = self.audited(call, judged) {
            return Err(denial);
        }
        // Used up only when the call runs; but no person is asked about a call that cannot run.
        if grant.calls_left() == Some(0) { Err(spent()) } else { Ok(()) }
    }

    /// The same verdict; where verdicts are only recorded, what would be refused or asked about is allowed.
    fn audited(&self, call: &Call, verdict: Verdict) -> Verdict {
        let (code, reason) = match &verdict {
            Verdict::Deny(denial) if self.shared.audits => (denial.code().as_str(), denial.for_record()),
            Verdict::Ask(question) if self.shared.audits => {
                (DenialCode::ConsentMissing.as_str(), question.clone())
            }
            Verdict::Allow | Verdict::Rewrite(_) | Verdict::Ask(_) | Verdict::Deny(_) => return verdict,
        };
        let event = Event::new(RecordKind::CapabilityDenied)
            .with_tool(&call.tool)
            .with_decision(Decision::Allow)
            .with_code("would-deny")
            .with_reason(format!("{code}: {reason}"));
        let event = self.shared.with_arguments(event, call);
        match self.shared.journal.append(event) {
            Ok(_) => Verdict::Allow,
            Err(_) => verdict,
        }
    }

    /// Arguments and interceptors, again after every rewrite; then consent.
    fn judge(
        &self,
        mut call: Call,
        entry: &GateEntry,
        approval: Option<&Approval>,
    ) -> Result<Call, Box<Stop>> {
        for _ in 0..=MAX_REWRITES {
            let ruled = entry.rules.judge_call(&entry.name, &call.args, self.shared.session.surroundings());
            let ruled = self.audited(&call, ruled);
            if let Verdict::Deny(denial) = ruled {
                return Err(Stop::deny(call, denial));
            }
            let judged = judge_all(&self.interceptors, &call);
            match judged.strictest.max(ruled) {
                Verdict::Deny(denial) => return Err(Stop::deny(call, denial)),
                Verdict::Rewrite(args) => call.args = args,
                // What is asked about is what would run: a rewrite comes first.
                Verdict::Allow | Verdict::Ask(_) if judged.rewrite.is_some() => {
                    call.args = judged.rewrite.unwrap_or_default();
                }
                Verdict::Allow => return Ok(call),
                Verdict::Ask(_) if approval.is_some_and(|approval| approval.0 == digest(&call)) => {
                    return Ok(call);
                }
                Verdict::Ask(question) => return Err(Box::new(Stop::Ask(call, question))),
            }
        }
        Err(Stop::deny(call, Denial::new(DenialCode::RewriteLoop, "interceptors kept rewriting the call")))
    }

    fn deny(&self, call: &Call, denial: Denial) -> Refusal {
        self.record_denial(call, &denial);
        Refusal::Denied(denial)
    }

    pub(crate) fn record_denial(&self, call: &Call, denial: &Denial) {
        if let Some(hear) = &self.shared.on_denied {
            hear(&call.tool, &call.args, denial);
        }
        let grant = denial.smallest_lines();
        self.record_refusal(call, denial.code().as_str(), denial.for_record(), grant);
    }

    /// What a tool demands was asked for and granted: an event of its own.
    fn record_demand(&self, entry: &GateEntry, called: u64) -> Result<(), JournalFault> {
        if !entry.required.is_demanded() {
            return Ok(());
        }
        let lines = entry.required.authority().capabilities().unwrap_or_default();
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let event = entry
            .event(RecordKind::CapabilityGranted)
            .with_decision(Decision::Allow)
            .with_parent(called)
            .with_used_declared_capability(true)
            .with_reason("the tool demands it");
        let event = if lines.is_empty() { event } else { event.with_capability(lines.join("\n")) };
        self.shared.journal.append(event).map(drop)
    }

    /// A refusal is recorded if it can be; that it cannot does not turn it into consent.
    fn record_refusal(&self, call: &Call, code: &'static str, reason: String, grant: Option<String>) {
        let entry = self.position(&call.tool).and_then(|index| self.entries.get(index));
        let event = match entry {
            Some(entry) => entry.event(RecordKind::CapabilityDenied),
            None => Event::new(RecordKind::CapabilityDenied).with_tool(&call.tool),
        };
        let event = event.with_decision(Decision::Deny).with_code(code).with_reason(reason);
        let event = self.shared.with_arguments(event, call);
        let event = grant.into_iter().fold(event, Event::with_capability);
        drop(self.shared.journal.append(event));
    }
}

/// Why a call goes no further; the call comes back for the record.
enum Stop {
    Deny(Call, Denial),
    Ask(Call, String),
}

impl Stop {
    fn deny(call: Call, denial: Denial) -> Box<Self> {
        Box::new(Self::Deny(call, denial))
    }
}

fn unrecorded(fault: &JournalFault) -> Denial {
    Denial::new(DenialCode::RecordRefused, format!("the call cannot be recorded: {fault}"))
}

fn spent() -> Denial {
    Denial::new(DenialCode::BudgetSpent, "the granted number of calls is used up")
}

/// What the tool may touch under the grant: the meet of all that has a say.
fn effective(entry: &GateEntry, granted: &Authority) -> Effective {
    let required = entry.required.authority();
    let missing = match required.within(granted) {
        _ if !entry.required.is_demanded() => None,
        Containment::Contained => None,
        Containment::Exceeds(excess) => Some(Missing::new(&excess, excess.request(), required, granted)),
        Containment::Undecided => Some(Missing::new("do what cannot be decided", None, required, granted)),
    };
    let met = granted.meet(required);
    let met = entry.rules.ceiling().map_or_else(|| met.clone(), |ceiling| met.meet(ceiling));
    Effective { authority: Arc::new(met), missing }
}
