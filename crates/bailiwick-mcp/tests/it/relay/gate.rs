//! What reaches the server, what the client hears, and how both end.

use bailiwick_mcp::relay::Redactor;
use serde_json::json;

use super::{Relayed, run};

const MANIFEST: &str = r#"
name = "notes"
version = "1"

[[tools]]
name = "read"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "once"
capabilities = []
constraints = { max_invocations = 1 }

[[tools]]
name = "marked"
capabilities = ["fs:read:/notes/**"]
arguments = { target = "read" }

[[tools]]
name = "resources/read"
capabilities = ["fs:read:/notes/**"]
"#;

fn call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"id":{id}, "jsonrpc":"2.0","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"x.y/z":1.50}}}}}}"#
    )
}

#[test]
fn what_is_judged_and_what_is_not_pass_byte_for_byte() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let opening = r#"{"params":{"protocolVersion":"2025-11-25","x":1.0e1},"method":"initialize","jsonrpc":"2.0","id":"a"}"#;
        relayed.send(opening).await;
        assert_eq!(relayed.arrived().await, opening);
        let answer =
            r#"{ "result":{"big":12345678901234567890,"f":1.50},"id":"a","jsonrpc":"2.0","vendor":true}"#;
        relayed.serve(answer).await;
        assert_eq!(relayed.heard().await, answer);

        let line = call(7, "read", r#"{"path":"/notes/a","n":1.50}"#);
        relayed.send(&line).await;
        assert_eq!(relayed.arrived().await, line);
        let answer = r#"{"id":7,"result":{"content":[{"type":"text","text":"é"}],"n":1e2},"jsonrpc":"2.0"}"#;
        relayed.serve(answer).await;
        assert_eq!(relayed.heard().await, answer);

        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.10}}"#;
        relayed.serve(note).await;
        assert_eq!(relayed.heard().await, note);
    });
}

#[test]
fn a_denied_call_never_reaches_the_server_and_says_why() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        relayed.send(call(1, "read", r#"{"path":"/etc/shadow"}"#)).await;
        let answer = relayed.answer().await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let decision = &answer["result"]["_meta"]["dev.bailiwick/decision"];
        assert_eq!(decision["code"], "argument-outside-policy", "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("path '/etc/shadow' outside declared filesystem policy"), "{text}");

        relayed.send(call(2, "undeclared", "{}")).await;
        assert_eq!(
            relayed.answer().await["error"],
            json!({ "code": -32602, "message": "Unknown tool: undeclared" })
        );
        relayed.send(call(3, "resources/read", "{}")).await;
        assert_eq!(relayed.answer().await["error"]["code"], -32602);
        relayed.send(r#"{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{}}"#).await;
        assert_eq!(relayed.answer().await["error"]["code"], -32601);
        relayed
            .send(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read","arguments":{}}}"#)
            .await;
        relayed.send(call(5, "marked", r#"{"target":"/etc/shadow"}"#)).await;
        assert_eq!(relayed.answer().await["result"]["isError"], true);
        relayed.send(call(6, "marked", r#"{"Target":"/etc/shadow"}"#)).await;
        assert_eq!(relayed.answer().await["error"]["code"], -32602);

        // The first line that arrives is the first that was allowed.
        let allowed = call(8, "read", r#"{"path":"/notes/b"}"#);
        relayed.send(&allowed).await;
        assert_eq!(relayed.arrived().await, allowed);
    });
}

#[test]
fn resources_are_judged_by_their_entry_and_other_prompts_are_not_there() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let read = |id: u64, uri: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}"}}}}"#)
        };
        relayed.send(read(1, "file:///etc/shadow")).await;
        let answer = relayed.answer().await;
        assert_eq!(
            answer["error"]["data"]["dev.bailiwick/decision"]["code"], "argument-outside-policy",
            "{answer}"
        );
        relayed.send(read(2, "file:///notes/a")).await;
        assert_eq!(relayed.arrived().await, read(2, "file:///notes/a"));
        relayed.send(r#"{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p"}}"#).await;
        assert_eq!(relayed.answer().await["error"]["code"], -32601);
    });
}

#[test]
fn a_list_has_only_declared_tools() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        relayed.send(list).await;
        assert_eq!(relayed.arrived().await, list);
        relayed
            .serve(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","inputSchema":{"x":1.0}},{"name":"evil"},{"name":"resources/read"}]}}"#)
            .await;
        let expected =
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","inputSchema":{"x":1.0}}]}}"#;
        assert_eq!(relayed.heard().await, expected);
    });
}

#[test]
fn a_cancelled_call_is_not_refunded_and_its_late_answer_is_dropped() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        relayed.send(call(1, "once", "{}")).await;
        relayed.arrived().await;
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        relayed.send(cancelled).await;
        assert_eq!(relayed.arrived().await, cancelled);
        relayed.send(call(2, "once", "{}")).await;
        let answer = relayed.answer().await;
        assert_eq!(answer["result"]["_meta"]["dev.bailiwick/decision"]["code"], "tool-too-often", "{answer}");
        relayed.serve(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
        relayed.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
        relayed.arrived().await;
        relayed.serve(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#).await;
        assert_eq!(relayed.answer().await["id"], 3, "the late answer was dropped");
    });
}

