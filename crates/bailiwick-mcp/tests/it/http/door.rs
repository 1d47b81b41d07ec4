//! Who may come in.

use bailiwick_door::{Limits, ListenFault, Listening};
use serde_json::json;

use super::client::Server;

fn discover(server: &Server, headers: &[(&str, &str)]) -> u16 {
    server.modern("server/discover", &json!({}), headers).status
}

#[test]
fn only_the_loopback_interface_is_listened_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "10.0.0.1:80"] {
        let refused = runtime.block_on(Listening::bind(address.parse().unwrap()));
        assert!(matches!(refused, Err(ListenFault::NotLoopback(_))), "{address}");
    }
}

#[test]
fn a_client_with_the_token_comes_in() {
    let server = Server::start(Limits::default());
    assert_eq!(discover(&server, &[]), 200);
    let host = format!("localhost:{}", server.port);
    let origin = format!("http://{host}");
    assert_eq!(discover(&server, &[("host", &host), ("origin", &origin)]), 200);
}

#[test]
fn a_page_that_was_rebound_to_this_machine_does_not() {
    let server = Server::start(Limits::default());
    let (other_port, ours) = (format!("localhost:{}", server.port ^ 1), format!("127.0.0.1:{}", server.port));
    let evil = format!("evil.example:{}", server.port);
    for host in ["evil.example", &evil, &other_port, "localhost", "0.0.0.0"] {
        assert_eq!(discover(&server, &[("host", host)]), 403, "{host}, with the token");
        assert_eq!(discover(&server, &[("host", host), ("authorization", "")]), 403, "{host}, without");
    }
    assert_eq!(discover(&server, &[("host", &ours), ("host", "evil.example")]), 403, "two hosts");
    for origin in ["http://evil.example", "null", "https://localhost", "http://localhost:5173"] {
        assert_eq!(discover(&server, &[("origin", origin)]), 403, "{origin}");
    }
    let absolute = server.head("POST", &[]).replace("/mcp", "http://evil.example/mcp");
    assert_eq!(server.raw(format!("{absolute}content-length: 2\r\n\r\n{{}}").as_bytes()).status, 403);
}

#[test]
fn a_client_without_the_token_does_not() {
    let server = Server::start(Limits::default());
    let short = server.token.split_at(63).0;
    let (basic, cut, longer) =
        (format!("Basic {}", server.token), format!("Bearer {short}"), format!("Bearer {}0", server.token));
    for value in ["", "Bearer", "Bearer x", &basic, &cut, &longer] {
        let refused = server.modern("server/discover", &json!({}), &[("authorization", value)]);
        assert_eq!(refused.status, 401, "{value}");
        assert_eq!(refused.header("www-authenticate"), Some("bearer"));
        assert_eq!(refused.header("connection"), Some("close"));
        assert!(!refused.body.contains(&server.token) && !refused.head.contains(&server.token));
    }
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        assert_eq!(server.send(method, &[("authorization", "")], "").status, 401, "{method}");
    }
    let elsewhere = server.head("POST", &[("authorization", "")]).replace("/mcp", "/");
    assert_eq!(server.raw(format!("{elsewhere}\r\n").as_bytes()).status, 401, "paths are not told either");
}

#[test]
fn only_one_path_is_served() {
    let server = Server::start(Limits::default());
    for path in ["/", "/mcp/", "/mcp2", "/.well-known/oauth-protected-resource"] {
        let head = server.head("POST", &[]).replacen("/mcp", path, 1);
        assert_eq!(
            server.raw(format!("{head}content-length: 2\r\n\r\n{{}}").as_bytes()).status,
            404,
            "{path}"
        );
    }
}

#[test]
fn credentials_reach_no_handler() {
    let server = Server::start(Limits::default());
    let call = json!({ "name": "headers", "arguments": {} });
    let headers = [("cookie", "sweet"), ("proxy-authorization", "Basic x"), ("x-plain", "seen")];
    let reply = server.modern("tools/call", &call, &headers);
    assert_eq!(reply.status, 200);
    let seen = reply.message()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(seen.contains("x-plain"), "{seen}");
    for secret in ["authorization", server.token.as_str(), "cookie", "sweet"] {
        assert!(!seen.contains(secret), "{secret} in {seen}");
    }
}
