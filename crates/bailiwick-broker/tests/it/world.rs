//! An allowlist with a broker, a server with a certificate of the test's own authority, and a client that trusts the
//! session's.
//!
//! The broker trusts what the system trusts, which a variable says. So a test runs itself again with that variable.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bailiwick_broker::{BrokerProcess, LoadSecret, NamedSource, ServiceNames, Source};
use bailiwick_egress::{Egress, Event, Front, Limits, Options, Running};
use bailiwick_manifest::Manifest;
use bailiwick_policy::facts::HostFacts;
use bailiwick_testkit::servers::serve_tls;
use bailiwick_testkit::tls::{self, Authority, Identity};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The value, in which no stretch of eight characters is likely anywhere else.
pub(crate) const VALUE: &str = "ghp_qXv83LmZt0PwRk5NbYc7HdJs2GfUa9TeQi4W";
/// Another one, with every kind of mark.
pub(crate) const OTHER: &str = "k9+Zr/3x=\"Qd\\7~Vb Mh2:Wn%5&Ty8";

const AUTHORITY: &str = "SSL_CERT_FILE";
const MARK: &str = "BAILIWICK_TEST_AUTHORITY";

/// Runs the test again where its own authority is trusted; false in the run that only waited.
pub(crate) fn is_trusting(test: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    std::fs::write(directory.path().join("ca.pem"), &authority.pem).unwrap();
    std::fs::write(directory.path().join("ca.key"), &authority.key_pem).unwrap();
    let status = Command::new("/proc/self/exe")
        .arg0("it")
        .args(["--exact", test, "--nocapture"])
        .env(AUTHORITY, directory.path().join("ca.pem"))
        .env(MARK, directory.path())
        .status()
        .unwrap();
    assert!(status.success(), "{test}");
    false
}

const HOLDER: &str = "BAILIWICK_TEST_HOLDS_SECRETS";

/// A process of this very program that holds secrets.
pub(crate) fn secrets_process(secrets: Vec<LoadSecret>, names: &ServiceNames) -> Arc<BrokerProcess> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("it").args(["--exact", "world::holds_secrets", "--nocapture"]).env(HOLDER, "1");
    BrokerProcess::start(command, secrets, names).unwrap()
}

/// What that process does; nothing in a run of the tests.
#[test]
fn holds_secrets() {
    if std::env::var_os(HOLDER).is_some() {
        let stdin = std::io::stdin();
        bailiwick_broker::serve_secrets(stdin.as_fd().try_clone_to_owned().unwrap()).unwrap();
    }
}

/// The test's authority, for what is let through unopened.
pub(crate) fn own_roots() -> RootCertStore {
    let directory = PathBuf::from(std::env::var_os(MARK).unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join("ca.pem")).unwrap()).unwrap();
    roots
}

/// A certificate for a name, by the test's authority or by one that is not trusted.
pub(crate) fn certificate(name: &str, is_trusted: bool) -> Identity {
    if !is_trusted {
        return tls::self_signed(&[name]);
    }
    let directory = PathBuf::from(std::env::var_os(MARK).unwrap());
    Authority::from_pem(&std::fs::read_to_string(directory.join("ca.key")).unwrap()).identity(&[name])
}

/// What servers heard: whole requests.
pub(crate) type Heard = Arc<Mutex<Vec<String>>>;

