//! `bailiwick log why`: the grant it offers allows what was denied.

use super::Demo;
use bailiwick_journal::format::{Decision, Event, RecordKind};
use bailiwick_journal::{Journal, Options};
use bailiwick_manifest::Manifest;
use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::{Capability, Program};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

/// What the tool may do in a manifest that holds nothing but what `why` offers.
fn pasted(demo: &Demo, event: &str, tool: &str) -> Authority {
    let why = demo.json(&["why", event]);
    let text = format!("name = \"x\"\nversion = \"1\"\n{}", why["manifest"].as_str().unwrap());
    let checked = Manifest::parse(&text).unwrap().check(&HostFacts::unknown()).unwrap();
    checked.tool(tool).unwrap().authority().clone()
}

#[test]
fn the_smallest_grant_allows_what_was_denied() {
    let demo = Demo::new();
    let Ok(Capability::Exec { program: Some(rm), .. }) = "exec:spawn:rm".parse() else { panic!("a program") };
    let rm: Program = rm;
    let address = NetRequest::new(Host::new("169.254.169.254").unwrap(), 443, Speak::Tls);
    let requests = [
        ("demo:4", "run", Request::Spawn(Spawn::plain(rm))),
        ("demo:7", "run", Request::Net(address)),
        ("demo:10", "run", Request::ReadEnv("TOKEN".into())),
        ("demo:12", "read", Request::Read(AbsPath::new("/etc/hosts").unwrap())),
    ];
    for (event, tool, request) in &requests {
        let granted = pasted(&demo, event, tool);
        assert!(granted.allows(request), "{event}: {request}");
        for (_, _, other) in requests.iter().filter(|(_, _, other)| other != request) {
            assert!(!granted.allows(other), "{event} allows to {other}");
        }
    }
}

#[test]
fn a_denial_is_explained_from_any_event_of_its_call() {
    let demo = Demo::new();
    let why = demo.json(&["why", "demo:4"]);
    assert_eq!((&why["code"], &why["axis"]), (&"exec-not-granted".into(), &"exec".into()));
    assert_eq!(why["meaning"], "the program may not be started");
    assert_eq!(why["granted"], "exec:spawn:git", "the meet of grant and manifest");
    assert_eq!(why["smallest_grant"], serde_json::json!(["exec:spawn:rm"]));
    assert_eq!(why["call"]["seq"], 3);
    assert_eq!(demo.json(&["why", "3"]), why, "from the call");
    assert_eq!(demo.json(&["why", "5"]), why, "from its end");
    let text = demo.log(&["why", "demo:4", "--format", "text"]);
    assert_eq!(text.exit, 0);
    assert_eq!(
        text.out,
        "denied: exec of \"rm\" is not within the granted authority\n\
         \x20 event    demo:4, 2026-01-01T12:00:00.000Z\n\
         \x20 tool     run\n\
         \x20 code     exec-not-granted: the program may not be started\n\
         \x20 axis     exec\n\
         \x20 asked    exec:spawn:rm\n\
         \x20 granted  exec:spawn:git\n\
         \x20 call     2026-01-01T12:00:00.000Z  demo:3  allow    tool-called  run\n\
         \n\
         the smallest grant that would allow it; the manifest must declare it and the session's grant cover it:\n\
         \n\
         [[tools]]\n\
         name = \"run\"\n\
         capabilities = [\n\
         \x20 \"exec:spawn:rm\",\n\
         ]\n"
    );
}

#[test]
fn what_no_capability_would_allow_says_what_would() {
    let demo = Demo::new();
    let forbidden = demo.json(&["why", "demo:13"]);
    assert_eq!(forbidden["manifest"], serde_json::Value::Null);
    assert!(forbidden["advice"].as_str().unwrap().contains("constraints.forbidden"), "{forbidden}");
    let spent = demo.json(&["why", "demo:17"]);
    assert_eq!((&spent["code"], &spent["axis"]), (&"budget-spent".into(), &"max_calls".into()));
    let fine = demo.log(&["why", "demo:1"]);
    assert_eq!(fine.exit, 2);
    assert!(fine.err.contains("`demo:1` was not denied"), "{}", fine.err);
    assert_eq!(demo.log(&["why", "demo:18"]).exit, 2, "a seal");
}

#[test]
fn hostile_text_never_reaches_the_terminal() {
    let demo = Demo::new();
    let nasty = "x\u{1b}[2J\u{202e}\"]\n[[tools]]\nname = \"other\"\r\u{9b}31m";
    let journal = Journal::open(&demo.dir(), "nasty".parse().unwrap(), Options::default()).unwrap();
    for capability in ["exec:spawn:git", nasty] {
        let event = Event::new(RecordKind::CapabilityDenied).with_decision(Decision::Deny);
        let event =
            event.with_tool(nasty.to_owned()).with_server(nasty.to_owned()).with_reason(nasty.to_owned());
        let code = if capability == nasty { nasty.to_owned() } else { "exec-not-granted".to_owned() };
        journal.append(event.with_code(code).with_capability(capability.to_owned())).unwrap();
    }
    journal.close().unwrap();
    let lines = demo.lines(&["--session", "nasty"]);
    assert_eq!(lines[0]["tool"], nasty, "for programs it is what it is");
    for args in [
        &["tail", "--session", "nasty"][..],
        &["show", "nasty:0"],
        &["show", "nasty:1"],
        &["why", "nasty:0"],
        &["why", "nasty:1"],
        &["stats", "--session", "nasty"],
    ] {
        let ran = demo.log(&[args, &["--format", "text"]].concat());
        assert_eq!((ran.exit, ran.err.as_str()), (0, ""), "{args:?}");
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.out.contains(acts), "{args:?}: {:?}", ran.out);
        assert!(!ran.out.lines().any(|line| line == "[[tools]]"), "{args:?}: {}", ran.out);
    }
    assert_eq!(demo.json(&["why", "nasty:1"])["smallest_grant"], serde_json::json!([]));
}
