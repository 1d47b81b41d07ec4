//! IPv6: literals, scopes, embedded v4 addresses, and addresses of ours that stand for no name.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use hickory_proto::rr::RecordType;

use crate::servers;
use crate::world::{World, in_world, query, test_name};

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_V6: &str = "2606:2800:21f:cb07::34";

fn status(world: &World, address: SocketAddr, host: &str) -> Option<String> {
    let mut stream = world.connect_to(address).ok()?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head[9..]).into_owned())
}

fn at(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 80)
}

#[test]
fn no_literal_is_reached_that_is_not_granted() {
    if !in_world(test_name!()) {
        return;
    }
    let grants = ["net:connect:a.test:80", "net:connect:six.test:80", "net:connect:[2606:2800::/64]:80"];
    let world = World::new(&grants, &[("a.test", PUBLIC), ("six.test", PUBLIC_V6)]);
    let dialled = servers::everywhere(80);
    let _six = world.address("six.test");
    for literal in [
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "::93.184.216.34",
        "::ffff:0:93.184.216.34",
        "64:ff9b::93.184.216.34",
        "64:ff9b:1::93.184.216.34",
        "2002:5db8:d822::1",
        "2001:0:5db8:d822::1",
        PUBLIC_V6,
        "2606:2800:0:1::",
        "2606:27ff:ffff:ffff:ffff:ffff:ffff:ffff",
        "fd00::1",
        "fe80::1",
        "ff02::1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        // Of our own blocks, but of no name.
        "3062:6169:6c69:7769::",
        "3062:6169:6c69:7769::7",
        "3062:6169:6c69:7769:0:1::1",
        "3062:6169:6c69:776a::1",
        "44.128.0.0",
        "44.128.0.7",
        "44.128.255.255",
    ] {
        let host = if literal.contains(':') { format!("[{literal}]") } else { literal.to_owned() };
        assert_eq!(status(&world, at(literal), &host), None, "{literal}");
    }
    let scoped =
        |ip: &str, flow, scope| SocketAddr::V6(SocketAddrV6::new(ip.parse().unwrap(), 80, flow, scope));
    assert_eq!(status(&world, scoped("fe80::1", 0, 1), "[fe80::1]"), None, "with a scope");
    assert_eq!(dialled.count(), 0, "{}", dialled.text());
    // (control) What is granted is reached, by each of its own addresses.
    let (_, v6) = world.inside(|| query("127.0.0.53:53", "a.test.", RecordType::AAAA));
    let IpAddr::V4(v4) = world.address("a.test").unwrap() else { panic!("an A record is of v4") };
    for own in [v6[0], IpAddr::V4(v4), IpAddr::V6(v4.to_ipv6_mapped())] {
        assert_eq!(status(&world, SocketAddr::new(own, 80), "a.test").as_deref(), Some("200"), "{own}");
    }
    let flow = scoped(&v6[0].to_string(), 7, 0);
    assert_eq!(status(&world, flow, "a.test").as_deref(), Some("200"), "a flow label is no other address");
    assert_eq!(status(&world, at("2606:2800::7"), "[2606:2800::7]").as_deref(), Some("200"));
    assert_eq!(dialled.text(), format!("{PUBLIC} {PUBLIC} {PUBLIC} {PUBLIC} 2606:2800::7 "));
}

#[test]
fn an_address_stands_for_its_name_on_granted_ports_only() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(
        &["net:connect:a.test:80", "net:connect:b.test:5432"],
        &[("a.test", PUBLIC), ("b.test", PUBLIC_V6)],
    );
    let dialled = [80, 5432].map(servers::everywhere);
    let v6 = |name: &'static str| world.inside(move || query("127.0.0.53:53", name, RecordType::AAAA)).1[0];
    let (a, b) = (v6("a.test."), v6("b.test."));
    for (ip, port, host) in [
        (a, 5432, "a.test"),
        (b, 80, "b.test"),
        (a, 80, "b.test"),
        (b, 5432, "a.test"),
        (a, 22, "a.test"),
        (a, 12_345, "a.test"),
    ] {
        let told = status(&world, SocketAddr::new(ip, port), host);
        assert!(matches!(told.as_deref(), None | Some("403")), "{host} {port}: {told:?}");
    }
    assert_eq!(dialled.iter().map(servers::Seen::count).sum::<usize>(), 0);
    assert_eq!(status(&world, SocketAddr::new(a, 80), "a.test").as_deref(), Some("200"));
    assert_eq!(
        status(&world, SocketAddr::new(b, 5432), "b.test:5432").as_deref(),
        Some("200"),
        "over v6 alone"
    );
}

#[test]
fn an_address_in_a_request_is_not_the_name() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(
        &["net:connect:a.test:80", "net:connect:[2606:2800:21f:cb07::34]:80"],
        &[("a.test", PUBLIC)],
    );
    let dialled = servers::everywhere(80);
    let a = SocketAddr::new(world.address("a.test").unwrap(), 80);
    for host in [
        PUBLIC,
        "[::ffff:93.184.216.34]",
        "[2606:2800:21f:cb07::34]",
        "[::1]",
        "44.128.0.1",
        "[3062:6169:6c69:7769::1]",
        "[fe80::1%25lo]",
        "[fe80::1%lo]",
        "[v1.a]",
        "[a.test]",
        "2606:2800:21f:cb07::34",
    ] {
        assert_eq!(status(&world, a, host).as_deref(), Some("403"), "{host}");
    }
    let six: Ipv6Addr = PUBLIC_V6.parse().unwrap();
    for host in ["a.test", "[2606:2800:21f:cb07::35]", "localhost"] {
        assert_eq!(status(&world, SocketAddr::new(six.into(), 80), host).as_deref(), Some("403"), "{host}");
    }
    assert_eq!(dialled.count(), 0, "{}", dialled.text());
    for spelling in ["[2606:2800:21f:cb07::34]", "[2606:2800:021F:CB07:0:0:0:0034]:80"] {
        assert_eq!(
            status(&world, SocketAddr::new(six.into(), 80), spelling).as_deref(),
            Some("200"),
            "{spelling}"
        );
    }
}
