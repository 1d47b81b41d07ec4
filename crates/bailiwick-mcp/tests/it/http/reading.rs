//! What is not a message of the protocol, and how it is answered.

use bailiwick_door::Limits;
use serde_json::json;

use super::client::{MODERN, Server, modern_body};

const DISCOVER: [(&str, &str); 2] = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];

#[test]
fn only_json_is_read() {
    let server = Server::start(Limits::default());
    let body = modern_body("server/discover", &json!({})).to_string();
    let with =
        |kind: &str| server.send("POST", &[&DISCOVER[..], &[("content-type", kind)]].concat(), &body).status;
    for kind in ["application/json", "application/json; charset=utf-8"] {
        assert_eq!(with(kind), 200, "{kind}");
    }
    for kind in
        ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/json", "json"]
    {
        assert_eq!(with(kind), 415, "{kind}");
    }
    let twice =
        [&DISCOVER[..], &[("content-type", "application/json"), ("content-type", "text/plain")]].concat();
    assert_eq!(server.send("POST", &twice, &body).status, 415);
}

#[test]
fn a_client_has_to_accept_what_it_gets() {
    let server = Server::start(Limits::default());
    for accept in ["", "application/json", "text/event-stream", "text/html"] {
        assert_eq!(
            server.modern("server/discover", &json!({}), &[("accept", accept)]).status,
            406,
            "{accept}"
        );
    }
    assert_eq!(server.send("GET", &[("accept", "application/json")], "").status, 406);
}

#[test]
fn what_is_no_message_gets_the_code_that_says_so() {
    let server = Server::start(Limits::default());
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}", "[".repeat(100_000));
    for body in ["", "{", "nonsense", "{\"jsonrpc\": \"2.0\",}", "\u{feff}{}", deep.as_str()] {
        let refused = server.send("POST", &[], body);
        assert_eq!(
            (refused.status, refused.code()),
            (400, json!(-32700)),
            "{}",
            body.chars().take(40).collect::<String>()
        );
    }
    let bodies = [
        "[]",
        "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]",
        "3",
        "null",
        "\"text\"",
        "{}",
        "{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"ping\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": 5}",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\", \"method\": \"tools/call\"}",
    ];
    for body in bodies {
        let refused = server.send("POST", &[], body);
        assert_eq!(
            (refused.status, refused.code()),
            (400, json!(-32600)),
            "{}",
            body.chars().take(60).collect::<String>()
        );
    }
    for params in [json!([]), json!({}), json!({ "name": 5 })] {
        let call = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params });
        let refused = server.post(&[], &call);
        assert_eq!(
            (refused.status, refused.code(), &refused.message()["id"]),
            (400, json!(-32602), &json!(8))
        );
    }
    assert_eq!(server.modern("server/discover", &json!({}), &[]).status, 200, "and it goes on");
}

#[test]
fn other_methods_of_http_are_refused() {
    let server = Server::start(Limits::default());
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"] {
        let refused = server.send(method, &[], "");
        assert_eq!(refused.status, 405, "{method}");
        assert_eq!(refused.header("allow"), Some("get, post, delete"));
        assert_eq!(refused.header("access-control-allow-origin"), None);
    }
}
