//! The attack table: what is tried inside, what comes of it, what is recorded, and that no host was reached.

use super::servers::{self, Authority, Files, Seen};
use super::world::{Stage, in_world, test_name, users};
use super::{EVIL, GOOD, INNER, NAMES, WORLD};

/// One thing that is tried.
struct Row {
    name: &'static str,
    caps: &'static [&'static str],
    /// Attempts of one program, and what comes of them.
    tries: &'static [(&'static str, &'static str)],
    /// A line of the log; nothing where there must be none.
    log: &'static str,
    /// How many connections reach any server.
    reaches: usize,
}

const TLS: &[&str] = &["net:connect:good.test:443"];
const WEB: &[&str] = &["net:connect:good.test:80"];
const ANY: &[&str] = &["net:connect:*"];

/// Names and what is spoken.
const SPOKEN: &[Row] = &[
    Row {
        name: "(control) TLS for the granted name",
        caps: TLS,
        tries: &[("tls good.test 443 good.test", "200")],
        log: "allowed good.test:443",
        reaches: 1,
    },
    Row {
        name: "fronting by TLS name",
        caps: TLS,
        tries: &[("tls good.test 443 evil.test", "no: PermissionDenied")],
        log: "refused good.test:443: the TLS client names another server",
        reaches: 0,
    },
    Row {
        name: "no TLS name",
        caps: TLS,
        tries: &[("tls good.test 443 -", "no: PermissionDenied")],
        log: "refused good.test:443: the TLS client names no server",
        reaches: 0,
    },
    Row {
        name: "encrypted client hello",
        caps: TLS,
        tries: &[("ech good.test 443 good.test", "alert")],
        log: "refused good.test:443: the TLS client hides or may hide the server's name",
        reaches: 0,
    },
    Row {
        name: "(control) encrypted client hello where it is granted",
        caps: &["net:connect:good.test:443?ech=allow"],
        tries: &[("ech good.test 443 good.test", "handshake")],
        log: "allowed good.test:443",
        reaches: 1,
    },
    Row {
        name: "(control) plain HTTP, two requests",
        caps: WEB,
        tries: &[("http good.test 80 good.test GOOD.test.:80", "200 200")],
        log: "allowed good.test:80 GET /",
        reaches: 1,
    },
    Row {
        name: "fronting by Host",
        caps: WEB,
        tries: &[("http good.test 80 evil.test", "403")],
        log: "refused good.test:80 GET /: the HTTP request names another host",
        reaches: 0,
    },
    Row {
        name: "fronting by Host in the second request",
        caps: WEB,
        tries: &[("http good.test 80 good.test evil.test", "200 cut")],
        log: "refused good.test:80 GET /: the HTTP request names another host",
        reaches: 1,
    },
    Row {
        name: "paths that servers normalise in different ways",
        caps: &["net:http:GET@http://good.test/api/**"],
        tries: &[
            ("get good.test 80 /api/..;/admin", "403"),
            ("get good.test 80 /api/%2e%2e/admin", "403"),
            ("get good.test 80 /api//admin", "403"),
            ("get good.test 80 /api/..%5cadmin", "403"),
            ("get good.test 80 /api/%252e%252e/admin", "403"),
        ],
        log: "refused good.test:80 GET /api/..;/admin: servers may read this request in more than one way, and only \
              some requests are granted",
        reaches: 0,
    },
    Row {
        name: "(control) a path in its one form, and any path where the rule has none",
        caps: &["net:http:GET@http://good.test/api/**", "net:http:GET@http://evil.test"],
        tries: &[("get good.test 80 /api/x", "404"), ("get evil.test 80 /api/..;/admin", "404")],
        log: "allowed evil.test:80 GET /api/..;/admin",
        reaches: 2,
    },
    Row {
        name: "another protocol",
        caps: &["net:connect:good.test:7000"],
        tries: &[("say good.test 7000 ping", "no: ")],
        log: "refused good.test:7000: neither TLS nor HTTP is spoken, which needs `?protocol=raw`",
        reaches: 0,
    },
    Row {
        name: "(control) another protocol where it is granted",
        caps: &["net:connect:good.test:7000?protocol=raw"],
        tries: &[("say good.test 7000 ping", "ping")],
        log: "allowed good.test:7000",
        reaches: 1,
    },
    Row {
        name: "a port that is not granted",
        caps: TLS,
        tries: &[("http good.test 8080 good.test", "no: ")],
        log: "refused good.test:8080: granted on other ports only",
        reaches: 0,
    },
    Row {
        name: "(control) any port",
        caps: &["net:connect:good.test:*"],
        tries: &[("http good.test 8080 good.test", "502"), ("http good.test 8081 good.test:8081", "200")],
        log: "allowed good.test:8081 GET /",
        reaches: 1,
    },
    Row {
        name: "a range of ports, and the one beside it",
        caps: &["net:connect:good.test:8081-8090"],
        tries: &[("http good.test 8081 good.test", "200"), ("http good.test 80 good.test", "no: ")],
        log: "refused good.test:80: granted on other ports only",
        reaches: 1,
    },
];

