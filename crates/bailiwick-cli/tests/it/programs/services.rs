//! Servers of the host that some rows talk to. Each is started when a row first names it, and ends with the test.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::stage::run_on_host;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that serves a directory over TLS: `git clone` reads a repository from it file by file.
const TLS_SERVER: &str = "
import functools, http.server, ssl, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '/cert.pem', sys.argv[1] + '/key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
";

/// A server with a directory of its own.
pub(crate) struct Service {
    dir: tempfile::TempDir,
    pub(super) port: u16,
    child: Option<Child>,
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a text of a row needs on this host and does not find; empty if nothing.
pub(super) fn missing(text: &str) -> &'static str {
    let is_there = |program: &str| Path::new("/usr/bin").join(program).exists();
    if text.contains("{pg}") && postgres().is_none() {
        return "a PostgreSQL server";
    }
    if text.contains("{redis}") && !is_there("redis-server") {
        return "redis-server";
    }
    let lacks_tls = text.contains("{tls}") && !(is_there("openssl") && is_there("python3"));
    if lacks_tls { "openssl and python3" } else { "" }
}

/// A port that answers every request with the same page.
pub(super) fn pages() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    port
}

fn answer(mut stream: TcpStream) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request); // whatever was asked
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nthe page\n";
    let _ = stream.write_all(page.as_bytes());
}

impl Service {
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn new() -> Self {
        Self { dir: directory(), port: free_port(), child: None }
    }

    /// A repository over HTTPS, with a certificate of its own.
    pub(super) fn tls() -> Self {
        let mut service = Self::new();
        let at = |name: &str| service.path().join(name).display().to_string();
        let identity = ["-c", "user.name=Anna", "-c", "user.email=anna@example.com"];
        for words in [
            &["init", "-q", "-b", "main", &at("work")][..],
            &[&identity[..], &["-C", &at("work"), "commit", "-q", "--allow-empty", "-m", "one"]].concat(),
            &["clone", "-q", "--bare", &at("work"), &at("other.git")],
            &["-C", &at("other.git"), "update-server-info"],
        ] {
            run_on_host(Command::new("git").args(words).env("HOME", service.path()));
        }
        let names = ["-subj", "/CN=demo", "-addext", "subjectAltName=IP:127.0.0.1"];
        let mut certificate = Command::new("openssl");
        certificate.args("req -x509 -newkey ed25519 -nodes -days 2".split(' ')).args(names);
        run_on_host(certificate.args(["-keyout", &at("key.pem"), "-out", &at("cert.pem")]));
        let mut server = ending_with_test("/usr/bin/python3", false);
        server.args(["-c", TLS_SERVER]).arg(service.path()).arg(service.port.to_string());
        service.child = Some(start(server, service.port));
        service
    }

    /// A database that trusts everyone on this host.
    pub(super) fn database() -> Self {
        Self::database_at(free_port())
    }

    /// The same, at this port.
    pub(crate) fn database_at(port: u16) -> Self {
        let programs = postgres().expect("looked for before");
        let mut service = Self::new();
        service.port = port;
        let data = service.path().join("data");
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(service.path(), Some(65534), Some(65534)).unwrap();
        }
        let mut made = ending_with_test(&programs.join("initdb").display().to_string(), true);
        made.args(["--auth=trust", "--username=demo", "--no-sync", "--locale=C", "-D"]).arg(&data);
        run_on_host(made.env("HOME", service.path()));
        let mut server = ending_with_test(&programs.join("postgres").display().to_string(), true);
        server.args(["-h", "127.0.0.1", "-F", "-p", &service.port.to_string(), "-k"]).arg(service.path());
        server.arg("-D").arg(data);
        service.child = Some(start(server, service.port));
        service
    }

    /// A store of keys and values.
    pub(super) fn redis() -> Self {
        let mut service = Self::new();
        let mut server = ending_with_test("/usr/bin/redis-server", true);
        server.args(["--bind", "127.0.0.1", "--save", "", "--dir", "/", "--port"]);
        server.arg(service.port.to_string());
        service.child = Some(start(server, service.port));
        service
    }
}

/// The programs of the newest PostgreSQL here.
pub(crate) fn postgres() -> Option<PathBuf> {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|bin| bin.join("initdb").exists()).max()
}

/// A program that is killed when this test ends. Some refuse to run as root.
fn ending_with_test(program: &str, plain_user: bool) -> Command {
    let mut command = Command::new("/usr/bin/setpriv");
    if plain_user && rustix::process::getuid().is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.args(["--pdeathsig=KILL", "--", program]);
    command
}

fn start(mut server: Command, port: u16) -> Child {
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = server.spawn().unwrap();
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(since.elapsed() < PATIENCE, "{server:?} does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A place that everyone may look into, and where the sandbox has no directory of its own as it has at `/tmp`.
pub(super) fn open_place() -> &'static Path {
    use std::os::unix::fs::PermissionsExt as _;
    let is_open = |place: &Path| {
        let all_enter = place
            .ancestors()
            .all(|above| above.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0));
        all_enter && rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
    };
    let places = [env!("CARGO_TARGET_TMPDIR"), "/srv", "/opt", "/usr/local/share"].map(Path::new);
    places.into_iter().find(|place| is_open(place)).unwrap_or(Path::new("/var/tmp"))
}

/// A directory that everyone may look into.
pub(super) fn directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::Builder::new().prefix("bailiwick-programs").tempdir_in(open_place()).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}
