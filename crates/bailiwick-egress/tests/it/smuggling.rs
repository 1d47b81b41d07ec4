//! Requests that servers and proxies read in several ways.

use std::io::{Read as _, Write as _};

use crate::servers;
use crate::world::{World, in_world, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";

fn world(grants: &[&str]) -> World {
    World::new(grants, &[("a.test", PUBLIC)])
}

#[test]
fn a_head_that_can_be_read_in_two_ways_never_arrives() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:connect:a.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    let inner = "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for fields in [
        // Names that gateways take for the same.
        "Host: a.test\r\nContent_Length: 5\r\n",
        "Host: a.test\r\nTransfer_Encoding: chunked\r\n",
        "Host: a.test\r\nContent-Length: 5\r\nContent_Length: 60\r\n",
        "Host: a.test\r\nUPGRADE: h2c\r\n",
        // Fields that a proxy is told to drop.
        "Host: a.test\r\nConnection: close, Host\r\n",
        "Host: a.test\r\nConnection: content-length\r\nContent-Length: 5\r\n",
        "Host: a.test\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
        "Host: a.test\r\nConnection: keep-alive\r\nConnection: host\r\n",
        // Codings that some servers do not see.
        "Host: a.test\r\nTransfer-Encoding: chunked, chunked\r\n",
        "Host: a.test\r\nTransfer-Encoding: chunked, identity\r\n",
        "Host: a.test\r\nTransfer-Encoding: \x0bchunked\r\n",
        "Host: a.test\r\nTransfer-Encoding: chunked;q=1\r\n",
        "Host: a.test\r\nTransfer-Encoding:\r\n chunked\r\n",
        "Host: a.test\r\n Transfer-Encoding: chunked\r\n",
        "Host: a.test\r\nTransfer-Encoding\x0b: chunked\r\n",
        "Host: a.test\r\n: chunked\r\n",
        "Host: a.test\r\nX: a\0b\r\n",
        "Host: a.test\r\nContent-Length: 5 5\r\n",
        "Host: a.test\r\nContent-Length: 5,\r\n",
        "Host: a.test\r\nContent-Length: \t5\x0c\r\n",
        // Hosts.
        "Host: a.test\r\nHost:\r\n",
        "Host: a.test evil.test\r\n",
        "Host: a.test#@evil.test\r\n",
        "Host: a.test\\@evil.test\r\n",
        "Host: a.test:80@evil.test\r\n",
        "Host: a.test%00.evil.test\r\n",
        "Host: evil.test\r\nX-Forwarded-Host: a.test\r\n",
    ] {
        let request = format!("POST / HTTP/1.1\r\n{fields}\r\n{inner}");
        world.exchange("a.test", 80, request.as_bytes());
        assert_eq!(seen.count(), 0, "{fields:?}: {}", seen.text());
    }
    for line in [
        "GET /\r\n",
        "GET / HTTP/1.1 HTTP/1.1\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET\t/ HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\r\n",
        "\r\nGET / HTTP/1.1\r\n",
        " GET / HTTP/1.1\r\n",
        "GET http://a.test@evil.test/ HTTP/1.1\r\n",
        "GET http://a.test\\.evil.test/ HTTP/1.1\r\n",
        "GET http:/evil.test/ HTTP/1.1\r\n",
        "GET //evil.test/ HTTP/1.1 \r\n",
        "GET https://a.test/ HTTP/1.1\r\n",
        "GET a.test:80 HTTP/1.1\r\n",
        "GET * HTTP/1.1\r\n",
        "GET /\u{e9} HTTP/1.1\r\n",
        "GET / HTTP/2.0\r\n",
        "GET / ICAP/1.0\r\n",
    ] {
        let request = format!("{line}Host: a.test\r\n\r\n");
        world.exchange("a.test", 80, request.as_bytes());
        assert_eq!(seen.count(), 0, "{line:?}: {}", seen.text());
    }
}

