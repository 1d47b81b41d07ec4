//! What a question is bound to, and which answers permit a call.

use serde_json::json;

use super::*;
use crate::hub::tests::{hub_at, run, scripted};

fn call(tool: &str, arguments: &[u8]) -> WaitingCall {
    WaitingCall {
        server: "s".to_owned(),
        tool: tool.to_owned(),
        shown: Value::Null,
        arguments_sha256: Hash::sha256(arguments),
        pins: Hash::sha256(b"pins"),
        policy: Hash::sha256(b"policy"),
        reason: String::new(),
    }
}

#[test]
fn a_question_is_bound_to_everything_that_it_is_about() {
    let base = call("t", b"1");
    let others = [
        call("u", b"1"),
        call("t", b"2"),
        WaitingCall { server: "st".to_owned(), tool: String::new(), ..base.clone() },
        WaitingCall { pins: Hash::sha256(b"other"), ..base.clone() },
        WaitingCall { policy: Hash::sha256(b"other"), ..base.clone() },
    ];
    assert_eq!(binding(&base), binding(&WaitingCall { reason: "why".to_owned(), ..base.clone() }));
    for other in others {
        assert_ne!(binding(&base), binding(&other), "{other:?}");
    }
}

#[test]
fn a_reason_is_cut_between_letters() {
    assert_eq!(plain("a\u{1b}[2Jb\n"), "a[2Jb");
    let long = plain(&"ü".repeat(1000));
    assert!(long.len() <= MAX_REASON && long.chars().all(|letter| letter == 'ü'), "{}", long.len());
}
fn allowed(arguments: &[u8]) -> Value {
    let arguments = Hash::sha256(arguments);
    json!({ "status": "allowed", "by": "a1", "arguments_sha256": arguments, "expires_ms": 1 })
}

fn decide(answers: Vec<(u16, Value)>) -> (Result<Decision, HubError>, Vec<String>) {
    let (url, asked) = scripted(answers);
    let desk = ApprovalDesk::new(Arc::new(hub_at(&[url])));
    let decided = run(desk.decide(&call("t", b"1"), Duration::ZERO));
    (decided, asked.try_iter().collect())
}

#[test]
fn only_an_answer_that_was_taken_permits_a_call() {
    let (decided, asked) = decide(vec![(200, allowed(b"1")), (200, allowed(b"1"))]);
    assert_eq!(decided.unwrap(), Decision::Allowed { by: "a1".to_owned() });
    assert!(asked[1].starts_with("POST /v1/approvals/") && asked[1].contains("/take HTTP"), "{asked:?}");
    // Allowed for other arguments, used by another, or not to be taken any more.
    let (decided, _) = decide(vec![(200, allowed(b"1")), (200, allowed(b"2"))]);
    assert_eq!(decided.unwrap(), Decision::Over);
    let used = json!({ "code": "approval-used", "message": "x" });
    let (decided, _) = decide(vec![(200, json!({ "status": "used" })), (409, used)]);
    assert!(matches!(decided, Err(error) if error.code() == Some("approval-used")));
    let (decided, _) = decide(vec![(200, json!({ "status": "expired" }))]);
    assert_eq!(decided.unwrap(), Decision::Over);
}

#[test]
fn a_call_that_is_made_again_asks_the_same_question_until_it_is_answered() {
    let waiting = json!({ "status": "waiting", "expires_ms": 1 });
    let answers = vec![
        (200, waiting.clone()),
        (200, allowed(b"1")),
        (503, json!({ "code": "database-down", "message": "x" })),
        (200, json!({ "status": "used" })),
        (200, allowed(b"1")),
        (200, waiting),
    ];
    let (url, asked) = scripted(answers);
    let desk = ApprovalDesk::new(Arc::new(hub_at(&[url])));
    let call = call("t", b"1");
    let decide = || run(desk.decide(&call, Duration::ZERO));
    assert!(matches!(decide().unwrap(), Decision::Waiting { .. }));
    assert!(matches!(decide(), Err(HubError::Unreachable(_))), "the answer to taking it was lost");
    assert!(matches!(decide().unwrap(), Decision::Allowed { .. }));
    assert!(matches!(decide().unwrap(), Decision::Waiting { .. }));
    let bodies: Vec<Value> = asked
        .try_iter()
        .filter_map(|request| serde_json::from_str(request.split_once("\r\n\r\n")?.1).ok())
        .collect();
    let field = |at: usize, name: &str| bodies[at][name].as_str().map(str::to_owned);
    assert_eq!(field(0, "id"), field(1, "id"));
    assert_eq!((field(2, "nonce"), field(2, "nonce").is_some()), (field(4, "nonce"), true));
    assert_ne!(field(0, "id"), field(5, "id"), "what was answered is not asked about again");
}
