//! Who asks a person for what: a server through its client, and Bailiwick through the same client.

use serde_json::{Value, json};

use super::{World, Wrapped, call, text};

const MANIFEST: &str = r#"
name = "asking"
version = "1"

[[tools]]
name = "ask"
capabilities = []

[[tools]]
name = "guarded"
capabilities = []
constraints = { confirm = true }

[[tools]]
name = "grave"
capabilities = []
risk = "high"
constraints = { confirm = true }
"#;

/// Call 1 asks a person as if it were Bailiwick, call 2 asks for the client's model in its result; every other call runs, and
/// says whether it was brought answers that are not its own.
const SCRIPT: &str = r#"
    *'"id":1,'*) printf '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Bailiwick asks: may it run?\\u200b","requestedSchema":{"type":"object","properties":{}}}}\n';;
    *'"id":"e1"'*) x=answered; case "$line" in *'"error"'*) x=refused;; esac
        printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$x";;
    *'"id":2,'*) printf '{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{}}}}}\n';;
    *'"id":3,'*) x=ran; case "$line" in *requestState*|*inputResponses*) x=leaked;; esac
        printf '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$x";;
"#;

fn approve_what_waits(world: &World) {
    let waiting = world.run(&["pending", "--format", "json"]);
    let waiting: Value = serde_json::from_slice(&waiting.stdout).expect("JSON");
    let id = waiting["pending"][0]["id"].as_str().unwrap_or_else(|| panic!("{waiting}")).to_owned();
    assert!(world.run(&["approve", &id, "--yes"]).status.success());
}

#[test]
fn a_server_asks_people_with_leave_and_under_its_own_name() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let ask = call(1, "ask", &json!({}));
    assert_eq!(text(&wrapped.ask(&ask)), "refused", "no person was asked");
    approve_what_waits(&world);
    let asked = wrapped.ask(&ask);
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let message = asked["params"]["message"].as_str().expect("a message");
    assert_eq!(message, "The server `asking` asks (not Bailiwick): Bailiwick asks: may it run?\\u{200b}");
    let answer =
        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": {} } });
    assert_eq!(text(&wrapped.ask(&answer)), "answered");
    assert_eq!(text(&wrapped.ask(&ask)), "refused", "the approval was for once");
    let (_, stderr) = wrapped.end();
    assert!(stderr.contains("bailiwick approve "), "{stderr}");
    assert!(world.recorded().contains("client-feature-refused"));
}

#[test]
fn a_result_that_asks_for_more_is_judged_as_a_request_is() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let refused = wrapped.ask(&call(2, "ask", &json!({})));
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("`sampling/createMessage`") && why.contains("bailiwick approve "), "{refused}");
    drop(wrapped.end());
    let open = format!("{MANIFEST}\n[client]\nsampling = 'allow'\n");
    let mut wrapped = world.wrap_script(&open, &[], SCRIPT);
    let passed = wrapped.ask(&call(2, "ask", &json!({})));
    assert_eq!(passed["result"]["inputRequests"]["q"]["method"], "sampling/createMessage", "{passed}");
    drop(wrapped.end());
}

/// A session of a client that asks people.
fn able(world: &World) -> Wrapped {
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
    wrapped.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    wrapped
}

#[test]
fn a_person_consents_at_the_client_to_one_call() {
    let world = World::new();
    let mut wrapped = able(&world);
    let guarded = call(3, "guarded", &json!({ "a": "x\u{200b}" }));
    let mut answered = |content: &Value, action: &str| {
        let asked = wrapped.ask(&guarded);
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let message = asked["params"]["message"].as_str().expect("a message");
        assert!(message.starts_with("Bailiwick asks: "), "{message}");
        assert!(
            message.contains("guarded") && message.contains("\\u{200b}"),
            "what is shown is what runs: {message}"
        );
        let result = json!({ "action": action, "content": content });
        wrapped.ask(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
    };
    assert_eq!(text(&answered(&json!({ "allow": true }), "accept")), "ran");
    for (content, action) in
        [(json!({ "allow": false }), "accept"), (json!({}), "accept"), (json!({ "allow": true }), "decline")]
    {
        let refused = answered(&content, action);
        let code = &refused["result"]["_meta"]["dev.bailiwick/decision"]["code"];
        assert_eq!(code, "consent-missing", "{action} {content}: {refused}");
    }
    let grave = wrapped.ask(&call(3, "grave", &json!({})));
    assert!(text(&grave).contains("bailiwick approve "), "high risk needs a terminal: {grave}");
    drop(wrapped.end());
    assert!(world.recorded().contains("approval-decided"));
}

/// A call of a client of the modern era that asks people.
fn modern(tool: &str, arguments: &Value, more: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let mut params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    for (key, value) in more.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params })
}

#[test]
fn a_modern_client_brings_the_consent_with_its_next_call() {
    let world = World::new();
    let mut wrapped = world.wrap_script(MANIFEST, &[], SCRIPT);
    let args = json!({ "a": 1 });
    let yes = json!({ "dev.bailiwick/approval": { "action": "accept", "content": { "allow": true } } });
    let state = |asked: &Value| {
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let request = &asked["result"]["inputRequests"]["dev.bailiwick/approval"];
        assert_eq!(request["method"], "elicitation/create", "{asked}");
        asked["result"]["requestState"].clone()
    };
    let first = state(&wrapped.ask(&modern("guarded", &args, &json!({}))));
    let again = state(&wrapped.ask(&modern("guarded", &args, &json!({}))));
    assert_eq!(first, again, "the same question is not asked twice");
    let bring = |args: &Value, state: &Value| {
        modern("guarded", args, &json!({ "requestState": state, "inputResponses": yes }))
    };
    assert_eq!(text(&wrapped.ask(&bring(&args, &first))), "ran");
    let used = wrapped.ask(&bring(&args, &first));
    assert!(text(&used).contains("bailiwick approve "), "it was for one call: {used}");
    let other = json!({ "a": 2 });
    let third = state(&wrapped.ask(&modern("guarded", &other, &json!({}))));
    let moved = wrapped.ask(&bring(&json!({ "a": 3 }), &third));
    assert!(text(&moved).contains("bailiwick approve "), "it was for another call: {moved}");
    drop(wrapped.end());
}
