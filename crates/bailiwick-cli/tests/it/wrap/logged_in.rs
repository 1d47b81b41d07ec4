//! `bailiwick login`: against an authorization server on the loopback interface, honest and not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::elsewhere::{Far, Got, json_reply, reply, result, usual, wrap};
use super::{World, Wrapped, call, text};
use crate::network::Authority;

/// How the authorization server is not honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    OtherResource,
    OtherIssuer,
    NoPkce,
    PrivateAddress,
    PlainAddress,
}

/// A server and its authorization server, on one port.
struct Guarded {
    far: Far,
    /// The token that is taken now.
    token: Arc<Mutex<String>>,
}

impl Guarded {
    fn start(fault: Fault) -> Self {
        let token = Arc::new(Mutex::new("access-token-1".to_owned()));
        let now = Arc::clone(&token);
        let far = Far::start(move |got| guarded(got, "http", fault, &now));
        Self { far, token }
    }

    /// An honest one inside TLS.
    fn start_secured(authority: &Authority) -> Self {
        let token = Arc::new(Mutex::new("access-token-1".to_owned()));
        let now = Arc::clone(&token);
        let answer = move |got: &Got| guarded(got, "https", Fault::None, &now);
        Self { far: Far::start_secured(authority, &["127.0.0.1"], answer), token }
    }
}

