//! Who is asked: only hosts that are granted, at addresses that were judged, on every hop.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bailiwick_guard::tools::WebFetch;
use bailiwick_guard::{Registry, Session};
use bailiwick_journal::Options;
use bailiwick_manifest::caveats::{Caveats, Scope};
use serde_json::{Value, json};

use super::world::{Server, dns, fetch, from_loopback, hello, redirect, redirecting, reply};
use bailiwick_testkit::journal::Dir;

fn url(host: &str, port: u16) -> Value {
    json!({ "url": format!("http://{host}:{port}/") })
}

/// Both ends of every special-purpose range, and addresses that hide one.
const SPECIAL: &[&str] = &[
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.0",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.170",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "192.175.48.1",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2620:4f:8000::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
];

#[test]
fn no_special_address_is_reached_by_a_name_or_by_itself() {
    for special in SPECIAL {
        let ip: IpAddr = special.parse().unwrap();
        let tool = || WebFetch::new().with_host("good.test", [ip]);
        for lines in [&["net:connect:*:*"], &["net:connect:good.test:*"]] {
            let error = fetch(tool(), lines, url("good.test", 1)).unwrap_err();
            assert_eq!(error.code(), "net-not-granted", "{special}: {error}");
            assert!(error.to_string().contains("leads to the private address"), "{error}");
        }
        let written = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        let error = fetch(WebFetch::new(), &["net:connect:*:*"], url(&written, 1)).unwrap_err();
        assert_eq!(error.code(), "net-not-granted", "{special}: {error}");
    }
    let public = WebFetch::new().with_host("good.test", ["64:ff9b::101:101".parse().unwrap()]);
    let error = fetch(
        public,
        &["net:connect:good.test:*"],
        json!({ "url": "http://good.test:1/", "timeout_ms": 300 }),
    );
    assert_eq!(error.unwrap_err().code(), "tool-failed", "a public address is dialled");
}

#[test]
fn odd_spellings_are_the_address_they_mean() {
    let server = hello();
    for spelling in [
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ] {
        let error = fetch(WebFetch::new(), &["net:connect:*:*"], url(spelling, server.port)).unwrap_err();
        assert_eq!(error.code(), "net-not-granted", "{spelling}: {error}");
        assert!(error.to_string().contains("granting `net:http:GET@http://127.0.0.1:"), "{error}");
        let page = fetch(WebFetch::new(), &["net:connect:127.0.0.1:*"], url(spelling, server.port)).unwrap();
        assert_eq!(page["markdown"], "hello", "{spelling}");
    }
    assert_eq!(server.heads().len(), 8);
}

#[test]
fn private_addresses_need_their_own_grant() {
    let server = hello();
    let named = || WebFetch::new().with_host("good.test", ["127.0.0.1".parse().unwrap()]);
    let port = server.port;
    let works = |lines: &[&str], host: &str| {
        fetch(named(), lines, url(host, port)).map(|page| page["markdown"].clone())
    };
    for (host, lines) in [
        ("127.0.0.1", &["net:connect:127.0.0.1:*"][..]),
        ("127.0.0.1", &["net:connect:127.0.0.0/8:*"]),
        ("127.0.0.1", &["net:connect:localhost:*"]),
        ("localhost", &["net:connect:localhost:*"]),
        ("good.test", &["net:connect:good.test:*?blockPrivate=false"]),
        ("good.test", &["net:connect:good.test:*", "net:connect:127.0.0.1:*"]),
    ] {
        assert_eq!(works(lines, host).unwrap(), "hello", "{host} {lines:?}");
    }
    for (host, lines) in [
        ("127.0.0.1", &["net:connect:127.0.0.1:1"][..]),
        ("127.0.0.1", &["net:connect:127.0.0.2:*"]),
        ("good.test", &["net:connect:127.0.0.1:*"]),
        ("good.test", &["net:connect:good.test:*"]),
        ("good.test", &["net:connect:good.test:*", "net:connect:localhost:*"]),
        ("good.test", &["net:connect:*.test:*"]),
        ("other.test", &["net:connect:good.test:*?blockPrivate=false"]),
    ] {
        assert_eq!(works(lines, host).unwrap_err().code(), "net-not-granted", "{host} {lines:?}");
    }
}

