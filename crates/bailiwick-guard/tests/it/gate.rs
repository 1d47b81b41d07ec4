//! The gate: what runs, what does not, what it costs, and what is recorded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bailiwick_guard::{
    Approver, Call, Consent, Grant, Interceptor, InterceptorError, Meter, Outcome, Output, Part, PendingCall,
    Registry, RegistryBuilder, Required, Rules, Session, Tool, ToolContext, ToolError, ToolFault, Verdict,
};
use bailiwick_journal::format::{Decision, RecordKind};
use bailiwick_journal::{Filter, Options, Redaction};
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_manifest::{Constraints, FleetBudget, Manifest, Risk, SpendUnit, ToolPolicy};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::lattice::CountBound;
use serde_json::{Value, json};

use bailiwick_testkit::journal::Dir;

mod outcomes;

/// A tool that does what its arguments say and counts its runs.
#[derive(Default, Clone)]
struct Probe {
    name: &'static str,
    runs: Arc<AtomicU64>,
    demands: Vec<&'static str>,
}

impl Probe {
    fn named(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Tool for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn schema(&self) -> Value {
        json!({})
    }

    fn required(&self) -> Required {
        if self.demands.is_empty() {
            return Required::ceiling(bailiwick_policy::authority::Authority::top());
        }
        Required::demand_lines(self.demands.iter().copied()).unwrap()
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        for (key, value) in args.as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            match key.as_str() {
                "exec" => context.check_exec(text)?,
                "net" => context.check_net(text, 443)?,
                "read" => drop(context.open_read(text)?),
                "env" => return Ok(json!(context.env(text)?).into()),
                "fail" => return Err(ToolError::failed(text)),
                "panic" => panic!("as asked"),
                _ => {}
            }
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(args.into())
    }
}

fn builder(dir: &Dir) -> RegistryBuilder {
    let env = [("HOME".to_owned(), "/home/u".to_owned())];
    Registry::builder(dir.open("gate", Options::default()), Session::new("/srv").with_env(env))
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn code(result: Result<Output, ToolError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "ok")
}

#[test]
fn a_denied_call_costs_nothing_and_a_budget_is_shared() {
    let dir = Dir::new();
    let probe = Probe::named("p");
    let registry = builder(&dir).tool(probe.clone()).build().unwrap();
    let caveats = Caveats {
        exec: Scope::only(["echo".to_owned()]),
        max_calls: CountBound::AtMost(2),
        ..Caveats::top()
    };
    let grant = registry.mint_grant(&caveats).unwrap();
    let call = |program: &str| code(block(registry.dispatch("p", json!({ "exec": program }), &grant)));
    assert_eq!(call("echo"), "ok");
    assert_eq!(call("rm"), "exec-not-granted");
    assert_eq!(grant.calls_left(), Some(1), "a denial is not charged");
    assert_eq!(call("echo"), "ok");
    assert_eq!(call("echo"), "budget-spent");
    assert_eq!(probe.runs(), 2);
    assert_eq!(
        code(block(registry.dispatch("p", json!({ "exec": "rm" }), &registry.mint_grant(&caveats).unwrap()))),
        "exec-not-granted"
    );
    assert_eq!(code(block(registry.dispatch_oneshot("p", json!({ "exec": "echo" }), &caveats))), "ok");
    assert_eq!(code(block(registry.dispatch("q", json!({}), &grant))), "tool-not-found");
}

#[test]
fn exactly_as_many_run_as_the_budget_allows() {
    let dir = Dir::new();
    let probe = Probe::named("p");
    let registry = Arc::new(builder(&dir).tool(probe.clone()).build().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    for round in 0..20 {
        let grant =
            registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(10), ..Caveats::top() }).unwrap();
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let (registry, grant) = (Arc::clone(&registry), grant.clone());
                runtime.spawn(async move { registry.dispatch("p", json!({}), &grant).await.is_ok() })
            })
            .collect();
        let ran = tasks
            .into_iter()
            .filter(|_| true)
            .map(|task| runtime.block_on(task).unwrap())
            .filter(|ran| *ran)
            .count();
        assert_eq!((ran, grant.calls_left()), (10, Some(0)));
        assert_eq!(probe.runs(), 10 * (round + 1));
    }
}

