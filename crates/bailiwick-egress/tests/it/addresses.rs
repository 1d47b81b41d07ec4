//! Where names lead, and addresses by themselves.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use bailiwick_egress::{Limits, Resolver};

use crate::servers::{self, Answer};
use crate::world::{World, in_world, test_name};

const PUBLIC: &str = "93.184.216.34";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// A world that asks a name server of the test's own, each time anew.
fn asking(grants: &[&str]) -> World {
    let limits = Limits { answer: Duration::ZERO, ..Limits::default() };
    World::with(grants, &[], limits, |options| {
        options.resolver = Resolver::Server("192.0.2.53:53".parse().unwrap())
    })
}

fn reaches(world: &World, name: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let address = std::net::SocketAddr::new(world.address(name).unwrap(), 80);
    let Ok(mut stream) = world.connect_to(address) else { return false };
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    drop(stream.write_all(request.as_bytes()));
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.1 200 OK"
}

#[test]
fn an_answer_with_one_private_address_is_refused_as_a_whole() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&[
        "net:connect:*.test:80",
        "net:connect:10.0.0.7:80",
        "net:connect:opted.test:80?blockPrivate=false",
    ]);
    let seen: Vec<_> = [PUBLIC, "10.0.0.1", "10.0.0.7", "127.0.0.1", "169.254.169.254"]
        .map(|ip| servers::http(&format!("{ip}:80")))
        .into();
    let hits = || seen.iter().map(servers::Seen::count).sum::<usize>();
    servers::dns("192.0.2.53:53", |name, _| match name {
        "public.test." => vec![Answer::Ip(PUBLIC)],
        "mixed.test." => vec![Answer::Ip(PUBLIC), Answer::Ip("10.0.0.1")],
        "mixed6.test." => vec![Answer::Ip(PUBLIC), Answer::Ip("fd00::1")],
        "local.test." => vec![Answer::Ip("127.0.0.1")],
        "metadata.test." => vec![Answer::Ip("169.254.169.254")],
        "mapped.test." => vec![Answer::Ip("::ffff:10.0.0.1")],
        "nat64.test." => vec![Answer::Ip("64:ff9b::a00:1")],
        "named.test." => vec![Answer::Ip("10.0.0.7")],
        "opted.test." => vec![Answer::Ip("10.0.0.1")],
        _ => vec![],
    });
    for refused in ["mixed.test", "mixed6.test", "local.test", "metadata.test", "mapped.test", "nat64.test"] {
        assert!(!reaches(&world, refused), "{refused}");
        assert!(
            world
                .told
                .lines()
                .contains(&format!("refused {refused}:80: the name leads to a private address"))
        );
    }
    assert!(!reaches(&world, "unnamed.test"));
    assert_eq!(hits(), 0, "no host was dialled");
    for allowed in ["public.test", "named.test", "opted.test"] {
        assert!(reaches(&world, allowed), "{allowed}: {:?}", world.told.lines());
    }
    assert_eq!(hits(), 3);
}

#[test]
fn a_name_that_turns_private_is_refused_from_then_on() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:a.test:80"]);
    let (public, local) = (servers::http(&format!("{PUBLIC}:80")), servers::http("127.0.0.1:80"));
    servers::dns("192.0.2.53:53", |_, earlier| {
        vec![Answer::Ip(if earlier == 0 { PUBLIC } else { "127.0.0.1" })]
    });
    assert!(reaches(&world, "a.test"));
    assert!(!reaches(&world, "a.test") && !reaches(&world, "a.test"));
    assert_eq!((public.count(), local.count()), (1, 0));
}

#[test]
fn the_address_that_was_judged_is_the_one_that_is_dialled() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:a.test:80"]);
    let (public, local) = (servers::http(&format!("{PUBLIC}:80")), servers::http("127.0.0.1:80"));
    // Every question after the first gets another answer; one connection asks once.
    servers::dns("192.0.2.53:53", |_, earlier| {
        vec![Answer::Ip(if earlier == 0 { PUBLIC } else { "127.0.0.1" })]
    });
    assert!(reaches(&world, "a.test"));
    assert_eq!((public.count(), local.count()), (1, 0));
    let pinned = world.told.lines();
    assert_eq!(pinned, ["allowed a.test:80 GET /"]);
}

