//! What a client could learn by guessing: from bytes that are held back, from where a value begins in what a server shows, from
//! requests of odd shapes, and by credentials of its own beside a placeholder.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::world::{Heard, Setup, VALUE, World, certificate, ok, read_message};

#[test]
fn no_credential_of_ones_own_stands_beside_a_placeholder() {
    crate::trusting!("guesses::no_credential_of_ones_own_stands_beside_a_placeholder");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    let (token, own) = (world.token().to_owned(), "ghp_0123456789AttackersOwnKey");
    let basic = |pair: &str| format!("Authorization: Basic {}", STANDARD.encode(pair));
    for field in [
        basic(&format!("{token}:{own}")),
        basic(&format!("{own}:{token}")),
        format!("Authorization: Bearer {own}, {token}"),
        format!("Authorization: token {token} {own}"),
        format!("X-Api-Key: {own},{token}"),
    ] {
        let answer = world.get(&field);
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("secret-foreign"), "{field}: {answer}");
    }
    assert!(world.heard.lock().unwrap().is_empty());
    // Names that services ask for beside a token.
    for user in [
        "x-access-token",
        "oauth2accesstoken",
        "00000000-0000-0000-0000-000000000000",
        "a.person@example.com",
    ] {
        let answer = world.get(&basic(&format!("{user}:{token}")));
        assert!(answer.starts_with("HTTP/1.1 200"), "{user}: {answer}");
    }
    assert!(world.get(&basic(&format!("{token}:x-oauth-basic"))).starts_with("HTTP/1.1 200"));
    let manifest = "[secrets.TOKEN]\nforeign = 'allow'\n";
    let allowing = World::new(Setup { manifest, respond: |_| ok("fine"), ..Setup::default() });
    let answer = allowing.get(&basic(&format!("{own}:{}", allowing.token())));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn more_names_for_credentials_are_known() {
    crate::trusting!("guesses::more_names_for_credentials_are_known");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    for field in
        ["Job-Token: own", "Deploy-Token: own", "X-Vault-Token: own", "Ocp-Apim-Subscription-Key: own"]
    {
        assert!(world.get(field).contains("secret-foreign"), "{field}");
    }
    for query in ["sig=own", "AWSAccessKeyId=AKID&Signature=x&Expires=1", "GoogleAccessId=me"] {
        assert!(world.ask(&format!("GET /?{query}"), &[], "").contains("secret-foreign"), "{query}");
    }
    assert!(world.heard.lock().unwrap().is_empty());
    assert!(
        world.ask("GET /?signed=no&page_token=2", &["X-Request-Id: own"], "").starts_with("HTTP/1.1 200")
    );
}

#[test]
fn a_client_does_not_choose_where_the_value_begins() {
    crate::trusting!("guesses::a_client_does_not_choose_where_the_value_begins");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    let token = world.token().to_owned();
    for text in [
        format!("Bearer x{token}"),
        format!("Bearer {token}0"),
        format!("Bearer {token}{token}"),
        format!("Basic {}", STANDARD.encode(format!("me:a{token}"))),
    ] {
        let answer = world.get(&format!("Authorization: {text}"));
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("secret-misdirected"),
            "{text}: {answer}"
        );
    }
    assert!(world.heard.lock().unwrap().is_empty());
    for text in [format!("Token token=\"{token}\""), format!("Bearer {token}")] {
        assert!(world.get(&format!("Authorization: {text}")).starts_with("HTTP/1.1 200"), "{text}");
    }
}

/// A server that begins an answer with what the path says, and then says nothing more.
fn stalling() -> (SocketAddr, Heard) {
    let (chain, key) = certificate("api.test", true);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, keep) = (Arc::clone(&config), Arc::clone(&keep));
            std::thread::spawn(move || {
                let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                let Some(request) = read_message(&mut tls) else { return };
                let guess = request.split(['/', ' ']).nth(2).unwrap().to_owned();
                keep.lock().unwrap().push(request);
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
                drop(write!(tls, "{head}x,{guess}").and_then(|()| tls.flush()));
                // Until the other side has gone.
                drop(read_message(&mut tls));
            });
        }
    });
    (address, heard)
}

/// What comes of an answer until it breaks off; nothing if it does not.
fn until_it_breaks(world: &World, path: &str) -> Option<String> {
    let mut tls = world.to_api();
    let (port, token) = (world.port, world.token());
    write!(tls, "GET /{path} HTTP/1.1\r\nHost: api.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match tls.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => all.extend_from_slice(&piece[..length]),
            Err(fault)
                if matches!(fault.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                return None;
            }
            Err(_) => break,
        }
    }
    let all = String::from_utf8(all).unwrap();
    all.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

