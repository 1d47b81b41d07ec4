//! What a brokered request looks like to the server, and its answer to the client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::world::{OTHER, Setup, VALUE, World, ok};

#[test]
fn the_value_takes_the_place_of_the_placeholder_in_fields_for_credentials() {
    crate::trusting!("requests::the_value_takes_the_place_of_the_placeholder_in_fields_for_credentials");
    let world = World::new(Setup { manifest: "[secrets.TOKEN]\nheaders = ['X-Own']\n", ..Setup::default() });
    let token = world.token().to_owned();
    let basic = STANDARD.encode(format!("me:{token}"));
    for (field, heard) in [
        (format!("Authorization: Bearer {token}"), format!("authorization: Bearer {VALUE}")),
        (format!("Authorization: token {token}"), format!("authorization: token {VALUE}")),
        (format!("X-Api-Key: {token}"), format!("x-api-key: {VALUE}")),
        (format!("x-own: {token}"), format!("x-own: {VALUE}")),
        (
            format!("Authorization: Basic {basic}"),
            format!("authorization: Basic {}", STANDARD.encode(format!("me:{VALUE}"))),
        ),
    ] {
        let answer = world.get(&field);
        assert!(answer.starts_with("HTTP/1.1 200"), "{field}: {answer}");
        let last = world.heard.lock().unwrap().pop().unwrap();
        assert!(last.contains(&heard), "{last}");
        assert!(last.contains("accept-encoding: identity"), "{last}");
        // The server repeated it all, and nothing of the value came in.
        let secrets = [VALUE.to_owned(), STANDARD.encode(VALUE), STANDARD.encode(format!("me:{VALUE}"))];
        assert!(
            !secrets.iter().any(|secret| answer.contains(secret.as_str())) && answer.contains("****"),
            "{answer}"
        );
    }
    assert!(world.was_told("with TOKEN"));
}

#[test]
fn query_form_and_json_are_filled_where_the_manifest_names_them() {
    crate::trusting!("requests::query_form_and_json_are_filled_where_the_manifest_names_them");
    let manifest = "[secrets.TOKEN]\nquery = ['key']\nform = ['client_secret']\njson = ['apiKey']\n";
    let world = World::new(Setup { manifest, respond: |_| ok("fine"), ..Setup::default() });
    let token = world.token().to_owned();
    let last = || world.heard.lock().unwrap().pop().unwrap_or_default();
    assert!(world.ask(&format!("GET /a?x=1&key={token}"), &[], "").ends_with("fine"));
    assert!(last().starts_with(&format!("GET /a?x=1&key={VALUE} ")), "in the query");
    let post = |kind: &str, body: &str| {
        let fields = [format!("Content-Type: {kind}"), format!("Content-Length: {}", body.len())];
        world.ask("POST /", &[&fields[0], &fields[1]], body)
    };
    assert!(
        post("application/x-www-form-urlencoded", &format!("a=b&client_secret={token}")).ends_with("fine")
    );
    assert!(last().ends_with(&format!("\r\n\r\na=b&client_secret={VALUE}")), "in a form");
    assert!(post("application/json", &format!("{{\"apiKey\":\"{token}\",\"n\":1}}")).ends_with("fine"));
    assert!(last().ends_with(&format!("\r\n\r\n{{\"apiKey\":\"{VALUE}\",\"n\":1}}")), "in JSON");
    // A name that the manifest does not have is no place for it.
    for answer in [
        world.ask(&format!("GET /a?other={token}"), &[], ""),
        post("application/x-www-form-urlencoded", &format!("secret={token}")),
        post("application/json", &format!("{{\"deep\":{{\"apiKey\":\"{token}\"}}}}")),
    ] {
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("secret-misdirected"), "{answer}");
    }
    assert_eq!(last(), "", "nothing more was passed on");
}

#[test]
fn rules_hold_the_secret_to_methods_and_paths() {
    crate::trusting!("requests::rules_hold_the_secret_to_methods_and_paths");
    let manifest = "[[secrets.TOKEN.rules]]\nmethods = ['GET']\npaths = ['/repos/**']\n";
    let world = World::new(Setup { manifest, ..Setup::default() });
    let field = format!("Authorization: Bearer {}", world.token());
    for line in ["POST /repos/a", "GET /user", "GET /repos/../user", "GET /repos/%2e%2e/user", "get /repos/a"]
    {
        let answer = world.ask(line, &[&field, "Content-Length: 0"], "");
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("secret-rule"), "{line}: {answer}");
    }
    assert!(
        world.ask("DELETE /user", &["Content-Length: 0"], "").starts_with("HTTP/1.1 200"),
        "without the secret"
    );
    assert!(world.ask("GET /repos/a", &[&field], "").starts_with("HTTP/1.1 200"));
}

#[test]
fn each_connection_may_carry_many_requests() {
    crate::trusting!("requests::each_connection_may_carry_many_requests");
    use std::io::Write as _;
    let world =
        World::new(Setup { respond: |request| ok(request.lines().next().unwrap()), ..Setup::default() });
    let mut tls = world.to_api();
    for number in 0..50 {
        let (port, token) = (world.port, world.token());
        write!(
            tls,
            "GET /{number} HTTP/1.1\r\nHost: api.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .unwrap();
        let answer = crate::world::read_message(&mut tls).unwrap();
        assert!(answer.ends_with(&format!("GET /{number} HTTP/1.1")), "{answer}");
    }
    let heard = world.heard.lock().unwrap();
    assert_eq!(heard.iter().filter(|request| request.contains(VALUE)).count(), 50);
    assert!(!heard.iter().any(|request| request.contains(OTHER)));
}
