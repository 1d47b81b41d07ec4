//! A placeholder in every place where it may stand by mistake or on purpose, and a value in every coding of a response.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::world::{Heard, Setup, VALUE, World, ok, read_message};

fn each(text: &str, form: fn(u8) -> String) -> String {
    text.bytes().map(form).collect()
}

/// The same text as others write it.
fn forms(text: &str) -> Vec<String> {
    let mut all = vec![
        text.to_owned(),
        each(text, |byte| format!("{byte:02x}")),
        each(text, |byte| format!("{byte:02X}")),
        each(text, |byte| format!("%{byte:02x}")),
        each(text, |byte| format!("\\u{byte:04x}")),
    ];
    for before in ["", "a", "bc"] {
        all.push(STANDARD.encode(format!("{before}{text}")));
        all.push(URL_SAFE.encode(format!("{before}{text}!")));
    }
    all
}

/// A server without TLS, and every byte that it heard.
fn clear_server() -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard: Heard = Arc::new(Mutex::default());
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let keep = Arc::clone(&keep);
            std::thread::spawn(move || {
                keep.lock().unwrap().push(String::new());
                let at = keep.lock().unwrap().len() - 1;
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut piece) {
                    keep.lock().unwrap()[at] += &String::from_utf8_lossy(&piece[..length]);
                    if piece[..length].ends_with(b"\r\n\r\n") || piece[..length].ends_with(b"harmless") {
                        drop(stream.write_all(&ok("fine")));
                    }
                }
            });
        }
    });
    (port, heard)
}

