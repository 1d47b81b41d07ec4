//! The client inside: this very test program, started again in a sandbox.
//!
//! It reads attempts from its input, one a line, and prints what came of each. It knows nothing of proxies: names go
//! through the system's resolver, addresses through the kernel.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

/// What makes the test program run the test below alone, and show what it prints.
pub(super) const ARGUMENTS: [&str; 4] =
    ["network::inside::client", "--exact", "--nocapture", "--test-threads=1"];

/// Begins a line with an answer.
pub(super) const ANSWER: &str = "answer\t";

const PATIENCE: Duration = Duration::from_secs(10);

/// Set where the test is to be the client; elsewhere it tries itself.
pub(super) const MARK: &str = "BAILIWICK_TEST_CLIENT";

#[test]
fn client() {
    if std::env::var_os(MARK).is_none() {
        assert_eq!(own().unwrap(), "pong");
        return;
    }
    let mut answered = 0;
    for attempt in io::stdin().lock().lines() {
        let attempt = attempt.unwrap();
        let words: Vec<&str> = attempt.split(' ').collect();
        let answer = attempted(&words).unwrap_or_else(|fault| format!("no: {:?}", fault.kind()));
        print(&format!("\n{ANSWER}{answer}\n"));
        answered += 1;
    }
    assert!(answered > 0, "there is nothing to try on stdin");
}

fn print(line: &str) {
    io::stdout().write_all(line.as_bytes()).unwrap();
    io::stdout().flush().unwrap();
}

fn attempted(words: &[&str]) -> io::Result<String> {
    match *words {
        ["tls", host, port, name] => tls(connect(host, port)?, name),
        ["ech", host, port, name] => ech(connect(host, port)?, name),
        ["http", host, port, ref names @ ..] => http(connect(host, port)?, names),
        ["get", host, port, path] => get(connect(host, port)?, host, path),
        ["say", host, port, text] => say(connect(host, port)?, text),
        ["address", name] => address(name),
        ["ask", by, server, name, kind] => ask(by, server, name, kind),
        ["udp", address] => udp(address),
        ["socket", kind] => socket(kind),
        ["own"] => own(),
        ["serve", address] => serve(address),
        ["served"] => Ok(SERVED.load(Ordering::SeqCst).to_string()),
        ["wait", milliseconds] => {
            std::thread::sleep(Duration::from_millis(milliseconds.parse().unwrap()));
            Ok("waited".to_owned())
        }
        _ => panic!("`{words:?}` is not an attempt"),
    }
}

/// How many connections were served.
static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Echoes to every client, until the client ends.
fn serve(address: &str) -> io::Result<String> {
    let listener = TcpListener::bind(address)?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            SERVED.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    Ok("serving".to_owned())
}

fn connect(host: &str, port: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let found = (host, port.parse::<u16>().unwrap()).to_socket_addrs();
    for address in found.map_err(|_| io::Error::from(io::ErrorKind::AddrNotAvailable))? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// The status that a web server over TLS gives to a client that names `name`, or an unknown host (`-`).
fn tls(stream: TcpStream, name: &str) -> io::Result<String> {
    let mut tls = rustls::StreamOwned::new(hello(name), stream);
    tls.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").map_err(alert)?;
    status(&mut tls).map_err(alert)
}

/// An alert is told as such.
fn alert(fault: io::Error) -> io::Error {
    let told = fault.to_string();
    if told.contains("received fatal alert") { io::ErrorKind::PermissionDenied.into() } else { fault }
}

/// What kind of record answers a hello with the extension for hiding names: what clients send as noise.
fn ech(mut stream: TcpStream, name: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    hello(name).write_tls(&mut bytes)?;
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(bytes[at]);
    at += 2 + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    at += 1 + usize::from(bytes[at]);
    let noise = [0xfe, 0x0d, 0, 14, 0, 0, 1, 0, 1, 7, 0, 2, 8, 8, 0, 2, 9, 9];
    for place in [3, 7, at] {
        let length = u16::from_be_bytes([bytes[place], bytes[place + 1]]) + 18;
        bytes[place..place + 2].copy_from_slice(&length.to_be_bytes());
    }
    bytes.splice(at + 2..at + 2, noise);
    stream.write_all(&bytes)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    Ok(match kind {
        [21] => "alert".to_owned(),
        [22] => "handshake".to_owned(),
        [other] => format!("record {other}"),
    })
}

/// The statuses of requests for these hosts on one connection.
fn http(mut stream: TcpStream, names: &[&str]) -> io::Result<String> {
    let mut statuses = Vec::new();
    for name in names {
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n").as_bytes())?;
        match status(&mut stream) {
            Ok(status) => statuses.push(status),
            Err(_) if !statuses.is_empty() => statuses.push("cut".to_owned()),
            Err(fault) => return Err(fault),
        }
    }
    Ok(statuses.join(" "))
}

/// The status of a request for this path.
fn get(mut stream: TcpStream, host: &str, path: &str) -> io::Result<String> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    status(&mut stream)
}