/// Where a name leads, and addresses without one.
const ADDRESSES: &[Row] = &[
    Row {
        name: "an address, dotted",
        caps: WEB,
        tries: &[("http 93.184.216.34 80 good.test", "no: "), ("http 93.184.216.66 80 good.test", "no: ")],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 0,
    },
    Row {
        name: "an address, decimal",
        caps: WEB,
        tries: &[("http 1572395074 80 good.test", "no: ")],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 0,
    },
    Row {
        name: "an address, hexadecimal",
        caps: WEB,
        tries: &[("http 0x5db8d842 80 good.test", "no: ")],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 0,
    },
    Row {
        name: "an address, octal",
        caps: WEB,
        tries: &[("http 0135.0270.0330.0102 80 good.test", "no: ")],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 0,
    },
    Row {
        name: "an address, mapped into v6",
        caps: WEB,
        tries: &[("http ::ffff:93.184.216.66 80 good.test", "no: ")],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 0,
    },
    Row {
        name: "an address by NAT64",
        caps: WEB,
        tries: &[("http 64:ff9b::5db8:d842 80 good.test", "no: ")],
        log: "refused ",
        reaches: 0,
    },
    Row {
        name: "IPv6 literals, and addresses of ours that stand for no name",
        caps: WEB,
        tries: &[
            ("http 2606:2800::1 80 good.test", "no: "),
            ("http 2002:5db8:d842::1 80 good.test", "no: "),
            ("http ::ffff:0:5db8:d842 80 good.test", "no: "),
            ("http fe80::1 80 good.test", "no: "),
            ("http ff02::1 80 good.test", "no: "),
            ("http 3062:6169:6c69:7769::99 80 good.test", "no: "),
            ("http 44.128.9.9 80 good.test", "no: "),
        ],
        log: "refused [2606:2800::1]:80: not granted",
        reaches: 0,
    },
    Row {
        name: "(control) a granted address and range",
        caps: &["net:connect:93.184.216.32/28:80"],
        tries: &[
            ("http 93.184.216.34 80 93.184.216.34", "200"),
            ("http 93.184.216.66 80 93.184.216.66", "no: "),
        ],
        log: "refused 93.184.216.66:80: not granted",
        reaches: 1,
    },
    Row {
        name: "the metadata address under every host",
        caps: ANY,
        tries: &[("http 169.254.169.254 80 169.254.169.254", "no: "), ("http 10.0.0.5 80 10.0.0.5", "no: ")],
        log: "refused 169.254.169.254:80: ",
        reaches: 0,
    },
    Row {
        name: "the host's own servers under every host",
        caps: ANY,
        tries: &[
            ("http 127.0.0.1 80 127.0.0.1", "no: ConnectionRefused"),
            ("http localhost 80 localhost", "no: ConnectionRefused"),
            ("http home.test 80 home.test", "no: "),
        ],
        log: "refused home.test:80: the name leads to a private address",
        reaches: 0,
    },
    Row {
        name: "(control) a granted port of the host, and the one beside it",
        caps: &["net:connect:127.0.0.1:8081"],
        tries: &[
            ("http 127.0.0.1 8081 127.0.0.1:8081", "200"),
            ("http 127.0.0.1 80 127.0.0.1", "no: ConnectionRefused"),
        ],
        log: "allowed 127.0.0.1:8081 GET /",
        reaches: 1,
    },
    Row {
        name: "(control) every host",
        caps: ANY,
        tries: &[("http evil.test 80 evil.test", "200")],
        log: "allowed evil.test:80 GET /",
        reaches: 1,
    },
    Row {
        name: "a name that leads to an inner address",
        caps: &["net:connect:inner.test:80"],
        tries: &[("http inner.test 80 inner.test", "no: ")],
        log: "refused inner.test:80: the name leads to a private address",
        reaches: 0,
    },
    Row {
        name: "(control) the same where inner addresses are granted",
        caps: &["net:connect:inner.test:80?blockPrivate=false"],
        tries: &[("http inner.test 80 inner.test", "200")],
        log: "allowed inner.test:80 GET /",
        reaches: 1,
    },
    Row {
        name: "rebinding",
        caps: &["net:connect:rebind.test:80"],
        // An answer that was judged is good for five seconds; then the name is asked for, and judged, anew.
        tries: &[
            ("http rebind.test 80 rebind.test", "200"),
            ("http rebind.test 80 rebind.test", "200"),
            ("wait 5200", "waited"),
            ("http rebind.test 80 rebind.test", "no: "),
        ],
        log: "refused rebind.test:80: the name leads to a private address",
        reaches: 2,
    },
    Row {
        name: "one inner address among public ones",
        caps: &["net:connect:mixed.test:80"],
        tries: &[("http mixed.test 80 mixed.test", "no: ")],
        log: "refused mixed.test:80: the name leads to a private address",
        reaches: 0,
    },
];