#[test]
fn everything_granted_at_once_names_no_private_address() {
    let server = hello();
    let dir = Dir::new();
    let tool = WebFetch::new().with_host("good.test", ["127.0.0.1".parse().unwrap()]);
    let registry =
        Registry::builder(dir.open("w", Options::default()), Session::new("/")).tool(tool).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let caveats = Caveats { net: Scope::All, ..Caveats::top() };
    for host in ["127.0.0.1", "good.test", "localhost", "[::1]"] {
        let asked = registry.dispatch("web_fetch", url(host, server.port), &caveats);
        assert_eq!(runtime.block_on(asked).unwrap_err().code(), "net-not-granted", "{host}");
    }
    assert!(server.heads().is_empty());
}

#[test]
fn methods_and_paths_of_a_grant_hold() {
    let server = hello();
    let line = format!("net:http:GET@http://127.0.0.1:{}/docs/**", server.port);
    let asked = |path: &str, method: &str| {
        let url = format!("http://127.0.0.1:{}{path}", server.port);
        fetch(WebFetch::new(), &[&line], json!({ "url": url, "method": method }))
            .map_err(|error| error.code())
    };
    assert!(asked("/docs/a?q=1", "GET").is_ok());
    for (path, method) in [
        ("/docs/a", "HEAD"),
        ("/", "GET"),
        ("/docsx", "GET"),
        ("/docs/../x", "GET"),
        ("/docs/%2e%2e/x", "GET"),
        ("/docs/a%2f..%2f..%2fx", "GET"),
        ("/docs//x", "GET"),
        ("/docs/%5c..%5cx", "GET"),
        ("/docs/..;/x", "GET"),
        ("/docs/a;x=y", "GET"),
        ("/docs/%3b/x", "GET"),
        ("/docs/%252e%252e/x", "GET"),
        ("/docs/a.", "GET"),
        ("/docs/a%20", "GET"),
        ("/docs/%EF%BC%8E%EF%BC%8E/x", "GET"),
        ("/%64ocs/x", "GET"),
    ] {
        assert_eq!(asked(path, method).unwrap_err(), "net-not-granted", "{method} {path}");
    }
    assert_eq!(server.heads().len(), 1);
    assert!(from_loopback(&server, "/a%2fb", json!({})).is_ok(), "any path, where the host is granted");
    let every = format!("net:http:GET@http://127.0.0.1:{}", server.port);
    let url = format!("http://127.0.0.1:{}/docs/..;/x", server.port);
    assert!(
        fetch(WebFetch::new(), &[&every], json!({ "url": url })).is_ok(),
        "any path, where the rule has none"
    );
    let told = fetch(WebFetch::new(), &[&line], json!({ "url": url })).unwrap_err().to_string();
    assert!(told.contains("a rule for some paths cannot judge it: it has a component of dots"), "{told}");
    assert!(told.contains(&format!("granting `{every}`")), "{told}");
}

#[test]
fn the_denial_names_the_smallest_grant() {
    let error = fetch(WebFetch::new(), &["net:connect:a.test"], json!({ "url": "https://b.test/x/y?q#f" }))
        .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("denied: GET https://b.test:443/x/y is not within"), "{text}");
    assert!(text.contains("granting `net:https:GET@https://b.test/x/y`"), "{text}");
}

