//! Network rules against examples and against a brute-force model on a small universe.

use proptest::prelude::*;

use super::*;
use crate::capability::Capability;
use crate::lattice::Containment;

fn rule(text: &str) -> NetRule {
    let read = text.parse::<Capability>().unwrap_or_else(|finding| panic!("{text}: {finding}"));
    let Capability::Net(rule) = read else { panic!("{read} is not a network rule") };
    rule
}

fn scope(texts: &[&str]) -> NetScope {
    NetScope::union(texts.iter().map(|text| rule(text)))
}

fn tls(host: &str, port: u16) -> NetRequest {
    NetRequest::new(Host::new(host).unwrap(), port, Speak::Tls)
}

#[test]
fn private_addresses_need_to_be_named() {
    let any = scope(&["net:connect:*"]);
    for host in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
    ] {
        assert!(!any.allows(&tls(host, 80)), "{host}");
        assert!(scope(&["net:connect:*?blockPrivate=false"]).allows(&tls(host, 80)), "{host}");
    }
    assert!(any.allows(&tls("example.com", 443)) && any.allows(&tls("1.1.1.1", 443)));
    let name = scope(&["net:connect:10.evil.com"]);
    assert!(name.allows(&tls("10.evil.com", 443)));
    assert!(!name.allows(&tls("10.evil.com", 443).resolved_privately()), "a name opts nothing in");
    assert!(scope(&["net:connect:127.0.0.1:8080"]).allows(&tls("127.0.0.1", 8080)));
    assert!(scope(&["net:connect:localhost"]).allows(&tls("localhost", 8080)));
    assert!(scope(&["net:connect:10.0.0.0/8"]).allows(&tls("10.9.9.9", 1)));
    assert!(
        !scope(&["net:connect:0.0.0.0/0"]).allows(&tls("10.9.9.9", 1)),
        "a block that mixes both opts nothing in"
    );
    assert!(scope(&["net:connect:0.0.0.0/0"]).allows(&tls("11.9.9.9", 1)));
}

#[test]
fn containment_is_decided_over_unions() {
    for (a, b) in [
        (&["net:connect:10.0.0.0/8"][..], &["net:connect:10.0.0.0/9", "net:connect:10.128.0.0/9"][..]),
        (&["net:connect:a.test:1-10"], &["net:connect:a.test:1-5", "net:connect:a.test:6-10"]),
        (&["net:connect:*.a.test"], &["net:connect:*.a.test:1-100", "net:connect:*.test:101-65535"]),
        (&["net:https:GET@https://a.test/x"], &["net:connect:a.test:443"]),
        (
            &["net:https:GET,POST@https://a.test"],
            &["net:https:GET@https://a.test", "net:https:POST@https://*.test"],
        ),
        (
            &["net:https:https://a.test/p/*"],
            &["net:https:https://a.test/p/[a-m]*", "net:https:https://a.test/p/[!a-m]*"],
        ),
        (&["net:connect:a.test?ech=allow"], &["net:connect:a.test?protocol=raw"]),
        (&["net:connect:1.1.1.1?blockPrivate=false"], &["net:connect:1.1.1.1"]),
    ] {
        assert_eq!(scope(a).within(&scope(b)), Containment::Contained, "{a:?} within {b:?}");
    }
    for (a, b) in [
        (&["net:connect:*"][..], &["net:connect:*.com", "net:connect:0.0.0.0/0"][..]),
        (&["net:connect:*.test"], &["net:connect:a.test", "net:connect:*.a.test"]),
        (&["net:connect:a.test:443"], &["net:https:https://a.test"]),
        (&["net:connect:a.test?blockPrivate=false"], &["net:connect:a.test"]),
        (&["net:connect:a.test?protocol=raw"], &["net:connect:a.test?ech=allow"]),
        (&["net:connect:10.0.0.0/8"], &["net:connect:*"]),
        (&["net:connect:a.test"], &[]),
    ] {
        let answer = scope(a).within(&scope(b));
        let Containment::Exceeds(w) = &answer else { panic!("{a:?} {b:?}: {answer:?}") };
        assert!(scope(a).allows(w) && !scope(b).allows(w), "{w}");
    }
}

