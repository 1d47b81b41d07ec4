//! Other protocols, other ports, the sandbox's own servers, and the end of the supervisor.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::servers;
use bailiwick_testkit::skip;

use crate::world::{World, in_world, query, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";

#[test]
fn other_bytes_need_their_own_grant_and_servers_may_speak_first() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(
        &["net:connect:a.test", "net:connect:ssh.test:22?protocol=raw"],
        &[("a.test", PUBLIC), ("ssh.test", "93.184.216.35")],
    );
    servers::serve("93.184.216.35:22", |mut stream| {
        stream.write_all(b"SSH-2.0-server\r\n").unwrap();
        let mut said = [0; 4];
        stream.read_exact(&mut said).unwrap();
        stream.write_all(&said).unwrap();
    });
    let seen = servers::echo(&format!("{PUBLIC}:5432"));
    let mut ssh = world.connect("ssh.test", 22);
    let mut banner = [0; 16];
    ssh.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"SSH-2.0-server\r\n");
    ssh.write_all(b"SSH-").unwrap();
    assert_eq!(read_all(&mut ssh), b"SSH-");
    for bytes in [&b"\0\0\0\x08\x04\xd2\x16\x2f"[..], b"SSH-2.0-x\r\n", b"\x05\x01\0", b"hello\n"] {
        assert!(world.exchange("a.test", 5432, bytes).is_empty());
    }
    let grant = world.told.grant("net-protocol-not-granted");
    assert_eq!(grant.as_deref(), Some("net:connect:a.test:5432?protocol=raw"));
    assert!(world.told.lines().iter().any(|line| line.ends_with("which needs `?protocol=raw`")));
    assert_eq!(seen.count(), 0);
    assert!(world.exchange("ssh.test", 443, b"x").is_empty());
    world.told.wait_for("net-port-not-granted");
}

#[test]
fn a_server_that_speaks_first_is_named_as_raw() {
    if !in_world(test_name!()) {
        return;
    }
    let limits = bailiwick_egress::Limits { hello: Duration::from_millis(200), ..Default::default() };
    let world = World::with(&["net:connect:a.test"], &[("a.test", PUBLIC)], limits, |_| {});
    let seen = servers::serve_banner(&format!("{PUBLIC}:22"));
    assert!(world.exchange("a.test", 22, b"").is_empty(), "the client waits for the server");
    let grant = world.told.grant("net-hello-late");
    assert_eq!(grant.as_deref(), Some("net:connect:a.test:22?protocol=raw"));
    assert_eq!(seen.count(), 0);
    let world = World::with(&[&*grant.unwrap()], &[("a.test", PUBLIC)], limits, |_| {});
    assert_eq!(world.exchange("a.test", 22, b""), b"SSH-2.0-server\r\n", "with the grant that was named");
}

#[test]
fn every_port_is_answered_where_the_kernel_redirects() {
    if !in_world(test_name!()) {
        return;
    }
    if std::process::Command::new("nft").arg("--version").output().is_err() {
        return skip("no nft here");
    }
    let world = World::redirected(
        &["net:connect:a.test:8000-8999?protocol=raw", "net:connect:[2606:2800::]:9?protocol=raw"],
        &[("a.test", PUBLIC)],
    );
    servers::echo(&format!("{PUBLIC}:8765"));
    servers::echo("[2606:2800::]:9");
    for mut stream in
        [world.connect("a.test", 8765), world.connect_to("[2606:2800::]:9".parse().unwrap()).unwrap()]
    {
        stream.write_all(b"ping").unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"ping");
    }
    assert!(world.exchange("a.test", 9000, b"ping").is_empty());
    world.told.wait_for("net-port-not-granted");
    let own = world.inside(|| {
        let listener = TcpListener::bind("127.0.0.1:8765").unwrap();
        let mut client = TcpStream::connect("127.0.0.1:8765").unwrap();
        client.write_all(b"mine").unwrap();
        let mut word = [0; 4];
        listener.accept().unwrap().0.read_exact(&mut word).unwrap();
        word
    });
    assert_eq!(&own, b"mine", "the sandbox's own server");
    assert!(
        world.exchange_with("127.0.0.1:12345".parse().unwrap(), b"x").is_empty(),
        "the relay itself is no host"
    );
}

#[test]
fn datagrams_to_others_fail_at_once() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test"], &[("a.test", PUBLIC)]);
    let a = world.address("a.test").unwrap();
    let kind = world.inside(move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect((a, 443)).unwrap();
        socket.send(b"quic").unwrap();
        socket.recv(&mut [0; 8]).unwrap_err().kind()
    });
    assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_granted_loopback_port_is_the_hosts() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:localhost:80"], &[]);
    let seen = servers::http("127.0.0.1:80");
    let mut stream = world.connect_to("127.0.0.1:80".parse().unwrap()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 15]).unwrap();
    assert_eq!(seen.count(), 1);
    let other = "127.0.0.1:443".parse().unwrap();
    assert!(world.exchange_with(other, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").is_empty());
}

#[test]
fn without_the_supervisor_there_is_no_network() {
    if !in_world(test_name!()) {
        return;
    }
    let mut world = World::new(&["net:connect:a.test?protocol=raw"], &[("a.test", PUBLIC)]);
    let seen = servers::echo(&format!("{PUBLIC}:22"));
    let ip = world.address("a.test").unwrap();
    let mut open = world.connect("a.test", 22);
    open.write_all(b"ping").unwrap();
    open.read_exact(&mut [0; 4]).unwrap();
    drop(world.running.take());
    drop(open.write_all(b"ping"));
    assert!(read_all(&mut open).is_empty(), "open connections end");
    let (refused, unanswered) = world.inside(move || {
        let refused = TcpStream::connect_timeout(&(ip, 22).into(), Duration::from_secs(5)).is_err();
        let query = || query("127.0.0.53:53", "a.test.", hickory_proto::rr::RecordType::A);
        (refused, std::panic::catch_unwind(query).is_err())
    });
    assert!(refused && unanswered);
    assert_eq!(seen.count(), 1);
}

#[test]
fn a_client_of_the_system_is_served() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test:443"], &[("a.test", PUBLIC)]);
    let seen = servers::tls(&format!("{PUBLIC}:443"), "a.test");
    let ip = world.address("a.test").unwrap();
    for (name, passes) in [("a.test", true), ("evil.test", false)] {
        let before = seen.count();
        let ran = world.inside(move || {
            let to = format!("{name}:443:{ip}");
            let url = format!("https://{name}/");
            std::process::Command::new("curl")
                .args(["-sk", "-m", "5", "--http0.9", "--resolve", &to, &url])
                .output()
        });
        let Ok(ran) = ran else {
            eprintln!("skipped: no curl here");
            return;
        };
        assert_eq!(ran.stdout == b"hello", passes, "{name}: {ran:?} {:?}", world.told.lines());
        assert_eq!(seen.count() - before, usize::from(passes));
    }
}