#[test]
fn a_context_holds_only_the_meet() {
    let dir = Dir::new();
    let demanding =
        Probe { demands: vec!["exec:spawn:git", "net:connect:a.test:443"], ..Probe::named("demanding") };
    let registry = builder(&dir).tool(demanding).tool(Probe::named("open")).build().unwrap();
    let all = registry.mint_grant(&Caveats::top()).unwrap();
    let call = |tool: &str, args: Value, grant| code(block(registry.dispatch(tool, args, grant)));
    assert_eq!(call("demanding", json!({ "exec": "git" }), &all), "ok");
    assert_eq!(
        call("demanding", json!({ "exec": "sh" }), &all),
        "exec-not-granted",
        "granted, but not needed"
    );
    assert_eq!(call("demanding", json!({ "net": "b.test" }), &all), "net-not-granted");
    assert_eq!(call("open", json!({ "exec": "sh" }), &all), "ok");
    assert_eq!(
        call("open", json!({ "net": "169.254.169.254" }), &all),
        "net-not-granted",
        "private is never in `all`"
    );
    let less = Caveats { net: Scope::none(), ..Caveats::top() };
    let less = registry.mint_grant(&less).unwrap();
    assert_eq!(call("demanding", json!({ "exec": "git" }), &less), "required-not-granted");
    assert_eq!(block(registry.dispatch("open", json!({ "env": "HOME" }), &all)).unwrap(), json!("/home/u"));
    let blind = registry.mint_grant(&Caveats { env: Scope::none(), ..Caveats::top() }).unwrap();
    assert_eq!(call("open", json!({ "env": "HOME" }), &blind), "env-not-granted");
}

#[test]
fn revocation_and_generations_end_a_grant() {
    let dir = Dir::new();
    let registry = builder(&dir).tool(Probe::named("p")).generation(7).build().unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    let call = |grant: &Grant| code(block(registry.dispatch("p", json!({ "exec": "git" }), grant)));
    assert_eq!(call(&grant), "ok");
    let elsewhere = Caveats { valid_for_generation: Scope::only([8]), ..Caveats::top() };
    assert_eq!(call(&registry.mint_grant(&elsewhere).unwrap()), "generation-over");
    assert_eq!(registry.revoke(), 8);
    assert_eq!(call(&grant), "revoked");
    let idle = code(block(registry.dispatch("p", json!({}), &grant)));
    assert_eq!(idle, "revoked", "a call that would touch nothing is refused too");
    assert_eq!(call(&registry.mint_grant(&elsewhere).unwrap()), "ok");
    let other = Dir::new();
    let stranger = builder(&other).tool(Probe::named("p")).generation(8).build().unwrap();
    assert_eq!(call(&stranger.mint_grant(&Caveats::top()).unwrap()), "grant-elsewhere");
}

/// Revokes every grant between two checks of its own.
struct Revoker(Arc<OnceLock<Arc<Registry>>>);

impl Tool for Revoker {
    fn name(&self) -> &str {
        "revoker"
    }

    fn schema(&self) -> Value {
        json!({})
    }

    async fn invoke(&self, _: Value, context: &ToolContext) -> Result<Output, ToolError> {
        context.check_exec("git")?;
        self.0.get().unwrap().revoke();
        context.check_exec("git")?;
        Ok(Output::default())
    }
}

#[test]
fn revocation_reaches_a_running_call() {
    let dir = Dir::new();
    let late = Arc::new(OnceLock::new());
    let registry = Arc::new(builder(&dir).tool(Revoker(Arc::clone(&late))).build().unwrap());
    assert!(late.set(Arc::clone(&registry)).is_ok());
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    assert_eq!(code(block(registry.dispatch("revoker", json!({}), &grant))), "revoked");
}

