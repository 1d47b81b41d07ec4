//! The legacy era, the modern one, and both in one session.

use serde_json::{Value, json};

use crate::support::{Talk, call, modern};

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[tokio::test]
async fn an_opening_without_anything_is_answered() {
    let mut talk = Talk::start();
    let opened = talk.ask(request(1, "initialize", json!({}))).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(opened["result"]["serverInfo"]["name"], "test");
    assert!(opened["result"]["instructions"].as_str().unwrap().contains("- exec:spawn:echo\n"));
    talk.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    talk.ping().await;
}

#[tokio::test]
async fn a_version_is_agreed_on() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let mut talk = Talk::start();
        let info = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        let opened = talk.ask(request(1, "initialize", info)).await;
        assert_eq!(opened["result"]["protocolVersion"], agreed);
        // Whatever was wished for, the session is a legacy one.
        talk.ping().await;
        let list = talk.ask(request(2, "tools/list", json!({}))).await;
        assert!(
            list["result"].get("ttlMs").is_none() && list["result"].get("resultType").is_none(),
            "{list}"
        );
    }
}

#[tokio::test]
async fn tools_are_listed_with_all_they_say() {
    let mut talk = Talk::start();
    let list = talk.ask(request(1, "tools/list", json!({}))).await;
    let echo = json!({
        "name": "echo",
        "description": "Say it back.",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "outputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": {
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
    });
    assert_eq!(list["result"]["tools"][0], echo);
    let hints = &list["result"]["tools"][1]["annotations"];
    assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(false), &json!(true)));
    let paged = talk.ask(request(2, "tools/list", json!({ "cursor": "x" }))).await;
    assert_eq!(paged["error"]["code"], -32602);
}

#[tokio::test]
async fn a_modern_client_needs_no_opening() {
    let mut talk = Talk::start();
    let found = talk.ask(modern(request(1, "server/discover", json!({})))).await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{found}");
    assert_eq!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
    let list = talk.ask(modern(request(2, "tools/list", json!({})))).await;
    assert_eq!(list["result"]["cacheScope"], "private");
    assert_eq!(
        (&list["result"]["ttlMs"], &list["result"]["resultType"]),
        (&json!(300_000), &json!("complete"))
    );
    let called = talk.ask(modern(call(3, "echo", json!({ "text": "hi" })))).await;
    assert_eq!(called["result"]["structuredContent"], json!({ "text": "hi" }));
    assert_eq!(called["result"]["resultType"], "complete");
    let denied = talk.ask(modern(call(4, "echo", json!({ "text": "rm" })))).await;
    assert_eq!(denied["result"]["isError"], true);
    // The modern era has no ping.
    assert_eq!(talk.ask(modern(request(5, "ping", json!({})))).await["error"]["code"], -32601);
}

#[tokio::test]
async fn each_request_says_its_own_era() {
    let mut talk = Talk::start();
    talk.ask(request(1, "initialize", json!({}))).await;
    let list = talk.ask(modern(request(2, "tools/list", json!({})))).await;
    assert!(list["result"].get("ttlMs").is_some(), "{list}");
    talk.ping().await;
    let list = talk.ask(request(3, "tools/list", json!({}))).await;
    assert!(list["result"].get("ttlMs").is_none(), "{list}");
}

#[tokio::test]
async fn a_modern_request_says_all_it_has_to() {
    let mut talk = Talk::start();
    assert_eq!(talk.ask(request(1, "server/discover", json!({}))).await["error"]["code"], -32602);
    let mut lacking = modern(call(2, "echo", json!({ "text": "hi" })));
    lacking["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(talk.ask(lacking).await["error"]["code"], -32602);
    let mut future = modern(call(3, "echo", json!({ "text": "hi" })));
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let refused = talk.ask(future).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert!(refused["error"]["data"]["supported"].as_array().is_some(), "{refused}");
}

#[tokio::test]
async fn calls_before_an_opening_are_answered() {
    let mut talk = Talk::start();
    talk.ping().await;
    let called = talk.ask(call(1, "echo", json!({ "text": "hi" }))).await;
    assert_eq!(called["result"]["content"][0]["text"], "hi");
    talk.ask(request(2, "initialize", json!({}))).await;
    talk.ping().await;
}

#[tokio::test]
async fn what_the_server_does_not_have_is_an_unknown_method() {
    let mut talk = Talk::start();
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "x" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "file:///etc/passwd" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } }),
        ),
        ("sampling/createMessage", json!({})),
        ("exit", json!({})),
    ] {
        let answer = talk.ask(request(1, method, params)).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    talk.ping().await;
}
