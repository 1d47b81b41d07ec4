//! The decision as one table: every kind of rule against every kind of target, address and hello.

use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use super::*;

fn network(grants: &[&str]) -> Network {
    let grants: Vec<_> = grants.iter().map(|text| text.parse().unwrap()).collect();
    let authority = Authority::from_capabilities(&grants).unwrap();
    Plan::for_authority("t", &authority, &HostFacts::unknown()).unwrap().network().clone()
}

pub(crate) fn rules(grants: &str) -> Rules {
    match grants {
        "any" => Rules::new(&Network::Any),
        "none" => Rules::new(&Network::None),
        grants => Rules::new(&network(&grants.split(' ').collect::<Vec<_>>())),
    }
}

fn target(text: &str) -> Target {
    let (host, port) = text.rsplit_once(':').unwrap();
    Target::new(Host::new(host).unwrap(), port.parse().unwrap())
}

fn addresses(text: &str) -> Option<Vec<IpAddr>> {
    (text != "?").then(|| text.split_whitespace().map(|ip| ip.parse().unwrap()).collect())
}

/// `tls`, `tls NAME`, `ech NAME`, `http METHOD HOST[:PORT] PATH`, `over` for the same with a field that overrides
/// it, `raw`, `late`, `bad`, or `?` for nothing yet.
fn hello(text: &str) -> Option<Hello> {
    let words: Vec<&str> = text.split(' ').collect();
    Some(match *words.as_slice() {
        ["?"] => return None,
        ["tls"] => Hello::Tls { name: None, hidden: false },
        ["ech"] => Hello::Tls { name: None, hidden: true },
        ["tls", name] => Hello::Tls { name: Some(name.into()), hidden: false },
        ["ech", name] => Hello::Tls { name: Some(name.into()), hidden: true },
        [kind @ ("http" | "over"), method, host, path] => {
            let (host, port) = crate::http::authority(host).unwrap();
            let overridden = kind == "over";
            Hello::Http(Request { method: method.into(), host, port, path: path.into(), overridden })
        }
        ["late"] => Hello::Unreadable(Code::HelloLate),
        ["raw"] => Hello::Other,
        ["bad"] => Hello::Unreadable(Code::HttpUnreadable),
        _ => panic!("{text}"),
    })
}

fn verdict(grants: &str, to: &str, ips: &str, said: &str) -> String {
    let (ips, said) = (addresses(ips), hello(said));
    match decide(&rules(grants), &target(to), Known { addresses: ips.as_deref(), hello: said.as_ref() }) {
        Verdict::Resolve => "resolve".to_owned(),
        Verdict::Listen => "listen".to_owned(),
        Verdict::Allow(pass) => {
            assert_eq!(Some(pass.addresses), ips.map(|ips| ips.into_iter().map(canonical_ip).collect()));
            let spoken = matches!(said, Some(Hello::Tls { .. }));
            match pass.stream {
                Stream::Requests => "requests".to_owned(),
                Stream::Opaque => "copy".to_owned(),
                Stream::Tls => {
                    assert!(spoken, "only TLS is copied as TLS");
                    "tls".to_owned()
                }
            }
        }
        Verdict::Refuse(refusal) => refusal
            .grant()
            .map_or_else(|| refusal.code().to_string(), |grant| format!("{} {grant}", refusal.code())),
    }
}

const PUBLIC: &str = "93.184.216.34";