#[test]
fn constraints_hold_per_grant() {
    let dir = Dir::new();
    let constraints = |constraints| Rules::none().with_constraints(constraints);
    let registry = builder(&dir)
        .tool(Probe::named("fetch"))
        .tool_with(
            Probe::named("commit"),
            constraints(Constraints {
                only_after: vec!["fetch".into()],
                max_invocations: Some(2),
                ..Constraints::default()
            }),
        )
        .tool_with(Probe::named("never"), Rules::forbidden())
        .tool_with(Probe::named("asks"), constraints(Constraints { confirm: true, ..Constraints::default() }))
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    let call = |tool: &str, args: Value| code(block(registry.dispatch(tool, args, &grant)));
    assert_eq!(call("never", json!({})), "tool-forbidden");
    assert_eq!(call("asks", json!({})), "consent-missing", "without an approver it is denied");
    assert_eq!(call("commit", json!({})), "tool-too-early");
    assert_eq!(call("fetch", json!({ "fail": "x" })), "tool-failed");
    assert_eq!(call("commit", json!({})), "tool-too-early", "a failed call does not count as success");
    assert_eq!(call("fetch", json!({})), "ok");
    assert_eq!(call("commit", json!({ "net": "127.0.0.1" })), "net-not-granted");
    assert_eq!((call("commit", json!({})), call("commit", json!({}))), ("ok", "ok"), "denials never count");
    assert_eq!(call("commit", json!({})), "tool-too-often");
    let fresh = registry.mint_grant(&Caveats::top()).unwrap();
    assert_eq!(
        code(block(registry.dispatch("commit", json!({}), &fresh))),
        "tool-too-early",
        "another session"
    );
}

/// Has so much of each budget.
struct Purse(AtomicU64);

impl Meter for Purse {
    fn spend(&self, budget: &FleetBudget) -> Result<(), String> {
        let each = |left: u64| left.checked_sub(budget.each);
        let spent = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, each);
        spent.map(drop).map_err(|left| format!("{left} left"))
    }
}

#[test]
fn a_fleet_budget_is_spent_last_and_never_without_a_meter() {
    let dir = Dir::new();
    let budget = FleetBudget { name: "b".to_owned(), unit: SpendUnit::Money, each: 2 };
    let rules = |max_invocations| {
        let fleet_budget = Some(budget.clone());
        Rules::none().with_constraints(Constraints {
            fleet_budget,
            max_invocations,
            ..Constraints::default()
        })
    };
    let registry = builder(&dir)
        .tool_with(Probe::named("twice"), rules(Some(2)))
        .tool_with(Probe::named("more"), rules(None))
        .meter(Purse(AtomicU64::new(7)))
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    let call = |tool: &str| code(block(registry.dispatch(tool, json!({}), &grant)));
    assert_eq!(["twice", "twice", "twice"].map(call), ["ok", "ok", "tool-too-often"]);
    assert_eq!(
        ["more", "more"].map(call),
        ["ok", "fleet-budget-spent"],
        "what was refused before cost nothing"
    );
    let bare = Dir::new();
    let registry = builder(&bare).tool_with(Probe::named("twice"), rules(None)).build().unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    assert_eq!(code(block(registry.dispatch("twice", json!({}), &grant))), "fleet-budget-spent");
}

struct Rewrite;

impl Interceptor for Rewrite {
    fn name(&self) -> &str {
        "rewrite"
    }

    fn judge(&self, call: &Call) -> Result<Verdict, InterceptorError> {
        Ok(match call.args.get("then").and_then(Value::as_str) {
            Some("deny") => Verdict::Deny(Denial::new(DenialCode::InterceptorDenied, "no")),
            Some("loop") => Verdict::Rewrite(call.args.clone()),
            Some("path") => Verdict::Rewrite(json!({ "path": "/etc/passwd" })),
            Some("once") => Verdict::Rewrite(json!({ "then": "deny" })),
            Some("change") => Verdict::Rewrite(json!({ "changed": true })),
            Some("fail") => return Err(InterceptorError("broken".into())),
            Some("panic") => panic!("as asked"),
            Some("ask") => Verdict::Ask("really?".into()),
            _ => Verdict::Allow,
        })
    }
}

