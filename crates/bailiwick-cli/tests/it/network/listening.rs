//! Being reached from outside: on the ports that are granted, at the addresses that are granted, and nowhere else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::WORLD;
use super::ending::Talk;
use super::world::{Stage, in_world, test_name, users};

/// Who serves inside, and at which addresses of the host it is reached.
struct Row {
    caps: &'static [&'static str],
    serve: &'static str,
    reached: &'static [&'static str],
    unreached: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        caps: &["net:listen:7070"],
        serve: "serve 127.0.0.1:7070",
        reached: &["127.0.0.1:7070", "[::1]:7070"],
        unreached: &["127.0.0.1:7071", "93.184.216.34:7070", "[2606:2800::1]:7070"],
    },
    Row {
        caps: &["net:listen:7070"],
        serve: "serve 0.0.0.0:7070",
        reached: &["127.0.0.1:7070"],
        unreached: &["93.184.216.34:7070"],
    },
    Row {
        caps: &["net:listen:7070"],
        serve: "serve [::1]:7070",
        reached: &["127.0.0.1:7070", "[::1]:7070"],
        unreached: &[],
    },
    Row {
        caps: &["net:listen:93.184.216.34:7070"],
        serve: "serve 127.0.0.1:7070",
        reached: &["93.184.216.34:7070"],
        unreached: &["127.0.0.1:7070", "[::1]:7070", "93.184.216.35:7070"],
    },
    Row {
        caps: &["net:listen:7070", "net:connect:good.test:443", "net:connect:localhost:7000-7100"],
        serve: "serve 127.0.0.1:7070",
        reached: &["127.0.0.1:7070"],
        unreached: &["93.184.216.34:7070"],
    },
    // The same server without the grant: no client reaches it.
    Row {
        caps: &[],
        serve: "serve 0.0.0.0:7070",
        reached: &[],
        unreached: &["127.0.0.1:7070", "[::1]:7070", "93.184.216.34:7070"],
    },
    Row {
        caps: &["net:listen:7071", "net:connect:good.test:443"],
        serve: "serve 0.0.0.0:7070",
        reached: &[],
        unreached: &["127.0.0.1:7070", "127.0.0.1:7071", "[::1]:7070", "93.184.216.34:7070"],
    },
];

#[test]
fn a_server_is_reached_where_it_is_granted_and_nowhere_else() {
    if !in_world(test_name!()) {
        return;
    }
    for user in users() {
        let stage = Stage::new(*user);
        for row in ROWS {
            let mut run = stage.client(row.caps, &WORLD).spawn().unwrap();
            let mut talk = Talk::new(run.stdin.take().unwrap(), run.stdout.take().unwrap());
            assert_eq!(talk.tried(row.serve).as_deref(), Some("serving"), "{:?}", row.caps);
            for place in row.reached {
                // More than one connection, and both directions.
                for round in 0..3 {
                    assert!(echoes(place), "{:?} {place} {round}", row.caps);
                }
            }
            for place in row.unreached {
                assert!(!echoes(place), "{:?} {place}", row.caps);
            }
            drop(talk);
            let told = run.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&told.stderr).into_owned();
            for place in row.reached {
                assert!(told.contains(&format!("accepted {place} from ")), "{place}\n{told}");
            }
        }
    }
}

#[test]
fn a_port_is_held_by_one_sandbox_and_given_back() {
    if !in_world(test_name!()) {
        return;
    }
    for user in users() {
        let stage = Stage::new(*user);
        let mut first = stage.client(&["net:listen:7070"], &WORLD).spawn().unwrap();
        let mut talk = Talk::new(first.stdin.take().unwrap(), first.stdout.take().unwrap());
        assert_eq!(talk.tried("serve 127.0.0.1:7070").as_deref(), Some("serving"));
        let second = stage.client(&["net:listen:7070"], &WORLD).output().unwrap();
        let told = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(125), "{told}");
        assert!(told.contains("cannot listen on 127.0.0.1:7070: Address already in use"), "{told}");
        // One without the grant has a port of its own with that number, which takes nothing away.
        let mut third = stage.client(&[], &WORLD).spawn().unwrap();
        let mut other = Talk::new(third.stdin.take().unwrap(), third.stdout.take().unwrap());
        assert_eq!(other.tried("serve 127.0.0.1:7070").as_deref(), Some("serving"));
        assert_eq!(exchanged("127.0.0.1:7070", "who").as_deref(), Some("who"));
        assert_eq!(other.tried("served").as_deref(), Some("0"));
        assert_eq!(talk.tried("served").as_deref(), Some("1"));
        drop((talk, other));
        first.wait().unwrap();
        third.wait().unwrap();
        assert!(TcpListener::bind("127.0.0.1:7070").is_ok(), "the port is free again");
    }
}

#[test]
fn a_connection_before_there_is_a_server_is_reset_and_told() {
    if !in_world(test_name!()) {
        return;
    }
    let stage = Stage::new(users()[0]);
    let mut run = stage.client(&["net:listen:7070"], &WORLD).spawn().unwrap();
    let mut talk = Talk::new(run.stdin.take().unwrap(), run.stdout.take().unwrap());
    assert_eq!(talk.tried("wait 0").as_deref(), Some("waited"));
    assert!(!echoes("127.0.0.1:7070"));
    assert_eq!(talk.tried("serve 127.0.0.1:7070").as_deref(), Some("serving"));
    assert!(echoes("127.0.0.1:7070"), "(control)");
    drop(talk);
    let told = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("refused 127.0.0.1:7070: a connection from outside was refused"), "{told}");
}

fn echoes(place: &str) -> bool {
    exchanged(place, "ping").as_deref() == Some("ping")
}

fn exchanged(place: &str, text: &str) -> Option<String> {
    let place: SocketAddr = place.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&place, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).ok()?;
    String::from_utf8(back).ok()
}