fn guarded(got: &Got, scheme: &str, fault: Fault, token: &Mutex<String>) -> Vec<u8> {
    let origin = format!("{scheme}://{}", got.header("host").unwrap_or_default());
    let path = got.head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut now = token.lock().expect("a lock");
    match path.as_str() {
        "/mcp" if got.header("authorization") == Some(&format!("Bearer {now}")) => {
            usual(got).unwrap_or_else(|| {
                json_reply(&result(
                    &got.asked().0,
                    &format!("hello {}", got.header("authorization").unwrap_or_default()),
                ))
            })
        }
        "/mcp" => {
            let challenge = format!("www-authenticate: Bearer resource_metadata=\"{origin}/about\"\r\n");
            reply("401 Unauthorized", &challenge, "")
        }
        "/about" => {
            let other = fault == Fault::OtherResource;
            let resource =
                if other { "https://mcp.example.com/mcp".to_owned() } else { format!("{origin}/mcp") };
            json_reply(
                &json!({ "resource": resource, "authorization_servers": [origin], "scopes_supported": ["read"] }),
            )
        }
        "/.well-known/oauth-authorization-server" => {
            let issuer = if fault == Fault::OtherIssuer { "https://evil.example.com" } else { &origin };
            let authorize = match fault {
                Fault::PrivateAddress => "https://10.0.0.1/authorize".to_owned(),
                Fault::PlainAddress => "http://auth.example.com/authorize".to_owned(),
                Fault::None | Fault::OtherResource | Fault::OtherIssuer | Fault::NoPkce => {
                    format!("{origin}/authorize")
                }
            };
            let methods = if fault == Fault::NoPkce { json!(["plain"]) } else { json!(["S256"]) };
            json_reply(&json!({
                "issuer": issuer, "authorization_endpoint": authorize, "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"), "code_challenge_methods_supported": methods,
                "authorization_response_iss_parameter_supported": true,
            }))
        }
        "/register" => {
            reply("201 Created", "content-type: application/json\r\n", r#"{"client_id":"client-7"}"#)
        }
        "/token" if got.body.contains("grant_type=refresh_token") => {
            assert!(got.body.contains("refresh_token=refresh-token-1"), "{got:?}");
            *now = "access-token-2".to_owned();
            json_reply(&json!({ "access_token": *now, "token_type": "Bearer", "expires_in": 3600 }))
        }
        "/token" if got.body.contains("code=good-code") => json_reply(&json!({
            "access_token": *now, "token_type": "bearer", "refresh_token": "refresh-token-1", "expires_in": 3600,
        })),
        "/token" => {
            reply("400 Bad Request", "content-type: application/json\r\n", r#"{"error":"invalid_grant"}"#)
        }
        _ => reply("404 Not Found", "", ""),
    }
}

/// A login that waits for its browser.
struct Waiting {
    child: Child,
    address: String,
}

impl Waiting {
    fn start(world: &World, url: &str) -> Result<Self, String> {
        Self::from_command(world.bailiwick(&["login", url]))
    }

    fn from_command(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        let (mut first, mut address) = (String::new(), String::new());
        said.read_line(&mut first).expect("text");
        if !first.starts_with("open this address") {
            said.read_to_string(&mut first).expect("text");
            assert_eq!(child.wait().expect("it ends").code(), Some(1));
            return Err(first);
        }
        said.read_line(&mut address).expect("text");
        child.stderr = Some(said.into_inner());
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// A parameter of the address, as it stands there.
    fn parameter(&self, name: &str) -> &str {
        let query = self.address.split_once('?').expect("a query").1;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
            .unwrap_or_else(|| panic!("{name}: {query}"))
    }

    /// The browser comes back with this; the status it is answered with.
    fn come_back(&self, query: &str) -> String {
        let redirect = self.parameter("redirect_uri").replace("%3A", ":").replace("%2F", "/");
        let rest = redirect.strip_prefix("http://").expect("plain HTTP");
        let (host, path) = rest.split_once('/').expect("a path");
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "GET /{path}?{query} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn end(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

fn issuer(guarded: &Guarded) -> String {
    format!("http%3A%2F%2F127.0.0.1%3A{}", guarded.far.port)
}

#[test]
fn a_login_is_kept_used_renewed_and_forgotten() {
    let world = World::new();
    let guarded = Guarded::start(Fault::None);
    let url = guarded.far.url();
    let mut bare = wrap(&world, &url, &[]);
    let refused = bare.initialize().to_string();
    assert!(refused.contains(&format!("bailiwick login {url}")), "{refused}");
    drop(bare.end());

    let waiting = Waiting::start(&world, &url).expect("an address");
    assert_eq!(waiting.parameter("code_challenge_method"), "S256");
    assert_eq!((waiting.parameter("client_id"), waiting.parameter("scope")), ("client-7", "read"));
    assert!(waiting.parameter("resource").ends_with("%2Fmcp"));
    let (state, issuer) = (waiting.parameter("state").to_owned(), issuer(&guarded));
    assert_eq!(
        waiting.come_back(&format!("code=good-code&state=guessed&iss={issuer}")),
        "400",
        "and it still waits"
    );
    assert_eq!(waiting.come_back(&format!("code=good-code&state={state}&iss={issuer}")), "200");
    let challenge = waiting.parameter("code_challenge").to_owned();
    let (code, said) = waiting.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("access-token") && !said.contains("refresh-token"), "{said}");
    let exchange =
        guarded.far.got().into_iter().find(|got| got.body.contains("good-code")).expect("an exchange");
    let verifier =
        exchange.body.split("code_verifier=").nth(1).and_then(|rest| rest.split('&').next()).expect("one");
    assert!(verifier.len() >= 43 && verifier != challenge, "{verifier}");
    assert!(exchange.body.contains("resource=http"), "{exchange:?}");

    let logins = world.path(".local/state/bailiwick/logins");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&logins), 0o700);
    for file in std::fs::read_dir(&logins).expect("files").flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.path());
    }

    let mut wrapped = wrap(&world, &url, &[]);
    wrapped.initialize();
    assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "hello Bearer [secret credential]");
    // The server takes it no more: it is renewed, once, and the call goes on.
    *guarded.token.lock().expect("a lock") = "not-a-token".to_owned();
    assert_eq!(text(&wrapped.ask(&call(2, "look", &json!({})))), "hello Bearer [secret credential]");
    assert_eq!(*guarded.token.lock().expect("a lock"), "access-token-2");
    drop(wrapped.end());
    assert!(!world.recorded().contains("access-token"));

    let logout = world.run(&["logout", &url]);
    assert!(logout.status.success(), "{logout:?}");
    let mut bare = wrap(&world, &url, &[]);
    assert!(bare.initialize()["error"].is_object());
    drop(bare.end());
}

#[test]
fn a_login_over_tls_trusts_the_roots_of_the_host_alone() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for (vouches, is_trusted) in [(&authority, true), (&stranger, false)] {
        let world = World::new();
        let roots = world.write("roots.pem", &authority.pem);
        let guarded = Guarded::start_secured(vouches);
        let url = guarded.far.url().replace("http:", "https:");
        let mut command = world.bailiwick(&["login", &url]);
        command.env("SSL_CERT_FILE", &roots);
        let waiting = match Waiting::from_command(command) {
            Ok(waiting) => waiting,
            Err(said) => {
                assert!(!is_trusted && said.contains("certificate"), "{said}");
                assert_eq!(guarded.far.got().len(), 0, "nothing was asked");
                continue;
            }
        };
        assert!(is_trusted && waiting.address.starts_with("https://127.0.0.1:"), "{}", waiting.address);
        let issuer = issuer(&guarded).replace("http%3A", "https%3A");
        let state = waiting.parameter("state").to_owned();
        assert_eq!(waiting.come_back(&format!("code=good-code&state={state}&iss={issuer}")), "200");
        assert_eq!(waiting.end().0, Some(0));
        let manifest = world.write("far.toml", "name = 'far'\nversion = '1'\n[[tools]]\nname = 'look'\n");
        let mut command = world.bailiwick(&["wrap", "--manifest"]);
        command.arg(manifest).args(["--url", &url]).env("SSL_CERT_FILE", &roots);
        let mut wrapped = Wrapped::spawned(command);
        wrapped.initialize();
        assert_eq!(text(&wrapped.ask(&call(1, "look", &json!({})))), "hello Bearer [secret credential]");
        drop(wrapped.end());
    }
}

