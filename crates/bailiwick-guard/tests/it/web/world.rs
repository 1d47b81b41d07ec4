//! Web servers, a name server, and calls of the tool under some grant.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use bailiwick_guard::tools::WebFetch;
use bailiwick_guard::{Output, Registry, Session, ToolError};
use bailiwick_journal::Options;
use bailiwick_launch::Resolver;
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_policy::capability::CapabilitySet;
use bailiwick_testkit::servers::{serve, serve_tls};
use bailiwick_testkit::{names, tls};
use hickory_proto::rr::RecordType;
use serde_json::{Value, json};

use crate::files::Under;
use bailiwick_testkit::journal::Dir;

/// A server and the heads of the requests that reached it.
pub(crate) struct Server {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    /// Its certificate, where it speaks TLS.
    pub(crate) root: Vec<u8>,
}

impl Server {
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Serves each connection with what `answer` writes for the head of its request.
    pub(crate) fn start(
        address: &str,
        answer: impl Fn(&str, &mut dyn Write) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(TcpListener::bind(address).unwrap(), None, answer)
    }

    /// The same inside TLS, with a certificate for `name`.
    pub(crate) fn secure(
        name: &str,
        answer: impl Fn(&str, &mut dyn Write) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let identity = tls::self_signed(&[name]);
        let root = identity.0[0].to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self::listen(listener, Some(tls::server(identity)), answer);
        Self { root, ..server }
    }

    fn listen(
        listener: TcpListener,
        config: Option<rustls::ServerConfig>,
        answer: impl Fn(&str, &mut dyn Write) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (port, kept) = (listener.local_addr().unwrap().port(), Arc::clone(&heads));
        match config {
            None => serve(listener, move |mut stream| converse(&mut stream, &kept, &answer)),
            Some(config) => serve_tls(listener, config, move |tls| {
                converse(tls, &kept, &answer);
                tls.conn.send_close_notify();
                drop(tls.flush());
            }),
        }
        Self { port, heads, root: Vec::new() }
    }
}

fn converse(
    stream: &mut (impl Read + Write),
    heads: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, &mut dyn Write) -> std::io::Result<()>,
) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.clone());
    drop(answer(&head, stream));
    drop(stream.flush());
}

/// A whole answer.
pub(crate) fn reply(out: &mut dyn Write, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n", body.len())?;
    out.write_all(body)
}

/// A server on loopback that says `hello`.
pub(crate) fn hello() -> Server {
    Server::start("127.0.0.1:0", |_, out| reply(out, "Content-Type: text/plain\r\n", b"hello"))
}

/// A server on loopback that sends everyone to what `to` says for the path.
pub(crate) fn redirecting(to: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
    Server::start("127.0.0.1:0", move |head, out| {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        redirect(out, &to(&path))
    })
}

pub(crate) fn redirect(out: &mut dyn Write, to: &str) -> std::io::Result<()> {
    write!(out, "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

/// A name server: `answers` gives the addresses of a name at its n-th question; questions for A are counted.
pub(crate) fn dns(
    answers: impl Fn(&str, usize) -> Vec<IpAddr> + Send + 'static,
) -> (Resolver, Arc<Mutex<Vec<String>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = socket.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    names::serve(socket, move |question| {
        let name = question.name().to_ascii();
        let is_v4 = question.query_type() == RecordType::A;
        let mut kept = kept.lock().unwrap();
        let earlier = kept.iter().filter(|earlier| **earlier == name).count();
        let turn = if is_v4 { earlier } else { earlier.saturating_sub(1) };
        if is_v4 {
            kept.push(name.clone());
        }
        let ips = answers(&name, turn).into_iter();
        ips.filter_map(|ip| names::address(question.name(), question.query_type(), ip)).collect()
    });
    (Resolver::Server(address), asked)
}

/// Fetches under a ceiling of capability lines.
pub(crate) fn fetch(tool: WebFetch, lines: &[&str], args: Value) -> Result<Value, ToolError> {
    let set = CapabilitySet::new(lines.iter().copied()).unwrap();
    let dir = Dir::new();
    let journal = dir.open("web", Options::default());
    let registry = Registry::builder(journal, Session::new("/")).tool(Under(tool, set)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Everything, private addresses too: what holds is the ceiling.
    let net = Scope::only(["*:*?blockPrivate=false".to_owned()]);
    let caveats = Caveats { net, ..Caveats::top() };
    runtime.block_on(registry.dispatch("web_fetch", args, &caveats)).map(Output::into_value)
}

/// Fetches one URL from loopback, which is granted.
pub(crate) fn from_loopback(server: &Server, path: &str, more: Value) -> Result<Value, ToolError> {
    let mut args = json!({ "url": format!("http://127.0.0.1:{}{path}", server.port) });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fetch(WebFetch::new(), &["net:connect:127.0.0.1:*"], args)
}
