//! What a client that was talked into it sends, in every form that came to mind: what reaches the server was allowed.

use serde_json::{Value, json};

use super::{Relayed, run};

const MANIFEST: &str = r#"
name = "notes"
version = "1"

[[tools]]
name = "read"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "resources/read"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "resources/subscribe"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "subscriptions/listen"
capabilities = ["fs:read:/notes/**"]

[[tools]]
name = "completion/complete"
capabilities = ["fs:read:/notes/**"]
"#;

/// The lines that reach the server of what is sent.
async fn arrived_of(relayed: &mut Relayed, line: impl AsRef<[u8]>) -> Vec<String> {
    relayed.send(line).await;
    relayed.send(r#"{"jsonrpc":"2.0","id":"fence","method":"ping"}"#).await;
    let mut arrived = Vec::new();
    loop {
        let next = relayed.arrived().await;
        if next.contains("\"fence\"") {
            break;
        }
        arrived.push(next);
    }
    relayed.serve(r#"{"jsonrpc":"2.0","id":"fence","result":{}}"#).await;
    while !relayed.heard().await.contains("\"fence\"") {}
    arrived
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Addresses of one file that is not granted.
const OUTSIDE: [&str; 20] = [
    "file:///etc/shadow",
    "FILE:///etc/shadow",
    "file:/etc/shadow",
    "file://localhost/etc/shadow",
    "file://LOCALHOST/etc/shadow",
    "file:///notes/../etc/shadow",
    "file:///notes/%2e%2e/etc/shadow",
    "file:///notes/%2E%2e%2fetc/shadow",
    "file:///%65tc/shadow",
    "file:////etc/shadow",
    "file:///./etc/shadow",
    "file:///notes/a/../../etc/shadow",
    " file:///etc/shadow",
    "file\t:///etc/shadow",
    "\u{1}file:///etc/shadow",
    "file:///notes/.\t./etc/shadow",
    "file:///notes/..\\..\\etc/shadow",
    "file:\\\\\\etc\\shadow",
    "/etc/shadow",
    "file:///etc/shadow?x=/notes/a",
];

#[test]
fn an_address_of_a_file_that_is_not_granted_reaches_no_server_however_it_is_written() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let mut id = 0;
        for uri in OUTSIDE {
            for (method, params) in [
                ("resources/read", json!({ "uri": uri })),
                ("resources/subscribe", json!({ "uri": uri })),
                ("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": [uri] } })),
                ("tools/call", json!({ "name": "read", "arguments": { "uri": uri } })),
                (
                    "completion/complete",
                    json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "a", "value": "" } }),
                ),
            ] {
                id += 1;
                let arrived = arrived_of(&mut relayed, request(&json!(id), method, &params)).await;
                assert_eq!(arrived, Vec::<String>::new(), "{method} {uri}");
            }
        }
        let granted = request(&json!("granted"), "resources/read", &json!({ "uri": "file:///notes/a" }));
        assert_eq!(arrived_of(&mut relayed, &granted).await, [granted]);
    });
}

#[test]
fn ids_that_two_programs_could_take_for_different_ones_are_refused() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        for id in
            ["1.0", "1e0", "-0", "1E2", "true", "null", "[1]", "{}", "9007199254740993", "1e400", "0x1", "01"]
        {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read","arguments":{{}}}}}}"#
            );
            assert_eq!(arrived_of(&mut relayed, &line).await, Vec::<String>::new(), "{id}");
        }
        let long = request(&json!("x".repeat(1025)), "ping", &json!({}));
        assert_eq!(arrived_of(&mut relayed, &long).await, Vec::<String>::new());
        // The same id, in another spelling, while the first waits.
        let first = request(&json!("a"), "tools/call", &json!({ "name": "read", "arguments": {} }));
        assert_eq!(arrived_of(&mut relayed, &first).await.len(), 1);
        let again = first.replace("\"a\"", "\"\\u0061\"");
        assert_eq!(arrived_of(&mut relayed, &again).await, Vec::<String>::new());
    });
}

#[test]
fn the_late_answer_to_a_cancelled_call_is_no_answer_to_a_later_one() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let call = |path: &str| {
            request(&json!(1), "tools/call", &json!({ "name": "read", "arguments": { "path": path } }))
        };
        assert_eq!(arrived_of(&mut relayed, call("/notes/a")).await.len(), 1);
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(arrived_of(&mut relayed, cancelled).await.len(), 1);
        assert_eq!(
            arrived_of(&mut relayed, call("/notes/b")).await,
            Vec::<String>::new(),
            "its id may still be answered"
        );
        relayed.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
        assert_eq!(arrived_of(&mut relayed, call("/notes/b")).await.len(), 1);
        relayed.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"second":true}}"#).await;
        assert!(relayed.heard().await.contains("second"));
    });
}

#[test]
fn what_looks_like_another_kind_of_message_is_none() {
    run(async {
        let mut relayed = Relayed::start(MANIFEST);
        let shadow = r#""params":{"name":"read","arguments":{"path":"/etc/shadow"}}"#;
        for line in [
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/call","id":1,{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"method":"tools/call",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":null,"method":"tools/call",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"method":"tools/call",{shadow}}}}}"#),
            format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"tools/call",{shadow}}}]"#),
            format!(r#"[[{{"jsonrpc":"2.0","id":1,"method":"tools/call",{shadow}}}]]"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":["tools/call"],{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call ",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"Tools/Call",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools//call",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"1.0","id":1,"method":"tools/call",{shadow}}}"#),
            format!(r#"{{"id":1,"method":"tools/call",{shadow}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{}}}}{{"jsonrpc":"2.0","id":2,"method":"tools/call",{shadow}}}"#),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["read",{"path":"/etc/shadow"}]}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":[{"path":"/etc/shadow"}]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":"{\"path\":\"/etc/shadow\"}"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["read"],"arguments":{"path":"/etc/shadow"}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"resources/read","arguments":{"uri":"file:///etc/shadow"}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.to_owned(),
        ] {
            assert_eq!(arrived_of(&mut relayed, &line).await, Vec::<String>::new(), "{line}");
        }
    });
}