/// Grants, target, addresses, first words, answer.
const TABLE: &[(&str, &str, &str, &str, &str)] = &[
    // Who is named at all, before anything is resolved.
    ("none", "a.test:443", "?", "?", "net-host-not-granted net:connect:a.test:443"),
    ("none", "93.184.216.34:443", PUBLIC, "tls", "net-host-not-granted net:connect:93.184.216.34:443"),
    ("net:connect:a.test", "b.test:443", "?", "?", "net-host-not-granted net:connect:b.test:443"),
    ("net:connect:a.test", "x.a.test:443", "?", "?", "net-host-not-granted net:connect:x.a.test:443"),
    ("net:connect:*.a.test", "a.test:443", "?", "?", "net-host-not-granted net:connect:a.test:443"),
    (
        "net:connect:a.test",
        "93.184.216.34:443",
        PUBLIC,
        "tls",
        "net-host-not-granted net:connect:93.184.216.34:443",
    ),
    ("net:connect:a.test", "a.test:443", "?", "?", "resolve"),
    ("net:connect:*.a.test", "x.y.a.test:443", "?", "?", "resolve"),
    ("any", "a.test:443", "?", "?", "resolve"),
    // On which port.
    ("net:connect:a.test:443", "a.test:80", "?", "?", "net-port-not-granted net:connect:a.test:80"),
    ("net:connect:a.test:8000-8999", "a.test:8999", "?", "?", "resolve"),
    ("net:connect:a.test:8000-8999", "a.test:9000", "?", "?", "net-port-not-granted net:connect:a.test:9000"),
    // Where it leads: an answer is taken as a whole.
    ("net:connect:a.test", "a.test:443", "", "?", "net-name-unresolved"),
    ("net:connect:a.test", "a.test:443", PUBLIC, "?", "listen"),
    (
        "net:connect:a.test",
        "a.test:443",
        "127.0.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        "93.184.216.34 10.0.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        "::ffff:127.0.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        "64:ff9b::7f00:1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    ("net:connect:a.test", "a.test:443", "64:ff9b::5db8:d822", "?", "listen"),
    (
        "net:connect:a.test",
        "a.test:443",
        "169.254.169.254",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        "fd62:6169:6c69:7769::1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        "198.18.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    ("net:connect:a.test", "a.test:443", "::ffff:93.184.216.34", "?", "listen"),
    ("net:connect:a.test?blockPrivate=false", "a.test:443", "93.184.216.34 10.0.0.1", "?", "listen"),
    ("net:connect:a.test net:connect:10.0.0.1:443", "a.test:443", "10.0.0.1", "?", "listen"),
    (
        "net:connect:a.test net:connect:10.0.0.1:444",
        "a.test:443",
        "10.0.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test net:connect:10.0.0.1:443",
        "a.test:443",
        "10.0.0.1 10.0.0.2",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    (
        "net:connect:a.test net:connect:0.0.0.0/0",
        "a.test:443",
        "10.0.0.1",
        "?",
        "net-address-private net:connect:a.test:443?blockPrivate=false",
    ),
    ("any", "a.test:443", "10.0.0.1", "?", "net-address-private net:connect:a.test:443?blockPrivate=false"),
    ("any", "10.0.0.1:443", "10.0.0.1", "?", "net-address-private net:connect:10.0.0.1:443"),
    ("net:connect:localhost:8080", "localhost:8080", "127.0.0.1", "?", "listen"),
    // Addresses by themselves.
    ("net:connect:93.184.216.34", "93.184.216.34:443", PUBLIC, "?", "listen"),
    ("net:connect:93.184.216.34", "[::ffff:93.184.216.34]:443", PUBLIC, "?", "listen"),
    ("net:connect:93.184.0.0/16", "93.184.216.34:443", PUBLIC, "tls", "tls"),
    (
        "net:connect:93.184.0.0/16",
        "93.185.0.1:443",
        "93.185.0.1",
        "tls",
        "net-host-not-granted net:connect:93.185.0.1:443",
    ),
    (
        "net:connect:93.184.216.34",
        "93.184.216.34:443",
        PUBLIC,
        "tls evil.test",
        "net-tls-name-other net:connect:93.184.216.34:443?protocol=raw",
    ),
    ("net:connect:93.184.216.34", "93.184.216.34:80", PUBLIC, "http GET evil.test /", "net-http-host-other"),
    ("net:connect:93.184.216.34", "93.184.216.34:80", PUBLIC, "http GET 93.184.216.34 /", "requests"),
    ("net:connect:127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", "http GET localhost:8080 /", "requests"),
    ("net:connect:localhost:8080", "127.0.0.1:8080", "127.0.0.1", "http GET localhost:8080 /", "requests"),
    ("net:connect:localhost:8080", "[::1]:8080", "::1", "tls localhost", "tls"),
    (
        "net:connect:localhost:8080",
        "127.0.0.2:8080",
        "127.0.0.2",
        "?",
        "net-host-not-granted net:connect:127.0.0.2:8080",
    ),
    (
        "net:connect:a.test",
        "127.0.0.1:8080",
        "127.0.0.1",
        "?",
        "net-host-not-granted net:connect:127.0.0.1:8080",
    ),
    // TLS.
    ("net:connect:a.test", "a.test:443", PUBLIC, "tls a.test", "tls"),
    ("net:connect:a.test", "a.test:443", PUBLIC, "tls A.TEST", "tls"),
    ("net:connect:a.test", "a.test:443", PUBLIC, "tls a.test.", "tls"),
    (
        "net:connect:*.a.test",
        "x.a.test:443",
        PUBLIC,
        "tls y.a.test",
        "net-tls-name-other net:connect:x.a.test:443?protocol=raw",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        PUBLIC,
        "tls evil.test",
        "net-tls-name-other net:connect:a.test:443?protocol=raw",
    ),
    (
        "net:connect:a.test net:connect:b.test",
        "a.test:443",
        PUBLIC,
        "tls b.test",
        "net-tls-name-other net:connect:a.test:443?protocol=raw",
    ),
    (
        "net:connect:*",
        "a.test:443",
        PUBLIC,
        "tls b.test",
        "net-tls-name-other net:connect:a.test:443?protocol=raw",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        PUBLIC,
        "tls",
        "net-tls-name-missing net:connect:a.test:443?protocol=raw",
    ),
    (
        "net:connect:a.test",
        "a.test:443",
        PUBLIC,
        "ech a.test",
        "net-tls-name-hidden net:connect:a.test:443?ech=allow",
    ),
    ("net:connect:a.test?ech=allow", "a.test:443", PUBLIC, "ech a.test", "tls"),
    (
        "net:connect:a.test?ech=allow",
        "a.test:443",
        PUBLIC,
        "ech evil.test",
        "net-tls-name-other net:connect:a.test:443?protocol=raw",
    ),
    (
        "net:connect:a.test?ech=allow",
        "a.test:443",
        PUBLIC,
        "ech",
        "net-tls-name-missing net:connect:a.test:443?protocol=raw",
    ),
    ("net:https:GET@https://a.test/x", "a.test:443", PUBLIC, "tls a.test", "tls"),
    (
        "net:https:GET@https://a.test/x",
        "a.test:443",
        PUBLIC,
        "ech a.test",
        "net-tls-name-hidden net:connect:a.test:443?ech=allow",
    ),
    (
        "net:http:http://a.test:443",
        "a.test:443",
        PUBLIC,
        "tls a.test",
        "net-request-not-granted net:connect:a.test:443",
    ),
    // Plain HTTP.
    ("net:connect:a.test", "a.test:80", PUBLIC, "http GET a.test /", "requests"),
    ("net:connect:a.test", "a.test:80", PUBLIC, "http FROB A.Test.:80 /../x", "requests"),
    ("net:connect:a.test", "a.test:80", PUBLIC, "http GET a.test:81 /", "net-http-host-other"),
    ("net:connect:a.test", "a.test:80", PUBLIC, "http GET evil.test /", "net-http-host-other"),
    ("net:connect:a.test", "a.test:80", PUBLIC, "http GET 93.184.216.34 /", "net-http-host-other"),
    ("net:connect:a.test", "a.test:80", PUBLIC, "bad", "net-http-unreadable"),
    ("net:http:GET@http://a.test/x", "a.test:80", PUBLIC, "http GET a.test /x/y?q=1", "requests"),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http POST a.test /x",
        "net-request-not-granted net:http:POST@http://a.test/x",
    ),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http get a.test /x",
        "net-request-not-granted net:connect:a.test:80",
    ),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http GET a.test /y",
        "net-request-not-granted net:http:GET@http://a.test/y",
    ),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http GET a.test /x/../y",
        "net-request-ambiguous net:http:GET@http://a.test",
    ),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http GET a.test /%2e%2e/x",
        "net-request-ambiguous net:http:GET@http://a.test",
    ),
    (
        "net:http:GET@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http GET a.test /x/..;/y",
        "net-request-ambiguous net:http:GET@http://a.test",
    ),
    ("net:http:GET@http://a.test", "a.test:80", PUBLIC, "http GET a.test /x/..;/y", "requests"),
    (
        "net:http:GET@http://a.test",
        "a.test:80",
        PUBLIC,
        "http POST a.test /x/..;/y",
        "net-request-ambiguous net:http:POST@http://a.test",
    ),
    ("net:connect:a.test", "a.test:80", PUBLIC, "http GET a.test /x/..;/y", "requests"),
    (
        "net:http:OPTIONS@http://a.test/x",
        "a.test:80",
        PUBLIC,
        "http OPTIONS a.test *",
        "net-request-ambiguous net:http:OPTIONS@http://a.test",
    ),
    // A field that names another method or path.
    (
        "net:http:GET@http://a.test",
        "a.test:80",
        PUBLIC,
        "over GET a.test /x",
        "net-request-ambiguous net:connect:a.test:80",
    ),
    ("net:connect:a.test", "a.test:80", PUBLIC, "over GET a.test /x", "requests"),
    (
        "net:https:GET@https://a.test:80/x",
        "a.test:80",
        PUBLIC,
        "http GET a.test /x",
        "net-request-not-granted net:http:GET@http://a.test/x",
    ),
    // Anything else.
    (
        "net:connect:a.test",
        "a.test:5432",
        PUBLIC,
        "raw",
        "net-protocol-not-granted net:connect:a.test:5432?protocol=raw",
    ),
    (
        "net:http,https:GET",
        "a.test:80",
        PUBLIC,
        "raw",
        "net-protocol-not-granted net:connect:a.test:80?protocol=raw",
    ),
    (
        "net:connect:a.test",
        "a.test:3306",
        PUBLIC,
        "late",
        "net-hello-late net:connect:a.test:3306?protocol=raw",
    ),
    ("net:connect:a.test:5432?protocol=raw", "a.test:5432", PUBLIC, "?", "copy"),
    (
        "net:connect:a.test:5432?protocol=raw",
        "a.test:5432",
        "10.0.0.1",
        "?",
        "net-address-private net:connect:a.test:5432?blockPrivate=false",
    ),
    (
        "net:connect:a.test?blockPrivate=false net:connect:a.test?protocol=raw",
        "a.test:9",
        "10.0.0.1",
        "?",
        "listen",
    ),
    (
        "net:connect:a.test?blockPrivate=false net:connect:a.test?protocol=raw",
        "a.test:9",
        PUBLIC,
        "?",
        "copy",
    ),
    ("any", "a.test:22", PUBLIC, "?", "copy"),
];