/// Consents while its switch is on.
struct Person(Arc<AtomicBool>);

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        _: &'a Call,
        _: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Consent> + Send + 'a>> {
        let consent = if self.0.load(Ordering::SeqCst) { Consent::Given } else { Consent::Refused };
        Box::pin(std::future::ready(consent))
    }
}

#[test]
fn a_rewritten_call_passes_every_check_again() {
    let dir = Dir::new();
    let text = "name = 's'\nversion = '1'\n[[tools]]\nname = 'p'\ncapabilities = ['fs:read:/srv']\n";
    let checked = Manifest::parse(text).unwrap().check(&HostFacts::unknown()).unwrap();
    let consents = Arc::new(AtomicBool::new(false));
    let registry = builder(&dir)
        .tool(Probe::named("p"))
        .tool(Probe::named("undeclared"))
        .manifest(&checked)
        .interceptor(Rewrite)
        .approver(Person(Arc::clone(&consents)))
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    let call = |args: Value| code(block(registry.dispatch("p", args, &grant)));
    assert_eq!(call(json!({ "then": "nothing" })), "ok");
    assert_eq!(call(json!({ "then": "deny" })), "interceptor-denied");
    assert_eq!(call(json!({ "then": "once" })), "interceptor-denied", "judged again after the rewrite");
    assert_eq!(call(json!({ "then": "path" })), "argument-outside-policy", "gated again after the rewrite");
    assert_eq!(call(json!({ "then": "loop" })), "rewrite-loop");
    assert_eq!(call(json!({ "then": "fail" })), "interceptor-failed");
    assert_eq!(call(json!({ "then": "panic" })), "interceptor-failed");
    assert_eq!(call(json!({ "then": "ask" })), "consent-missing");
    consents.store(true, Ordering::SeqCst);
    assert_eq!(call(json!({ "then": "ask" })), "ok");
    let changed = block(registry.dispatch("p", json!({ "then": "change" }), &grant)).unwrap();
    assert_eq!(changed, json!({ "changed": true }));
    assert_eq!(call(json!({ "read": "/etc/passwd" })), "argument-outside-policy");
    assert_eq!(call(json!({ "exec": "sh" })), "exec-not-granted", "the manifest is a ceiling");
    assert_eq!(code(block(registry.dispatch("undeclared", json!({}), &grant))), "tool-forbidden");
}

#[test]
fn consent_is_asked_for_what_would_run_and_only_if_it_could() {
    let dir = Dir::new();
    let constraints = Constraints {
        confirm: true,
        max_invocations: Some(1),
        only_after: vec!["q".into()],
        ..Constraints::default()
    };
    let consents = Arc::new(AtomicBool::new(true));
    let registry = builder(&dir)
        .tool_with(Probe::named("p"), Rules::none().with_constraints(constraints))
        .tool(Probe::named("q"))
        .interceptor(Rewrite)
        .approver(Person(Arc::clone(&consents)))
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(2), ..Caveats::top() }).unwrap();
    let call = |tool: &str, args: Value| block(registry.dispatch(tool, args, &grant));
    assert_eq!(code(call("p", json!({}))), "tool-too-early");
    assert_eq!(code(call("q", json!({}))), "ok");
    let changed = call("p", json!({ "then": "change" })).unwrap();
    assert_eq!(changed, json!({ "changed": true }), "consent does not undo a rewrite");
    assert_eq!(code(call("p", json!({}))), "tool-too-often");
    assert_eq!(code(call("q", json!({ "then": "ask" }))), "budget-spent");
    drop(registry);
    let asked = Filter { kind: Some(RecordKind::ApprovalAsked), ..Filter::default() };
    assert_eq!(dir.records(asked).len(), 1, "no person is asked about a call that cannot run");
}