#[test]
fn an_answer_that_stops_in_a_guess_does_not_tell_whether_it_is_right() {
    crate::trusting!("guesses::an_answer_that_stops_in_a_guess_does_not_tell_whether_it_is_right");
    let setup = Setup { idle: Duration::from_secs(1), ..Setup::default() };
    let world = World::with_server(setup, stalling());
    for guess in ["g", "x", VALUE.get(..12).unwrap(), "ghp_qXv83LmX"] {
        // It breaks off too: nothing that lies still is kept for ever.
        assert_eq!(until_it_breaks(&world, guess).as_deref(), Some("x,"), "{guess}");
    }
    // What can be no value of any kind is passed on at once.
    assert_eq!(until_it_breaks(&world, "done.").as_deref(), Some("x,done."));
}

#[test]
fn a_body_that_lies_still_is_not_waited_for() {
    crate::trusting!("guesses::a_body_that_lies_still_is_not_waited_for");
    let manifest = "[secrets.TOKEN]\njson = ['key']\n";
    let world = World::new(Setup { idle: Duration::from_secs(1), manifest, ..Setup::default() });
    for kind in ["application/json", "text/plain"] {
        let fields = [&*format!("Content-Type: {kind}"), "Content-Length: 100"];
        let answer = world.ask("POST /", &fields, "{\"key\":");
        assert!(answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 502"), "{kind}: {answer}");
    }
}

#[test]
fn requests_of_odd_shapes_bring_nothing_of_the_value_back() {
    crate::trusting!("guesses::requests_of_odd_shapes_bring_nothing_of_the_value_back");
    let world = World::new(Setup::default());
    let (port, token) = (world.port, world.token().to_owned());
    let bearer = format!("Authorization: Bearer {token}");
    let host = format!("Host: api.test:{port}");
    let get = format!("GET / HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n");
    for (what, text) in [
        ("TRACE", format!("TRACE / HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n")),
        ("OPTIONS of everything", format!("OPTIONS * HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n")),
        (
            "an absolute target",
            format!("GET https://api.test:{port}/ HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n"),
        ),
        ("capitals", format!("GET / HTTP/1.1\r\nHost: API.Test:{port}\r\n{bearer}\r\n\r\n")),
        ("a dot at the end", format!("GET / HTTP/1.1\r\nHost: api.test.:{port}\r\n{bearer}\r\n\r\n")),
        ("a user of the host", format!("GET / HTTP/1.1\r\nHost: me@api.test:{port}\r\n{bearer}\r\n\r\n")),
        ("the same field twice", format!("GET / HTTP/1.1\r\n{host}\r\n{bearer}\r\n{bearer}\r\n\r\n")),
        (
            "a field that goes on in the next line",
            format!("GET / HTTP/1.1\r\n{host}\r\nAuthorization: Bearer\r\n {token}\r\n\r\n"),
        ),
        ("one behind the other", get.repeat(3)),
        ("HTTP/1.0", format!("GET / HTTP/1.0\r\n{host}\r\n{bearer}\r\n\r\n")),
        (
            "waiting to go on",
            format!(
                "POST / HTTP/1.1\r\n{host}\r\n{bearer}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody"
            ),
        ),
        (
            "a name of its own for the hop",
            format!("GET / HTTP/1.1\r\n{host}\r\nConnection: authorization\r\n{bearer}\r\n\r\n"),
        ),
    ] {
        let mut tls = world.to_api();
        drop(tls.write_all(text.as_bytes()));
        let mut said = String::new();
        for _ in 0..text.matches(" HTTP/1.").count() {
            said += &read_message(&mut tls).unwrap_or_default();
        }
        let said = said.to_ascii_lowercase();
        let shows = VALUE
            .to_ascii_lowercase()
            .into_bytes()
            .windows(8)
            .any(|window| said.as_bytes().windows(8).any(|own| own == window));
        assert!(!shows, "{what}: {said}");
        assert!(said.starts_with("http/1.") || said.is_empty(), "{what}: {said}");
    }
    // Whom they reached is the host and no other, and some of them went through.
    assert!(world.strangers.lock().unwrap().is_empty());
    assert!(world.heard.lock().unwrap().iter().any(|request| request.contains(VALUE)));
}
