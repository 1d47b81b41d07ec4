//! Servers that stand for hosts of the internet, and remember what reached them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bailiwick_testkit::names;
pub(crate) use bailiwick_testkit::tls::Authority;
use hickory_proto::rr::RecordType;

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

/// A web server over TLS for these names; counts what was asked inside TLS.
pub(super) fn https(address: &str, authority: &Authority, names: &[&str], files: &Files) -> Seen {
    let (seen, files) = (Seen::default(), Arc::clone(files));
    let keep = seen.clone();
    let listener = TcpListener::bind(address).unwrap();
    bailiwick_testkit::servers::serve_tls(listener, authority.server(names), move |tls| {
        let index = keep.add("");
        web(tls, &files, |head| keep.extend(index, head));
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
    names::serve(UdpSocket::bind(address).unwrap(), move |asked| {
        if asked.query_type() != RecordType::A {
            return Vec::new();
        }
        let name = names::name_of(asked);
        let earlier = keep.all().iter().filter(|earlier| **earlier == name).count();
        keep.add(&name);
        let record = |ip: &str| names::address(asked.name(), RecordType::A, ip.parse().unwrap());
        answers(&name, earlier).into_iter().map(|ip| record(ip).unwrap()).collect()
    });
    seen
}

pub(super) fn serve(address: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    bailiwick_testkit::servers::serve(TcpListener::bind(address).unwrap(), serve);
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