/// Reads one reply to its end; its body is `hello` or as long as it says.
fn status(stream: &mut impl io::Read) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    Ok(head.split(' ').nth(1).unwrap_or("nothing").to_owned())
}

fn say(mut stream: TcpStream, text: &str) -> io::Result<String> {
    stream.write_all(format!("{text}\n").as_bytes())?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back)?;
    Ok(String::from_utf8_lossy(&back).into_owned())
}

/// Whether a name has an address, and of whose making.
fn address(name: &str) -> io::Result<String> {
    let found: Vec<SocketAddr> =
        (name, 0).to_socket_addrs().map_err(|_| io::Error::from(io::ErrorKind::AddrNotAvailable))?.collect();
    let ours = |at: &SocketAddr| at.ip().to_string().starts_with("44.128.") || at.is_ipv6();
    Ok(if found.iter().all(ours) { "ours".to_owned() } else { format!("{found:?}") })
}

fn ask(by: &str, server: &str, name: &str, kind: &str) -> io::Result<String> {
    let kinds = [("A", RecordType::A), ("HTTPS", RecordType::HTTPS), ("SVCB", RecordType::SVCB)];
    let kind = kinds.iter().find(|(known, _)| *known == kind).expect("a known kind").1;
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    let question = message.to_vec().unwrap();
    let mut reply = vec![0; 4096];
    let length = if by == "tcp" {
        let mut stream = connect(server, "53")?;
        stream.write_all(&u16::try_from(question.len()).unwrap().to_be_bytes())?;
        stream.write_all(&question)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let length = usize::from(u16::from_be_bytes(length));
        stream.read_exact(&mut reply[..length])?;
        length
    } else {
        let client = UdpSocket::bind("0.0.0.0:0")?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.connect((server, 53))?;
        client.send(&question)?;
        client.recv(&mut reply)?
    };
    let reply = Message::from_vec(&reply[..length]).unwrap();
    let mut told = format!("{:?}", reply.metadata.response_code);
    write!(told, " {}", reply.answers.len()).unwrap();
    Ok(told)
}

fn udp(address: &str) -> io::Result<String> {
    let address: SocketAddr = address.parse().unwrap();
    let since = Instant::now();
    let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(address)?;
    socket.send(b"x")?;
    let heard = socket.recv(&mut [0; 16]);
    assert!(since.elapsed() < PATIENCE, "it fails at once");
    heard.map(|length| format!("heard {length}"))
}

fn socket(kind: &str) -> io::Result<String> {
    use socket2::{Domain, Protocol, Socket, Type};
    let made = match kind {
        "raw" => Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)),
        "ping" => Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)),
        "packet" => Socket::new(Domain::PACKET, Type::RAW, None),
        "mptcp" => Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)),
        "vsock" => Socket::new(Domain::VSOCK, Type::STREAM, None),
        _ => panic!("`{kind}` is not a kind of socket"),
    };
    made.map(|_| "made".to_owned())
}

/// A server and a client, both in the sandbox.
fn own() -> io::Result<String> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(server.local_addr()?)?;
    let (mut stream, _) = server.accept()?;
    std::thread::spawn(move || stream.write_all(b"pong\n"));
    say(client, "ping")
}

/// Takes any certificate: this is about the way to the server, not about the server.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn hello(name: &str) -> ClientConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    config.enable_sni = name != "-";
    let name = if name == "-" { "unnamed.test" } else { name };
    ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap()
}