#[test]
fn several_that_find_the_login_expired_renew_it_once() {
    let world = World::new();
    let guarded = Guarded::start(Fault::None);
    let url = guarded.far.url();
    let waiting = Waiting::start(&world, &url).expect("an address");
    let (state, issuer) = (waiting.parameter("state").to_owned(), issuer(&guarded));
    assert_eq!(waiting.come_back(&format!("code=good-code&state={state}&iss={issuer}")), "200");
    assert_eq!(waiting.end().0, Some(0));
    let mut all = Vec::new();
    for _ in 0..6 {
        let mut wrapped = wrap(&world, &url, &[]);
        wrapped.initialize();
        all.push(wrapped);
    }
    *guarded.token.lock().expect("a lock") = "not-a-token".to_owned();
    for wrapped in &mut all {
        wrapped.send(&call(1, "look", &json!({})));
    }
    for mut wrapped in all {
        assert_eq!(text(&wrapped.next()), "hello Bearer [secret credential]");
        drop(wrapped.end());
    }
    let renewed = guarded.far.got().into_iter().filter(|got| got.body.contains("grant_type=refresh_token"));
    assert_eq!(renewed.count(), 1, "a refresh token counts once");
}

#[test]
fn a_login_that_is_not_for_this_server_is_none() {
    for (fault, expected) in [
        (Fault::OtherResource, "are for `https://mcp.example.com/mcp`"),
        (Fault::OtherIssuer, "are of `https://evil.example.com`"),
        (Fault::NoPkce, "S256"),
        (Fault::PrivateAddress, "private address"),
        (Fault::PlainAddress, "not encrypted"),
    ] {
        let world = World::new();
        let guarded = Guarded::start(fault);
        let said = Waiting::start(&world, &guarded.far.url()).err().unwrap_or_else(|| panic!("{fault:?}"));
        assert!(said.contains(expected), "{fault:?}: {said}");
    }
}

#[test]
fn what_the_browser_brings_back_names_its_issuer() {
    for (iss, expected) in
        [("&iss=https%3A%2F%2Fevil.example.com", "another issuer"), ("", "does not name its issuer")]
    {
        let world = World::new();
        let guarded = Guarded::start(Fault::None);
        let waiting = Waiting::start(&world, &guarded.far.url()).expect("an address");
        let state = waiting.parameter("state").to_owned();
        assert_eq!(waiting.come_back(&format!("code=good-code&state={state}{iss}")), "200");
        let (code, said) = waiting.end();
        assert!(code == Some(1) && said.contains(expected), "{said}");
        assert!(!guarded.far.got().iter().any(|got| got.body.contains("good-code")), "the code went nowhere");
    }
    let world = World::new();
    let guarded = Guarded::start(Fault::None);
    let waiting = Waiting::start(&world, &guarded.far.url()).expect("an address");
    let query = format!("error=access_denied&state={}&iss={}", waiting.parameter("state"), issuer(&guarded));
    waiting.come_back(&query);
    let (code, said) = waiting.end();
    assert!(code == Some(1) && said.contains("access_denied"), "{said}");
}

#[test]
fn servers_are_named_by_manifests_of_the_user() {
    let world = World::new();
    let missing = world.run(&["login", "tickets"]);
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    std::fs::create_dir_all(world.path(".config/bailiwick/servers")).expect("a directory");
    let manifest = "name = 'tickets'\nversion = '1'\n[package]\nidentity = 'https://mcp.example.com/mcp'\n\
                    [[tools]]\nname = 'look'\ncapabilities = []\n";
    world.write(".config/bailiwick/servers/tickets.toml", manifest);
    let known = world.run(&["logout", "tickets"]);
    let said = String::from_utf8_lossy(&known.stdout).into_owned();
    assert!(known.status.success() && said.contains("https://mcp.example.com/mcp"), "{said}");
}
