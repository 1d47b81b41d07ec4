//! Both eras of the protocol on one server.

use std::sync::atomic::Ordering;

use bailiwick_door::Limits;
use serde_json::json;

use super::client::{MODERN, Server};

#[test]
fn the_legacy_era_opens_a_session() {
    let server = Server::start(Limits::default());
    let reply = server.initialize();
    assert_eq!(reply.message()["result"]["protocolVersion"], "2025-11-25");
    let session = server.open_session();
    let list = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    let answer =
        server.post(&[("mcp-session-id", &session), ("mcp-protocol-version", "2025-11-25")], &list).message();
    assert_eq!((&answer["id"], &answer["result"]["tools"]), (&json!("a"), &json!([])));
    assert_eq!(answer["result"].get("resultType"), None, "that is the other era's");
    let unknown = json!({ "jsonrpc": "2.0", "id": 3, "method": "no/such" });
    let answer = server.post(&[("mcp-session-id", &session)], &unknown);
    assert_eq!((answer.status, answer.code()), (200, json!(-32601)));
}

#[test]
fn the_modern_era_needs_none() {
    let server = Server::start(Limits::default());
    let reply = server.modern("server/discover", &json!({}), &[]);
    let versions = reply.message()["result"]["supportedVersions"].clone();
    assert!(versions.as_array().unwrap().contains(&json!(MODERN)), "{versions}");
    assert_eq!(reply.header("mcp-session-id"), None);
    let list = server.modern("tools/list", &json!({}), &[]).message();
    assert!(list["result"]["ttlMs"].is_number() && list["result"]["cacheScope"].is_string(), "{list}");
}

#[test]
fn headers_have_to_repeat_the_body() {
    let server = Server::fixture();
    let text = json!({ "name": "test_simple_text", "arguments": {} });
    let region = json!({ "name": "test_custom_headers", "arguments": { "region": "here" } });
    assert_eq!(server.modern("tools/call", &text, &[]).status, 200);
    assert_eq!(server.modern("tools/call", &region, &[("mcp-param-region", "here")]).status, 200);
    let wrong = [
        server.modern("tools/call", &text, &[("mcp-method", "tools/list")]),
        server.modern("tools/call", &text, &[("mcp-method", "")]),
        server.modern("tools/call", &text, &[("mcp-name", "test_image_content")]),
        server.modern("tools/call", &text, &[("mcp-name", "")]),
        server.modern("tools/call", &text, &[("mcp-protocol-version", "2025-11-25")]),
        server.modern("tools/call", &text, &[("mcp-protocol-version", "")]),
        server.modern("tools/call", &region, &[("mcp-param-region", "there")]),
        server.modern("tools/call", &region, &[]),
        server.modern(
            "resources/read",
            &json!({ "uri": "test://static-text" }),
            &[("mcp-name", "test://other")],
        ),
    ];
    for (index, refused) in wrong.iter().enumerate() {
        assert_eq!((refused.status, refused.code()), (400, json!(-32020)), "{index}: {refused:?}");
    }
}

#[test]
fn what_is_unknown_or_incomplete_has_its_own_status() {
    let server = Server::fixture();
    for method in ["no/such", "ping", "logging/setLevel", "resources/subscribe"] {
        let refused = server.modern(method, &json!({}), &[]);
        assert_eq!((refused.status, refused.code()), (404, json!(-32601)), "{method}");
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let refused = server.post(&headers, &bare);
    assert_eq!((refused.status, refused.code()), (400, json!(-32602)));
    let wrong = server.modern("tools/call", &json!({ "name": 5 }), &[]);
    assert_eq!(wrong.code(), json!(-32602), "{wrong:?}");
    let missing = server.modern("tools/call", &json!({ "name": "no_such", "arguments": {} }), &[]);
    assert_eq!(missing.code(), json!(-32602), "{missing:?}");
}

#[test]
fn a_call_without_an_id_runs_in_neither() {
    let server = Server::start(Limits::default());
    let call =
        json!({ "jsonrpc": "2.0", "method": "tools/call", "params": { "name": "headers", "arguments": {} } });
    let session = server.open_session();
    let legacy = server.post(&[("mcp-session-id", &session)], &call).status;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "headers")];
    let modern = server.post(&headers, &call).status;
    assert_eq!((legacy, modern), (202, 202));
    let real = json!({ "name": "headers", "arguments": {} });
    assert_eq!(server.modern("tools/call", &real, &[]).status, 200);
    assert_eq!(server.mirror.calls.load(Ordering::SeqCst), 1, "only the one that asked for an answer");
}