#[test]
fn arguments_are_recorded_where_that_is_asked_for_without_what_looks_secret() {
    let args = json!({ "path": "/notes/a", "password": "hunter2", "text": "with known-value inside" });
    let redaction = Redaction { secrets: vec!["known-value".to_owned()], ..Redaction::default() };
    for (asked, is_allowed) in [(true, true), (true, false), (false, true), (false, false)] {
        let dir = Dir::new();
        let registry = builder(&dir);
        let registry = if asked { registry.record_arguments(redaction.clone()) } else { registry };
        let rules = if is_allowed { Rules::none() } else { Rules::forbidden() };
        let registry = registry.tool_with(Probe::named("p"), rules).build().unwrap();
        let grant = registry.mint_grant(&Caveats::top()).unwrap();
        drop(block(registry.dispatch("p", args.clone(), &grant)));
        drop(registry);
        let kind = if is_allowed { RecordKind::ToolCalled } else { RecordKind::CapabilityDenied };
        let records = dir.records(Filter { kind: Some(kind), ..Filter::default() });
        let event = records.first().and_then(|record| record.event()).expect("it is recorded");
        assert!(event.args_digest().is_some());
        let Some(kept) = event.args() else {
            assert!(!asked);
            continue;
        };
        assert!(asked && kept.contains("/notes/a"), "{kept}");
        assert!(!kept.contains("hunter2") && !kept.contains("known-value"), "{kept}");
    }
}

#[test]
fn everything_is_recorded_granted_or_denied() {
    let dir = Dir::new();
    let registry = builder(&dir).tool(Probe::named("p")).build().unwrap();
    let grant =
        registry.mint_grant(&Caveats { exec: Scope::only(["git".to_owned()]), ..Caveats::top() }).unwrap();
    for args in [json!({ "exec": "git" }), json!({ "exec": "rm" }), json!({ "panic": "" })] {
        drop(block(registry.dispatch("p", args, &grant)));
    }
    drop(block(registry.dispatch("missing", json!({}), &grant)));
    drop(registry);
    let seen: Vec<_> = dir
        .records(Filter::default())
        .iter()
        .filter_map(|record| {
            let event = record.event()?;
            Some((
                event.kind(),
                event.decision(),
                event.code().unwrap_or_default().to_owned(),
                event.parent(),
            ))
        })
        .collect();
    let kinds: Vec<_> = seen.iter().map(|(kind, decision, code, _)| (*kind, *decision, &**code)).collect();
    let (allow, deny) = (Some(Decision::Allow), Some(Decision::Deny));
    assert_eq!(
        kinds,
        [
            (RecordKind::ToolCalled, allow, ""),
            (RecordKind::CapabilityGranted, allow, ""),
            (RecordKind::ToolFinished, allow, ""),
            (RecordKind::ToolCalled, allow, ""),
            (RecordKind::CapabilityDenied, deny, "exec-not-granted"),
            (RecordKind::ToolFinished, deny, "exec-not-granted"),
            (RecordKind::ToolCalled, allow, ""),
            (RecordKind::ToolFinished, allow, "tool-failed"),
            (RecordKind::CapabilityDenied, deny, "tool-not-found"),
        ]
    );
    assert!(seen[1].3.is_some() && seen[2].3 == seen[1].3, "checks and ends name the call they belong to");
    assert!(dir.verify().is_intact());
}

#[test]
fn nothing_runs_that_cannot_be_recorded() {
    let dir = Dir::new();
    let probe = Probe::named("p");
    let journal = dir.open("gate", Options::default());
    let registry = Registry::builder(journal.clone(), Session::new("/")).tool(probe.clone()).build().unwrap();
    let grant = registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(5), ..Caveats::top() }).unwrap();
    journal.close().unwrap();
    assert_eq!(code(block(registry.dispatch("p", json!({}), &grant))), "record-refused");
    assert_eq!((probe.runs(), grant.calls_left()), (0, Some(5)));
}