#[test]
fn meets_and_smallest_grants_can_be_written() {
    let request = |path: &str| {
        let (scheme, method) = (Scheme::Https, Method::new("GET").unwrap());
        NetRequest::new(
            Host::new("a.test").unwrap(),
            443,
            Speak::Http { scheme, method, path: UrlPath::of_target(path) },
        )
    };
    for (a, b) in [
        ("net:http,https:*", "net:connect:a.test:80"),
        ("net:https:*", "net:connect:11.0.0.0/8:443"),
        ("net:https:GET", "net:connect:[2600::/16]"),
        ("net:http,https:GET,POST", "net:connect:*.test"),
    ] {
        let (x, y) = (scope(&[a]), scope(&[b]));
        let NetScope::Only(clauses) = x.meet(&y) else { panic!("{a} {b}") };
        let written: Vec<String> =
            clauses.sets().flat_map(|set| set.rules().iter().map(ToString::to_string)).collect();
        let again = scope(&written.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(again, x.meet(&y), "{written:?}");
    }
    for path in ["/a%20c", "/x/y", "/x/a%20b/c", "/", "/x/..;/y", "/x%2Fy"] {
        let nothing = crate::authority::Authority::from_capabilities(&[]).unwrap();
        let asked = crate::authority::Request::Net(request(path));
        let grant = nothing.explain(&asked).smallest_grant().unwrap().to_string();
        assert!(scope(&[&grant]).allows(&request(path)), "{grant}");
    }
}

/// Hosts, ports and ways of speaking that the generated rules can tell apart.
fn universe() -> Vec<NetRequest> {
    let hosts = [
        "a.test",
        "b.test",
        "x.a.test",
        "test",
        "localhost",
        "1.1.1.1",
        "10.0.0.1",
        "10.200.0.1",
        "[2600::1]",
    ];
    let mut all = Vec::new();
    for host in hosts {
        for port in [80, 443, 8080] {
            let mut ways = vec![Speak::Tls, Speak::HiddenTls, Speak::Raw];
            for scheme in Scheme::ALL {
                for method in ["GET", "POST", "PUT"] {
                    for path in ["/", "/p", "/p/q", "/p/..;/q"] {
                        let (method, path) = (Method::new(method).unwrap(), UrlPath::of_target(path));
                        ways.push(Speak::Http { scheme, method, path });
                    }
                }
            }
            for speak in ways {
                let request = NetRequest::new(Host::new(host).unwrap(), port, speak);
                if matches!(request.host(), Host::Name(_)) && !request.is_private() {
                    all.push(request.clone().resolved_privately());
                }
                all.push(request);
            }
        }
    }
    all
}

fn any_rule() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "*",
        "a.test",
        "b.test",
        "*.test",
        "*.a.test",
        "localhost",
        "1.1.1.1",
        "10.0.0.0/8",
        "10.0.0.0/9",
        "10.128.0.0/9",
        "[2600::/16]",
    ]);
    let port = prop::sample::select(vec!["", ":443", ":80-443", ":444-65535", ":1-79"]);
    let end = prop::sample::select(vec!["", "", "?blockPrivate=false", "?protocol=raw", "?ech=allow"]);
    let connect = (host.clone(), port.clone(), end).prop_map(|(h, p, e)| format!("net:connect:{h}{p}{e}"));
    let method = prop::sample::select(vec!["", "GET@", "GET,POST@"]);
    let path = prop::sample::select(vec!["", "/p", "/p/*", "/*", "/**"]);
    let scheme = prop::sample::select(vec!["http", "https"]);
    let http =
        (scheme, method, host, port, path).prop_map(|(s, m, h, p, x)| format!("net:{s}:{m}{s}://{h}{p}{x}"));
    prop_oneof![connect, http, Just("net:http,https:GET".to_owned()), Just("net:https:*".to_owned())]
}

fn build(texts: &[String]) -> NetScope {
    scope(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_print_and_read_back(text in any_rule()) {
        let read = rule(&text);
        prop_assert_eq!(rule(&read.to_string()), read);
    }

    #[test]
    fn meet_and_containment_agree_with_the_model(
        a in prop::collection::vec(any_rule(), 0..4),
        b in prop::collection::vec(any_rule(), 0..4),
        c in prop::collection::vec(any_rule(), 0..3),
    ) {
        let (x, y, z) = (build(&a), build(&b), build(&c));
        let met = x.meet(&y);
        let all = universe();
        for request in &all {
            prop_assert_eq!(x.allows(request), a.iter().any(|text| rule(text).allows(request)));
            prop_assert_eq!(met.allows(request), x.allows(request) && y.allows(request), "{} {:?}", request, met);
        }
        let any = NetScope::Any;
        for (low, high) in [(&x, &y), (&met, &x), (&met, &z), (&z, &met), (&any, &x), (&x, &any), (&x, &met)] {
            match low.within(high) {
                Containment::Contained => prop_assert!(all.iter().all(|r| !low.allows(r) || high.allows(r)), "{:?} {:?}", low, high),
                Containment::Exceeds(w) => prop_assert!(low.allows(&w) && !high.allows(&w), "{} {:?} {:?}", w, low, high),
                Containment::Undecided => prop_assert!(false, "undecided"),
            }
        }
        prop_assert!(met.within(&x).holds() && met.within(&y).holds());
        prop_assert_eq!(x.within(&y).holds(), x.within(&met).holds());
        let (left, right) = (x.meet(&y).meet(&z), x.meet(&y.meet(&z)));
        prop_assert!(left.within(&right).holds() && right.within(&left).holds());
        prop_assert_eq!(x.meet(&x), x);
    }
}