#[test]
fn what_follows_a_request_is_a_request() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:connect:a.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    let chunked = "POST /one HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let length = "POST /one HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n";
    let hidden = "GET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for said in [
        format!("{length}\r\nbody{hidden}"),
        format!("{length}Expect: 100-continue\r\n\r\nbody{hidden}"),
        format!("{length}Connection: close\r\n\r\nbody{hidden}"),
        format!("{length}\r\nbody\r\n{hidden}"),
        format!("{length}\r\nbodyPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n/two"),
        format!("{length}\r\nbodyCONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n/two"),
        format!("{length}\r\nbodyGET /two HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\n\r\n"),
        format!("{length}\r\nbody\x16\x03\x01\x00\x05/two."),
        format!("{chunked}0\r\n\r\n{hidden}"),
        format!("{chunked}1;x=\"\r\n\"\r\na\r\n0\r\n\r\n{hidden}"),
        format!("{chunked}1\r\naa\r\n0\r\n\r\n{hidden}"),
        format!("{chunked}01\n a\r\n0\r\n\r\n{hidden}"),
        format!("{chunked}0\r\nContent-Length: 99\r\n\r\n{hidden}"),
        format!("{chunked}0\r\n{hidden}"),
        format!("{chunked}10000000000000001\r\na\r\n0\r\n\r\n{hidden}"),
        format!("{chunked}0_0\r\n\r\n{hidden}"),
    ] {
        world.exchange("a.test", 80, said.as_bytes());
        assert!(!seen.text().contains("two"), "{said}");
    }
}

#[test]
fn a_rule_for_some_paths_lets_through_what_every_server_reads_there() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:http:GET,OPTIONS@http://a.test/api/**"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    for target in [
        "/api/../admin",
        "/api/..;/admin",
        "/api/..;x=y/admin",
        "/api;x/../admin",
        "/api/;/admin",
        "/api/a;b=c",
        "/api/%2e%2e/admin",
        "/api/.%2E/admin",
        "/api/..%2fadmin",
        "/api/..%5cadmin",
        "/api/..\\admin",
        "/api/..%3b/admin",
        "/api/%252e%252e/admin",
        "/api/%25%32%65/admin",
        "/api/%c0%ae%c0%ae/admin",
        "/api/%e0%80%ae/admin",
        "/api/%u002e%u002e/admin",
        "/api/%EF%BC%8E%EF%BC%8E/admin",
        "/api/%00/../admin",
        "/api/.%09./admin",
        "/api/x%0d%0ay",
        "/api/..%20/admin",
        "/api/.../admin",
        "/api/x./admin",
        "/api/x%20",
        "/api//admin",
        "//api/x",
        "/api/./x",
        "/api/x%3f/../admin",
        "/api/x%23",
        "/%61pi/x",
        "/api/%zz",
        "http://a.test/api/..;/admin",
        "http://a.test:80/api/%2e%2e/admin",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let answer = String::from_utf8_lossy(&world.exchange("a.test", 80, request.as_bytes())).into_owned();
        assert!(answer.contains("Bailiwick-Code: net-request-ambiguous"), "{target}: {answer}");
        assert!(answer.contains("granting net:http:GET@http://a.test\n"), "{target}: {answer}");
    }
    let asterisk = world.exchange("a.test", 80, b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(String::from_utf8_lossy(&asterisk).contains("net-request-ambiguous"));
    for field in [
        "X-HTTP-Method-Override: DELETE",
        "x-http-method: DELETE",
        "X-Method-Override: PUT",
        "X-Original-URL: /admin",
        "X_Original_URL: /admin",
        "X-Rewrite-URL: /admin",
    ] {
        let request = format!("GET /api/x HTTP/1.1\r\nHost: a.test\r\n{field}\r\n\r\n");
        let answer = String::from_utf8_lossy(&world.exchange("a.test", 80, request.as_bytes())).into_owned();
        assert!(answer.contains("Bailiwick-Code: net-request-ambiguous"), "{field}: {answer}");
    }
    assert_eq!(seen.count(), 0, "{}", seen.text());
    let mut stream = world.connect("a.test", 80);
    for target in ["/api/x?y=/../;z", "/api/caf%C3%A9/a%20b/", "http://a.test/api/v1/x:run/@me", "/api"] {
        stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n").as_bytes()).unwrap();
        stream.read_exact(&mut [0; 43]).unwrap();
    }
    stream.write_all(b"GET /api/..;/admin HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    assert_eq!(read_all(&mut stream), b"", "the next request on the same connection");
    assert!(!seen.text().contains("admin"));
}
