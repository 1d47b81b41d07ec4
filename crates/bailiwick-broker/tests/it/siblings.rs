//! Ways around what holds: fields and parameters that some servers take for another method, path or host, and a form of the form
//! in which a value was sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::world::{Setup, VALUE, World, ok};

const RULES: &str = "[[secrets.TOKEN.rules]]\nmethods = ['GET', 'POST']\npaths = ['/repos/**']\n";

#[test]
fn no_field_and_no_parameter_widens_the_rules_of_a_secret() {
    crate::trusting!("siblings::no_field_and_no_parameter_widens_the_rules_of_a_secret");
    let world = World::new(Setup { manifest: RULES, respond: |_| ok("fine"), ..Setup::default() });
    let token = format!("Authorization: Bearer {}", world.token());
    let tried = [
        ("POST /repos/a", "X-HTTP-Method-Override: DELETE"),
        ("POST /repos/a", "x_http_method: DELETE"),
        ("GET /repos/a", "X-Method-Override: DELETE"),
        ("GET /repos/a", "X-Original-URL: /admin"),
        ("GET /repos/a", "X-Rewrite-Url: /admin"),
        ("POST /repos/a?_method=DELETE", "X-A: b"),
        ("POST /repos/a?a=b&%5Fmethod=DELETE", "X-A: b"),
        ("POST /repos/a?X-HTTP-Method-Override=DELETE", "X-A: b"),
    ];
    for (line, field) in tried {
        let fields = [token.as_str(), field, "Content-Length: 0"];
        let answer = world.ask(line, &fields, "");
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("secret-rule"),
            "{line} {field}: {answer}"
        );
        assert!(world.heard.lock().unwrap().is_empty(), "{line} {field}");
        // Without the secret it is a request as any other.
        assert!(world.ask(line, &fields[1..], "").ends_with("fine"), "{line} {field}");
        world.heard.lock().unwrap().clear();
    }
    assert!(world.ask("POST /repos/a?method=b", &[&token, "Content-Length: 0"], "").ends_with("fine"));
    assert!(world.heard.lock().unwrap().join("").contains(VALUE));
    // Where the secret may be used on every request, a method that is named twice changes nothing.
    let free = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    let token = format!("Authorization: Bearer {}", free.token());
    assert!(
        free.ask("POST /a", &[&token, "X-HTTP-Method-Override: PUT", "Content-Length: 0"], "")
            .ends_with("fine")
    );
}

#[test]
fn no_field_names_another_host() {
    crate::trusting!("siblings::no_field_names_another_host");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    let token = format!("Authorization: Bearer {}", world.token());
    for field in [
        "X-Forwarded-Host: evil.test",
        "x_forwarded_host: evil.test",
        "X-Forwarded-Host: api.test, evil.test",
        "X-Original-Host: evil.test",
        "X-Host: evil.test",
        "X-Forwarded-Server: evil.test",
        "X-HTTP-Host-Override: evil.test",
        "Forwarded: for=1.2.3.4;host=evil.test",
        "Forwarded: for=1.2.3.4; HOST = evil.test",
    ] {
        let answer = world.ask("GET /", &[&token, field], "");
        assert!(answer.contains("net-http-host-other"), "{field}: {answer}");
        assert!(world.heard.lock().unwrap().is_empty(), "{field}");
    }
    for field in
        ["X-Forwarded-Host: api.test", "Forwarded: for=1.2.3.4;proto=https", "X-Forwarded-For: 1.2.3.4"]
    {
        assert!(world.ask("GET /", &[&token, field], "").ends_with("fine"), "{field}");
    }
}

/// What was sent, as a server writes it down: the whole field in base64, in hexadecimal, in small letters.
fn described(request: &str) -> Vec<u8> {
    let field = request.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default();
    let hex: String = field.bytes().map(|byte| format!("{byte:02x}")).collect();
    ok(&format!(
        "{} {hex} {} {}",
        STANDARD.encode(field),
        field.to_ascii_lowercase(),
        field.to_ascii_uppercase()
    ))
}

#[test]
fn what_a_server_makes_of_basic_has_nothing_of_a_value() {
    crate::trusting!("siblings::what_a_server_makes_of_basic_has_nothing_of_a_value");
    let world = World::new(Setup { respond: described, ..Setup::default() });
    for user in ["", "u", "me", "you", "x-access-token"] {
        let pair = STANDARD.encode(format!("{user}:{}", world.token()));
        let answer = world.get(&format!("Authorization: Basic {pair}"));
        let sent = STANDARD.encode(format!("{user}:{VALUE}"));
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let raw = String::from_utf8(described(&format!("authorization: Basic {sent}\r\n"))).unwrap();
        let raw = raw.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(body.len(), raw.len(), "{answer}");
        // What both have in common is not of the value: the user, and the ends that it shares characters with.
        let most = STANDARD.encode(format!("Basic {}", STANDARD.encode(user))).len() + 12;
        let most = most.max(2 * (10 + user.len() * 2));
        for (said, own) in body.split(' ').zip(raw.split(' ')) {
            let start = said.bytes().zip(own.bytes()).take_while(|(said, own)| said == own).count();
            let end = said.bytes().rev().zip(own.bytes().rev()).take_while(|(said, own)| said == own).count();
            assert!(start + end <= most, "{user}: {start} and {end} of {most}: {said}");
            assert!(
                said.len() < 40 || said.len() == start + end + said.matches('*').count(),
                "{user}: {said}"
            );
        }
        assert!(body.matches('*').count() > VALUE.len() * 5, "{body}");
    }
}