#[test]
fn aliases_and_long_answers_lead_to_the_name_that_was_asked() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:*.test:80"]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    servers::dns("192.0.2.53:53", |name, _| match name {
        "a.test." => vec![Answer::Alias("cdn.example."), Answer::IpOf("cdn.example.", PUBLIC)],
        "trap.test." => vec![Answer::Alias("cdn.example."), Answer::IpOf("cdn.example.", "127.0.0.1")],
        "stray.test." => vec![Answer::IpOf("other.example.", PUBLIC)],
        "long.test." => vec![Answer::OverTcpOnly, Answer::Ip(PUBLIC)],
        _ => vec![],
    });
    assert!(reaches(&world, "a.test") && reaches(&world, "long.test"));
    assert!(!reaches(&world, "trap.test") && !reaches(&world, "stray.test"));
    let alias = world.exchange("a.test", 80, b"GET / HTTP/1.1\r\nHost: cdn.example\r\n\r\n");
    assert!(String::from_utf8_lossy(&alias).starts_with("HTTP/1.1 403"), "the alias is not the name");
    assert_eq!(seen.count(), 2);
}

#[test]
fn an_address_is_refused_in_every_spelling() {
    if !in_world(test_name!()) {
        return;
    }
    let world =
        World::new(&["net:connect:a.test:80", "net:connect:198.51.100.0/24:80"], &[("a.test", PUBLIC)]);
    let seen = servers::http(&format!("{PUBLIC}:80"));
    for spelling in [
        "93.184.216.34",
        "0x5db8d822",
        "1572395042",
        "0135.0270.0330.042",
        "93.12113954",
        "93.184.55330",
        "[::ffff:93.184.216.34]",
        "[::ffff:5db8:d822]",
        "[64:ff9b::5db8:d822]",
    ] {
        let text = format!("{spelling}:80");
        let address: SocketAddr = text.to_socket_addrs().unwrap().next().unwrap();
        assert!(world.exchange_with(address, GET).is_empty(), "{spelling}");
    }
    assert_eq!(seen.count(), 0);
    let refused = format!("refused {PUBLIC}:80: not granted");
    assert!(
        world.told.lines().iter().filter(|line| **line == refused).count() >= 8,
        "{:?}",
        world.told.lines()
    );
    for synthetic in ["44.128.9.9:80", "[3062:6169:6c69:7769::99]:80"] {
        assert!(
            world.exchange_with(synthetic.parse().unwrap(), GET).is_empty(),
            "an address of ours that stands for no name"
        );
    }
}

#[test]
fn an_address_or_block_is_reached_when_it_is_granted() {
    if !in_world(test_name!()) {
        return;
    }
    use std::io::{Read as _, Write as _};
    let world = World::new(&["net:connect:93.184.216.0/24:80", "net:connect:10.0.0.1:80"], &[]);
    for ip in [PUBLIC, "10.0.0.1"] {
        servers::http(&format!("{ip}:80"));
        let mut stream = world.connect_to(format!("{ip}:80").parse().unwrap()).unwrap();
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {ip}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).unwrap();
    }
    assert!(world.exchange_with("10.0.0.2:80".parse().unwrap(), GET).is_empty());
}

#[test]
fn addresses_kept_for_names_are_no_way_to_real_hosts() {
    if !in_world(test_name!()) {
        return;
    }
    let seen = servers::everywhere(80);
    let get = |world: &World, ip: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: {ip}\r\nConnection: close\r\n\r\n");
        !world.exchange_with(format!("{ip}:80").parse().unwrap(), request.as_bytes()).is_empty()
    };
    let wide = World::new(&["net:connect:*:80"], &[("a.test", PUBLIC)]);
    let name = wide.address("a.test").unwrap();
    assert!(name.to_string().starts_with("44.128.") && !get(&wide, "44.128.9.9"));
    assert_eq!(seen.count(), 0);
    wide.told.wait_for("net-address-reserved");
    assert_eq!(wide.told.grant("net-address-reserved"), None);
    assert!(get(&wide, PUBLIC), "(control) {:?}", wide.told.lines());
    let granted = World::new(&["net:connect:44.128.9.9:80", "net:connect:a.test:80"], &[("a.test", PUBLIC)]);
    assert!(get(&granted, "44.128.9.9"), "{:?}", granted.told.lines());
    assert!(granted.address("a.test").unwrap().to_string().starts_with("29.98."), "the block has moved");
    assert!(!get(&granted, "44.128.9.8") && reaches(&granted, "a.test"));
}
