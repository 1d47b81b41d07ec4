//! Tokens of an OAuth service: fetched outside with a credential that no request carries, and fetched anew in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bailiwick_broker::{LoadSecret, NamedSource, OAuth, ServiceNames, Source};
use bailiwick_policy::settings::{OAuthGrant, OAuthSetting};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::world::{Heard, Setup, VALUE, World, ok, serve};

const TOKEN: &str = "at-Zx81Kq04Vb77Lp29Tm63Rw58";

/// A service whose tokens last this long; each has a number, and each comes with a new refresh token.
fn service(seconds: u64) -> (u16, Heard) {
    let count = AtomicUsize::new(0);
    let (address, heard) = serve("oauth.test", true, move |request| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        if !request.starts_with("POST /token HTTP/1.1") {
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        ok(&format!(
            "{{\"access_token\":\"{TOKEN}{number}\",\"token_type\":\"Bearer\",\"expires_in\":{seconds},\
             \"refresh_token\":\"{VALUE}-{number}\"}}"
        ))
    });
    (address.port(), heard)
}

fn world(port: u16, grant: OAuthGrant, own: Option<&str>) -> (World, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let setting = OAuthSetting {
        token_url: format!("https://oauth.test:{port}/token"),
        grant,
        client_id: "the client".to_owned(),
        client_secret: own.map(|own| format!("file:{}", file("own", own).display())),
        scope: Some("read".to_owned()),
    };
    let secret = LoadSecret {
        named: NamedSource { name: "TOKEN".to_owned(), source: Source::File(file("basis", VALUE)) },
        oauth: Some(OAuth::try_from(setting).unwrap()),
        hosts: None,
    };
    let names = ServiceNames {
        hosts: [("oauth.test".into(), vec![std::net::Ipv4Addr::LOCALHOST.into()])].into(),
        ..ServiceNames::default()
    };
    (World::new(Setup { token: Some((secret, names)), ..Setup::default() }), directory)
}

#[test]
fn a_request_is_given_a_token_and_never_what_it_was_fetched_with() {
    crate::trusting!("oauth::a_request_is_given_a_token_and_never_what_it_was_fetched_with");
    let (port, asked) = service(3600);
    let (world, _kept) = world(port, OAuthGrant::RefreshToken, Some("the own secret of the client"));
    let field = format!("Authorization: Bearer {}", world.token());
    for _ in 0..3 {
        let answer = world.get(&field);
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains(TOKEN), "{answer}");
    }
    let heard = world.heard.lock().unwrap().join("\n");
    assert_eq!(heard.matches(&format!("authorization: Bearer {TOKEN}0")).count(), 3, "{heard}");
    assert!(!heard.contains(VALUE), "{heard}");
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "kept as long as it is good");
    let own = STANDARD.encode("the%20client:the%20own%20secret%20of%20the%20client");
    assert!(asked[0].contains(&format!("authorization: Basic {own}")), "{asked:?}");
    assert!(
        asked[0].ends_with(&format!("grant_type=refresh_token&refresh_token={VALUE}&scope=read")),
        "{asked:?}"
    );
    // A server that knows the refresh token cannot hand it in either.
    let repeating = world.ask("POST /", &[&field, &format!("Content-Length: {}", VALUE.len())], VALUE);
    assert!(repeating.starts_with("HTTP/1.1 200") && !repeating.contains(VALUE), "{repeating}");
}

#[test]
fn a_token_is_fetched_anew_before_it_is_over() {
    crate::trusting!("oauth::a_token_is_fetched_anew_before_it_is_over");
    let (port, asked) = service(1);
    let (world, _kept) = world(port, OAuthGrant::ClientCredentials, None);
    let field = format!("Authorization: Bearer {}", world.token());
    assert!(world.get(&field).starts_with("HTTP/1.1 200"));
    std::thread::sleep(Duration::from_millis(1200));
    let answer = world.get(&field);
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains(TOKEN), "{answer}");
    let heard = world.heard.lock().unwrap().clone();
    let last = heard.last().unwrap();
    assert!(last.contains(&format!("Bearer {TOKEN}")) && heard[0] != *last, "{heard:?}");
    let asked: Arc<_> = asked;
    let own = STANDARD.encode(format!("the%20client:{}", VALUE));
    for request in asked.lock().unwrap().iter() {
        assert!(request.contains(&format!("authorization: Basic {own}")), "{request}");
        assert!(request.ends_with("grant_type=client_credentials&scope=read"), "{request}");
    }
}

#[test]
fn without_a_token_nothing_starts_and_nothing_of_the_answer_is_said() {
    crate::trusting!("oauth::without_a_token_nothing_starts_and_nothing_of_the_answer_is_said");
    let (address, _) = serve("oauth.test", true, |_| {
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 21\r\n\r\n{\"error\":\"leaks this\"}".to_vec()
    });
    let made = std::panic::catch_unwind(|| world(address.port(), OAuthGrant::RefreshToken, None).0.port);
    let why = *made.unwrap_err().downcast::<String>().unwrap();
    assert!(why.contains("refused with status 400") && !why.contains("leaks this"), "{why}");
}
