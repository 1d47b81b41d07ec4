//! A call that waits, on one machine, and a person who answers it on another.

use serde_json::json;

use super::Fleet;
use crate::wrap::{call, text};

const MANIFEST: &str = r#"
name = "guarded"
version = "1"

[[tools]]
name = "free"
capabilities = []

[[tools]]
name = "asks"
capabilities = []
constraints = { confirm = true }
"#;

#[test]
fn a_call_passes_once_after_an_approver_of_the_fleet_allowed_it() {
    let Some(fleet) = Fleet::start() else { return };
    let (machine, approver) = (fleet.member("machine"), fleet.member("approver"));
    let mut wrapped = machine.wrap(MANIFEST);
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran", "what asks no one asks no hub");
    let asked = call(2, "asks", &json!({ "note": "hello", "password": "hunter2-hunter2" }));
    wrapped.send(&asked);
    let waiting = fleet.waiting(&approver);
    let (request, id) = (&waiting["request"], waiting["request"]["id"].as_str().unwrap());
    assert_eq!((&request["server"], &request["tool"]), (&json!("guarded"), &json!("asks")));
    assert_eq!(request["arguments"], json!({ "note": "hello", "password": "[redacted]" }));
    assert_eq!(waiting["machine"], machine.id());
    let here = machine.json(&["pending", "--format", "json"]);
    assert_eq!(here["pending"], json!([]), "nothing on this machine can answer: {here}");
    approver.prints(&["fleet", "approve", id, "--yes"]);
    assert_eq!(text(&wrapped.next()), "ran");

    // The same call again is another question.
    wrapped.send(&asked);
    let second = fleet.waiting(&approver);
    let again = second["request"]["id"].as_str().unwrap();
    assert_ne!(again, id);
    let why = approver.refused(1, &["fleet", "approve", id, "--yes"]);
    assert!(why.contains("no call waits"), "{why}");
    approver.prints(&["fleet", "approve", again, "--deny", "--remark", "not on a Friday"]);
    let refused = wrapped.next();
    let (code, why) = (&refused["result"]["_meta"]["dev.bailiwick/decision"]["code"], text(&refused));
    assert_eq!(code, "consent-missing", "{refused}");
    assert!(why.contains("not on a Friday") && why.contains(&approver.id()), "{why}");
    drop(wrapped.end());
    let audit = fleet.admin.json(&["fleet", "audit", "--format", "json"]);
    let answers = audit["changes"].as_array().unwrap().iter().filter(|row| row["action"] == "answer");
    assert_eq!(answers.count(), 2, "{audit}");
}

/// Call 1 asks the client's person, call 2 asks for the client's model in its result, call 4 asks for it five times at once.
const ASKS_ITS_CLIENT: &str = r#"
    *'"id":1,'*tools/call*) printf '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Which one?","requestedSchema":{"type":"object","properties":{}}}}\n';;
    *'"id":"e1"'*) x=answered; case "$line" in *'"error"'*) x=refused;; esac
        printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$x";;
    *'"id":2,'*tools/call*) printf '{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{}}}}}\n';;
    *'"id":4,'*tools/call*) for n in 1 2 3 4 5; do
        printf '{"jsonrpc":"2.0","id":"s%s","method":"sampling/createMessage","params":{"n":%s}}\n' "$n" "$n"; done;;
    *'"id":"s5"'*) x=asked; case "$line" in *'wait already'*) x=refused;; esac
        printf '{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$x";;
"#;

#[test]
fn what_a_server_asks_its_client_for_is_asked_at_the_hub_and_holds_up_nothing_else() {
    let Some(fleet) = Fleet::start() else { return };
    let (machine, approver) = (fleet.member("machine"), fleet.member("approver"));
    let manifest = format!("{MANIFEST}\n[client]\nelicitation = 'ask'\nsampling = 'ask'\n");
    let mut wrapped = machine.wrap_script(&manifest, ASKS_ITS_CLIENT);
    wrapped.initialize();
    let answered = |allow: bool| {
        let waiting = fleet.waiting(&approver);
        let id = waiting["request"]["id"].as_str().unwrap().to_owned();
        let here = machine.json(&["pending", "--format", "json"]);
        assert_eq!(here["pending"], json!([]), "nothing on this machine can answer: {here}");
        approver.prints(&["fleet", "approve", &id, if allow { "--yes" } else { "--deny" }]);
        waiting["request"].clone()
    };
    let asks = call(1, "free", &json!({}));
    wrapped.send(&asks);
    let waits = fleet.waiting(&approver);
    assert_eq!(text(&wrapped.ask(&call(7, "free", &json!({})))), "ran", "while it waits: {waits}");
    let request = answered(true);
    assert_eq!((&request["server"], &request["tool"]), (&json!("guarded"), &json!("client:elicitation")));
    assert_eq!(request["arguments"]["message"], "Which one?");
    let asked = wrapped.next();
    assert_eq!(
        asked["params"]["message"], "The server `guarded` asks (not Bailiwick): Which one?",
        "{asked}"
    );
    let answer =
        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": {} } });
    assert_eq!(text(&wrapped.ask(&answer)), "answered");
    wrapped.send(&asks);
    answered(false);
    assert_eq!(text(&wrapped.next()), "refused", "the answer before was for once");

    let inputs = call(2, "free", &json!({}));
    wrapped.send(&inputs);
    assert_eq!(answered(true)["tool"], "client:sampling");
    let passed = wrapped.next();
    assert_eq!(passed["result"]["inputRequests"]["q"]["method"], "sampling/createMessage", "{passed}");
    wrapped.send(&inputs);
    answered(false);
    let refused = wrapped.next();
    assert!(
        refused["error"]["message"].as_str().unwrap_or_default().contains("of the fleet refused it"),
        "{refused}"
    );
    assert_eq!(text(&wrapped.ask(&call(4, "free", &json!({})))), "refused", "few wait at once");
    // A client that goes while a person is asked ends the server.
    wrapped.send(&inputs);
    drop(wrapped.end());
}

#[test]
fn without_a_hub_what_needs_one_is_refused_and_all_else_goes_on() {
    let Some(mut fleet) = Fleet::start() else { return };
    let machine = fleet.member("machine");
    fleet.kill_hub();
    let mut wrapped = machine.wrap(MANIFEST);
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "free", &json!({})))), "ran");
    let refused = wrapped.ask(&call(2, "asks", &json!({})));
    assert_eq!(refused["result"]["_meta"]["dev.bailiwick/decision"]["code"], "consent-missing", "{refused}");
    let why = text(&refused);
    assert!(why.contains("no hub of the fleet answers"), "{why}");
    assert_eq!(text(&wrapped.ask(&call(3, "free", &json!({})))), "ran", "and enforcement goes on");
    drop(wrapped.end());
    let status = machine.run(&["fleet", "status"]);
    assert_eq!(status.status.code(), Some(1), "{}", String::from_utf8_lossy(&status.stdout));
    // A hub that comes back is asked again.
    fleet.start_hub();
    assert!(machine.prints(&["fleet", "status"]).contains("a hub answers"));
}
