//! What comes of a call: outputs, refusals and failures, one budget for equal caveats, and the events of checks.

use super::*;

#[test]
fn equal_caveats_are_one_grant_with_one_budget() {
    let dir = Dir::new();
    let probe = Probe::named("p");
    let registry = builder(&dir).tool(probe.clone()).build().unwrap();
    let two = Caveats { max_calls: CountBound::AtMost(2), ..Caveats::top() };
    let call = |caveats: &Caveats| code(block(registry.dispatch("p", json!({}), caveats)));
    assert_eq!([call(&two), call(&two.clone()), call(&two)], ["ok", "ok", "budget-spent"]);
    let others = Caveats { exec: Scope::none(), ..two.clone() };
    assert_eq!(call(&others), "ok", "other caveats are another grant");
    assert_eq!(probe.runs(), 3);
    let unreadable = Caveats { exec: Scope::only(["a b".to_owned()]), ..Caveats::top() };
    assert_eq!(call(&unreadable), "caveats-unreadable");
    registry.revoke();
    assert_eq!(call(&others), "revoked", "they stay revoked");
}

#[test]
fn a_refusal_is_an_outcome_with_typed_capabilities_and_a_failure_is_an_error() {
    let dir = Dir::new();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let registry = builder(&dir)
        .tool(Probe::named("p"))
        .on_denied(move |tool, args, denial| {
            into.lock().unwrap().push((tool.to_owned(), args.clone(), denial.code()));
        })
        .build()
        .unwrap();
    let grant =
        registry.mint_grant(&Caveats { exec: Scope::only(["git".to_owned()]), ..Caveats::top() }).unwrap();
    let run = |tool: &str, args: Value| block(registry.run(PendingCall::new(tool, args, &grant)));
    let ran = run("p", json!({ "exec": "git" })).unwrap();
    assert_eq!(ran, Outcome::Ran(json!({ "exec": "git" }).into()));
    let refused = run("p", json!({ "exec": "rm" })).unwrap();
    let denial = refused.denial().unwrap();
    assert_eq!(denial.smallest(), [Capability::new("exec:spawn:rm").unwrap()]);
    assert_eq!(denial.granted(), Some(&[Capability::new("exec:spawn:git").unwrap()][..]));
    assert_eq!(denial.request().unwrap().to_string(), "start rm");
    let Err(ToolError::Denied { capability, reason, .. }) = refused.into_result() else { panic!("denied") };
    assert_eq!((&*capability, reason.contains("\"rm\"")), ("exec:spawn:rm", true));
    assert!(matches!(run("p", json!({ "fail": "broken" })), Err(ToolFault::Failed(why)) if why == "broken"));
    assert!(matches!(run("q", json!({})), Err(ToolFault::NotFound(_))));
    registry.revoke();
    assert_eq!(run("p", json!({})).unwrap().denial().unwrap().code(), DenialCode::Revoked);
    let heard = heard.lock().unwrap();
    let expected = [
        ("p".to_owned(), json!({ "exec": "rm" }), DenialCode::ExecNotGranted),
        ("p".to_owned(), json!({}), DenialCode::Revoked),
    ];
    assert_eq!(*heard, expected, "each is heard once");
}