#[test]
fn a_permit_that_is_dropped_puts_its_call_back() {
    let dir = Dir::new();
    let registry = builder(&dir).tool(Probe::named("p")).build().unwrap();
    let grant = registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(1), ..Caveats::top() }).unwrap();
    let permit = registry.gate().authorize(Call { tool: "p".into(), args: json!({}) }, &grant, None).ok();
    assert_eq!(grant.calls_left(), Some(0));
    drop(permit);
    assert_eq!(grant.calls_left(), Some(1));
    let permit =
        registry.gate().authorize(Call { tool: "p".into(), args: json!({}) }, &grant, None).ok().unwrap();
    let elsewhere = block(permit.run(&Probe::named("q"))).unwrap_err();
    assert_eq!(elsewhere.code(), "tool-not-found", "a permit is for one tool");
}

/// Checks something if told to, says that it was called, then never comes back.
struct Stuck(Arc<AtomicBool>);

impl Tool for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn schema(&self) -> Value {
        json!({})
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        if args["act"] == true {
            context.check_exec("git")?;
        }
        self.0.store(true, Ordering::Relaxed);
        std::future::pending().await
    }
}

#[test]
fn a_call_that_is_cut_off_is_recorded_and_charged_for_what_it_touched() {
    let dir = Dir::new();
    let called = Arc::new(AtomicBool::new(false));
    let registry = builder(&dir).tool(Stuck(Arc::clone(&called))).build().unwrap();
    let grant = registry.mint_grant(&Caveats { max_calls: CountBound::AtMost(2), ..Caveats::top() }).unwrap();
    for (act, left) in [(false, 2), (true, 1)] {
        block(async {
            let mut call = Box::pin(registry.dispatch("stuck", json!({ "act": act }), &grant));
            while !called.swap(false, Ordering::Relaxed) {
                let waited = tokio::time::timeout(std::time::Duration::from_millis(5), &mut call).await;
                assert!(waited.is_err(), "it never comes back");
            }
        });
        assert_eq!(grant.calls_left(), Some(left));
    }
    drop(registry);
    let records = dir.records(Filter::default());
    let codes: Vec<_> = records.iter().filter_map(|record| record.event()?.code()).collect();
    assert_eq!(codes, ["tool-cancelled", "tool-cancelled"]);
}

#[test]
fn a_denial_is_recorded_with_what_is_granted_and_what_would_allow_it() {
    let dir = Dir::new();
    let text = "name = 's'\nversion = '1'\n[[tools]]\nname = 'p'\ncapabilities = ['fs:read:/srv']\n\
                [[tools]]\nname = 'demanding'\ncapabilities = ['exec:spawn:*']\n";
    let checked = Manifest::parse(text).unwrap().check(&HostFacts::unknown()).unwrap();
    let demands = vec!["exec:spawn:git", "exec:spawn:make", "clock:system"];
    let registry = builder(&dir)
        .tool(Probe::named("p"))
        .tool(Probe { demands, ..Probe::named("demanding") })
        .manifest(&checked)
        .build()
        .unwrap();
    let exec = Scope::only(["git".to_owned()]);
    let grant = registry.mint_grant(&Caveats { exec, ..Caveats::top() }).unwrap();
    let calls = [
        ("p", json!({ "path": "/etc/a*b" })),
        ("p", json!({ "exec": "rm" })),
        ("p", json!({ "env": "TOKEN" })),
        ("demanding", json!({})),
    ];
    for (tool, args) in calls {
        assert!(block(registry.dispatch(tool, args, &grant)).unwrap_err().denial().is_some());
    }
    drop(registry);
    let filter = Filter { kind: Some(RecordKind::CapabilityDenied), ..Filter::default() };
    let seen: Vec<_> = dir
        .records(filter)
        .iter()
        .filter_map(|record| {
            Some((record.event()?.capability()?.to_owned(), record.event()?.reason()?.to_owned()))
        })
        .collect();
    let capabilities: Vec<&str> = seen.iter().map(|(capability, _)| &**capability).collect();
    assert_eq!(
        capabilities,
        ["fs:read:/etc/a[*]b", "exec:spawn:rm", "env:read:TOKEN", "exec:spawn:make"],
        "what is missing, and no more"
    );
    assert!(seen[1].1.ends_with("not within the granted authority (granted: nothing)"), "{seen:?}");
}
