//! Servers that stand for hosts of the internet, and remember what reached them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bailiwick_testkit::names;
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// What reached a server, one entry a connection.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Vec<u8>>>>);

impl Seen {
    /// The bytes of each connection.
    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }

    /// How many connections came.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Everything that came.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap().concat()).into_owned()
    }
}

/// Serves every connection with `serve`, each on its own thread.
pub(crate) fn serve(address: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let address: SocketAddr = address.parse().unwrap();
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None).unwrap();
    if address.is_ipv6() {
        // An address that is local only by a route.
        socket.set_freebind_v6(true).unwrap();
        socket.set_only_v6(true).unwrap();
    }
    socket.bind(&address.into()).unwrap();
    socket.listen(1024).unwrap();
    bailiwick_testkit::servers::serve(TcpListener::from(socket), serve);
}

/// Answers every request that ends in an empty line with `200` and the word `hello`, and keeps the bytes.
pub(crate) fn http(address: &str) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |mut stream| {
        let index = {
            let mut all = keep.0.lock().unwrap();
            all.push(Vec::new());
            all.len() - 1
        };
        let mut piece = [0; 4096];
        let mut answered = 0;
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            let ends = {
                let mut all = keep.0.lock().unwrap();
                all[index].extend_from_slice(&piece[..length]);
                all[index].windows(4).filter(|end| end == b"\r\n\r\n").count()
            };
            while answered < ends {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
                answered += 1;
            }
        }
    });
    seen
}

/// Answers on a port of every address as `http` does, and keeps the addresses that were dialled.
pub(crate) fn everywhere(port: u16) -> Seen {
    let seen = Seen::default();
    for any in ["0.0.0.0", "[::]"] {
        let keep = seen.clone();
        serve(&format!("{any}:{port}"), move |mut stream| {
            let dialled = stream.local_addr().unwrap().ip();
            keep.0.lock().unwrap().push(format!("{dialled} ").into_bytes());
            let mut piece = [0; 4096];
            while let Ok(1..) = stream.read(&mut piece) {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
            }
        });
    }
    seen
}

/// Speaks first, as SSH and mail do, and hangs up; counts connections.
pub(crate) fn serve_banner(address: &str) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |mut stream| {
        keep.0.lock().unwrap().push(Vec::new());
        drop(stream.write_all(b"SSH-2.0-server\r\n"));
    });
    seen
}

/// Answers the first bytes with `answer`, and keeps all that comes.
pub(crate) fn answering(address: &str, answer: Vec<u8>) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |mut stream| {
        let index = {
            let mut all = keep.0.lock().unwrap();
            all.push(Vec::new());
            all.len() - 1
        };
        let mut piece = [0; 4096];
        let mut answered = false;
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            keep.0.lock().unwrap()[index].extend_from_slice(&piece[..length]);
            if !std::mem::replace(&mut answered, true) {
                drop(stream.write_all(&answer));
            }
        }
    });
    seen
}

/// Sends back what it gets, until the client ends; counts connections.
pub(crate) fn echo(address: &str) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |mut stream| {
        keep.0.lock().unwrap().push(Vec::new());
        let mut piece = vec![0; 65_536];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            if stream.write_all(&piece[..length]).is_err() {
                break;
            }
        }
    });
    seen
}

/// A TLS server with a certificate for `name`; says `hello`.
pub(crate) fn tls(address: &str, name: &str) -> Seen {
    tls_with(address, name, rustls::crypto::ring::default_provider())
}

/// The same, with a provider of the test's choice.
pub(crate) fn tls_with(address: &str, name: &str, provider: rustls::crypto::CryptoProvider) -> Seen {
    let config = bailiwick_testkit::tls::server_with(bailiwick_testkit::tls::self_signed(&[name]), provider);
    let config = Arc::new(config);
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |stream| {
        keep.0.lock().unwrap().push(Vec::new());
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        let mut byte = [0];
        if tls.read(&mut byte).is_ok() {
            drop(tls.write_all(b"hello"));
        }
    });
    seen
}

/// A name server outside: `answers` gives the records for a name; counts the queries.
pub(crate) fn dns(
    address: &str,
    answers: impl Fn(&str, usize) -> Vec<Answer> + Send + Sync + 'static,
) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    let answers = Arc::new(answers);
    let over_udp = Arc::clone(&answers);
    let udp = UdpSocket::bind(address).unwrap();
    let reply = move |bytes: &[u8], answers: &dyn Fn(&str, usize) -> Vec<Answer>, truncate: bool| {
        let reply = names::reply(bytes, |asked, reply| {
            let name = asked.name().to_ascii();
            let earlier = keep.0.lock().unwrap().iter().filter(|seen| **seen == name.as_bytes()).count();
            if asked.query_type() == RecordType::A {
                keep.0.lock().unwrap().push(name.clone().into_bytes());
            }
            let all = answers(&name, earlier);
            reply.metadata.truncation =
                truncate && all.iter().any(|answer| matches!(answer, Answer::OverTcpOnly));
            let shown = all.iter().filter(|_| !reply.metadata.truncation);
            shown.filter_map(|answer| answer.record(asked.name(), asked.query_type())).collect()
        });
        reply.to_vec().unwrap()
    };
    let by_tcp = reply.clone();
    serve(address, move |mut stream| {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut bytes).unwrap();
        let reply = by_tcp(&bytes, &*answers, false);
        stream.write_all(&u16::try_from(reply.len()).unwrap().to_be_bytes()).unwrap();
        stream.write_all(&reply).unwrap();
    });
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = udp.recv_from(&mut bytes) {
            drop(udp.send_to(&reply(&bytes[..length], &*over_udp, true), from));
        }
    });
    std::thread::sleep(Duration::from_millis(1));
    seen
}

/// As short as can be: how long an answer counts is not for its server to say.
const TTL: u32 = 0;

/// One record of an answer.
pub(crate) enum Answer {
    Ip(&'static str),
    /// From the name asked to this one.
    Alias(&'static str),
    /// From one name to another.
    AliasOf(&'static str, &'static str),
    IpOf(&'static str, &'static str),
    OverTcpOnly,
}

impl Answer {
    fn record(&self, asked: &Name, kind: RecordType) -> Option<Record> {
        match self {
            Self::Ip(ip) => names::address(asked, kind, ip.parse().unwrap()),
            Self::IpOf(name, ip) => {
                names::address(&Name::from_ascii(name).unwrap(), kind, ip.parse().unwrap())
            }
            Self::Alias(name) => {
                let alias = RData::CNAME(CNAME(Name::from_ascii(name).unwrap()));
                Some(Record::from_rdata(asked.clone(), TTL, alias))
            }
            Self::AliasOf(from, to) => {
                let alias = RData::CNAME(CNAME(Name::from_ascii(to).unwrap()));
                Some(Record::from_rdata(Name::from_ascii(from).unwrap(), TTL, alias))
            }
            Self::OverTcpOnly => None,
        }
    }
}