/// What is answered to these bytes in the clear.
fn say(world: &World, host: &str, port: u16, says: &[&str]) -> String {
    let mut stream = world.connect(host, port);
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    for piece in says {
        // Pieces that arrive by themselves.
        drop(stream.write_all(piece.as_bytes()).and_then(|()| stream.flush()));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn no_place_of_plain_http_takes_a_placeholder_to_any_host() {
    crate::trusting!("places::no_place_of_plain_http_takes_a_placeholder_to_any_host");
    let world = World::new(Setup::default());
    let (port, heard) = clear_server();
    let token = world.token().to_owned();
    let host = format!("Host: plain.test:{port}\r\n");
    let get = |line: &str, fields: &str| format!("GET {line} HTTP/1.1\r\n{host}{fields}\r\n");
    for form in forms(&token) {
        let length = form.len();
        let (first, second) = form.split_at(form.len() / 2);
        let requests: Vec<Vec<String>> = vec![
            vec![get(&format!("/{form}"), "")],
            vec![get(&format!("/?a={form}"), "")],
            vec![get("/", &format!("X-Any: {form}\r\n"))],
            vec![get(
                "/",
                &format!("X-{}: any\r\n", token.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
            )],
            vec![get("/", &format!("Cookie: a={form}\r\n"))],
            // What a URL with a user becomes.
            vec![get("/", &format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{token}:x"))))],
            vec![get(&format!("http://{token}@plain.test:{port}/"), "")],
            vec![get(&format!("http://plain.test:{port}/{form}"), "")],
            vec![format!("POST / HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n{form}")],
            vec![
                format!("POST / HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n{first}"),
                second.to_owned(),
            ],
            vec![format!(
                "POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{form}\r\n0\r\n\r\n"
            )],
        ];
        for (at, request) in requests.iter().enumerate() {
            let pieces: Vec<&str> = request.iter().map(String::as_str).collect();
            let answer = say(&world, "plain.test", port, &pieces);
            let all = heard.lock().unwrap().join("\n").to_lowercase();
            // A name of a field is not where the marks of a placeholder may stand: it is another text there.
            let is_sent = forms(&token).iter().any(|form| all.contains(&form.to_lowercase()));
            assert!(!is_sent, "{form} {at}: {answer} {all}");
        }
    }
    assert!(world.was_told("refused plain.test") && world.was_told("placeholder of a secret"));
    world.assert_nothing_leaked();
    // The measure itself.
    let answer = say(&world, "plain.test", port, &[&get("/", "X-Any: harmless\r\n")]);
    assert!(answer.contains("fine") && heard.lock().unwrap().join("").contains("harmless"), "{answer}");
}

#[test]
fn no_raw_connection_takes_a_placeholder() {
    crate::trusting!("places::no_raw_connection_takes_a_placeholder");
    let world = World::new(Setup::default());
    let (port, heard) = clear_server();
    let token = world.token().to_owned();
    for form in forms(&token) {
        let (first, second) = form.split_at(form.len() / 3);
        for pieces in [&["EHLO\r\n", form.as_str(), "\r\n"][..], &["AUTH ", first, second, "\r\n"]] {
            say(&world, "raw.test", port, pieces);
        }
    }
    let all = heard.lock().unwrap().join("\n");
    assert!(!forms(&token).iter().any(|form| all.contains(form)), "{all}");
    assert!(say(&world, "raw.test", port, &["AUTH harmless"]).contains("fine"));
}

#[test]
fn no_name_takes_a_placeholder_out() {
    crate::trusting!("places::no_name_takes_a_placeholder_out");
    let world = World::new(Setup::default());
    let (port, heard) = clear_server();
    let get = format!("GET / HTTP/1.1\r\nHost: any.wild.test:{port}\r\n\r\n");
    assert!(say(&world, "any.wild.test", port, &[&get]).contains("fine"), "the measure itself");
    for name in [
        world.token().to_lowercase(),
        world.token().to_uppercase(),
        each(world.token(), |byte| format!("{byte:02x}")),
    ] {
        let mut labels = name.clone();
        // No label has more than 63 characters.
        labels.truncate(63);
        let answer = say(&world, &format!("{labels}.wild.test"), port, &[&get]);
        assert!(!answer.contains("fine"), "{name}: {answer}");
    }
    assert!(world.was_told("placeholder of a secret"));
    assert_eq!(heard.lock().unwrap().len(), 1);
    world.assert_nothing_leaked();
}

#[test]
fn a_placeholder_that_is_not_passed_on_is_no_leak_at_its_own_host() {
    crate::trusting!("places::a_placeholder_that_is_not_passed_on_is_no_leak_at_its_own_host");
    let world = World::new(Setup::default());
    let token = world.token().to_owned();
    let refused = |answer: &str| answer.starts_with("HTTP/1.1 4") || answer.is_empty();
    let port = world.port;
    let part = format!("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{token}\r\n--b--\r\n");
    for (what, line, fields, body) in [
        ("a user of the address", format!("GET https://{token}@api.test:{port}/"), vec![], String::new()),
        ("a fragment", format!("GET /#{token}"), vec![], String::new()),
        ("the method", token.clone(), vec![], String::new()),
        (
            "a part of a form",
            "POST /".to_owned(),
            vec![
                "Content-Type: multipart/form-data; boundary=b".to_owned(),
                "Transfer-Encoding: chunked".to_owned(),
            ],
            format!("{:x}\r\n{part}\r\n0\r\n\r\n", part.len()),
        ),
    ] {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let answer = world.ask(&line, &fields, &body);
        let heard = world.heard.lock().unwrap().join("\n");
        assert!(!heard.contains(&token) && !heard.contains(VALUE), "{what}: {answer} {heard}");
        assert!(refused(&answer) || what == "a fragment", "{what}: {answer}");
    }
    // What frames a body is made anew, without words of the client's.
    let chunk = format!("4;a={token}\r\nfine\r\n0\r\nX-After: {token}\r\n\r\n");
    world.ask("POST /", &["Transfer-Encoding: chunked"], &chunk);
    world.assert_nothing_leaked();
}

#[test]
fn a_credential_stands_for_itself_in_the_user_of_an_address_too() {
    crate::trusting!("places::a_credential_stands_for_itself_in_the_user_of_an_address_too");
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    // A URL of the form `https://TOKEN@host/` becomes this, and its host is where the value is used.
    for pair in [format!("{}:", world.token()), format!("x-access-token:{}", world.token())] {
        let answer = world.get(&format!("Authorization: Basic {}", STANDARD.encode(&pair)));
        assert!(answer.ends_with("fine"), "{answer}");
        let heard = world.heard.lock().unwrap().pop().unwrap();
        assert!(heard.contains(&STANDARD.encode(pair.replace(world.token(), VALUE))), "{heard}");
    }
}

#[test]
fn a_response_in_any_coding_is_withheld() {
    crate::trusting!("places::a_response_in_any_coding_is_withheld");
    fn coded(request: &str) -> Vec<u8> {
        let coding = request.split(' ').nth(1).unwrap().trim_start_matches('/').replace('_', ", ");
        let value =
            request.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap_or_default();
        let name = if coding.starts_with("te-") { "Transfer-Encoding" } else { "Content-Encoding" };
        let coding = coding.trim_start_matches("te-").to_owned();
        format!("HTTP/1.1 200 OK\r\n{name}: {coding}\r\nContent-Length: {}\r\n\r\n{value}", value.len())
            .into_bytes()
    }
    for coding in [
        "gzip",
        "x-gzip",
        "br",
        "deflate",
        "zstd",
        "compress",
        "aws-chunked",
        "gzip_identity",
        "identity_br",
        "te-gzip",
        "te-gzip_chunked",
    ] {
        let world = World::new(Setup { respond: coded, ..Setup::default() });
        let answer =
            world.ask(&format!("GET /{coding}"), &[&format!("Authorization: Bearer {}", world.token())], "");
        assert!(answer.starts_with("HTTP/1.1 502"), "{coding}: {answer}");
        assert!(!answer.contains(VALUE), "{coding}: {answer}");
    }
    let world = World::new(Setup { respond: coded, ..Setup::default() });
    let mut tls = world.to_api();
    let (port, token) = (world.port, world.token());
    write!(tls, "GET /identity HTTP/1.1\r\nHost: api.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let answer = read_message(&mut tls).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&"*".repeat(VALUE.len())), "{answer}");
}