#[test]
fn every_check_leaves_an_event_with_the_risk_and_whether_it_was_declared() {
    let dir = Dir::new();
    let text = "name = 's'\nversion = '1'\n[[tools]]\nname = 'p'\nrisk = 'high'\n\
                capabilities = ['exec:spawn:git', 'exec:spawn:make']\n";
    let checked = Manifest::parse(text).unwrap().check(&HostFacts::unknown()).unwrap();
    let demands = vec!["exec:spawn:git"];
    let registry = builder(&dir)
        .tool(Probe { demands, ..Probe::named("p") })
        .tool(Probe::named("plain"))
        .declared_by(&checked)
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    for (tool, program) in [("p", "git"), ("p", "rm"), ("plain", "git")] {
        drop(block(registry.dispatch(tool, json!({ "exec": program }), &grant)));
    }
    drop(registry);
    let seen: Vec<_> = dir
        .records(Filter::default())
        .iter()
        .filter_map(|record| record.event().cloned())
        .map(|event| {
            let capability = event.capability().unwrap_or_default().to_owned();
            (event.kind(), capability, event.risk().map(str::to_owned), event.used_declared_capability())
        })
        .collect();
    let (high, git, rm) = (Some("high".to_owned()), "start git".to_owned(), "exec:spawn:rm".to_owned());
    let demanded = || (RecordKind::CapabilityGranted, "exec:spawn:git".to_owned(), high.clone(), Some(true));
    let called = |risk: &Option<String>| (RecordKind::ToolCalled, String::new(), risk.clone(), None);
    let finished = |risk: &Option<String>| (RecordKind::ToolFinished, String::new(), risk.clone(), None);
    let expected = [
        called(&high),
        demanded(),
        (RecordKind::CapabilityGranted, git.clone(), high.clone(), Some(true)),
        finished(&high),
        called(&high),
        demanded(),
        (RecordKind::CapabilityDenied, rm, high.clone(), Some(false)),
        finished(&high),
        called(&None),
        (RecordKind::CapabilityGranted, git, None, None),
        finished(&None),
    ];
    assert_eq!(seen, expected);
}

/// A tool that says it failed.
struct Sorry;

impl Tool for Sorry {
    fn name(&self) -> &str {
        "sorry"
    }

    fn schema(&self) -> Value {
        json!({})
    }

    async fn invoke(&self, _: Value, _: &ToolContext) -> Result<Output, ToolError> {
        Ok(Output { content: vec![Part::text("sorry")], is_error: true, ..Output::default() })
    }
}

#[test]
fn an_output_that_is_an_error_ran_and_did_not_succeed() {
    let dir = Dir::new();
    let constraints = Constraints { only_after: vec!["sorry".to_owned()], ..Constraints::default() };
    let registry = builder(&dir)
        .tool(Sorry)
        .tool_with(Probe::named("p"), Rules::none().with_constraints(constraints))
        .build()
        .unwrap();
    let grant = registry.mint_grant(&Caveats::top()).unwrap();
    let outcome = block(registry.run(PendingCall::new("sorry", json!({}), &grant))).unwrap();
    assert!(!outcome.is_success() && outcome.denial().is_none());
    assert_eq!(code(block(registry.dispatch("p", json!({}), &grant))), "tool-too-early");
}

#[test]
fn a_registry_without_a_journal_refuses_every_call_and_says_why() {
    let registry = Registry::refusing(bailiwick_journal::JournalFault::Busy);
    let refused = block(registry.dispatch("shell", json!({}), &Caveats::top())).unwrap_err();
    assert_eq!(refused.code(), "record-refused");
    assert!(refused.to_string().contains("queue stayed full"), "{refused}");
}

/// A tool with a policy.
struct Held(Probe, ToolPolicy);

impl Tool for Held {
    fn name(&self) -> &str {
        self.0.name
    }

    fn schema(&self) -> Value {
        json!({})
    }

    fn policy(&self) -> Option<&ToolPolicy> {
        Some(&self.1)
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        self.0.invoke(args, context).await
    }
}

#[test]
fn a_tool_is_held_to_its_own_policy_unless_that_is_left_to_others_and_said() {
    let policy = || ToolPolicy::builder().risk(Risk::High).read(["/srv/**"]).exec(["git"]).build().unwrap();
    let codes = |unenforced: bool| {
        let dir = Dir::new();
        let builder = builder(&dir).tool(Held(Probe::named("p"), policy()));
        let registry =
            if unenforced { builder.leave_policies_unenforced() } else { builder }.build().unwrap();
        let call = |args: Value| code(block(registry.dispatch("p", args, &Caveats::top())));
        let codes =
            [json!({ "path": "/etc/hosts" }), json!({ "exec": "rm" }), json!({ "exec": "git" })].map(call);
        drop(registry);
        let said: Vec<_> = dir
            .records(Filter::default())
            .iter()
            .filter_map(|record| record.event()?.code().map(str::to_owned))
            .filter(|code| code == "enforcement.disabled")
            .collect();
        (codes, said.len())
    };
    assert_eq!(codes(false), (["argument-outside-policy", "exec-not-granted", "ok"], 0));
    assert_eq!(codes(true), (["ok", "ok", "ok"], 1));
}