#[test]
fn the_table_holds() {
    let wrong: Vec<String> = TABLE
        .iter()
        .filter_map(|(grants, to, ips, said, expected)| {
            let got = verdict(grants, to, ips, said);
            (got != *expected).then(|| format!("{grants} | {to} | {ips} | {said}\n  {got}\n  {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every combination of a small world: nothing passes that no single rule explains.
#[test]
fn nothing_passes_that_no_rule_explains() {
    let grants = [
        "net:connect:a.test:443",
        "net:connect:*.test",
        "net:connect:a.test?protocol=raw",
        "net:connect:a.test?ech=allow",
        "net:connect:a.test?blockPrivate=false",
        "net:connect:10.0.0.1",
        "net:connect:93.184.216.34",
        "net:http:GET@http://a.test/x",
        "net:https:GET@https://a.test/x",
        "none",
        "any",
    ];
    let targets =
        ["a.test:443", "a.test:80", "x.a.test:443", "evil.example:443", "10.0.0.1:443", "93.184.216.34:80"];
    let ips = [PUBLIC, "10.0.0.1", "93.184.216.34 10.0.0.1", "::ffff:10.0.0.1", ""];
    let hellos = [
        "tls",
        "tls a.test",
        "tls evil.example",
        "ech a.test",
        "http GET a.test /x",
        "http PUT a.test /x",
        "http GET evil.example /x",
        "raw",
        "bad",
    ];
    let mut passed = 0;
    for first in grants {
        for second in grants {
            for to in targets {
                for ip in ips {
                    for said in hellos {
                        let both =
                            [first, second].into_iter().filter(|grant| !["none", "any"].contains(grant));
                        let both: Vec<&str> = both.collect();
                        let text = if both.is_empty() { first.to_owned() } else { both.join(" ") };
                        let host = target(to).host;
                        let ip = if let Host::Ip(own) = host { own.to_string() } else { ip.to_owned() };
                        let got = verdict(&text, to, &ip, said);
                        if !["copy", "tls", "requests"].contains(&&*got) {
                            continue;
                        }
                        passed += 1;
                        let context = format!("{text} | {to} | {ip} | {said}");
                        let open = text.contains("raw") || text == "any";
                        let special = addresses(&ip).unwrap().into_iter().any(is_special);
                        let consent = text.contains("blockPrivate") || text.contains("10.0.0.1");
                        assert!(!ip.is_empty() && text != "none", "{context}");
                        assert!(!special || consent, "{context}");
                        let names_other = said.contains("evil") && !to.contains("evil");
                        assert!(!names_other || open, "{context}");
                        assert!(!["raw", "bad"].contains(&said) || open, "{context}");
                        assert!(!said.starts_with("ech") || open || text.contains("ech"), "{context}");
                        assert!(!to.contains("evil") || text == "any", "{context}");
                    }
                }
            }
        }
    }
    assert!(passed > 500, "{passed}");
}
