//! The network of a sandbox, tried in a namespace of the test's own.
//!
//! Each test runs itself again under `unshare`, and does its work there.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::FromRawFd as _;
use std::time::Duration;

use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

use super::*;

/// True in the namespace; outside, runs the test called `name` in one and says false.
fn inside(name: &str) -> bool {
    if std::env::var_os("BAILIWICK_TEST_INSIDE").is_some() {
        return true;
    }
    let able = std::process::Command::new("unshare").args(["-Urn", "true"]).status();
    if !able.is_ok_and(|status| status.success()) {
        assert!(
            std::env::var_os("BAILIWICK_REQUIRE").is_none_or(|value| value != "all"),
            "no user namespaces here"
        );
        eprintln!("skipped: no user namespaces here");
        return false;
    }
    let test = format!("sys::netns::tests::{name}");
    let done = std::process::Command::new("unshare")
        .arg("-Urn")
        .arg(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture", "--test-threads=1"])
        .env("BAILIWICK_TEST_INSIDE", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && told.contains("1 passed"), "{told}");
    false
}

fn request(grants: &[&str]) -> Request {
    let grants: Vec<_> = grants.iter().map(|text| text.parse().unwrap()).collect();
    let authority = Authority::from_capabilities(&grants).unwrap();
    let plan = Plan::for_authority("t", &authority, &HostFacts::unknown()).unwrap();
    Request::for_plan(&plan).unwrap()
}

fn opened(request: &Request) -> Sockets {
    let mut sockets = Sockets::new();
    open(request, &mut sockets).unwrap();
    sockets
}

fn listener(descriptor: &mut Option<Descriptor>) -> TcpListener {
    let descriptor = descriptor.take().unwrap();
    let fd = descriptor.0;
    std::mem::forget(descriptor);
    // SAFETY: the descriptor is a listener, and nobody else has it any more.
    unsafe { TcpListener::from_raw_fd(fd) }
}

/// Connects, and says which of two listeners accepted.
fn reaches(address: &str, ours: &TcpListener) -> Option<TcpStream> {
    ours.set_nonblocking(true).unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let client = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    for _ in 0..100 {
        if let Ok((stream, from)) = ours.accept() {
            assert_eq!(from, client.local_addr().unwrap());
            return Some(stream);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Where the kernel says that a redirected v4 connection was meant to go.
fn meant(stream: &TcpStream) -> (IpAddr, u16) {
    use std::os::fd::AsRawFd as _;
    let mut bytes = [0_u8; 16];
    let mut length: libc::socklen_t = 16;
    // SAFETY: the kernel writes at most `length` bytes into the buffer of that size.
    let done = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_IP, 80, bytes.as_mut_ptr().cast(), &raw mut length)
    };
    assert_eq!(done, 0);
    (IpAddr::from([bytes[4], bytes[5], bytes[6], bytes[7]]), u16::from_be_bytes([bytes[2], bytes[3]]))
}

#[test]
fn any_port_is_redirected_and_own_servers_are_not() {
    if !inside("any_port_is_redirected_and_own_servers_are_not") {
        return;
    }
    let mut sockets = opened(&request(&["net:connect:a.test", "net:connect:127.0.0.1:9000-9001"]));
    assert_eq!(sockets.way, Way::Redirected);
    let (v4, v6) = (listener(&mut sockets.relays[0]), listener(&mut sockets.relays[1]));
    for (ip, port) in [("203.0.113.7", 443), ("8.8.8.8", 1), ("10.0.0.1", 65_535), ("198.18.0.1", 22)] {
        let stream = reaches(&format!("{ip}:{port}"), &v4).unwrap();
        assert_eq!(meant(&stream), (ip.parse().unwrap(), port));
    }
    assert!(reaches("[2606:4700::1111]:443", &v6).is_some());
    for own in ["127.0.0.1:8080", "127.9.9.9:8081", "[::1]:8080"] {
        let server = TcpListener::bind(own).unwrap();
        assert!(reaches(own, &server).is_some(), "{own} is the sandbox's own");
    }
    let _own = TcpListener::bind("127.0.0.1:9000").unwrap();
    for granted in ["127.0.0.1:9000", "127.0.0.1:9001"] {
        let stream =
            reaches(granted, &v4).expect("a granted loopback port wins over the sandbox's own server");
        assert_eq!(meant(&stream).1.to_string(), granted.rsplit(':').next().unwrap());
    }
    assert!(reaches("[::1]:9001", &v6).is_some());
    assert!(TcpStream::connect("127.0.0.1:7").is_err(), "nobody listens there");
}

#[test]
fn listeners_stand_in_where_nothing_is_redirected() {
    if !inside("listeners_stand_in_where_nothing_is_redirected") {
        return;
    }
    let wanted = request(&["net:connect:a.test:443", "net:connect:b.test:8000-8001"]);
    let mut sockets = opened(&Request { redirect: false, ..wanted });
    assert_eq!(sockets.way, Way::Listeners);
    assert_eq!(sockets.relays.iter().flatten().count(), 6);
    let relays: Vec<TcpListener> = sockets.relays.iter_mut().take(6).map(listener).collect();
    let stream = reaches("203.0.113.7:443", &relays[0]).unwrap();
    assert_eq!(stream.local_addr().unwrap(), "203.0.113.7:443".parse().unwrap());
    assert!(reaches("[2606:4700::1111]:8001", &relays[5]).is_some());
    let refused = TcpStream::connect("203.0.113.7:444").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn names_are_answered_on_every_address_and_other_datagrams_fail_at_once() {
    if !inside("names_are_answered_on_every_address_and_other_datagrams_fail_at_once") {
        return;
    }
    let mut sockets = opened(&request(&["net:connect:a.test"]));
    for (index, asked) in ["8.8.8.8:53", "[2001:4860:4860::8888]:53"].into_iter().enumerate() {
        let descriptor = sockets.dns_udp[index].take().unwrap();
        let any = if index == 0 { "0.0.0.0:0" } else { "[::]:0" };
        let client = UdpSocket::bind(any).unwrap();
        client.send_to(b"query", asked).unwrap();
        let mut bytes = [0_u8; 16];
        // SAFETY: the buffer is as long as is said and lives through the call.
        let length = unsafe { libc::recv(descriptor.0, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        assert_eq!((length, &bytes[..5]), (5, &b"query"[..]));
        let stub = listener(&mut sockets.dns_tcp[index]);
        let mut client = TcpStream::connect(asked).unwrap();
        client.write_all(b"q").unwrap();
        let mut byte = [0];
        stub.accept().unwrap().0.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"q");
    }
    for quic in ["203.0.113.7:443", "127.0.0.1:443", "[2606:4700::1111]:443"] {
        let any = if quic.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let client = UdpSocket::bind(any).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        client.connect(quic).unwrap();
        client.send(b"hello").unwrap();
        let fault = client.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(fault.kind(), std::io::ErrorKind::ConnectionRefused, "{quic}");
    }
}

#[test]
fn any_port_without_redirection_is_refused() {
    if !inside("any_port_without_redirection_is_refused") {
        return;
    }
    let wanted = Request { redirect: false, ..request(&["net:connect:a.test"]) };
    let fault = open(&wanted, &mut Sockets::new()).unwrap_err();
    assert_eq!(fault.step, Step::Redirect);
}

#[test]
fn no_network_asks_for_nothing() {
    let of = |authority: &Authority| {
        Request::for_plan(&Plan::for_authority("t", authority, &HostFacts::unknown()).unwrap())
    };
    let none = of(&Authority::bottom()).unwrap();
    assert!(!none.egress && !none.is_entered());
    let any = of(&Authority::top()).unwrap();
    assert!(any.egress && any.any && !any.is_entered());
    let many: Vec<String> = (1..=17).map(|port| format!("net:connect:127.0.0.1:{port}")).collect();
    let grants: Vec<_> = many.iter().map(|text| text.parse().unwrap()).collect();
    let authority = Authority::from_capabilities(&grants).unwrap();
    let plan = Plan::for_authority("t", &authority, &HostFacts::unknown()).unwrap();
    assert!(Request::for_plan(&plan).is_err(), "there is no room for so many");
}

#[test]
fn a_port_that_is_listened_on_is_the_sandbox_s_own() {
    let wanted = request(&["net:connect:localhost:7000-7100", "net:listen:7050", "net:listen:7100"]);
    assert_eq!(wanted.loopback(), [(7000, 7049), (7051, 7099)]);
    assert!(wanted.is_entered() && !request(&["net:connect:localhost:80"]).is_entered());
    let alone = request(&["net:listen:80"]);
    assert!(alone.is_entered() && !alone.egress);
    assert_eq!(request(&["net:listen:80", "net:connect:a.test:80"]).inward, Inward::Contested);
}
