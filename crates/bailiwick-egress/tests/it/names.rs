//! The name server inside: what exists, in which spelling, and that nothing leaves through it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};

use bailiwick_egress::{Limits, Resolver};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use crate::servers::{self, Answer};
use crate::world::{World, answered, in_world, query, question, read_all, test_name};

#[test]
fn a_name_is_one_name_in_every_spelling() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test:80", "net:connect:münchen.test:80"], &[]);
    let plain = world.address("a.test").unwrap();
    for spelling in ["a.test.", "A.TEST", "a.TesT."] {
        assert_eq!(world.address(spelling), Some(plain), "{spelling}");
    }
    assert!(
        world.address("xn--mnchen-3ya.test").is_some() && world.address("XN--MNCHEN-3YA.test.").is_some()
    );
    for other in ["b.test", "a.test.evil.test", "aa.test", "xn--mnchen-3yb.test", "a-test"] {
        assert_eq!(world.address(other), None, "{other}");
    }
}

#[test]
fn a_reply_comes_from_the_address_that_was_asked_and_over_tcp_too() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test:80"], &[]);
    for server in ["127.0.0.53:53", "8.8.8.8:53", "10.1.2.3:53"] {
        let (code, found) = world.inside(move || query(server, "a.test.", RecordType::A));
        assert_eq!((code, found), (ResponseCode::NoError, vec![IpAddr::from([44, 128, 0, 1])]), "{server}");
    }
    let (code, over_tcp) = world.inside(|| {
        let mut stream = TcpStream::connect("[2001:4860:4860::8888]:53").unwrap();
        let question = question("a.test.", RecordType::AAAA);
        let mut found = None;
        for _ in 0..2 {
            stream.write_all(&u16::try_from(question.len()).unwrap().to_be_bytes()).unwrap();
            stream.write_all(&question).unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut bytes).unwrap();
            found = Some(answered(&bytes));
        }
        found.unwrap()
    });
    assert_eq!((code, over_tcp.len()), (ResponseCode::NoError, 1));
    let hung_up = world.inside(|| {
        let mut stream = TcpStream::connect("8.8.8.8:53").unwrap();
        stream.write_all(b"\xff\xffGET / HTTP/1.1\r\n\r\n").unwrap();
        read_all(&mut stream)
    });
    assert!(hung_up.is_empty());
}

#[test]
fn labels_under_a_wildcard_leave_only_when_dialled_and_then_slowly() {
    if !in_world(test_name!()) {
        return;
    }
    let limits = Limits { wildcard_lookups_a_second: 1, ..Limits::default() };
    let world =
        World::with(&["net:connect:*.zone.test:80", "net:connect:exact.test:80"], &[], limits, |options| {
            options.resolver = Resolver::Server("192.0.2.53:53".parse().unwrap());
        });
    let asked = servers::dns("192.0.2.53:53", |_, _| vec![Answer::Ip("93.184.216.34")]);
    for number in 0..200 {
        assert!(world.address(&format!("secret{number}.zone.test")).is_some());
    }
    world.inside(|| {
        for number in 0..50 {
            assert_eq!(
                query("9.9.9.9:53", &format!("x{number}.evil.test."), RecordType::TXT).0,
                ResponseCode::NXDomain
            );
        }
    });
    assert_eq!(asked.count(), 0, "what is only asked for does not leave");
    for number in 0..100 {
        drop(world.exchange(&format!("secret{number}.zone.test"), 80, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    }
    let left = asked.count();
    assert!((10..=14).contains(&left), "a burst of ten, then one a second: {left}");
    world.told.wait_for("net-wildcard-spent");
    drop(world.exchange("exact.test", 80, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(
        asked.text().contains("exact.test."),
        "a name that is spelt out carries nothing and is not rationed"
    );
}

/// A query for a name in its bytes on the wire.
fn wire_query(labels: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in labels {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label);
    }
    bytes.extend(b"\0\0\x01\0\x01");
    bytes
}

#[test]
fn odd_names_are_granted_names_or_none() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test:80", "net:connect:*.zone.test:80"], &[]);
    let long = [b'x'; 63];
    let name_of = |labels: &[&[u8]]| {
        let query = wire_query(labels);
        world.inside(move || {
            let client = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            client.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            client.connect("127.0.0.53:53").unwrap();
            client.send(&query).unwrap();
            let mut bytes = [0; 2048];
            let length = client.recv(&mut bytes).unwrap();
            !answered(&bytes[..length]).1.is_empty()
        })
    };
    let granted: &[&[&[u8]]] = &[
        &[b"a", b"test"],
        &[b"A", b"TEST"],
        &[b"_x", b"zone", b"test"],
        &[b"x_y", b"zone", b"test"],
        &[&long, b"zone", b"test"],
        &[&long, &long, &long, b"zone", b"test"],
        &[b"xn--mnchen-3ya", b"zone", b"test"],
    ];
    for labels in granted {
        assert!(name_of(labels), "{labels:?}");
    }
    let refused: &[&[&[u8]]] = &[
        // A dot, NUL, space or slash in a label; bytes beyond ASCII; homoglyphs as bytes.
        &[b"a.test"],
        &[b"x.zone", b"test"],
        &[b"evil.test\0", b"zone", b"test"],
        &[b"a b", b"zone", b"test"],
        &[b"a/b", b"zone", b"test"],
        &[b"a\\046", b"zone", b"test"],
        &["\u{430}".as_bytes(), b"test"],
        &["a\u{3002}test".as_bytes()],
        &[b"\xff", b"zone", b"test"],
        // A-labels that are none, or that stand for plain letters.
        &[b"xn--", b"zone", b"test"],
        &[b"xn--a", b"zone", b"test"],
        &[b"xn--a-", b"test"],
        &[b"xn--80a", b"test"],
        // Dashes and wildcards at the ends; the zone itself; suffixes and search lists.
        &[b"-x", b"zone", b"test"],
        &[b"x-", b"zone", b"test"],
        &[b"*", b"zone", b"test"],
        &[b"zone", b"test"],
        &[b"xzone", b"test"],
        &[b"a", b"test", b"corp", b"example"],
        &[b"a", b"test", b"local"],
        &[b"a"],
        &[b"test"],
        &[],
        // Numbers that some resolvers take for addresses.
        &[b"1", b"2", b"3", b"4"],
        &[b"0x7f", b"1"],
        &[b"1", b"0", b"0", b"127", b"in-addr", b"arpa"],
        // Names of this machine that no rule has.
        &[b"localhost", b"localdomain"],
        &[b"ip6-localhost"],
        &[b"x", b"localhost"],
        &[b"metadata", b"google", b"internal"],
    ];
    for labels in refused {
        let shown: Vec<_> = labels.iter().map(|label| String::from_utf8_lossy(label)).collect();
        assert!(!name_of(labels), "{shown:?}");
    }
}

#[test]
fn more_names_than_the_limit_fail_and_are_told() {
    if !in_world(test_name!()) {
        return;
    }
    let limits = Limits { names: 3, ..Limits::default() };
    let world = World::with(&["net:connect:*.zone.test"], &[], limits, |_| {});
    let codes: Vec<ResponseCode> = (0..5)
        .map(|n| world.inside(move || query("127.0.0.53:53", &format!("n{n}.zone.test."), RecordType::A).0))
        .collect();
    assert_eq!(codes[2..], [ResponseCode::NoError, ResponseCode::ServFail, ResponseCode::ServFail]);
    world.told.wait_for("net-too-many-names");
}