/// A TLS server that answers each request with what `respond` makes of it.
pub(crate) fn serve(
    name: &str,
    is_trusted: bool,
    respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> (SocketAddr, Heard) {
    let config = tls::server(certificate(name, is_trusted));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let keep = Arc::clone(&heard);
    serve_tls(listener, config, move |tls| {
        while let Some(request) = read_message(tls) {
            let answer = respond(&request);
            keep.lock().unwrap().push(request);
            if tls.write_all(&answer).and_then(|()| tls.flush()).is_err() {
                return;
            }
        }
    });
    (address, heard)
}

/// One message with a length or in chunks; nothing at the end.
pub(crate) fn read_message(from: &mut impl io::Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut one = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if from.read(&mut one).ok()? == 0 {
            return None;
        }
        bytes.push(one[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    if let Some(length) = length.and_then(|length| length.trim().parse::<usize>().ok()) {
        let mut body = vec![0; length];
        let mut had = 0;
        while had < length {
            match from.read(&mut body[had..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => had += more,
            }
        }
        bytes.extend_from_slice(&body[..had]);
    } else if head.contains("transfer-encoding: chunked") {
        while !bytes.ends_with(b"0\r\n\r\n") {
            if from.read(&mut one).unwrap_or(0) == 0 {
                break;
            }
            bytes.push(one[0]);
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A response with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The request itself as a response: head and body.
pub(crate) fn echo(request: &str) -> Vec<u8> {
    ok(request)
}

pub(crate) struct World {
    pub(crate) front: SocketAddr,
    pub(crate) port: u16,
    pub(crate) other_port: u16,
    /// Of `plain.test`, which has no secret.
    pub(crate) plain_port: u16,
    pub(crate) heard: Heard,
    /// What the other host heard.
    pub(crate) strangers: Heard,
    told: Arc<Mutex<Vec<String>>>,
    placeholders: BTreeMap<String, String>,
    roots: RootCertStore,
    /// The list of authorities that programs inside are given.
    pub(crate) bundle: Vec<u8>,
    _running: Running,
}

/// How a world is made.
pub(crate) struct Setup<'a> {
    /// What the manifest says besides the capabilities.
    pub(crate) manifest: &'a str,
    pub(crate) respond: fn(&str) -> Vec<u8>,
    pub(crate) is_trusted: bool,
    /// Whether the server speaks HTTP/2 and nothing else.
    pub(crate) is_http2: bool,
    /// How long anything may lie still.
    pub(crate) idle: Duration,
    /// Where `TOKEN` comes from, and where the names that it needs lead.
    pub(crate) token: Option<(LoadSecret, ServiceNames)>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        let idle = Limits::default().idle;
        Self { manifest: "", respond: echo, is_trusted: true, is_http2: false, idle, token: None }
    }
}

impl World {
    /// `TOKEN` is brokered for `api.test`, `OTHER` for `other.test`.
    pub(crate) fn new(setup: Setup<'_>) -> Self {
        let server = if setup.is_http2 {
            crate::http2::serve(certificate("api.test", setup.is_trusted), setup.respond)
        } else {
            serve("api.test", setup.is_trusted, setup.respond)
        };
        Self::with_server(setup, server)
    }

    /// The same, where this server stands for `api.test`.
    pub(crate) fn with_server(setup: Setup<'_>, (server, heard): (SocketAddr, Heard)) -> Self {
        let (other, strangers) = serve("other.test", true, setup.respond);
        let (port, other_port) = (server.port(), other.port());
        let plain_port = serve("plain.test", true, setup.respond).0.port();
        let text = format!(
            "name = 't'\nversion = '1'\nserver_capabilities = [\n\
             'env:inject:TOKEN?broker=api.test:{port}', 'env:inject:OTHER?broker=other.test:{other_port}',\n\
             'net:connect:api.test:{port}?blockPrivate=false', 'net:connect:other.test:{other_port}?blockPrivate=false',\n\
             'net:connect:plain.test:*?blockPrivate=false', 'net:connect:*.wild.test:*?blockPrivate=false', 'net:connect:raw.test:*?blockPrivate=false&protocol=raw']\n{}",
            setup.manifest
        );
        let facts = HostFacts::unknown();
        let checked = Manifest::parse(&text).unwrap().check(&facts).unwrap();
        let plan = checked.server_plan(&facts).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let sources = [("TOKEN", VALUE), ("OTHER", OTHER)].map(|(name, value)| {
            let path = directory.path().join(name);
            std::fs::write(&path, value).unwrap();
            let named = NamedSource { name: name.to_owned(), source: Source::File(path) };
            LoadSecret { named, oauth: None, hosts: None }
        });
        let [own, other] = sources;
        let (own, names) = setup.token.unwrap_or((own, ServiceNames::default()));
        let process = secrets_process(vec![own, other], &names);
        let brokering = process.session(&plan).unwrap().unwrap();
        let placeholders =
            brokering.placeholders().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let files = brokering.files();
        let mut roots = RootCertStore::empty();
        let bundle = CertificateDer::pem_slice_iter(&files[Path::new("/etc/ssl/bailiwick.pem")]);
        roots.add_parsable_certificates(bundle.map(Result::unwrap));
        let local = vec![Ipv4Addr::LOCALHOST.into()];
        let names = ["api.test", "other.test", "plain.test", "raw.test", "any.wild.test"];
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&told);
        let options = Options {
            hosts: names.map(|name| (name.into(), local.clone())).into(),
            tls_end: Some(brokering.open()),
            limits: Limits { idle: setup.idle, ..Limits::default() },
            events: Box::new(move |event: Event| keep.lock().unwrap().push(event.to_string())),
            ..Options::default()
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let front = listener.local_addr().unwrap();
        let running = Egress::new(plan.network(), options).front(Front::Tcp(listener)).unwrap();
        let bundle = files[Path::new("/etc/ssl/bailiwick.pem")].clone();
        Self {
            front,
            port,
            other_port,
            plain_port,
            heard,
            strangers,
            told,
            placeholders,
            roots,
            bundle,
            _running: running,
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.placeholders["TOKEN"]
    }

    pub(crate) fn other(&self) -> &str {
        &self.placeholders["OTHER"]
    }

    /// A connection to a host, through the allowlist.
    pub(crate) fn connect(&self, host: &str, port: u16) -> TcpStream {
        let mut stream = TcpStream::connect(self.front).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        write!(stream, "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").unwrap();
        stream
    }

    /// The same, where the client speaks TLS and trusts these authorities.
    pub(crate) fn tls(
        &self,
        (host, port): (&str, u16),
        sni: &str,
        roots: &RootCertStore,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut stream = self.connect(host, port);
        read_message(&mut stream).ok_or(io::ErrorKind::UnexpectedEof)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
        tls.conn.complete_io(&mut tls.sock)?;
        Ok(tls)
    }

    pub(crate) fn to_api(&self) -> StreamOwned<ClientConnection, TcpStream> {
        self.tls(("api.test", self.port), "api.test", &self.roots).unwrap()
    }

    /// What a request of these lines gets from `api.test`; `Host` is added.
    pub(crate) fn ask(&self, line: &str, fields: &[&str], body: &str) -> String {
        let mut tls = self.to_api();
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let host = format!("api.test:{}", self.port);
        // A refusal may come before the body was read.
        drop(write!(tls, "{line} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n{body}"));
        read_message(&mut tls).unwrap_or_default()
    }

    /// The answer to a GET with this field.
    pub(crate) fn get(&self, field: &str) -> String {
        self.ask("GET /", &[field], "")
    }

    pub(crate) const fn roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// Whether an event says this; events are told before anything is answered.
    pub(crate) fn was_told(&self, what: &str) -> bool {
        self.told.lock().unwrap().iter().any(|event| event.contains(what))
    }

    /// No server heard a value or a placeholder, and nothing that was told has one.
    pub(crate) fn assert_nothing_leaked(&self) {
        let heard = [self.heard.lock().unwrap().clone(), self.strangers.lock().unwrap().clone()].concat();
        let told = self.told.lock().unwrap().clone();
        for secret in [VALUE, OTHER, self.token(), self.other()] {
            assert!(
                !heard.iter().chain(&told).any(|text| text.contains(secret)),
                "{secret}: {heard:?} {told:?}"
            );
        }
    }
}

/// The full name of the test that calls, without the crate.
#[macro_export]
macro_rules! trusting {
    ($test:literal) => {
        if !$crate::world::is_trusting($test) {
            return;
        }
    };
}
