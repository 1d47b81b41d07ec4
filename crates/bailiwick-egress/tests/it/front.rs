//! The proxy front, for sandboxes without a namespace of ours. Needs none for its tests either.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bailiwick_egress::{Egress, Front, Limits, Running};

use crate::servers;
use crate::world::{Told, hosts, network, options, read_all};

struct Proxy {
    address: std::net::SocketAddr,
    told: Told,
    _running: Running,
}

/// A proxy that grants `a.test`, which is a server of the test's own at `port`, and little else.
fn proxy(port: u16) -> Proxy {
    let grants = [
        format!("net:connect:a.test:{port}?blockPrivate=false"),
        format!("net:connect:raw.test:{port}?protocol=raw&blockPrivate=false"),
        "net:connect:public.test".to_owned(),
    ];
    let names = [("a.test", "127.0.0.1"), ("raw.test", "127.0.0.1"), ("public.test", "127.0.0.1")];
    let (options, told) =
        options(hosts(&names), Limits { hello: Duration::from_secs(1), ..Limits::default() });
    let egress = Egress::new(&network(&grants.each_ref().map(String::as_str)), options);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    Proxy { address, told, _running: egress.front(Front::Tcp(listener)).unwrap() }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Proxy {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        drop(stream.write_all(request.as_bytes()));
        String::from_utf8_lossy(&read_all(&mut stream)).into_owned()
    }
}

#[test]
fn a_tunnel_is_judged_by_what_is_said_in_it() {
    let port = free_port();
    let seen = servers::http(&format!("127.0.0.1:{port}"));
    let proxy = proxy(port);
    let tunnel =
        |inner: &str| proxy.ask(&format!("CONNECT a.test:{port} HTTP/1.1\r\nHost: a.test\r\n\r\n{inner}"));
    for (inner, code) in [
        ("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "net-http-host-other"),
        ("CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "net-http-tunnel"),
        ("SSH-2.0-x\r\n", "net-protocol-not-granted"),
        ("\x16\x03\x01\x00\x05hello", "net-tls-unreadable"),
    ] {
        let answer = tunnel(inner);
        assert!(!answer.contains("hello"), "{answer}");
        proxy.told.wait_for(code);
    }
    assert_eq!(seen.count(), 0);
    let mut stream = proxy.connect();
    stream.write_all(format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let mut opened = [0; 39];
    stream.read_exact(&mut opened).unwrap();
    assert!(opened.starts_with(b"HTTP/1.1 200 "));
    stream.write_all(b"GET /in HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 43]).unwrap();
    assert!(seen.text().contains("/in"));
}

#[test]
fn what_is_not_granted_is_refused_with_its_reason() {
    let port = free_port();
    let proxy = proxy(port);
    for (request, code) in [
        ("CONNECT evil.test:443 HTTP/1.1\r\n\r\n".to_owned(), "net-host-not-granted"),
        ("CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n".to_owned(), "net-host-not-granted"),
        (format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n", port ^ 1), "net-port-not-granted"),
        ("CONNECT public.test:443 HTTP/1.1\r\n\r\n".to_owned(), "net-address-private"),
        ("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(), "net-host-not-granted"),
    ] {
        let answer = proxy.ask(&request);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
        proxy.told.wait_for(code);
    }
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 403"),
        ("CONNECT a.test HTTP/1.1\r\n\r\n", "HTTP/1.1 403"),
        ("nonsense\r\n\r\n", "HTTP/1.1 403"),
    ] {
        assert!(proxy.ask(request).starts_with(status), "{request}");
    }
}

#[test]
fn a_request_with_an_absolute_url_is_passed_on_as_its_server_wants_it() {
    let port = free_port();
    let seen = servers::http(&format!("127.0.0.1:{port}"));
    let proxy = proxy(port);
    let mut stream = proxy.connect();
    let request = format!(
        "GET http://a.test:{port}/x HTTP/1.1\r\nHost: a.test:{port}\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic c2VjcmV0\r\nAccept: */*\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 43]).unwrap();
    assert_eq!(
        seen.text(),
        format!("GET /x HTTP/1.1\r\nHost: a.test:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n")
    );
    let fronted = format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    assert!(proxy.ask(&fronted).contains("net-http-host-other"));
    // The next request on the same connection goes to the same server or nowhere.
    stream.write_all(b"GET http://evil.test/y HTTP/1.1\r\nHost: evil.test\r\n\r\n").unwrap();
    read_all(&mut stream);
    assert!(!seen.text().contains("evil"));
}

#[test]
fn the_front_may_be_a_unix_socket() {
    let port = free_port();
    servers::serve(&format!("127.0.0.1:{port}"), |mut stream| drop(stream.write_all(b"banner")));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proxy");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let grants = format!("net:connect:raw.test:{port}?protocol=raw&blockPrivate=false");
    let (options, _) = options(hosts(&[("raw.test", "127.0.0.1")]), Limits::default());
    let _running = Egress::new(&network(&[&grants]), options).front(Front::Unix(listener)).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(format!("CONNECT raw.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let mut answer = [0; 45];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"banner"));
}
