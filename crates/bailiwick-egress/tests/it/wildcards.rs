//! Names below a wildcard: each is looked up outside once a connection is made, so their number is bounded.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use bailiwick_egress::{Egress, Front, Limits, Resolver};
use hickory_proto::rr::RecordType;

use crate::servers::{self, Answer, Seen};
use crate::world::{World, hosts, in_world, network, options, query, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";
const SERVER: &str = "192.0.2.53:53";
const MOST: usize = 3;

fn limits() -> Limits {
    Limits {
        wildcard_names: MOST,
        wildcard_lookups_a_second: 1_000,
        answer: Duration::ZERO,
        hello: Duration::from_secs(2),
        ..Limits::default()
    }
}

fn world(grants: &[&str]) -> (World, Seen) {
    let world = World::with(grants, &[], limits(), |options| {
        options.resolver = Resolver::Server(SERVER.parse().unwrap());
    });
    (world, servers::dns(SERVER, |_, _| vec![Answer::Ip(PUBLIC)]))
}

/// The different names that were asked for outside.
fn names(asked: &Seen) -> Vec<String> {
    let text = asked.text();
    let mut names: Vec<String> = text.split_inclusive("test.").map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_names_below_a_wildcard_are_counted_whatever_is_spoken() {
    if !in_world(test_name!()) {
        return;
    }
    let http = |name: &str| format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    // What is said, to which port; `-` says nothing and goes away.
    for (number, (said, port)) in
        [("http", 80), ("tls", 443), ("raw", 22), ("other", 80), ("-", 80)].into_iter().enumerate()
    {
        let zone = format!("z{number}.test");
        let grants = [80, 443].map(|port| format!("net:connect:*.{zone}:{port}"));
        let grants = [&*grants[0], &*grants[1], &*format!("net:connect:*.{zone}:22?protocol=raw")];
        let server = format!("192.0.2.{}:53", 60 + number);
        let asked = servers::dns(&server, |_, _| vec![Answer::Ip(PUBLIC)]);
        let world = World::with(&grants, &[], limits(), |options| {
            options.resolver = Resolver::Server(server.parse().unwrap());
        });
        for number in 0..10 {
            let name = format!("secret{number}.{zone}");
            let bytes = match said {
                "http" => http(&name).into_bytes(),
                "tls" => b"\x16\x03\x01\x00\x05hello".to_vec(),
                "other" => b"\0\0\0\x08".to_vec(),
                _ => Vec::new(),
            };
            let address = SocketAddr::new(world.address(&name).unwrap(), port);
            if let Ok(mut stream) = world.connect_to(address) {
                drop(stream.write_all(&bytes));
                drop(stream.shutdown(std::net::Shutdown::Write));
                read_all(&mut stream);
            }
        }
        world.told.wait_for("net-wildcard-spent");
        assert_eq!(names(&asked).len(), MOST, "{said}: {}", asked.text());
        let spent = world.told.lines().iter().filter(|line| line.contains("below this wildcard")).count();
        assert_eq!(spent, 10 - MOST, "each refusal is told: {:?}", world.told.lines());
    }
}

#[test]
fn one_name_counts_once_and_names_that_are_spelt_out_do_not_count() {
    if !in_world(test_name!()) {
        return;
    }
    let grants = ["net:connect:*.zone.test:80", "net:connect:own.test:80", "net:connect:*.other.test:80"];
    let (world, asked) = world(&grants);
    let get = |name: &str| {
        let host = name.trim_end_matches('.').to_owned();
        let told = world.exchange(name, 80, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        String::from_utf8_lossy(&told).into_owned()
    };
    // There is no listener outside: what may be looked up is reported as unreachable.
    for spelling in ["a.zone.test", "A.Zone.TEST", "a.zone.test.", "a.ZONE.test"] {
        assert!(get(spelling).starts_with("HTTP/1.1 502"), "{spelling}");
    }
    assert!(get("b.c.d.e.zone.test").starts_with("HTTP/1.1 502"), "labels below labels");
    assert!(get("c.zone.test").starts_with("HTTP/1.1 502"));
    assert_eq!(get("d.zone.test"), "");
    assert_eq!(world.told.grant("net-wildcard-spent"), None, "a name below a wildcard adds nothing to it");
    for free in ["a.zone.test", "own.test", "a.other.test"] {
        assert!(get(free).starts_with("HTTP/1.1 502"), "{free}");
    }
    let (_, v6) = world.inside(|| query("127.0.0.53:53", "e.zone.test.", RecordType::AAAA));
    let told =
        world.exchange_with(SocketAddr::new(v6[0], 80), b"GET / HTTP/1.1\r\nHost: e.zone.test\r\n\r\n");
    assert_eq!(told, b"", "over v6 too");
    let left = ["a.other.test.", "a.zone.test.", "b.c.d.e.zone.test.", "c.zone.test.", "own.test."];
    assert_eq!(names(&asked), left);
}

#[test]
fn the_proxy_counts_them_too() {
    if !in_world(test_name!()) {
        return;
    }
    // Brings the network of the test up.
    let _world = World::new(&[], &[]);
    let asked = servers::dns(SERVER, |_, _| vec![Answer::Ip("127.0.0.1")]);
    let (mut options, told) = options(hosts(&[]), limits());
    options.resolver = Resolver::Server(SERVER.parse().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _running =
        Egress::new(&network(&["net:connect:*.zone.test"]), options).front(Front::Tcp(listener)).unwrap();
    for number in 0..10 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("CONNECT secret{number}.zone.test:443 HTTP/1.1\r\n\r\n").as_bytes())
            .unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        read_all(&mut stream);
    }
    told.wait_for("net-wildcard-spent");
    assert_eq!(names(&asked).len(), MOST, "{}", asked.text());
}
