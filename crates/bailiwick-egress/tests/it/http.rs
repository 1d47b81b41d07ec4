//! Plain HTTP: every request on a connection is for the host the connection is for.

use std::io::{Read as _, Write as _};

use crate::servers;
use crate::world::{World, in_world, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";

fn world(grants: &[&str]) -> World {
    World::new(grants, &[("a.test", PUBLIC), ("b.test", PUBLIC)])
}

#[test]
fn a_request_for_another_host_never_arrives() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:connect:a.test:80", "net:connect:b.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    for request in [
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = String::from_utf8_lossy(&world.exchange("a.test", 80, request.as_bytes())).into_owned();
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{request}: {answer}");
    }
    assert_eq!(seen.count(), 0);
    let fine =
        world.exchange("a.test", 80, b"GET /x HTTP/1.1\r\nHost: A.TEST.:80\r\nConnection: close\r\n\r\n");
    drop(fine);
    assert!(
        seen.text().starts_with("GET /x HTTP/1.1\r\nHost: A.TEST.:80\r\n"),
        "passed on as it was: {}",
        seen.text()
    );
    assert!(world.told.lines().contains(&"allowed a.test:80 GET /x".to_owned()), "{:?}", world.told.lines());
}

#[test]
fn the_second_request_of_a_connection_is_judged_like_the_first() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:connect:a.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    let first = "POST /one HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody";
    for (second, pipelined) in [
        ("GET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n", false),
        ("GET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n", true),
        ("GET http://evil.test/two HTTP/1.1\r\nHost: a.test\r\n\r\n", false),
        (
            "POST /two HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            false,
        ),
    ] {
        let mut stream = world.connect("a.test", 80);
        let both = format!("{first}{second}");
        stream.write_all(if pipelined { both.as_bytes() } else { first.as_bytes() }).unwrap();
        if !pipelined {
            let mut answer = [0; 43];
            stream.read_exact(&mut answer).unwrap();
            stream.write_all(second.as_bytes()).unwrap();
        }
        read_all(&mut stream);
        assert!(!seen.text().contains("/two"), "{second}");
    }
    // A refused request may take the one that was sent in the same breath with it.
    assert!((3..=4).contains(&seen.count()), "{}", seen.count());
    let chunked =
        "POST /c HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let mut stream = world.connect("a.test", 80);
    stream.write_all(format!("{chunked}GET /three HTTP/1.1\r\nHost: a.test\r\n\r\n").as_bytes()).unwrap();
    let mut answers = [0; 86];
    stream.read_exact(&mut answers).unwrap();
    assert!(seen.text().contains("/three"), "honest requests follow one another");
}

#[test]
fn bodies_cannot_smuggle_requests() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:connect:a.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    let inner = "GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for head in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
    ] {
        world.exchange(
            "a.test",
            80,
            format!("POST / HTTP/1.1\r\nHost: a.test\r\n{head}\r\n{inner}").as_bytes(),
        );
    }
    let chunked = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["5;\nx\r\n", "0\r\nHost: evil.test\r\n\r\n", "3\r\nabcd\r\n", "zz\r\n"] {
        world.exchange("a.test", 80, format!("{chunked}{body}{inner}").as_bytes());
    }
    assert!(!seen.text().contains("hidden"), "{}", seen.text());
}

#[test]
fn methods_and_paths_hold() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(&["net:http:GET@http://a.test/api"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    for line in ["POST /api", "GET /other", "get /api", "GET /apix"] {
        let request = format!("{line} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let answer = String::from_utf8_lossy(&world.exchange("a.test", 80, request.as_bytes())).into_owned();
        assert!(answer.contains("Bailiwick-Code: net-request-not-granted"), "{line}: {answer}");
    }
    assert_eq!(seen.count(), 0);
    let mut stream = world.connect("a.test", 80);
    stream.write_all(b"GET /api/x?y=z HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    let mut answer = [0; 43];
    stream.read_exact(&mut answer).unwrap();
    stream.write_all(b"DELETE /api/x HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    assert_eq!(read_all(&mut stream), b"", "the second method is not granted");
    assert!(!seen.text().contains("DELETE"));
}
