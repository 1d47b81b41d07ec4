//! The fixture asks back in the modern era: rounds, states, and only what the client can do.

use serde_json::{Value, json};

use super::client::Server;

fn call(server: &Server, tool: &str, more: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": {} });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.modern("tools/call", &params, &[]).message()
}

fn accepted(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn what_is_missing_is_asked_for_until_it_is_there() {
    let server = Server::fixture();
    let tool = "test_input_required_result_elicitation";
    let wrong = [
        json!({}),
        json!({ "inputResponses": { "other": accepted(&json!({})) } }),
        json!({ "inputResponses": { "user_name": 5 } }),
    ];
    for more in wrong {
        let result = call(&server, tool, &more)["result"].clone();
        assert_eq!(result["resultType"], "input_required", "{more}");
        assert_eq!(result["inputRequests"]["user_name"]["method"], "elicitation/create");
    }
    let answers = json!({ "inputResponses": { "user_name": accepted(&json!({ "name": "Ada" })) } });
    let result = call(&server, tool, &answers)["result"].clone();
    assert_eq!(
        (&result["resultType"], &result["content"][0]["text"]),
        (&json!("complete"), &json!("Hello, Ada!"))
    );
}

#[test]
fn a_state_is_taken_only_as_it_was_given_and_where() {
    let server = Server::fixture();
    let (tool, other) =
        ("test_input_required_result_request_state", "test_input_required_result_tampered_state");
    let state = call(&server, tool, &json!({}))["result"]["requestState"].as_str().unwrap().to_owned();
    let retry = |state: &str| json!({ "requestState": state, "inputResponses": { "confirm": accepted(&json!({ "ok": true })) } });
    assert_eq!(call(&server, tool, &retry(&state))["result"]["content"][0]["text"], "state-ok");
    for (tool, state) in [(tool, format!("{state}x")), (tool, "made-up".to_owned()), (other, state)] {
        assert_eq!(call(&server, tool, &retry(&state))["error"]["code"], -32602, "{tool} {state}");
    }
}

#[test]
fn rounds_follow_each_other() {
    let server = Server::fixture();
    let tool = "test_input_required_result_multi_round";
    let first = call(&server, tool, &json!({}))["result"].clone();
    let answers = json!({ "step1": accepted(&json!({ "name": "Ada" })) });
    let second = call(
        &server,
        tool,
        &json!({ "requestState": first["requestState"], "inputResponses": answers }),
    )["result"]
        .clone();
    assert_eq!(second["inputRequests"]["step2"]["method"], "elicitation/create", "{second}");
    assert_ne!(first["requestState"], second["requestState"]);
    let answers = json!({ "step2": accepted(&json!({ "color": "blue" })) });
    let last = call(
        &server,
        tool,
        &json!({ "requestState": second["requestState"], "inputResponses": answers }),
    )["result"]
        .clone();
    assert_eq!(last["content"][0]["text"], "The favorite color is blue");
}

#[test]
fn a_client_is_not_asked_for_what_it_cannot_do() {
    let server = Server::fixture();
    let refused =
        server.modern("tools/call", &json!({ "name": "test_input_required_result_list_roots" }), &[]);
    assert_eq!((refused.status, refused.code()), (400, json!(-32021)));
    assert!(refused.message()["error"]["data"]["requiredCapabilities"]["roots"].is_object());
}

#[test]
fn lists_change_when_they_are_told_to() {
    let server = Server::fixture();
    let listed = || {
        let tools = server.modern("tools/list", &json!({}), &[]).message()["result"]["tools"].clone();
        tools.as_array().unwrap().iter().any(|tool| tool["name"] == "test_coming_and_going")
    };
    let seen: Vec<_> = (0..3)
        .map(|_| {
            let seen = listed();
            call(&server, "test_trigger_tool_change", &json!({}));
            seen
        })
        .collect();
    assert_eq!(seen, [false, true, false]);
}