/// Names, and other ways out than TCP.
const WAYS: &[Row] = &[
    Row {
        name: "a name is one name in every spelling",
        caps: WEB,
        tries: &[
            ("address good.test", "ours"),
            ("http good.test. 80 good.test", "200"),
            ("http GoOd.TeSt 80 good.test", "200"),
        ],
        log: "allowed good.test:80 GET /",
        reaches: 2,
    },
    Row {
        name: "a name that is not granted does not exist",
        caps: WEB,
        tries: &[
            ("ask udp 127.0.0.53 evil.test. A", "NXDomain 0"),
            ("address evil.test", "no: AddrNotAvailable"),
        ],
        log: "refused evil.test: not granted",
        reaches: 0,
    },
    Row {
        name: "names by TCP, and of a name server elsewhere",
        caps: WEB,
        tries: &[
            ("ask tcp 127.0.0.53 evil.test. A", "NXDomain 0"),
            ("ask tcp 8.8.8.8 evil.test. A", "NXDomain 0"),
            ("ask udp 8.8.8.8 evil.test. A", "NXDomain 0"),
            ("ask tcp 8.8.8.8 good.test. A", "NoError 1"),
        ],
        log: "refused evil.test: not granted",
        reaches: 0,
    },
    Row {
        name: "records that lead elsewhere are empty",
        caps: WEB,
        tries: &[
            ("ask udp 127.0.0.53 good.test. HTTPS", "NoError 0"),
            ("ask udp 127.0.0.53 good.test. SVCB", "NoError 0"),
        ],
        log: "",
        reaches: 0,
    },
    Row {
        name: "UDP and QUIC fail at once",
        caps: &["net:connect:good.test"],
        tries: &[
            ("udp 93.184.216.34:443", "no: "),
            ("udp 93.184.216.66:9", "no: "),
            ("udp [2606:2800::1]:443", "no: "),
        ],
        log: "",
        reaches: 0,
    },
    Row {
        name: "sockets of other kinds",
        caps: WEB,
        tries: &[
            ("socket raw", "no: "),
            ("socket ping", "no: "),
            ("socket packet", "no: "),
            ("socket mptcp", "no: "),
            ("socket vsock", "no: "),
        ],
        log: "",
        reaches: 0,
    },
    Row {
        name: "(control) the program's own server",
        caps: WEB,
        tries: &[("own", "pong")],
        log: "",
        reaches: 0,
    },
    Row {
        name: "no grant, no network",
        caps: &[],
        tries: &[
            ("own", "pong"),
            ("address good.test", "no: AddrNotAvailable"),
            ("http 93.184.216.34 80 good.test", "no: NetworkUnreachable"),
            ("udp 93.184.216.34:443", "no: NetworkUnreachable"),
            ("ask udp 127.0.0.53 good.test. A", "NXDomain 0"),
        ],
        log: "refused good.test: not granted",
        reaches: 0,
    },
];

