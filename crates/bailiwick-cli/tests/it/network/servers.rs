//! Servers that stand for hosts of the internet, and remember what reached them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivatePkcs8KeyDer;

/// What reached a server: one entry a connection or query.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn add(&self, what: &str) -> usize {
        let mut all = self.0.lock().unwrap();
        all.push(what.to_owned());
        all.len() - 1
    }

    fn extend(&self, index: usize, text: &str) {
        self.0.lock().unwrap()[index].push_str(text);
    }
}

/// What a web server has: path and content.
pub(super) type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// The files below a directory, as a web server shows them.
pub(super) fn files(dir: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut directories = vec![dir.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else {
                let path = format!("/{}", entry.path().strip_prefix(dir).unwrap().display());
                found.insert(path, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    Arc::new(found)
}

/// A certificate authority that the clients trust.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as clients are given it.
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Not the name that servers have by default: a certificate that names itself as its issuer would be untrusted.
        params.distinguished_name.push(rcgen::DnType::CommonName, "the test's authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn server(&self, names: &[&str]) -> rustls::ServerConfig {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap()
    }
}

/// A web server over TLS for these names; counts what was asked inside TLS.
pub(super) fn https(address: &str, authority: &Authority, names: &[&str], files: &Files) -> Seen {
    let config = Arc::new(authority.server(names));
    let (seen, files) = (Seen::default(), Arc::clone(files));
    let keep = seen.clone();
    serve(address, move |stream| {
        let index = keep.add("");
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        web(&mut tls, &files, |head| keep.extend(index, head));
        tls.conn.send_close_notify();
        drop(tls.flush());
    });
    seen
}

/// A web server without TLS.
pub(super) fn http(address: &str, files: &Files) -> Seen {
    let (seen, files) = (Seen::default(), Arc::clone(files));
    let keep = seen.clone();
    serve(address, move |mut stream| {
        let index = keep.add("");
        web(&mut stream, &files, |head| keep.extend(index, head));
    });
    seen
}

/// Sends back what it gets.
pub(super) fn echo(address: &str) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    serve(address, move |mut stream| {
        keep.add("");
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            if stream.write_all(&piece[..length]).is_err() {
                break;
            }
        }
    });
    seen
}

/// A name server: `answers` gives the addresses of a name, asked for the nth time. Keeps the names asked for.
pub(super) fn dns(
    address: &str,
    answers: impl Fn(&str, usize) -> Vec<&'static str> + Send + 'static,
) -> Seen {
    let seen = Seen::default();
    let keep = seen.clone();
    let socket = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let query = Message::from_vec(&bytes[..length]).unwrap();
            let asked = query.queries[0].clone();
            let name = asked.name().to_ascii().trim_end_matches('.').to_owned();
            let mut reply = Message::response(query.metadata.id, OpCode::Query);
            if asked.query_type() == RecordType::A {
                let earlier = keep.all().iter().filter(|earlier| **earlier == name).count();
                keep.add(&name);
                let ips = answers(&name, earlier).into_iter().map(|ip| match ip.parse().unwrap() {
                    IpAddr::V4(ip) => Record::from_rdata(asked.name().clone(), 1, RData::A(A(ip))),
                    IpAddr::V6(_) => panic!("`{ip}` is not for an A record"),
                });
                reply.insert_answers(ips.collect());
            }
            reply.queries = vec![asked];
            drop(socket.send_to(&reply.to_vec().unwrap(), from));
        }
    });
    seen
}

pub(super) fn serve(address: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let listener = TcpListener::bind(address).unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
}

/// Answers requests, one after the other on the same connection, until the client ends.
fn web(stream: &mut (impl Read + Write), files: &Files, mut told: impl FnMut(&str)) {
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        said.extend_from_slice(&piece[..length]);
        while let Some(end) = said.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&said[..end]).into_owned();
            said.drain(..end + 4);
            told(&head);
            let target = head.split(' ').nth(1).unwrap_or("/");
            let path = target.split('?').next().unwrap_or("/");
            let (status, body): (_, &[u8]) = match files.get(path) {
                Some(body) => ("200 OK", body),
                None if path == "/" => ("200 OK", b"hello"),
                None => ("404 Not Found", b""),
            };
            let length = body.len();
            let reply = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
            let body = if head.starts_with("HEAD ") { &[] } else { body };
            if stream.write_all(reply.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
                return;
            }
            drop(stream.flush());
        }
    }
}
