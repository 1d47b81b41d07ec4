//! TLS itself: nothing before the handshake is over, no second handshake, and 1xx responses.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::world::{Setup, VALUE, World};

/// What `openssl s_client` says, through the allowlist.
fn openssl(world: &World, options: &[&str], says: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("ca.pem");
    std::fs::write(&list, &world.bundle).unwrap();
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-proxy",
            &world.front.to_string(),
            "-servername",
            "api.test",
            "-verify_return_error",
        ])
        .args(["-connect", &format!("api.test:{}", world.port), "-CAfile"])
        .arg(&list)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for text in says {
        // One line at a time: a line that is a command of its own has to be read alone.
        std::thread::sleep(Duration::from_millis(300));
        drop(input.write_all(text.as_bytes()));
    }
    std::thread::sleep(Duration::from_millis(300));
    drop(input);
    let output = child.wait_with_output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn get(world: &World, path: &str) -> String {
    let (port, token) = (world.port, world.token());
    format!("GET {path} HTTP/1.1\r\nHost: api.test:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")
}

#[test]
fn nothing_is_read_before_the_handshake_is_over() {
    crate::trusting!("tls::nothing_is_read_before_the_handshake_is_over");
    let world = World::new(Setup::default());
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(place("early"), get(&world, "/early")).unwrap();
    let said = openssl(&world, &["-tls1_3", "-sess_out", &place("session")], &[&get(&world, "/first")]);
    assert!(said.contains("HTTP/1.1 200"), "{said}");
    assert!(std::fs::exists(place("session")).unwrap(), "there is a session to go on with");
    world.heard.lock().unwrap().clear();
    let again = ["-tls1_3", "-sess_in", &place("session"), "-early_data", &place("early")];
    let said = openssl(&world, &again, &[]);
    assert!(said.contains("Early data was not sent") || said.contains("Early data was rejected"), "{said}");
    assert!(world.heard.lock().unwrap().is_empty(), "{:?}", world.heard.lock().unwrap());
}

#[test]
fn no_second_handshake_is_made_on_a_connection() {
    crate::trusting!("tls::no_second_handshake_is_made_on_a_connection");
    let world = World::new(Setup::default());
    let said = openssl(&world, &["-tls1_2"], &[&get(&world, "/first")]);
    assert!(said.contains("HTTP/1.1 200"), "the same without a second handshake: {said}");
    world.heard.lock().unwrap().clear();
    let said = openssl(&world, &["-tls1_2"], &["R\n", &get(&world, "/second")]);
    assert!(said.contains("RENEGOTIATING") && !said.contains("HTTP/1.1 200"), "{said}");
    assert!(world.heard.lock().unwrap().is_empty(), "{:?}", world.heard.lock().unwrap());
}

#[test]
fn a_response_before_the_response_is_not_passed_on() {
    crate::trusting!("tls::a_response_before_the_response_is_not_passed_on");
    let respond: fn(&str) -> Vec<u8> = |_| {
        let early = format!(
            "HTTP/1.1 103 Early Hints\r\nLink: <{VALUE}>\r\n\r\nHTTP/1.1 100 Continue\r\nX: {VALUE}\r\n\r\n"
        );
        (early + &format!("HTTP/1.1 200 {VALUE}\r\nX: {VALUE}\r\nContent-Length: 4\r\n\r\nfine")).into_bytes()
    };
    let world = World::new(Setup { respond, ..Setup::default() });
    let answer = world.get("Accept: */*");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains(&VALUE.to_ascii_lowercase()), "{answer}");
}

#[test]
fn a_response_with_a_value_in_the_name_of_a_field_is_withheld() {
    crate::trusting!("tls::a_response_with_a_value_in_the_name_of_a_field_is_withheld");
    let respond: fn(&str) -> Vec<u8> =
        |_| format!("HTTP/1.1 200 OK\r\nX-{VALUE}: y\r\nContent-Length: 0\r\n\r\n").into_bytes();
    let world = World::new(Setup { respond, ..Setup::default() });
    let answer = world.get("Accept: */*");
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("secret-response"), "{answer}");
    assert!(
        !answer.to_ascii_lowercase().contains(&VALUE.get(4..12).unwrap().to_ascii_lowercase()),
        "{answer}"
    );
}