#[test]
fn every_hop_is_judged() {
    let secret = hello();
    let port = secret.port;
    let spellings = [
        format!("http://127.0.0.2:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("//127.0.0.2:{port}/"),
        format!("http://0x7f.2:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://denied.test/".to_owned(),
    ];
    for to in spellings {
        let server = redirecting({
            let to = to.clone();
            move |_| to.clone()
        });
        let error = from_loopback(&server, "/", json!({})).unwrap_err();
        assert_eq!(error.code(), "net-not-granted", "{to}: {error}");
        assert_eq!(server.heads().len(), 1);
    }
    for to in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "data:text/plain,x",
        "javascript:1",
        "http://u:p@127.0.0.1/",
        "http://[::1",
    ] {
        let server = redirecting(|_| to.to_owned());
        let text = from_loopback(&server, "/", json!({})).unwrap_err().to_string();
        assert!(text.contains("redirected"), "{to}: {text}");
    }
    assert!(secret.heads().is_empty(), "no request came");
}

#[test]
fn redirects_are_followed_ten_times_and_no_more() {
    let chain = |length: usize| {
        Server::start("127.0.0.1:0", move |head, out| {
            let at: usize = head.split(['/', ' ']).find_map(|part| part.parse().ok()).unwrap_or(0);
            if at < length {
                redirect(out, &format!("/{}", at + 1))
            } else {
                reply(out, "Content-Type: text/plain\r\n", b"end")
            }
        })
    };
    let ten = from_loopback(&chain(10), "/0", json!({})).unwrap();
    assert_eq!((&ten["markdown"], &ten["redirects"]), (&json!("end"), &json!(10)));
    assert!(
        ten["final_url"].as_str().unwrap().ends_with("/10") && ten["url"].as_str().unwrap().ends_with("/0")
    );
    let text = from_loopback(&chain(11), "/0", json!({})).unwrap_err().to_string();
    assert!(text.contains("more than 10 redirects"), "{text}");
    let endless = redirecting(|_| "/".to_owned());
    assert!(from_loopback(&endless, "/", json!({})).is_err());
    assert_eq!(endless.heads().len(), 11);
}

#[test]
fn tls_names_the_host_trusts_its_roots_and_is_not_left() {
    let plain = hello();
    let to = format!("http://good.test:{}/", plain.port);
    let server = Server::secure("good.test", move |head, out| {
        if head.starts_with("GET /down") {
            redirect(out, &to)
        } else {
            reply(out, "Content-Type: text/plain\r\n", b"inside")
        }
    });
    let lines = &["net:connect:*.test:*?blockPrivate=false", "net:connect:127.0.0.1:*"];
    let tool = || {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        WebFetch::new().with_host("good.test", [loopback]).with_host("other.test", [loopback])
    };
    let asked = |tool: WebFetch, host: &str, path: &str| {
        fetch(tool, lines, json!({ "url": format!("https://{host}:{}{path}", server.port) }))
    };
    let page = asked(tool().with_root(server.root.clone()), "good.test", "/").unwrap();
    assert_eq!(page["markdown"], "inside");
    assert!(
        server.heads()[0].contains(&format!("\r\nhost: good.test:{}\r\n", server.port)),
        "{:?}",
        server.heads()
    );
    for (tool, host) in [
        (tool(), "good.test"),
        (tool().with_root(server.root.clone()), "other.test"),
        (tool().with_root(server.root.clone()), "127.0.0.1"),
    ] {
        let text = asked(tool, host, "/").unwrap_err().to_string();
        assert!(text.contains("no secure connection"), "{text}");
    }
    let text = asked(tool().with_root(server.root.clone()), "good.test", "/down").unwrap_err().to_string();
    assert!(text.contains("redirected from https to `http://good.test"), "{text}");
    assert!(plain.heads().is_empty());
}

#[test]
fn the_address_that_was_judged_is_the_one_that_is_dialled() {
    let secret = Server::start("127.0.0.1:0", |_, out| reply(out, "Content-Type: text/plain\r\n", b"SECRET"));
    let port = secret.port;
    let public = Server::start(&format!("127.0.0.2:{port}"), |_, out| {
        reply(out, "Content-Type: text/plain\r\n", b"public")
    });
    let (resolver, asked) = dns(|_, turn| {
        let ip = if turn == 0 { "127.0.0.2" } else { "127.0.0.1" };
        vec![ip.parse().unwrap()]
    });
    let lines = [format!("net:connect:rebind.test:{port}"), format!("net:connect:127.0.0.2:{port}")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let page = fetch(WebFetch::new().with_resolver(resolver), &lines, url("rebind.test", port)).unwrap();
    assert_eq!(page["markdown"], "public");
    assert_eq!(*asked.lock().unwrap(), ["rebind.test."], "asked once, and dialled what was judged");
    let error = fetch(WebFetch::new().with_resolver(resolver), &lines, url("rebind.test", port)).unwrap_err();
    assert_eq!(error.code(), "net-not-granted", "the next call is judged anew: {error}");
    assert_eq!((public.heads().len(), secret.heads().len()), (1, 0));
}

#[test]
fn one_private_address_refuses_the_whole_answer() {
    let server = Server::start("127.0.0.2:0", |_, out| reply(out, "", b"x"));
    let port = server.port;
    for hidden in ["10.0.0.1", "127.0.0.1", "fd00::1", "64:ff9b::a00:1", "169.254.169.254"] {
        let (resolver, _) = dns(move |_, _| vec!["127.0.0.2".parse().unwrap(), hidden.parse().unwrap()]);
        let lines = [format!("net:connect:mixed.test:{port}"), format!("net:connect:127.0.0.2:{port}")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let error =
            fetch(WebFetch::new().with_resolver(resolver), &lines, url("mixed.test", port)).unwrap_err();
        assert_eq!(error.code(), "net-not-granted", "{hidden}: {error}");
    }
    assert!(server.heads().is_empty());
}

#[test]
fn a_name_that_is_not_granted_is_not_even_resolved() {
    let (resolver, asked) = dns(|_, _| vec!["127.0.0.1".parse().unwrap()]);
    let tool = WebFetch::new().with_resolver(resolver);
    assert!(
        fetch(tool, &["net:connect:good.test"], json!({ "url": "http://data-to-tell.evil.test/" })).is_err()
    );
    assert!(
        fetch(
            WebFetch::new().with_resolver(resolver),
            &["net:connect:localhost:*"],
            json!({ "url": "http://localhost:1/" })
        )
        .is_err()
    );
    assert!(asked.lock().unwrap().is_empty(), "and no name server is asked for localhost");
    let (resolver, _) = dns(|_, _| vec![]);
    let none = fetch(
        WebFetch::new().with_resolver(resolver),
        &["net:connect:good.test"],
        json!({ "url": "http://good.test/" }),
    );
    assert!(none.unwrap_err().to_string().contains("`good.test` has no address"));
}

#[test]
fn nothing_is_sent_but_what_is_said() {
    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::start("127.0.0.1:0", move |_, out| {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            return write!(
                out,
                "HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n"
            );
        }
        reply(out, "Content-Type: text/plain\r\n", b"x")
    });
    from_loopback(&server, "/one", json!({})).unwrap();
    let heads = server.heads();
    let names: Vec<_> =
        heads[1].lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    assert_eq!(names, ["host", "user-agent", "accept", "accept-encoding", "connection"]);
    assert!(
        heads[1].contains(&format!("user-agent: bailiwick/{}\r\n", env!("CARGO_PKG_VERSION"))),
        "{}",
        heads[1]
    );
    assert!(
        fetch(WebFetch::new(), &["net:connect:*:*"], json!({ "url": "http://user@good.test/" }))
            .unwrap_err()
            .to_string()
            .contains("user name")
    );
}

#[test]
fn addresses_of_both_kinds_work() {
    if TcpListener::bind("[::1]:0").is_err() {
        return bailiwick_testkit::skip("there is no IPv6 loopback here");
    }
    let server = Server::start("[::1]:0", |_, out| reply(out, "Content-Type: text/plain\r\n", b"six"));
    let page = fetch(WebFetch::new(), &["net:connect:[::1]:*"], url("[::1]", server.port)).unwrap();
    assert_eq!(page["markdown"], "six");
    assert!(server.heads()[0].contains(&format!("host: [::1]:{}\r\n", server.port)));
    let error = fetch(WebFetch::new(), &["net:connect:[::2]:*"], url("[::1]", server.port)).unwrap_err();
    assert_eq!(error.code(), "net-not-granted");
}

#[test]
fn proxies_of_the_environment_are_ignored() {
    let (server, proxy) = (hello(), hello());
    let mut command = bailiwick_testkit::child::child("web::policy::fetch_as_a_child");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://127.0.0.1:{}", proxy.port));
    }
    let child = bailiwick_testkit::child::start(command, &format!("{}\n", server.port));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(proxy.heads().is_empty());
    assert!(server.heads()[0].starts_with("GET / HTTP/1.1"), "{:?}", server.heads());
}

#[test]
fn fetch_as_a_child() {
    for line in bailiwick_testkit::child::input() {
        let page =
            fetch(WebFetch::new(), &["net:connect:127.0.0.1:*"], url("127.0.0.1", line.parse().unwrap()));
        assert_eq!(page.unwrap()["markdown"], "hello");
    }
}