#[test]
fn what_is_spoken() {
    if in_world(test_name!()) {
        World::new().holds(SPOKEN);
    }
}

#[test]
fn where_a_name_leads() {
    if in_world(test_name!()) {
        World::new().holds(ADDRESSES);
    }
}

#[test]
fn names_and_other_ways_out() {
    if in_world(test_name!()) {
        World::new().holds(WAYS);
    }
}

#[test]
fn labels_under_a_wildcard_do_not_leave() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let asks: Vec<String> =
            (0..200).map(|number| format!("ask udp 127.0.0.53 secret{number}.tunnel.test. A")).collect();
        let asks: Vec<&str> = asks.iter().map(String::as_str).collect();
        let before = world.names.count();
        let heard = Stage::new(*user).attempts(&["net:connect:*.tunnel.test:80"], &WORLD, &asks);
        assert!(heard.answers.iter().all(|answer| answer == "NoError 1"), "{:?}", heard.answers);
        assert_eq!(world.names.count(), before, "{:?}", world.names.all());
        let dialled = ["http dialled.tunnel.test 80 dialled.tunnel.test"];
        let heard = Stage::new(*user).attempts(&["net:connect:*.tunnel.test:80"], &WORLD, &dialled);
        assert_eq!(heard.answers, ["200"], "(control) {}", heard.log);
        assert_eq!(world.names.all()[before..], ["dialled.tunnel.test"]);
    }
}

/// The hosts of the world.
struct World {
    servers: Vec<Seen>,
    names: Seen,
}

impl World {
    fn new() -> Self {
        let (authority, files) = (Authority::new(), Files::default());
        let mut all = Vec::new();
        for host in [GOOD, EVIL, INNER, "169.254.169.254", "127.0.0.1"] {
            all.push(servers::https(&format!("{host}:443"), &authority, &["good.test"], &files));
            all.push(servers::http(&format!("{host}:80"), &files));
            all.push(servers::http(&format!("{host}:8081"), &files));
            all.push(servers::echo(&format!("{host}:7000")));
        }
        let names = servers::dns(NAMES, |name, earlier| match name {
            "inner.test" => vec![INNER],
            "home.test" => vec!["127.0.0.1"],
            "rebind.test" if earlier % 2 == 0 => vec![GOOD],
            "rebind.test" => vec![INNER],
            "mixed.test" => vec![GOOD, INNER],
            _ => vec![EVIL],
        });
        Self { servers: all, names }
    }

    fn reached(&self) -> usize {
        self.servers.iter().map(Seen::count).sum()
    }

    /// Tries the rows as everyone.
    fn holds(&self, rows: &[Row]) {
        let mut wrong = Vec::new();
        for user in users() {
            let stage = Stage::new(*user);
            for row in rows {
                wrong.extend(self.tried(&stage, row).map(|what| format!("{user:?}, {}: {what}", row.name)));
            }
        }
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    }

    fn tried(&self, stage: &Stage, row: &Row) -> Option<String> {
        let before = self.reached();
        let attempts: Vec<&str> = row.tries.iter().map(|(attempt, _)| *attempt).collect();
        let heard = stage.attempts(row.caps, &WORLD, &attempts);
        let reached = self.reached() - before;
        let as_expected = |((_, expected), answer): (&(&str, &str), &String)| match *expected {
            "no: " => answer.starts_with(expected),
            _ => answer == expected,
        };
        let answered = row.tries.iter().zip(&heard.answers).all(as_expected);
        let told = match row.log {
            "" => !heard.log.contains("allowed ") && !heard.log.contains("refused "),
            line => {
                heard.log.lines().any(|told| told == line || line.ends_with(' ') && told.starts_with(line))
            }
        };
        let fine = answered && told && reached == row.reaches;
        (!fine).then(|| format!("{:?}, {reached} reached\n{}", heard.answers, heard.log))
    }
}