#[test]
fn what_a_server_asks_its_client_for_needs_leave() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        relayed.serve(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#).await;
        let refused: serde_json::Value = serde_json::from_str(&relayed.arrived().await).unwrap();
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
        relayed.serve(r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#).await;
        assert_eq!(relayed.answer().await["method"], "roots/list");
        relayed
            .send(r#"{"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///etc"},{"uri":"file:///notes/a"}]}}"#)
            .await;
        let roots: serde_json::Value = serde_json::from_str(&relayed.arrived().await).unwrap();
        assert_eq!(roots["result"]["roots"], json!([{ "uri": "file:///notes/a" }]));
        // The client did not ask for this.
        relayed.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
        relayed.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
        assert!(relayed.arrived().await.contains("ping"));
    });
}

#[test]
fn a_dead_server_answers_everything_that_waits_with_the_reason() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        relayed.send(call(1, "read", "{}")).await;
        relayed.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        relayed.arrived().await;
        relayed.arrived().await;
        let (nothing, _) = tokio::io::duplex(1);
        drop(std::mem::replace(&mut relayed.server, nothing));
        relayed.over.cancelled().await;
        relayed.reason.take().unwrap().send("the server has ended: exit code 3".to_owned()).unwrap();
        let mut ids = Vec::new();
        for _ in 0..2 {
            let answer = relayed.answer().await;
            assert_eq!(answer["error"]["message"], "the server has ended: exit code 3");
            ids.push(answer["id"].clone());
        }
        assert!(ids.contains(&json!(1)) && ids.contains(&json!("p")), "{ids:?}");
        relayed.relay.await.unwrap();
    });
}

#[test]
fn secrets_do_not_leave_in_any_message() {
    run(async {
        let mut relayed = Relayed::with_secrets(MANIFEST, Redactor::new([("TOKEN", "hunter2hunter2")]));
        relayed.send(call(1, "read", "{}")).await;
        relayed.arrived().await;
        relayed.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"it is hunter2\u0068unter2"}]}}"#).await;
        let answer = relayed.answer().await;
        assert_eq!(answer["result"]["content"][0]["text"], "it is [secret TOKEN]");
        relayed
            .serve(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"hunter2hunter2"}}"#)
            .await;
        assert_eq!(relayed.answer().await["params"]["data"], "[secret TOKEN]");
    });
}

#[test]
fn a_result_that_is_too_large_becomes_an_error() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        relayed.send(call(1, "read", "{}")).await;
        relayed.arrived().await;
        let line = format!(r#"{{"jsonrpc":"2.0","result":{{"x":"{}"}},"id":1}}"#, "x".repeat(9 << 20));
        relayed.serve("a banner, not a message").await;
        relayed.serve(&line).await;
        let answer = relayed.answer().await;
        assert!(answer["error"]["message"].as_str().unwrap().contains("more than 8388608"), "{answer}");
    });
}
