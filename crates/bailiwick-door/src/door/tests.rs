//! Who is let in, and who is not.

use http::{Request, StatusCode};

use super::*;

const PORT: u16 = 4321;

/// The head of a request with these headers.
fn head(headers: &[(&str, &str)]) -> Parts {
    at("/mcp", headers)
}

fn at(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let request =
        headers.iter().fold(Request::post(uri), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn open(mut head: Parts) -> Result<(), Refusal> {
    DoorRules::for_everyone("/mcp").admit(PORT, &mut head)
}

#[test]
fn the_names_of_the_loopback_interface_come_in() {
    for host in ["localhost:4321", "127.0.0.1:4321", "[::1]:4321", "LOCALHOST:4321"] {
        assert_eq!(open(head(&[("host", host)])), Ok(()), "{host}");
        let origin = format!("http://{host}");
        assert_eq!(open(head(&[("host", host), ("origin", &origin)])), Ok(()), "{origin}");
    }
}

#[test]
fn other_hosts_do_not() {
    let hosts = [
        "evil.example",
        "evil.example:4321",
        "localhost",
        "localhost:4322",
        "localhost.evil.example:4321",
        "127.0.0.1.evil.example:4321",
        "127.0.0.2:4321",
        "0.0.0.0:4321",
        "2130706433:4321",
        "user@localhost:4321",
        "localhost:4321@evil.example",
        "",
    ];
    for host in hosts {
        assert_eq!(open(head(&[("host", host)])), Err(Refusal::Host), "{host}");
    }
    assert_eq!(open(head(&[])), Err(Refusal::Host), "no Host at all");
    assert_eq!(open(head(&[("host", "localhost:4321"), ("host", "evil.example")])), Err(Refusal::Host));
    assert_eq!(open(at("http://evil.example/mcp", &[("host", "localhost:4321")])), Err(Refusal::Host));
    assert_eq!(Refusal::Host.status(), StatusCode::FORBIDDEN);
}

#[test]
fn other_origins_do_not() {
    let origins = [
        "http://evil.example",
        "https://localhost:4321",
        "http://localhost",
        "http://localhost:5173",
        "http://localhost:4321.evil.example",
        "null",
        "",
        "file://",
    ];
    for origin in origins {
        assert_eq!(
            open(head(&[("host", "localhost:4321"), ("origin", origin)])),
            Err(Refusal::Origin),
            "{origin}"
        );
    }
    let twice =
        [("host", "localhost:4321"), ("origin", "http://localhost:4321"), ("origin", "http://evil.example")];
    assert_eq!(open(head(&twice)), Err(Refusal::Origin));
    assert_eq!(Refusal::Origin.status(), StatusCode::FORBIDDEN);
}

#[test]
fn the_token_has_to_be_there_whole_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let token = Token::random().unwrap();
    let file = token.write(&directory.path().join("token")).unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let door = DoorRules::with_token("/mcp", token);
    let ask = |values: &[String]| {
        let mut headers = vec![("host", "localhost:4321")];
        headers.extend(values.iter().map(|value| ("authorization", value.as_str())));
        door.admit(PORT, &mut head(&headers))
    };
    assert_eq!(ask(&[format!("Bearer {text}")]), Ok(()));
    assert_eq!(ask(&[format!("bearer {text}")]), Ok(()));
    let wrong = [
        vec![],
        vec![String::new()],
        vec!["Bearer".to_owned()],
        vec!["Bearer ".to_owned()],
        vec![text.clone()],
        vec![format!("Basic {text}")],
        vec![format!("Bearer {}", text.split_at(63).0)],
        vec![format!("Bearer {text}0")],
        vec![format!("Bearer {}", "0".repeat(64))],
        vec![format!("Bearer {text}"), format!("Bearer {text}")],
    ];
    for values in wrong {
        assert_eq!(ask(&values), Err(Refusal::Token), "{values:?}");
    }
    assert_eq!(Refusal::Token.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn strangers_do_not_learn_which_paths_there_are() {
    let door = DoorRules::with_token("/mcp", Token::random().unwrap());
    assert_eq!(door.admit(PORT, &mut at("/other", &[("host", "localhost:4321")])), Err(Refusal::Token));
    assert_eq!(open(at("/other", &[("host", "localhost:4321")])), Err(Refusal::Path));
}

#[test]
fn credentials_stay_at_the_door() {
    let secrets = [("authorization", "Bearer x"), ("cookie", "a=b"), ("proxy-authorization", "Basic x")];
    let mut headers = vec![("host", "localhost:4321"), ("mcp-method", "tools/list")];
    headers.extend(secrets);
    let mut head = head(&headers);
    DoorRules::for_everyone("/mcp").admit(PORT, &mut head).unwrap();
    for (name, _) in secrets {
        assert!(!head.headers.contains_key(name), "{name}");
    }
    assert!(head.headers.contains_key("mcp-method"));
}

#[test]
fn a_server_under_one_name_knows_no_other() {
    let one = |headers: &[(&str, &str)]| {
        let rules = DoorRules::for_everyone("/mcp").under_one_name(std::net::Ipv4Addr::LOCALHOST.into());
        rules.admit(PORT, &mut head(headers))
    };
    let here = "127.0.0.1:4321";
    assert_eq!(one(&[("host", here)]), Ok(()));
    assert_eq!(one(&[("host", here), ("origin", "http://127.0.0.1:4321")]), Ok(()));
    for other in ["localhost:4321", "[::1]:4321", "127.0.0.1:4322"] {
        assert_eq!(one(&[("host", other)]), Err(Refusal::Host), "{other}");
        let origin = format!("http://{other}");
        assert_eq!(one(&[("host", here), ("origin", &origin)]), Err(Refusal::Origin), "{origin}");
    }
    assert_eq!(one(&[("host", here), ("origin", "null")]), Err(Refusal::Origin));
}

#[test]
fn open_paths_need_no_token_and_others_below_do() {
    let token = || Token::random().unwrap();
    let rules = |token| DoorRules::with_token("/api/", token).with_open_paths(&["/", "/a.js"]);
    let host = ("host", "localhost:4321");
    let admit = |path: &str| rules(token()).admit(PORT, &mut at(path, &[host]));
    assert_eq!((admit("/"), admit("/a.js")), (Ok(()), Ok(())));
    for closed in ["/api/state", "/api/", "/a.js/", "/A.js", "//", "/api", "/../api/state", "/%2e%2e/a.js"] {
        assert_eq!(admit(closed), Err(Refusal::Token), "{closed}");
    }
    let foreign = rules(token()).admit(PORT, &mut at("/a.js", &[host, ("origin", "http://evil.example")]));
    assert_eq!(foreign, Err(Refusal::Origin), "open to this origin alone");
}
