//! Client hellos that name another host in a second place: another record, another hello, another kind of name.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use crate::servers::{self, Seen};
use crate::tls::{client, hears, hiding_hello};
use crate::world::{World, in_world, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";
const DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// A change of ciphers, as clients send it for old middleboxes.
const CHANGE: [u8; 6] = [20, 3, 3, 0, 1, 1];
/// A server hello with the random value that asks for another hello.
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

fn hello(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    client(name, true).write_tls(&mut bytes).unwrap();
    bytes
}

/// The hello with its name replaced by another of the same length.
fn renamed(name: &str, other: &[u8]) -> Vec<u8> {
    let mut bytes = hello(name);
    let at = bytes.windows(name.len()).position(|part| part == name.as_bytes()).unwrap();
    bytes[at..at + other.len()].copy_from_slice(other);
    bytes
}

fn record(message: &[u8]) -> Vec<u8> {
    [&[22, 3, 1], &u16::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

fn retry() -> Vec<u8> {
    let body = [&[3, 3][..], &RETRY, &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
    record(&[&[2, 0, 0, u8::try_from(body.len()).unwrap()], &*body].concat())
}

fn world() -> World {
    let grants = ["net:connect:a.test:443", "net:connect:93.184.216.34:443", "net:connect:9.9.9.9:443"];
    World::new(&grants, &[("a.test", PUBLIC)])
}

/// Waits until the server has this many bytes of its last connection.
fn wait_for_bytes(seen: &Seen, count: usize) -> Vec<u8> {
    for _ in 0..1_000 {
        if let Some(last) = seen.all().pop().filter(|last| last.len() >= count) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{:?} of {count}", seen.all().pop().map(|last| last.len()))
}

#[test]
fn a_first_hello_that_names_anything_else_is_never_passed_on() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world();
    let seen = servers::answering(&format!("{PUBLIC}:443"), retry());
    let (good, evil) = (hello("a.test"), hello("evil.test"));
    let two_in_one = record(&[&good[5..], &evil[5..]].concat());
    let cut: Vec<u8> = evil[5..].chunks(7).flat_map(record).collect();
    let between = [&record(&good[5..50])[..], &[23, 3, 3, 0, 1, 0], &record(&good[50..])].concat();
    for (what, bytes) in [
        ("another name", evil.clone()),
        ("another name, in records of seven bytes", cut),
        ("a second hello in the same record", two_in_one),
        ("an alert first", [&[21, 3, 3, 0, 2, 1, 0][..], &evil].concat()),
        ("early data first", [&[23, 3, 3, 0, 1, 0][..], &evil].concat()),
        ("a record of another kind inside", between),
        ("records without content", [&[22, 3, 1, 0, 0].repeat(40)[..], &evil].concat()),
        ("a name with NUL", renamed("a.test", b"a.tes\0")),
        ("a name with a space", renamed("a.test", b"a test")),
        ("a name of bytes", renamed("a.test", b"a.tes\xff")),
        ("an empty label", renamed("a.test", b"a..est")),
        ("a wildcard", renamed("a.test", b"*.test")),
        ("the address of the name", renamed("93-184-216-34", PUBLIC.as_bytes())),
        ("a hidden name", hiding_hello("a.test")),
        ("SSL 2", b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10".to_vec()),
        ("a server's hello", retry()),
    ] {
        world.exchange("a.test", 443, &bytes);
        assert_eq!(seen.count(), 0, "{what}");
    }
    let mut stream = world.connect("a.test", 443);
    stream.write_all(&good).unwrap();
    assert_eq!(wait_for_bytes(&seen, good.len()), good, "(control) the name itself");
}

#[test]
fn an_address_in_place_of_a_name_is_that_address_or_another() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world();
    let seen = servers::answering(&format!("{PUBLIC}:443"), retry());
    let to = SocketAddr::new(PUBLIC.parse().unwrap(), 443);
    for other in ["93.184.216.35", "193.84.216.34", "127.000.00.01"] {
        assert_eq!(world.exchange_with(to, &renamed("93-184-216-34", other.as_bytes())), DENIED, "{other}");
    }
    assert_eq!(seen.count(), 0);
    let own = renamed("93-184-216-34", b"93.184.216.34");
    let mut stream = world.connect_to(to).unwrap();
    stream.write_all(&own).unwrap();
    assert_eq!(wait_for_bytes(&seen, own.len()), own, "(control) the address itself");
}

#[test]
fn a_second_hello_is_judged_like_the_first() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world();
    let seen = servers::answering(&format!("{PUBLIC}:443"), retry());
    let good = hello("a.test");
    for (what, second) in [
        ("another name", hello("evil.test")),
        ("another name behind a change of ciphers", [&CHANGE[..], &hello("evil.test")].concat()),
        ("another name behind early data", [&[23, 3, 3, 0, 2, 7, 7][..], &hello("evil.test")].concat()),
        ("another name behind an alert", [&[21, 3, 3, 0, 2, 1, 0][..], &hello("evil.test")].concat()),
        ("a hidden name", hiding_hello("a.test")),
        ("two hellos in one record", record(&[&good[5..], &hello("evil.test")[5..]].concat())),
        ("no TLS", b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_vec()),
        ("a record of no kind", [&[99, 3, 3, 0, 1, 0][..], &hello("evil.test")].concat()),
    ] {
        for pipelined in [false, true] {
            let mut stream = world.connect("a.test", 443);
            if pipelined {
                stream.write_all(&[&good[..], &second].concat()).unwrap();
            } else {
                stream.write_all(&good).unwrap();
                stream.read_exact(&mut vec![0; retry().len()]).unwrap();
                // The refusal may come before all of it is written.
                drop(stream.write_all(&second));
            }
            read_all(&mut stream);
            let text = String::from_utf8_lossy(&wait_for_bytes(&seen, good.len())).into_owned();
            assert!(!text.contains("evil"), "{what}, {pipelined}");
            assert_eq!(text.matches("a.test").count(), 1, "{what}, {pipelined}");
        }
    }
    world.told.wait_for("net-tls-name-other");
    world.told.wait_for("net-tls-name-hidden");
    for size in [1, 10_000] {
        let mut stream = world.connect("a.test", 443);
        stream.set_nodelay(true).unwrap();
        stream.write_all(&good).unwrap();
        stream.read_exact(&mut vec![0; retry().len()]).unwrap();
        let second = [&CHANGE[..], &good, b"rest"].concat();
        second.chunks(size).for_each(|piece| stream.write_all(piece).unwrap());
        let whole = [&good[..], &second].concat();
        assert_eq!(wait_for_bytes(&seen, whole.len()), whole, "(control) the same name again, by {size}");
    }
}

#[test]
fn a_real_server_that_asks_again_is_served() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world();
    // The client guesses another group than the only one that the server has.
    let mut provider = rustls::crypto::ring::default_provider();
    provider.kx_groups = vec![rustls::crypto::ring::kx_group::SECP384R1];
    servers::tls_with(&format!("{PUBLIC}:443"), "a.test", provider);
    assert_eq!(hears(world.connect("a.test", 443), "a.test", true).unwrap(), "hello");
    assert!(hears(world.connect("a.test", 443), "evil.test", true).is_err());
}
